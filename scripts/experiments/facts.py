"""Dated facts streamed into a project held in memory, and the contradictions that gossip finds among them."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from experiments.dataset import SECOND, MissingDataError
from hyphae_gpu.config import Settings
from hyphae_gpu.engine import run_epochs
from hyphae_gpu.state import (
    PENDING_CREATED,
    AccessLog,
    Checkpoint,
    DiffTable,
    EdgeTable,
    InboxKeys,
    IndexArrays,
    NodeTable,
    SwarmState,
)
from hyphae_gpu.vocabulary import KnowledgeType, NodeType

FACTS, VECTORS = "kep_fact_stream.jsonl", "kep_fact_stream.minilm.npy"
SALIENCE = 0.9
EPOCH_FACTS = 50

I64 = npt.NDArray[np.int64]
Pair = tuple[int, int]
Told = Callable[[int, int], None]


@dataclass(frozen=True, kw_only=True)
class Stream:
    """Facts in the order of arrival; subjects, values: int32 codes; arrived int64 microseconds, never falling.

    known: (earlier, later) facts that the data calls conflicts, by place in this order.
    """

    texts: tuple[str, ...]
    vectors: npt.NDArray[np.float32]
    subjects: npt.NDArray[np.int32]
    values: npt.NDArray[np.int32]
    arrived: I64
    known: frozenset[Pair]

    def differing(self) -> set[Pair]:
        """Return all pairs of one subject and different values, as (earlier, later)."""
        by_subject: dict[int, list[int]] = defaultdict(list)
        for fact, subject in enumerate(self.subjects.tolist()):
            by_subject[subject].append(fact)
        return {
            (first, second)
            for facts in by_subject.values()
            for place, second in enumerate(facts)
            for first in facts[:place]
            if self.values[first] != self.values[second]
        }


def load(folder: Path, *, by_clock: bool = False) -> Stream:
    """Read the stream; raises MissingDataError where a file is missing.

    The file stands in the order of the repository's history, in which some commits carry an earlier clock than those
    before them. A fact arrives when its commit does: at the latest clock so far. With `by_clock` facts are put in the
    order of their own clocks instead.
    """
    missing = [name for name in (FACTS, VECTORS) if not (folder / name).is_file()]
    if missing:
        raise MissingDataError(f"{folder} lacks {', '.join(missing)}; --data names the folder that has them")
    rows = [json.loads(line) for line in (folder / FACTS).read_text("utf-8").splitlines()]
    order = sorted(range(len(rows)), key=lambda i: (rows[i]["t"], i)) if by_clock else list(range(len(rows)))
    place = {rows[i]["fid"]: at for at, i in enumerate(order)}
    rows = [rows[i] for i in order]
    conflicts = ((place[row["contradicts"]], place[row["fid"]]) for row in rows if row["contradicts"] is not None)
    return Stream(
        texts=tuple(row["text"] for row in rows),
        vectors=np.load(folder / VECTORS, allow_pickle=False)[order].astype(np.float32),
        subjects=_codes([(row["cell"], row["field"]) for row in rows]),
        values=_codes([row["value"] for row in rows]),
        arrived=np.maximum.accumulate(np.array([row["t"] for row in rows], np.int64) * SECOND),
        known=frozenset((min(pair), max(pair)) for pair in conflicts),
    )


def _codes(values: Sequence[Any]) -> npt.NDArray[np.int32]:
    codes: dict[Any, int] = {}
    return np.array([codes.setdefault(value, len(codes)) for value in values], np.int32)


class FactProject:
    """Cells that arrive one after the other, which `run_epochs` runs as it runs a store (`engine.Project`).

    Epochs make nodes of their own, such as scenes, so a cell's node number is not its place among those that arrive.
    """

    def __init__(self, table: NodeTable, texts: Sequence[str]) -> None:
        self._all, self._texts = table, texts
        dimension = table.vectors.shape[1]
        none = np.zeros(0, np.int32)
        self._state = SwarmState(
            epoch=0,
            dimension=dimension,
            nodes=_rows(table, slice(0, 0)),
            accesses=AccessLog(agents=none, cells=none, at=np.zeros(0, np.int64)),
            declared=_no_edges(),
            topology=_no_edges(),
            diffs=_no_diffs(dimension),
            next_diff=0,
            sequences=none,
            delivered=InboxKeys(agents=none, diffs=np.zeros(0, np.int64), vias=none),
            indexes=[IndexArrays.empty(dimension) for _ in range(3)],
        )
        self._arrived = 0
        #: by node number: the place of each among the cells that arrive, -1 for what an epoch made; and its text
        self._places: list[int] = []
        self._said: list[str | None] = []
        self.done: list[Checkpoint] = []

    def arrive(self, until: int) -> None:
        """Take in the cells up to a place, each of which makes a diff."""
        state, places = self._state, range(self._arrived, until)
        fresh = _rows(self._all, slice(places.start, places.stop))
        self._places += places
        self._said += self._texts[places.start : places.stop]
        self._arrived = until
        columns = (spec.name for spec in fields(NodeTable))
        state.nodes = NodeTable(
            **{name: np.concatenate([getattr(state.nodes, name), getattr(fresh, name)]) for name in columns}
        )
        state.sequences = np.concatenate([state.sequences, np.zeros(len(fresh), np.int32)])
        state.node_scenes = np.concatenate([state.node_scenes, np.full(len(fresh), -1, np.int32)])

    def load(self) -> SwarmState:
        """Return the project; the engine works on it in place."""
        return self._state

    def checkpoint(self, done: Checkpoint) -> None:
        """Keep an epoch, and what the engine does not leave in the state."""
        new = done.new_nodes
        for text, cell in zip(new.texts, new.made_of.tolist(), strict=True):
            self._places.append(-1)
            self._said.append(self._said[cell] if text is None and cell >= 0 else text)
        self.done.append(done)

    def texts(self, numbers: npt.NDArray[np.integer[Any]]) -> list[str | None]:
        """Return the texts of nodes by number."""
        return [self._said[number] for number in numbers.tolist()]

    def raised(self, done: Checkpoint) -> list[Pair]:
        """Return the contradictions that an epoch raised, as places of (earlier, later) cells."""
        found = done.contradictions
        return [(self._places[a], self._places[b]) for a, b in zip(found.a.tolist(), found.b.tolist(), strict=True)]


def cells(vectors: npt.NDArray[np.float32], created_at: I64, *, subjects: Any = None, values: Any = None) -> NodeTable:
    """Return one new cell a vector: a fact of salience `SALIENCE` without a maker, with or without a claim."""
    count = len(vectors)
    none = np.full(count, -1, np.int32)
    return NodeTable(
        types=np.full(count, NodeType.CELL, np.int8),
        layers=np.zeros(count, np.int8),
        vectors=vectors,
        placed=np.ones(count, np.bool_),
        knowledge_types=np.full(count, KnowledgeType.FACT, np.int8),
        saliences=np.full(count, SALIENCE, np.float32),
        makers=none,
        created_at=created_at,
        last_access=created_at.copy(),
        superseded_by=none.copy(),
        pending=np.full(count, PENDING_CREATED, np.int8),
        interests=np.zeros((count, len(KnowledgeType)), np.float32),
        radii=np.full(count, np.nan),
        quarantined=np.zeros(count, np.bool_),
        claim_subjects=none.copy() if subjects is None else subjects,
        claim_values=none.copy() if values is None else values,
    )


def streamed(stream: Stream, settings: Settings, told: Told) -> dict[str, Any]:
    """Stream all facts in epochs of `EPOCH_FACTS` under some settings; return what was raised and when.

    `told` hears of each epoch: its number, and how many there are.
    """
    table = cells(stream.vectors, stream.arrived, subjects=stream.subjects, values=stream.values)
    project = FactProject(table, stream.texts)
    ends = [*range(EPOCH_FACTS, len(stream.texts), EPOCH_FACTS), len(stream.texts)]
    for end in ends:
        project.arrive(end)
        run_epochs(project, settings, as_of=int(stream.arrived[end - 1]))
        told(len(project.done), len(ends))
    raised = {pair: done.epoch for done in project.done for pair in project.raised(done)}
    hops: Counter[int] = Counter()
    for done in project.done:
        hops.update({int(hop): count for hop, count in done.counts["met_after"].items()})
    wanted = stream.differing() if settings.policy == "flag" else set(stream.known)
    return {
        "policy": settings.policy,
        "decay_per_day": settings.decay_per_day,
        "wanted": len(wanted),
        "raised": len(raised),
        "right": len(wanted & raised.keys()),
        "in the epoch of the second fact": sum(epoch == pair[1] // EPOCH_FACTS + 1 for pair, epoch in raised.items()),
        "missed": sorted(wanted - raised.keys()),
        "not wanted": sorted(raised.keys() - wanted),
        "rounds until the two met": {str(hop): count for hop, count in sorted(hops.items())},
        "epochs": len(ends),
        "gossip rounds": max(done.counts["rounds"] for done in project.done),
        "live at the end": project.done[-1].counts["live_cells"],
        "state_hash": project.done[-1].state_hash,
    }


def _rows(table: NodeTable, rows: slice) -> NodeTable:
    return NodeTable(**{spec.name: getattr(table, spec.name)[rows].copy() for spec in fields(NodeTable)})


def _no_edges() -> EdgeTable:
    none, codes = np.zeros(0, np.int32), np.zeros(0, np.int8)
    return EdgeTable(
        sources=none, targets=none, types=codes, kinds=codes, weights=np.zeros(0, np.float32), bandwidths=none
    )


def _no_diffs(dimension: int) -> DiffTable:
    none, codes, reals = np.zeros(0, np.int32), np.zeros(0, np.int8), np.zeros(0, np.float32)
    return DiffTable(
        numbers=np.zeros(0, np.int64),
        origins=none,
        sequence=none,
        types=codes,
        knowledge_types=codes,
        vectors=np.zeros((0, dimension), np.float32),
        saliences=reals,
        energies=reals,
        units=none,
        max_hops=none,
        ttl=none,
        epoch_created=none,
    )
