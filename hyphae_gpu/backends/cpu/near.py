"""The nearest nodes among an index's links and the links of those (spec 2.3)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

from hyphae_gpu.backends.cpu.cosines import cosine
from hyphae_gpu.backends.cpu.ranges import over_ranges


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


@njit(nogil=True, cache=True)
def _insert(nodes, values, held, node, value):
    """Insert a node into the best ones, kept in order of (greatest value, lowest node); return how many are kept."""
    place = held
    while place > 0 and (value > values[place - 1] or (value == values[place - 1] and node < nodes[place - 1])):
        place -= 1
    if place == nodes.size:
        return held
    last = min(held, nodes.size - 1)
    for i in range(last, place, -1):
        nodes[i] = nodes[i - 1]
        values[i] = values[i - 1]
    nodes[place] = node
    values[place] = value
    return last + 1


@njit(nogil=True, cache=True)
def _nearest_linked(images, lengths, representatives, offsets, links, start, stop, out):
    stamps = np.full(representatives.size, -1, np.int32)
    found = np.empty(representatives.size, np.int32)
    values = np.empty(out.shape[1], np.float64)
    for point in range(start, stop):
        node = representatives[point]
        if node < 0:
            continue
        held = 0
        for i in range(_within_two_links(point, offsets, links, representatives, stamps, found)):
            held = _insert(out[point], values, held, found[i], cosine(images, lengths, node, found[i]))
