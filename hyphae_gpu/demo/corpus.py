"""Documentation as typed knowledge: a docstring becomes one cell a section.

===================  ==============  ========================================================================
section              knowledge type  remarks
===================  ==============  ========================================================================
first paragraphs     fact            the *summary*, which the other sections of the thing point to
Raises               constraint
Warnings, Warns      risk            also ``.. warning::`` and its kin; one that deprecates is a decision
Notes                context         ``.. note::`` too; a note that recommends or prefers is a preference
deprecated           decision        supersedes the summary when the whole thing is deprecated
versionchanged       decision        what was decided to change
Examples             lesson          the sentences around the code; without any, no cell
===================  ==============  ========================================================================

Nothing in documentation is a `pattern` (swarms make those) or a `task`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from hyphae_gpu.demo.docstrings import Section, sections
from hyphae_gpu.demo.libraries import Documented
from hyphae_gpu.demo.prose import clipped, paragraphs, plain, sentences

#: Characters of a cell's text at most.
TEXT_LIMIT = 900
_TITLE_LIMIT = 140
#: (knowledge type, salience) of each section.
TYPES = {
    "summary": ("fact", 0.6),
    "raises": ("constraint", 0.7),
    "warnings": ("risk", 0.8),
    "warns": ("risk", 0.7),
    "notes": ("context", 0.5),
    "deprecated": ("decision", 0.9),
    "changed": ("decision", 0.7),
    "examples": ("lesson", 0.5),
}
_LABELS = {
    "raises": "raises",
    "warnings": "warning",
    "warns": "warns",
    "notes": "note",
    "deprecated": "deprecated",
    "changed": "changed",
    "examples": "example",
}
#: Characters of a note up to which one recommendation makes the whole of it a preference.
_ADVICE_LIMIT = 400
_PREFERENCE = re.compile(r"\b(recommend|prefer|advis(?:ed|able)|(?:en|dis)couraged?\b|better to\b|best practice)", re.I)
_DEPRECATION = re.compile(r"\b(?:is|are|was|were|been)(?: now)? deprecated\b|^deprecated\b|will be removed", re.I)
_PART = re.compile(r"\b(argument|parameter|keyword|option|position|passing|attribute|behaviou?r|default|value)", re.I)
_SET = re.compile(r"\{('[^'{}]*'(?:, '[^'{}]*')*)\}")
_NAME = re.compile(r"[A-Za-z_][\w.]*")


@dataclass(kw_only=True)
class Cell:
    """One section of one thing's documentation.

    thing: its dotted name; of: the same, with the parameter where the section speaks of one; names: the things that
    its See Also points to.
    """

    id: str
    thing: str
    of: str
    subpackage: str
    section: str
    knowledge_type: str
    salience: float
    text: str
    title: str
    supersedes: str | None = None
    names: list[str] = field(default_factory=list)


def cells_of(thing: Documented) -> list[Cell]:
    """Turn one thing's docstring into its cells, the summary first; nothing without a summary."""
    counts: dict[str, int] = {}
    cells: list[Cell] = []
    names: list[str] = []
    for section in sections(thing.docstring):
        if section.name == "see also":
            names.extend(_see_also(section))
        if section.name not in TYPES or (section.name == "summary" and cells):
            continue
        cell = _cell(thing, section)
        if cell is None or (not cells and section.name != "summary"):
            continue
        counts[cell.id] = counts.get(cell.id, 0) + 1
        if counts[cell.id] > 1:
            cell.id += f"-{counts[cell.id]}"
        cells.append(cell)
    if cells:
        cells[0].names = names
    return cells


