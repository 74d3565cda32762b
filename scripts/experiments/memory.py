"""A study's project held in memory, which `run_epochs` runs as it runs a store (`engine.Project`)."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
import numpy.typing as npt

from experiments.replay import NO_EDGES, node_table
from experiments.studies import Study
from hyphae_gpu.state import (
    PENDING_CREATED,
    AccessLog,
    Checkpoint,
    DiffTable,
    InboxKeys,
    InboxTable,
    IndexArrays,
    NodeTable,
    SwarmState,
)

I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]


class MemoryProject:
    """All people of a study, and its cells as far as they were taken in."""

    def __init__(self, study: Study, vectors: npt.NDArray[np.float32]) -> None:
        self._study = study
        self._all = node_table(study, vectors)
        self._people = len(study.people)
        self._origins: dict[int, int] = {}
        #: the last epoch's inbox
        self.inbox: InboxTable | None = None
        self._state = SwarmState(
            epoch=0,
            dimension=vectors.shape[1],
            nodes=_rows(self._all, slice(0, self._people)),
            accesses=_log([], [], []),
            declared=NO_EDGES,
            topology=NO_EDGES,
            diffs=_no_diffs(vectors.shape[1]),
            next_diff=0,
            sequences=np.zeros(self._people, np.int32),
            delivered=InboxKeys(agents=np.zeros(0, np.int32), diffs=np.zeros(0, np.int64), vias=np.zeros(0, np.int32)),
            index=IndexArrays(
                founders=np.zeros(0, np.int32),
                vectors=np.zeros((0, vectors.shape[1]), np.float32),
                levels=np.zeros(0, np.int32),
                links=np.zeros(0, np.int32),
                entry_point=-1,
                max_level=-1,
            ),
        )

    @property
    def cells(self) -> int:
        """How many of the study's cells were taken in."""
        return len(self._state.nodes) - self._people

    def take_in(self, cells: int, agents: I32, accessed: I32, at: I64) -> None:
        """Take in the study's cells up to a number, each of which makes a diff, and new rows of the access log.

        agents, accessed (cell numbers) int32, at int64: the rows, beside those that makers log of what they make.
        """
        state, study, before = self._state, self._study, self.cells
        new = np.arange(before, cells)
        fresh = _rows(self._all, slice(self._people + before, self._people + cells))
        fresh.pending[:] = PENDING_CREATED
        state.nodes = _joined(state.nodes, fresh)
        state.sequences = np.concatenate([state.sequences, np.zeros(len(new), np.int32)])
        made = new[study.makers[new] >= 0].astype(np.int32)
        state.accesses = _log(
            [state.accesses.agents, study.makers[made], agents],
            [state.accesses.cells, made + np.int32(self._people), accessed + np.int32(self._people)],
            [state.accesses.at, study.times[made], at],
        )

    def entries(self) -> tuple[I64, I64, I64]:
        """Return the last epoch's gossip entries: agents, cells (numbers of the study), places."""
        inbox = self.inbox
        if inbox is None:
            return (np.zeros(0, np.int64),) * 3
        cells = np.array([self._origins[number] for number in inbox.diffs.tolist()], np.int64) - self._people
        return inbox.agents.astype(np.int64), cells, inbox.places.astype(np.int64)

    def load(self) -> SwarmState:
        """Return the project; the engine works on it in place."""
        return self._state

    def texts(self, numbers: npt.NDArray[np.integer[Any]]) -> list[str | None]:
        """Return no texts: no rule that is measured here reads them."""
        return [None] * len(numbers)

    def checkpoint(self, done: Checkpoint) -> None:
        """Keep what the engine does not leave in the state."""
        self.inbox = done.inbox
        self._state.index = done.index or self._state.index
        made = done.new_diffs
        self._origins |= dict(zip(made.numbers.tolist(), made.origins.tolist(), strict=True))


def _rows(table: NodeTable, rows: slice) -> NodeTable:
    return NodeTable(**{spec.name: getattr(table, spec.name)[rows].copy() for spec in fields(NodeTable)})


def _joined(first: NodeTable, second: NodeTable) -> NodeTable:
    return NodeTable(
        **{
            spec.name: np.concatenate([getattr(first, spec.name), getattr(second, spec.name)])
            for spec in fields(NodeTable)
        }
    )


def _log(agents: list[I32], cells: list[I32], at: list[I64]) -> AccessLog:
    return AccessLog(
        agents=np.concatenate([np.zeros(0, np.int32), *agents]).astype(np.int32),
        cells=np.concatenate([np.zeros(0, np.int32), *cells]).astype(np.int32),
        at=np.concatenate([np.zeros(0, np.int64), *at]),
    )


def _no_diffs(dimension: int) -> DiffTable:
    columns = {
        "numbers": np.int64,
        "origins": np.int32,
        "sequence": np.int32,
        "types": np.int8,
        "knowledge_types": np.int8,
        "saliences": np.float32,
        "energies": np.float32,
        "units": np.int32,
        "max_hops": np.int32,
        "ttl": np.int32,
        "epoch_created": np.int32,
    }
    empty = {name: np.zeros(0, kind) for name, kind in columns.items()}
    return DiffTable(vectors=np.zeros((0, dimension), np.float32), **empty)
