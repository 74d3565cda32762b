"""Docstrings cut into sections: numpydoc, Google style and the reStructuredText directives inside both.

A small reader of our own: numpydoc's needs sphinx, and docstring_parser settles on one style a docstring, while torch
mixes Google sections with directives and numpy mixes numpydoc sections with them.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass

#: Headings as written, in lower case, and the section they open; other numpydoc headings open a section of their name.
HEADINGS = {
    "args": "parameters",
    "arguments": "parameters",
    "keyword args": "parameters",
    "keyword arguments": "parameters",
    "inputs": "parameters",
    "outputs": "returns",
    "parameters": "parameters",
    "other parameters": "parameters",
    "attributes": "attributes",
    "methods": "methods",
    "shape": "shape",
    "return": "returns",
    "returns": "returns",
    "yields": "returns",
    "receives": "parameters",
    "raises": "raises",
    "warns": "warns",
    "warning": "warnings",
    "warnings": "warnings",
    "note": "notes",
    "notes": "notes",
    "explanation": "notes",
    "see also": "see also",
    "example": "examples",
    "examples": "examples",
    "reference": "references",
    "references": "references",
}
#: Directives that are sections of their own; every other directive is dropped with its body.
DIRECTIVES = {
    "warning": "warnings",
    "caution": "warnings",
    "danger": "warnings",
    "attention": "warnings",
    "important": "warnings",
    "note": "notes",
    "tip": "notes",
    "hint": "notes",
    "seealso": "see also",
    "deprecated": "deprecated",
    "versionchanged": "changed",
}
_DIRECTIVE = re.compile(r"(\s*)\.\.\s+([A-Za-z][\w:.-]*)::(?:\s+(.*))?$")
_RULE = re.compile(r"[-=]{3,}\s*$")
_PARAMETER = re.compile(r"\*{0,2}([A-Za-z_]\w*)(?:\s*:|\s*\(|,|\s*$)")
_GOOGLE = re.compile(r"([A-Za-z][A-Za-z ]*?)\s*::?\s*$")


@dataclass(frozen=True, kw_only=True)
class Section:
    """One piece of a docstring.

    name: ``summary`` (all that stands before the first heading) or a value of `HEADINGS` and `DIRECTIVES`; lines: the
    body, dedented; version: what a ``deprecated`` or ``versionchanged`` directive names; whole: whether the section
    speaks of the whole object, not of a parameter or a section it stands in; parameter: the one it stands under.
    """

    name: str
    lines: tuple[str, ...]
    version: str = ""
    whole: bool = True
    parameter: str = ""


def sections(docstring: str | None) -> list[Section]:
    """Cut a docstring into its sections, in order of appearance, directives after the text they stood in.

    A call signature in the first paragraph is left out, empty sections are too.
    """
    lines = inspect.cleandoc(docstring or "").expandtabs().splitlines()
    found: list[Section] = []
    for name, body in _headed(_without_signature(lines)):
        rest, lifted = _lift(_dedent_list(body), of=name)
        if any(rest):
            found.append(Section(name=name, lines=_dedent(rest)))
        found.extend(lifted)
    return found


def _without_signature(lines: list[str]) -> list[str]:
    """Drop first paragraphs that are call signatures, as numpy's ufuncs and torch's built-ins have it."""
    while lines and re.match(r"[A-Za-z_][\w.]*\(", lines[0]):
        end = next((at for at, line in enumerate(lines) if not line.strip()), len(lines))
        below = next((at for at in range(end, len(lines)) if lines[at].strip()), None)
        lines = [] if below is None else lines[below:]
    return lines


def _headed(lines: list[str]) -> Iterator[tuple[str, list[str]]]:
    """Yield (section, its lines); what follows a Google section at the margin belongs to the summary again."""
    name, google, body = "summary", False, list[str]()
    at = 0
    while at < len(lines):
        line = lines[at]
        heading = _numpydoc_heading(lines, at)
        if heading:
            yield name, body
            name, google, body = heading, False, []
            at += 2
            continue
        heading = _google_heading(lines, at)
        if heading:
            yield name, body
            name, google, body = heading, True, []
        elif google and line and not line[0].isspace():
            yield name, body
            name, google, body = "summary", False, [line]
        else:
            body.append(line)
        at += 1
    yield name, body


def _numpydoc_heading(lines: list[str], at: int) -> str:
    """Return the section that an underlined heading opens here, or nothing."""
    if at + 1 >= len(lines) or not _RULE.match(lines[at + 1]) or not lines[at][:1].isalpha():
        return ""
    heading = lines[at].strip().rstrip(":").lower()
    if heading in HEADINGS:
        return HEADINGS[heading]
    apart = at == 0 or not lines[at - 1].strip()
    return heading if apart and re.fullmatch(r"[a-z][a-z -]{2,40}", heading) else ""


def _google_heading(lines: list[str], at: int) -> str:
    """Return the section that a ``Name:`` at the margin with an indented body opens here, or nothing."""
    match = _GOOGLE.match(lines[at])
    if not match or match[1].lower() not in HEADINGS:
        return ""
    below = next((line for line in lines[at + 1 :] if line.strip()), "")
    return HEADINGS[match[1].lower()] if below[:1].isspace() else ""


def _lift(lines: list[str], *, of: str) -> tuple[list[str], list[Section]]:
    """Take the directives out of the body of section `of`; return what is left and those that are sections."""
    rest: list[str] = []
    lifted: list[Section] = []
    parameter = ""
    at = 0
    while at < len(lines):
        match = _DIRECTIVE.match(lines[at])
        if not match:
            named = _PARAMETER.match(lines[at]) if of in ("parameters", "attributes") else None
            parameter = named[1] if named else parameter
            rest.append(lines[at])
            at += 1
            continue
        margin = len(match[1])
        end = at + 1
        while end < len(lines) and (not lines[end].strip() or _indent(lines[end]) > margin):
            end += 1
        name = DIRECTIVES.get(match[2].lower())
        if name:
            version, argument = _argument(name, (match[3] or "").strip())
            body, inner = _lift(_dedent_list(lines[at + 1 : end]), of=name)
            body = [argument, *body] if argument else body
            if any(line.strip() for line in body) or version:
                whole = of in ("summary", "notes") and margin == 0
                lifted.append(
                    Section(name=name, lines=_dedent(body), version=version, whole=whole, parameter=parameter)
                )
            lifted.extend(inner)
        rest.append("")
        at = end
    return rest, lifted


def _argument(name: str, argument: str) -> tuple[str, str]:
    """Split a directive's argument into (version, text)."""
    if name not in ("deprecated", "changed"):
        return "", argument
    version, _, text = argument.partition(" ")
    return version.rstrip(":,."), text.strip()


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _dedent_list(lines: list[str]) -> list[str]:
    """Remove the margin that all non-blank lines share."""
    margin = min((_indent(line) for line in lines if line.strip()), default=0)
    return [line[margin:].rstrip() for line in lines]


def _dedent(lines: list[str]) -> tuple[str, ...]:
    """Remove the shared margin and the blank lines at both ends."""
    shifted = _dedent_list(lines)
    while shifted and not shifted[0]:
        shifted.pop(0)
    while shifted and not shifted[-1]:
        shifted.pop()
    return tuple(shifted)