def _cell(thing: Documented, section: Section) -> Cell | None:
    """Turn one section into a cell; None where it says nothing in words."""
    spoken = _raised(section) if section.name in ("raises", "warns") else paragraphs(section.lines)
    said = clipped(_steadied(" ".join(spoken)), TEXT_LIMIT)
    if len(said) < (60 if section.name == "examples" else 12):
        return None
    knowledge_type, salience = TYPES[section.name]
    supersedes = None
    deprecates = section.name == "warnings" and _DEPRECATION.search(sentences(said)[0])
    if deprecates:
        knowledge_type, salience = TYPES["deprecated"]
    elif section.name == "notes" and len(said) <= _ADVICE_LIMIT and _PREFERENCE.search(said):
        knowledge_type = "preference"
    if section.name == "summary":
        return Cell(
            id=thing.name,
            thing=thing.name,
            of=thing.name,
            subpackage=thing.subpackage,
            section="summary",
            knowledge_type=knowledge_type,
            salience=salience,
            text=f"{thing.name}: {said}",
            title=_title(said),
        )
    label = "deprecated" if deprecates else _LABELS[section.name]
    if section.whole and (section.name == "deprecated" or deprecates) and _is_about(thing, said, section.name):
        supersedes = thing.name
    heading = " ".join(filter(None, (thing.name, section.parameter, label, section.version)))
    return Cell(
        id=f"{thing.name} ({' '.join(filter(None, (section.parameter, label)))})",
        thing=thing.name,
        of=f"{thing.name}({section.parameter})" if section.parameter else thing.name,
        subpackage=thing.subpackage,
        section=label,
        knowledge_type=knowledge_type,
        salience=salience,
        text=f"{heading}: {said}",
        title=_title(said),
        supersedes=supersedes,
    )


def _title(said: str) -> str:
    """Return the first sentences, without a last one that announces code which is not there."""
    kept = sentences(clipped(said, _TITLE_LIMIT))
    while len(kept) > 1 and kept[-1].endswith(":"):
        kept.pop()
    return " ".join(kept)


def _is_about(thing: Documented, said: str, section: str) -> bool:
    """Whether a deprecation speaks of the thing itself, not of a parameter or a way to call it.

    A directive is about the thing unless its first sentence names a part; a warning has to begin with the thing.
    """
    first = sentences(said)[0]
    if section == "deprecated":
        return not _PART.search(first)
    short = re.escape(thing.name.rpartition(".")[2])
    return bool(re.match(rf"(?:this (?:function|method|class|module)|[\w.]*\b{short}(?:\(\))?)\s", first, re.I))


def _steadied(text: str) -> str:
    """Sort the words of sets that a library printed into its docstring: their order changes from process to process."""
    return _SET.sub(lambda found: "{" + ", ".join(sorted(found[1].split(", "))) + "}", text)


def _raised(section: Section) -> list[str]:
    """Return what a Raises or Warns section says, an exception and its reason a piece."""
    pieces: list[list[str]] = []
    for line in section.lines:
        if line[:1].isspace() and pieces:
            pieces[-1].append(line.strip())
        elif line.strip():
            pieces.append([line.strip()])
    joined = (f"{piece[0].rstrip(':')}: {' '.join(piece[1:])}" if len(piece) > 1 else piece[0] for piece in pieces)
    return [plain(piece) for piece in joined]


def _see_also(section: Section) -> list[str]:
    """Return the dotted names that a See Also section points to, as written, without its descriptions."""
    found: list[str] = []
    for line in section.lines:
        if line[:1].isspace() or not line.strip():
            continue
        listed = plain(line.partition(" : ")[0]) if "`" not in line else " ".join(re.findall(r"`([^`]+)`", line))
        found.extend(name.strip(".~") for name in _NAME.findall(listed.replace("~", " ")))
    return found


def resolved(names: Iterable[str], cell: Cell, known: set[str], aliases: dict[str, str]) -> list[str]:
    """Return the ids of the summaries that See Also names mean, looked for from the thing's own place outwards."""
    library = cell.subpackage.partition(".")[0]
    places = [cell.thing.rpartition(".")[0], cell.subpackage, library]
    found: list[str] = []
    for name in names:
        for candidate in (name, *(f"{place}.{name}" for place in places)):
            target = aliases.get(candidate, candidate)
            if target in known and target != cell.id and target not in found:
                found.append(target)
                break
    return found
