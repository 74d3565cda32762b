"""The way a diff came: from the receiver back to the origin, parent by parent (spec 3.7)."""

from __future__ import annotations

import torch

from hyphae_gpu.swarm import Deliveries, Diffs


def paths(diffs: Diffs, found: Deliveries, rows: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the way to each delivery at `rows`: offsets int64 [m + 1] into nodes int32, receiver first, origin last.

    `found` has all deliveries of `diffs`, in their order. A parent always holds more energy than its child, so a way
    ends at the origin.
    """
    nodes = int(found.nodes.max()) + 1 if len(found) else 1
    keys = diffs.rows_of(found.diffs) * nodes + found.nodes
    at, step = rows, 0
    walkers = torch.arange(len(rows), device=rows.device)
    owners, steps, visited = [walkers], [torch.zeros_like(walkers)], [found.nodes[rows]]
    while True:
        onward = torch.nonzero(found.parents[at] >= 0).flatten()
        if not len(onward):
            break
        at, walkers, step = at[onward], walkers[onward], step + 1
        parents = found.parents[at]
        at = torch.searchsorted(keys, keys[at] - found.nodes[at] + parents)
        owners.append(walkers)
        steps.append(torch.full_like(walkers, step))
        visited.append(parents)
    who, when, where = torch.cat(owners), torch.cat(steps), torch.cat(visited)
    order = torch.argsort(when, stable=True)
    order = order[torch.argsort(who[order], stable=True)]
    offsets = torch.zeros(len(rows) + 1, dtype=torch.int64, device=rows.device)
    torch.cumsum(torch.bincount(who, minlength=len(rows)), 0, out=offsets[1:])
    return offsets, where[order]
