"""The demo's input files: a history that is loaded silently and two batches of news that travel.

Each subpackage has one maintainer, an agent: its cells are hers, and where its See Also names another subpackage's
thing she has read that one too. Declared edges: See Also, from summary to summary, and from every other section to the
summary of its thing. News is what a maintainer would like to hear about: deprecations, changes, warnings, advice.
Times are fixed distances from the `as_of` given, so equal libraries and equal `as_of` give equal bytes.
"""

from __future__ import annotations

import json
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from hyphae_gpu.demo.corpus import Cell, cells_of, resolved
from hyphae_gpu.demo.libraries import SUBPACKAGES, documented

#: Knowledge types that are news; everything else is history.
NEWS_TYPES = frozenset({"decision", "risk", "preference"})
#: What each batch is called in the story, and its epoch's time in days before `as_of`.
BATCHES = (("history", 4.0), ("news-monday", 4.0), ("news-thursday", 1.0))
#: How many days before its epoch a batch's cells were written: from, to.
_WRITTEN = {"history": (4.0, 24.0), "news-monday": (0.1, 2.9), "news-thursday": (0.1, 2.9)}
#: What every maintainer declared to care for; 0.2 opens a gate that the cosine alone nearly opens (spec 3.3).
INTERESTS = {"decision": 0.2, "risk": 0.2}
_SEE_ALSO_WEIGHT = 0.8
_SECTION_WEIGHT = 0.9


@dataclass(frozen=True, kw_only=True)
class Beacon:
    """A standing subscription of the demo: what it listens for, whose inbox it fills."""

    topic: str
    subpackage: str
    text: str
    interests: dict[str, float]

    @property
    def id(self) -> str:
        """The beacon's id, readable in an inbox."""
        return f"{self.topic} beacon"


#: Questions that cross all libraries, and the maintainer who keeps asking each.
BEACONS = (
    Beacon(
        topic="deprecations",
        subpackage="sklearn.utils",
        text="deprecated and will be removed in a future version, use the replacement function instead",
        interests={"decision": 1.0},
    ),
    Beacon(
        topic="numerical precision",
        subpackage="numpy.linalg",
        text="numerical precision, ill-conditioned or singular matrix, rounding, cancellation, numerically unstable",
        interests={"risk": 1.0, "preference": 0.5},
    ),
    Beacon(
        topic="thread safety",
        subpackage="joblib",
        text="thread safety, multiple threads, worker processes, multiprocessing, fork, deadlock",
        interests={"risk": 1.0, "preference": 0.5},
    ),
    Beacon(
        topic="random numbers",
        subpackage="numpy.random",
        text="random number generator, seed, random_state, reproducible results, nondeterministic behaviour",
        interests={"risk": 1.0, "decision": 0.5, "preference": 0.5},
    ),
    Beacon(
        topic="untrusted input",
        subpackage="scipy.io",
        text="security, untrusted data, pickle, arbitrary code execution, malicious",
        interests={"risk": 1.0, "decision": 0.5},
    ),
)


@dataclass(frozen=True, kw_only=True)
class Batch:
    """One file of rows: whether its cells make diffs, and the time of the epoch that takes it in."""

    name: str
    path: Path
    as_of: datetime
    news: bool
    rows: int
    cells: int
    agents: int


def agent_of(subpackage: str) -> str:
    """Return the id of the agent who looks after a subpackage."""
    return f"{subpackage} maintainer"


def write_corpus(directory: Path, as_of: datetime, subpackages: Iterable[str] = SUBPACKAGES) -> list[Batch]:
    """Write the demo's rows as JSONL files (interfaces.md, `ingest`) and return the batches in order.

    `as_of` is the time of the last epoch, with a zone. The directory is made; older files of the same names are
    replaced. Raises ValueError for a time without a zone.
    """
    if as_of.tzinfo is None:
        raise ValueError(f"as_of is {as_of.isoformat()}, expected a time with a zone")
    directory.mkdir(parents=True, exist_ok=True)
    things, aliases = documented(subpackages)
    cells = _without_echoes(cell for thing in things for cell in cells_of(thing))
    links = list(_links(cells, aliases))
    batch_of = {cell.id: _batch_of(cell) for cell in cells}
    order = [name for name, _ in BATCHES]
    times = {name: as_of - timedelta(days=days) for name, days in BATCHES}
    rows: dict[str, list[dict[str, Any]]] = {name: [] for name in order}
    rows["history"].extend(_agent_rows(cells))
    for cell in cells:
        name = batch_of[cell.id]
        rows[name].append(_cell_row(cell, _before(times[name], cell.id, *_WRITTEN[name])))
    for cell, target, weight in links:
        name = max(batch_of[cell.id], batch_of[target], key=order.index)
        rows[name].append({"kind": "edge", "src": cell.id, "tgt": target, "type": "causal", "weight": weight})
    rows["history"].extend(_access_rows(cells, links, times["history"]))
    rows["history"].extend(_beacon_rows(cells))
    return [_write(directory, name, rows[name], times[name]) for name in order]


