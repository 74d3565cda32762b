"""Groups of similar cells: who leads, and which of its near neighbours it takes (spec 6.4)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

from hyphae_gpu.backends.cpu.gate import dot
from hyphae_gpu.backends.cpu.prefetch import prefetch
from hyphae_gpu.backends.cpu.ranges import over_ranges

_CACHE_LINE = 64
#: Turns ahead whose links are asked for: cells take turns by salience, so their links lie anywhere.
_TURNS_AHEAD = 4


def groups(
    images: npt.NDArray[np.int8],
    lengths: npt.NDArray[np.float64],
    offsets: npt.NDArray[np.int64],
    targets: npt.NDArray[np.int32],
    begins: npt.NDArray[np.int64],
    cells: npt.NDArray[np.int32],
    least: float,
    *,
    threads: int = 1,
) -> npt.NDArray[np.int32]:
    """Return the leader of each node's group, its own number for a leader, -1 for nodes in no scene; int32 [n].

    images int8 [n, d] and lengths float64 [n] as `swarm.Nodes` has them; links by node: offsets int64 [n + 1], targets
    int32 [m], a row in any order. Scene s has the cells at begins[s] : begins[s + 1] (int64 [s + 1]; cells int32, each
    in one scene at most), in the order of their turns to lead: one not yet grouped leads and takes the ungrouped ones
    of its scene that it links to with a cosine >= `least`. Scenes do not meet, so the result does not depend on
    `threads`.
    """
    leaders = np.full(len(images), -1, np.int32)
    waiting = np.full(len(images), -1, np.int32)
    waiting[cells] = np.repeat(np.arange(len(begins) - 1, dtype=np.int32), np.diff(begins))
    graph, turns = (images, lengths, offsets, targets), (begins, cells)
    over_ranges(
        len(begins) - 1, threads, lambda start, stop: _groups(graph, turns, least, start, stop, waiting, leaders)
    )
    return leaders


@njit(nogil=True, cache=True)
def _groups(graph, turns, least, start, stop, waiting, leaders):
    """Let the cells of some scenes take their turns; waiting int32 [n]: the scene of each ungrouped cell, else -1."""
    images, lengths, offsets, targets = graph
    begins, cells = turns
    for scene in range(start, stop):
        for i in range(begins[scene], begins[scene + 1]):
            if i + _TURNS_AHEAD < begins[scene + 1]:
                prefetch(targets, offsets[cells[i + _TURNS_AHEAD]], 0)
            leader = cells[i]
            if waiting[leader] < 0:
                continue
            waiting[leader], leaders[leader] = -1, leader
            for k in range(offsets[leader], offsets[leader + 1]):
                if waiting[targets[k]] == scene:
                    for byte in range(0, images.shape[1], _CACHE_LINE):
                        prefetch(images, targets[k], byte)
            for k in range(offsets[leader], offsets[leader + 1]):
                other = targets[k]
                if waiting[other] == scene:
                    cosine = np.float64(dot(images, leader, images, other)) / (lengths[leader] * lengths[other])
                    if cosine >= least:
                        waiting[other], leaders[other] = -1, leader
