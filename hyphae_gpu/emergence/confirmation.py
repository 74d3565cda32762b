"""Confirmation by agents: who was reached and works on what the diff is about (spec 5.3)."""

from __future__ import annotations

import numpy as np

from hyphae_gpu.arrays import F64, I8, I32, I64, Flags
from hyphae_gpu.backends.protocol import Backend
from hyphae_gpu.emergence.promotion import Counted
from hyphae_gpu.state import AccessPairs

#: An agent's cell has to be this near to the diff.
LEAST_COSINE = 0.5
#: (delivery, cell) pairs that are looked at together.
_PAIRS_AT_ONCE = 1 << 22


def confirming(
    reached: Counted,
    pairs: AccessPairs,
    places: I32,
    live: Flags,
    images: I8,
    lengths: F64,
    diff_images: I8,
    diff_lengths: F64,
    backend: Backend,
) -> Counted:
    """Return the agents that confirm a diff, scene by scene: those with an access pair on a near live cell of it.

    reached: deliveries to agents, their diffs' makers aside, in order of rows (the scenes are not read); pairs: the
    access pairs that count; places int32 [n]: the place of each node's scene, -1 for none; live bool [n]; images int8
    [n, d] and lengths float64 [n] of nodes, diff_images and diff_lengths of diffs by row.
    """
    useful = np.flatnonzero(live[pairs.cells] & (places[pairs.cells] >= 0))
    agents, cells = pairs.agents[useful], pairs.cells[useful]
    known, where = np.unique(cells, return_inverse=True)
    rows, row_of = np.unique(reached.rows, return_inverse=True)
    table = np.concatenate([images[known], diff_images[rows]])
    spans = np.concatenate([lengths[known], diff_lengths[rows]])
    firsts, lasts = (np.searchsorted(agents, reached.nodes, side=side) for side in ("left", "right"))
    sizes = lasts - firsts
    found: list[Counted] = []
    ends = np.cumsum(sizes)
    first = 0
    while first < len(sizes):
        room = (ends[first - 1] if first else 0) + _PAIRS_AT_ONCE
        last = max(first + 1, int(np.searchsorted(ends, room, side="right")))
        which = np.repeat(np.arange(first, last), sizes[first:last])
        starts = np.repeat(ends[first:last] - sizes[first:last], sizes[first:last])
        place = firsts[which] + np.arange(len(which)) + (ends[first - 1] if first else 0) - starts
        cosines = backend.cosines(
            table, spans, (len(known) + row_of[which]).astype(np.int32), where[place].astype(np.int32)
        )
        near = cosines >= LEAST_COSINE
        found.append(_once(reached, which[near], places[cells[place[near]]].astype(np.int64)))
        first = last
    return Counted.concat(found)


def _once(reached: Counted, which: I64, scenes: I64) -> Counted:
    """Return each (delivery, scene) once, in order."""
    count = int(scenes.max(initial=0)) + 1
    keys = np.unique(which * count + scenes)
    deliveries = keys // count
    return Counted(
        rows=reached.rows[deliveries],
        scenes=keys % count,
        nodes=reached.nodes[deliveries],
        energies=reached.energies[deliveries],
    )
