"""Plain sentences out of reStructuredText: what a person would read aloud, without code, formulas and link targets."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

#: A role, as :func:`name`; some docstrings lack its first colon.
_ROLE = re.compile(r"(?::(?:[A-Za-z]+:)?[A-Za-z]+|\b(?:func|class|meth|attr|mod|ref)):`([^`]*)`")
_LINK = re.compile(r"`([^`<]+?)\s*<[^`>]*>`_{0,2}")
_TICKS = re.compile(r"``?([^`]*)``?_{0,2}")
_EMPHASIS = re.compile(r"(?<![\w*])\*{1,2}([^*\s](?:[^*]*[^*\s])?)\*{1,2}(?![\w*])")
_FOOTNOTE = re.compile(r"\s*\[#?[\w.-]*\]_")
_FRACTION = re.compile(r"\\[dt]?frac\{([^{}]*)\}\{([^{}]*)\}")
_SYMBOL = {
    "\\times": "×",
    "\\cdot": "·",
    "\\leq": "≤",
    "\\geq": "≥",
    "\\le": "≤",
    "\\ge": "≥",
    "\\in": "∈",
    "\\neq": "≠",
}
_COMMAND = re.compile(r"\\[A-Za-z]+")
_TEX = re.compile(r"\\(?:text|mathrm|mathbf|mathit|mathbb|operatorname|mathcal)\{([^{}]*)\}")
_BULLET = re.compile(r"(?:[-*+•]|\d{1,2}[.)]|\([a-z\d]\))\s+")
_TABLE = re.compile(r"[=+|-][=+|\s-]*$")
_HIDDEN = re.compile(r"\.\. (?:\[|_|\s*$)")


def plain(markup: str) -> str:
    """Return one line of text without inline markup: roles, links, literals, emphasis, footnote marks."""
    text = _ROLE.sub(lambda found: _target(found[1]), markup)
    text = _LINK.sub(r"\1", text)
    text = _TICKS.sub(lambda found: _target(found[1]), text)
    text = _EMPHASIS.sub(r"\1", text)
    text = _FOOTNOTE.sub("", text)
    text = text.replace("\\ ", "").replace("\\\\", "\\").replace("\x00", "")
    return re.sub(r"\s+", " ", text).strip()


def paragraphs(lines: Sequence[str]) -> list[str]:
    """Return the paragraphs and list items of a body as plain text, in order.

    Doctests, literal blocks, tables, link targets, footnotes and comments are left out.
    """
    found: list[str] = []
    gathered: list[str] = []
    for line in [*_spoken(lines), ""]:
        item = _BULLET.match(line.lstrip())
        if (not line.strip() or item) and gathered:
            found.append(plain(" ".join(gathered)))
            gathered = []
        if line.strip():
            gathered.append(line.strip()[item.end() if item else 0 :])
    return [text for text in found if re.search(r"[A-Za-z]{2}", text)]


def sentences(text: str) -> list[str]:
    """Split plain text after full stops, question and exclamation marks that end a sentence."""
    pieces = re.split(r"(?<=[.!?])(?<!e\.g\.)(?<!i\.e\.)(?<! vs\.)(?<! cf\.)\s+(?=[A-Z(\"'])", text)
    return [piece for piece in pieces if piece]


def clipped(text: str, limit: int) -> str:
    """Return text of at most `limit` characters, cut after a sentence where one ends early enough, else at a word."""
    if len(text) <= limit:
        return text
    kept = ""
    for sentence in sentences(text):
        longer = f"{kept} {sentence}".strip()
        if len(longer) > limit:
            break
        kept = longer
    return kept or text[: limit - 1].rsplit(" ", 1)[0].rstrip(" ,;:.") + "…"


def _target(content: str) -> str:
    """Return what a role or literal shows: its title, or its target without the marks that shorten it; TeX as words."""
    shown = re.sub(r"\s*<[^>]*>$", "", content).lstrip("~!.")
    if "\\" not in shown:
        return shown
    shown = _FRACTION.sub(r"\1/\2", _TEX.sub(r"\1", shown))
    shown = _COMMAND.sub(lambda found: _SYMBOL.get(found[0], found[0][1:]), shown)
    return re.sub(r"[\\{}]", "", shown)


def _spoken(lines: Sequence[str]) -> Iterator[str]:
    """Yield the lines that are prose; blank lines stand where something was left out."""
    doctest, literal, hidden = False, -1, -1
    for line in lines:
        text = line.strip()
        margin = len(line) - len(line.lstrip())
        if not text:
            doctest = False
            yield ""
            continue
        if (literal >= 0 and margin > literal) or (hidden >= 0 and margin > hidden):
            continue
        literal = hidden = -1
        doctest = doctest or text.startswith(">>>")
        if doctest or _TABLE.match(text):
            yield ""
        elif _HIDDEN.match(text + " ") or (text.startswith(".. ") and "::" not in text):
            hidden = margin
            yield ""
        elif text.endswith("::"):
            literal = margin
            yield line.rstrip()[:-1] if len(text) > 2 else ""
        else:
            yield line
