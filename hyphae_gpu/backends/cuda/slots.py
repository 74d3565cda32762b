"""The (diff, node) state of a wave on the device: columns of slots, a hash table over them, and their growth."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch

from hyphae_gpu.backends.cuda.launcher import Launcher, grid_of
from hyphae_gpu.wave_state import WaveState

#: Slots and places of the table are numbered in 32 bits.
_MOST_SLOTS = 1 << 30
#: Places of the table a slot, at least: probes stay short.
_PLACES_A_SLOT = 2
_LOW = 0xFFFFFFFF


class NoRoomError(Exception):
    """A wave does not fit: fewer diffs at a time might."""


_COLUMNS = {
    "rows": torch.int32,
    "nodes": torch.int32,
    "energies": torch.int32,
    "best": torch.int64,
    "hops": torch.int32,
    "scores": torch.float64,
    "rose": torch.int32,
    "unmet": torch.int32,
}


@dataclass(frozen=True, kw_only=True)
class Slots:
    """One slot a (diff row, node) that was looked at, in the order of being seen first; kernels/wave.cuh tells more.

    Columns of `capacity` places: rows, nodes, energies, hops, rose, unmet int32; best int64, energy and parent packed;
    scores float64. frontier, risen int32: lists of slots. table int64 [places, 2]: (key, slot), a power of two of them.
    """

    rows: torch.Tensor
    nodes: torch.Tensor
    energies: torch.Tensor
    best: torch.Tensor
    hops: torch.Tensor
    scores: torch.Tensor
    rose: torch.Tensor
    unmet: torch.Tensor
    frontier: torch.Tensor
    risen: torch.Tensor
    table: torch.Tensor

    @property
    def capacity(self) -> int:
        """How many slots there is room for."""
        return len(self.rows)

    @property
    def mask(self) -> int:
        """What a hash is cut with to be a place of the table."""
        return len(self.table) - 1

    def swapped(self) -> Slots:
        """Return the same slots, those that rose as the frontier."""
        return replace(self, frontier=self.risen, risen=self.frontier)


def loaded(launcher: Launcher, state: WaveState, node_count: int, capacity: int) -> Slots:
    """Return slots that hold a state, record by record, with room for `capacity` of them or all records.

    The state lies on the device; the frontier's list is left empty.
    """
    count = len(state.nodes)
    slots = _empty(launcher.device, max(capacity, count, 1))
    reached = state.energies > 0
    best = (state.energies.long() << 32) | (~state.parents.long() & _LOW)
    for name, column in (
        ("rows", state.rows()),
        ("nodes", state.nodes),
        ("energies", state.energies),
        ("best", torch.where(reached, best, 0)),
        ("hops", state.hops),
        ("scores", state.scores),
    ):
        getattr(slots, name)[:count] = column
    slots.rose[:count] = 0
    slots.unmet[:count] = 0
    _index(launcher, slots, node_count, count)
    return slots


def grown(launcher: Launcher, slots: Slots, node_count: int, count: int, capacity: int) -> Slots:
    """Return the slots with room for `capacity` of them; `count` are in use.

    Raises NoRoomError where they would be more than kernels can number.
    """
    if capacity > _MOST_SLOTS:
        raise NoRoomError(f"more than {_MOST_SLOTS} (diff, node) pairs were looked at")
    larger = _empty(slots.rows.device, capacity)
    for name in (*_COLUMNS, "frontier"):
        column = getattr(slots, name)
        getattr(larger, name)[: len(column)] = column
    _index(launcher, larger, node_count, count)
    return larger


def stored(
    slots: Slots, count: int, steps: torch.Tensor, before: WaveState, *, all_records: bool, sweep: bool
) -> WaveState:
    """Return the first `count` slots as a state, by diff row, then node; unreached ones only with `all_records`.

    steps int32 [b]: rounds or sweeps that each diff has run since `before`.
    """
    energies = slots.energies[:count]
    kept = torch.arange(count, device=energies.device)
    if not all_records:
        kept = torch.nonzero(energies > 0).flatten()
    rows, nodes = slots.rows[kept].long(), slots.nodes[kept]
    kept = kept[torch.argsort((rows << 32) | nodes.long())]
    rows = slots.rows[kept].long()
    last = steps[rows]
    fresh = slots.rose[kept] == last
    if sweep:
        fresh |= slots.unmet[kept] == last
    return WaveState(
        # the rows ascend; counting them would let whole warps add to one word
        offsets=torch.searchsorted(rows, torch.arange(len(steps) + 1, device=rows.device)),
        rounds=before.rounds if sweep else before.rounds + steps,
        sweeps=before.sweeps + steps if sweep else before.sweeps,
        nodes=slots.nodes[kept],
        energies=slots.energies[kept],
        hops=slots.hops[kept],
        parents=(~slots.best[kept] & _LOW).to(torch.int32),
        scores=slots.scores[kept],
        fresh=fresh & (last > 0),
    )


def _empty(device: torch.device, capacity: int) -> Slots:
    places = 1
    while places < _PLACES_A_SLOT * capacity:
        places *= 2
    columns = {name: torch.empty(capacity, dtype=dtype, device=device) for name, dtype in _COLUMNS.items()}
    lists = {name: torch.empty(capacity, dtype=torch.int32, device=device) for name in ("frontier", "risen")}
    table = torch.full((places, 2), -1, dtype=torch.int64, device=device)
    return Slots(**columns, **lists, table=table)


def _index(launcher: Launcher, slots: Slots, node_count: int, count: int) -> None:
    if count:
        arguments = (slots.table, slots.mask, slots.rows, slots.nodes, node_count, count)
        launcher.launch("table.index_slots", arguments, grid=grid_of(launcher, count))