def _without_echoes(cells: Iterable[Cell]) -> list[Cell]:
    """Leave out what was said before in the same words, summaries apart: boilerplate that many docstrings repeat."""
    said: set[tuple[str, str]] = set()
    kept: list[Cell] = []
    for cell in cells:
        words = (cell.section, cell.text.partition(": ")[2])
        if cell.section == "summary" or words not in said:
            said.add(words)
            kept.append(cell)
    return kept


def _batch_of(cell: Cell) -> str:
    """Return the batch a cell comes in: one thing's news comes in one batch."""
    if cell.knowledge_type not in NEWS_TYPES:
        return "history"
    return "news-monday" if _draw(cell.thing) < 0.5 else "news-thursday"


def _draw(text: str) -> float:
    """Return a number in [0, 1) that a text always gets, spread like chance."""
    return zlib.crc32(text.encode()) / 2**32


def _before(moment: datetime, text: str, nearest: float, farthest: float) -> datetime:
    """Return the text's own time, so many days before a moment, to the second."""
    days = nearest + (farthest - nearest) * _draw(f"when {text}")
    return (moment - timedelta(days=days)).replace(microsecond=0)


def _links(cells: list[Cell], aliases: dict[str, str]) -> Iterator[tuple[Cell, str, float]]:
    """Yield (cell, target id, weight): each section to its summary, each summary to what it says to see also."""
    known = {cell.id for cell in cells if cell.section == "summary"}
    for cell in cells:
        if cell.section != "summary":
            yield cell, cell.thing, _SECTION_WEIGHT
        for target in resolved(cell.names, cell, known, aliases):
            yield cell, target, _SEE_ALSO_WEIGHT


def _agent_rows(cells: list[Cell]) -> Iterator[dict[str, Any]]:
    for subpackage in dict.fromkeys(cell.subpackage for cell in cells):
        yield {"kind": "agent", "id": agent_of(subpackage), "interests": INTERESTS}


def _cell_row(cell: Cell, written: datetime) -> dict[str, Any]:
    row: dict[str, Any] = {
        "kind": "cell",
        "id": cell.id,
        "text": cell.text,
        "knowledge_type": cell.knowledge_type,
        "salience": cell.salience,
        "agent": agent_of(cell.subpackage),
        "created_at": written.isoformat(),
        "payload": {"title": cell.title, "of": cell.of, "section": cell.section},
    }
    if cell.supersedes:
        row["supersedes"] = cell.supersedes
    return row


def _access_rows(cells: list[Cell], links: list[tuple[Cell, str, float]], moment: datetime) -> Iterator[dict[str, Any]]:
    """Yield an access for each first time that a maintainer's See Also leads out of her subpackage."""
    home = {cell.id: cell.subpackage for cell in cells}
    seen: set[tuple[str, str]] = set()
    for cell, target, _ in links:
        pair = (cell.subpackage, target)
        if home[target] != cell.subpackage and pair not in seen:
            seen.add(pair)
            at = _before(moment, f"{cell.subpackage} reads {target}", 0.5, 20.0)
            yield {"kind": "access", "agent": agent_of(cell.subpackage), "cell": target, "at": at.isoformat()}


def _beacon_rows(cells: list[Cell]) -> Iterator[dict[str, Any]]:
    """Yield the beacons whose owner is there."""
    here = {cell.subpackage for cell in cells}
    for beacon in BEACONS:
        if beacon.subpackage in here:
            yield {
                "kind": "beacon",
                "id": beacon.id,
                "agent": agent_of(beacon.subpackage),
                "text": beacon.text,
                "interests": beacon.interests,
            }


def _write(directory: Path, name: str, rows: list[dict[str, Any]], as_of: datetime) -> Batch:
    path = directory / f"{name}.jsonl"
    lines = (json.dumps(row, ensure_ascii=False, separators=(",", ":")) for row in rows)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    kinds = Counter(row["kind"] for row in rows)
    return Batch(
        name=name,
        path=path,
        as_of=as_of,
        news=name != "history",
        rows=len(rows),
        cells=kinds["cell"],
        agents=kinds["agent"],
    )
