"""The nearest nodes among an index's links and the links of those (spec 2.3)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

from hyphae_gpu.backends.cpu.gate import dot
from hyphae_gpu.backends.cpu.prefetch import prefetch
from hyphae_gpu.backends.cpu.ranges import over_ranges

#: How many rows ahead of the dot products rows are asked for.
_AHEAD = 8
_CACHE_LINE = 64


def nearest_linked(
    images: npt.NDArray[np.int8],
    lengths: npt.NDArray[np.float64],
    representatives: npt.NDArray[np.int32],
    offsets: npt.NDArray[np.int64],
    links: npt.NDArray[np.int32],
    *,
    count: int,
    threads: int = 1,
) -> npt.NDArray[np.int32]:
    """Return for each point the `count` live nodes of greatest cosine within two links, best first (spec 2.3).

    representatives int32 [p]: the live node that stands on each point, -1 where none does; offsets int64 [p + 1] and
    links int32: the points' base-level links. Dead points are walked through, never taken; ties go to the lowest node
    number. The result is int32 [p, count] of node numbers, -1 in empty places and in the rows of dead points.
    """
    out = np.full((len(representatives), count), -1, np.int32)
    over_ranges(
        len(representatives),
        threads,
        lambda start, stop: _nearest_linked(images, lengths, representatives, offsets, links, start, stop, out),
    )
    return out


@njit(nogil=True, cache=True)
def _within_two_links(point, offsets, links, representatives, stamps, found):
    """Collect the live nodes one and two links from a point into `found`; return how many."""
    held = 0
    stamps[point] = point
    for i in range(offsets[point], offsets[point + 1]):
        first = links[i]
        if stamps[first] != point:
            stamps[first] = point
            if representatives[first] >= 0:
                found[held] = representatives[first]
                held += 1
        for j in range(offsets[first], offsets[first + 1]):
            second = links[j]
            if stamps[second] != point:
                stamps[second] = point
                if representatives[second] >= 0:
                    found[held] = representatives[second]
                    held += 1
    return held


@njit(nogil=True, cache=True, forceinline=True)
def _insert(nodes, row, values, held, node, value):
    """Insert a node into a row of the best, kept by (greatest value, lowest node); return how many the row holds."""
    size = nodes.shape[1]
    place = held
    while place > 0 and (value > values[place - 1] or (value == values[place - 1] and node < nodes[row, place - 1])):
        place -= 1
    if place == size:
        return held
    last = min(held, size - 1)
    for i in range(last, place, -1):
        nodes[row, i] = nodes[row, i - 1]
        values[i] = values[i - 1]
    nodes[row, place] = node
    values[place] = value
    return last + 1


@njit(nogil=True, cache=True)
def _nearest_linked(images, lengths, representatives, offsets, links, start, stop, out):
    stamps = np.full(representatives.size, -1, np.int32)
    found = np.empty(representatives.size, np.int32)
    dots = np.empty(representatives.size, np.int32)
    values = np.empty(out.shape[1], np.float64)
    # The node's own row in 16 bits: one widening a product less.
    query = np.empty((1, images.shape[1]), np.int16)
    for point in range(start, stop):
        node = representatives[point]
        if node < 0:
            continue
        query[0] = images[node]
        candidates = _within_two_links(point, offsets, links, representatives, stamps, found)
        for i in range(candidates):
            if i + _AHEAD < candidates:
                for byte in range(0, images.shape[1], _CACHE_LINE):
                    prefetch(images, found[i + _AHEAD], byte)
            dots[i] = dot(images, found[i], query, 0)
        held = 0
        for i in range(candidates):
            cosine = np.float64(dots[i]) / (lengths[node] * lengths[found[i]])
            held = _insert(out, point, values, held, found[i], cosine)
