"""The first step of an epoch: what rows since the last one mean for diffs and times (spec 8.1, 3.1, 6.5)."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
import numpy.typing as npt

from hyphae_gpu.columns import as_tensor
from hyphae_gpu.energies import initial_energy, units
from hyphae_gpu.state import (
    PENDING_CREATED,
    PENDING_PATTERN,
    PENDING_SILENT,
    PENDING_UPDATED,
    SETTLED,
    DiffTable,
    SwarmState,
)
from hyphae_gpu.swarm import Diffs
from hyphae_gpu.vectors import lengths, quantise
from hyphae_gpu.vocabulary import DiffType

#: What a cell's mark makes it say.
_TELLING = {
    PENDING_CREATED: DiffType.CREATED,
    PENDING_UPDATED: DiffType.UPDATED,
    PENDING_PATTERN: DiffType.PATTERN,
}


def take_in(
    state: SwarmState, as_of: int, *, ttl_epochs: int, max_hops: int
) -> tuple[DiffTable, npt.NDArray[np.int64]]:
    """Make a `created` diff of each new cell, an `updated` one of each changed one, a `pattern` one of each pattern.

    Changes `state` in place: marks are cleared, an updated cell is accessed now (spec 6.6), access rows up to `as_of`
    restore their cells (spec 6.5), the new diffs stand behind the older live ones. Returned are the new diffs and the
    numbers of older ones that end before their time: those of changed cells, silently or not, and of superseded ones
    (spec 6.6).
    """
    nodes = state.nodes
    nodes.last_access[nodes.pending == PENDING_UPDATED] = as_of
    known = state.accesses.at <= as_of
    np.maximum.at(nodes.last_access, state.accesses.cells[known], state.accesses.at[known])

    origins = state.diffs.origins
    # A cell that has diffs is not new, so a silent mark is a change too: they tell of what it no longer says.
    changed = np.isin(nodes.pending[origins], (PENDING_UPDATED, PENDING_SILENT))
    ends = changed | (nodes.superseded_by[origins] >= 0)
    ended = state.diffs.numbers[ends]
    new = _diffs_of(state, ttl_epochs=ttl_epochs, max_hops=max_hops)
    nodes.pending[:] = SETTLED
    state.diffs = rows_of(state.diffs, ~ends)
    enter(state, new)
    return new, ended


def enter(state: SwarmState, made: DiffTable) -> None:
    """Let new diffs live from now on, numbered from `state.next_diff` on; in place."""
    state.diffs = joined(state.diffs, made)
    state.next_diff += len(made)
    np.add.at(state.sequences, made.origins, 1)


def _diffs_of(state: SwarmState, *, ttl_epochs: int, max_hops: int) -> DiffTable:
    nodes = state.nodes
    speaks = np.isin(nodes.pending, list(_TELLING)) & (nodes.superseded_by < 0)
    origins = np.flatnonzero(speaks & (nodes.knowledge_types >= 0)).astype(np.int32)
    count = len(origins)
    energies = initial_energy(nodes.saliences[origins], nodes.knowledge_types[origins])
    return DiffTable(
        numbers=state.next_diff + np.arange(count, dtype=np.int64),
        origins=origins,
        sequence=state.sequences[origins].astype(np.int32),
        types=np.array([_TELLING[mark] for mark in nodes.pending[origins].tolist()], np.int8),
        knowledge_types=nodes.knowledge_types[origins],
        vectors=nodes.vectors[origins],
        saliences=nodes.saliences[origins],
        energies=energies.astype(np.float32),
        units=units(energies),
        max_hops=np.full(count, max_hops, np.int32),
        ttl=np.full(count, ttl_epochs, np.int32),
        epoch_created=np.full(count, state.epoch + 1, np.int32),
    )


def rows_of(table: DiffTable, rows: npt.NDArray[Any]) -> DiffTable:
    """Return some rows of a table, by number or by mask."""
    return DiffTable(**{spec.name: getattr(table, spec.name)[rows] for spec in fields(DiffTable)})


def joined(first: DiffTable, second: DiffTable) -> DiffTable:
    """Return the rows of both tables, one after the other."""
    columns = ((spec.name, getattr(first, spec.name), getattr(second, spec.name)) for spec in fields(DiffTable))
    return DiffTable(**{name: np.concatenate([a, b]) for name, a, b in columns})


def as_diffs(table: DiffTable) -> Diffs:
    """Return a table's rows as `swarm.Diffs`, ready to be propagated."""
    images = quantise(table.vectors)
    return Diffs(
        numbers=as_tensor(table.numbers),
        origins=as_tensor(table.origins),
        types=as_tensor(table.types),
        knowledge_types=as_tensor(table.knowledge_types),
        images=as_tensor(images),
        lengths=as_tensor(lengths(images)),
        saliences=as_tensor(table.saliences),
        energies=as_tensor(table.units),
        max_hops=as_tensor(table.max_hops),
    )
