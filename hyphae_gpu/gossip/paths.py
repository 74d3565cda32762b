"""The way a diff came: from the receiver back to the origin, parent by parent (spec 3.7)."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch

from hyphae_gpu.columns import offsets_of, ranges
from hyphae_gpu.swarm import Deliveries, Diffs


def _none(dtype: torch.dtype, size: int = 0) -> torch.Tensor:
    return torch.zeros(size, dtype=dtype)


@dataclass(frozen=True, kw_only=True, eq=False)
class Stems:
    """Ways up to where a promotion let a diff in (spec 5.2); by default none.

    What comes down from an entry may raise the nodes on the way up to it, and so hide that way. diffs int64 diff
    numbers, entries int32; offsets int64 [m + 1] into nodes int32: each way from v* back to the origin.
    """

    diffs: torch.Tensor = field(default_factory=lambda: _none(torch.int64))
    entries: torch.Tensor = field(default_factory=lambda: _none(torch.int32))
    offsets: torch.Tensor = field(default_factory=lambda: _none(torch.int64, 1))
    nodes: torch.Tensor = field(default_factory=lambda: _none(torch.int32))

    @staticmethod
    def concat(parts: list[Stems]) -> Stems:
        """Return the ways of all parts (one at least), one part after the other."""
        columns = {name: torch.cat([getattr(part, name) for part in parts]) for name in ("diffs", "entries", "nodes")}
        return Stems(offsets=offsets_of(torch.cat([part.offsets.diff() for part in parts])), **columns)


def paths(
    diffs: Diffs, found: Deliveries, rows: torch.Tensor, stems: Stems | None = None
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the way to each delivery at `rows`: offsets int64 [m + 1] into nodes int32, receiver first, origin last.

    `found` has all deliveries of `diffs`, in their order. A parent always holds more energy than its child, but for an
    entry's: there the way goes on along its stem. So a way ends at the origin; no node is on it twice.
    """
    stems = stems or Stems()
    count = int(found.nodes.max()) + 1 if len(found) else 1
    keys = diffs.rows_of(found.diffs) * count + found.nodes
    stem_of = _stems_by_row(diffs, found, keys, count, stems)
    at, step = rows, 0
    walkers = torch.arange(len(rows), device=rows.device)
    owners, steps, visited = [walkers], [torch.zeros_like(walkers)], [found.nodes[rows]]
    while len(at):
        entered = torch.nonzero(stem_of[at] >= 0).flatten()
        which, sizes = stem_of[at[entered]], stems.offsets.diff()[stem_of[at[entered]]]
        owners.append(torch.repeat_interleave(walkers[entered], sizes))
        steps.append(ranges(torch.full_like(sizes, step + 1), sizes))
        visited.append(stems.nodes[ranges(stems.offsets[which], sizes)])

        onward = torch.nonzero((found.parents[at] >= 0) & (stem_of[at] < 0)).flatten()
        at, walkers, step = at[onward], walkers[onward], step + 1
        parents = found.parents[at]
        at = torch.searchsorted(keys, keys[at] - found.nodes[at] + parents)
        owners.append(walkers)
        steps.append(torch.full_like(walkers, step))
        visited.append(parents)
    who, when, where = torch.cat(owners), torch.cat(steps), torch.cat(visited)
    order = torch.argsort(when, stable=True)
    order = order[torch.argsort(who[order], stable=True)]
    return _without_loops(offsets_of(torch.bincount(who, minlength=len(rows))), where[order])


def _without_loops(offsets: torch.Tensor, nodes: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Cut what a way did between two visits of a node: up to an entry and down again leads where it was before."""
    sizes = offsets.diff()
    who = torch.repeat_interleave(torch.arange(len(sizes)), sizes)
    count = int(nodes.max()) + 1 if len(nodes) else 1
    keys, times = torch.unique(who * count + nodes, return_counts=True)
    looping = torch.unique(keys[times > 1] // count).tolist()
    if not looping:
        return offsets, nodes
    kept = torch.ones(len(nodes), dtype=torch.bool)
    for way in looping:
        first, last = int(offsets[way]), int(offsets[way + 1])
        visits = nodes[first:last].tolist()
        back = {node: place for place, node in enumerate(visits)}
        kept[first:last] = False
        place = 0
        while place < len(visits):
            place = back[visits[place]]
            kept[first + place] = True
            place += 1
    return offsets_of(torch.bincount(who[kept], minlength=len(sizes))), nodes[kept]


def _stems_by_row(diffs: Diffs, found: Deliveries, keys: torch.Tensor, count: int, stems: Stems) -> torch.Tensor:
    """Return for each delivery which stem ends there, -1 for none."""
    stem_of = torch.full((len(found),), -1, dtype=torch.int64)
    mine = torch.nonzero(torch.isin(stems.diffs, diffs.numbers)).flatten()
    if len(mine):
        wanted = diffs.rows_of(stems.diffs[mine]) * count + stems.entries[mine]
        stem_of[torch.searchsorted(keys, wanted)] = mine
    return stem_of
