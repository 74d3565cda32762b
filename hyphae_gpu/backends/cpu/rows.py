"""Edges put into rows by source, each row in the order of a key (CSR)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

from hyphae_gpu.backends.cpu.ranges import over_ranges


def order_rows(
    count: int, sources: npt.NDArray[np.int32], keys: npt.NDArray[np.int64], *, threads: int = 1
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return (offsets, order) that put edges by source, and by key within a source.

    sources int32 [m] in [0, count); keys int64 [m]. offsets is int64 [count + 1]; order int64 [m]: the edge that stands
    at each place. Edges of equal source and key keep their order.
    """
    offsets = np.zeros(count + 1, np.int64)
    np.cumsum(np.bincount(sources, minlength=count), out=offsets[1:])
    order = np.empty(len(sources), np.int64)
    placed = np.empty(len(sources), np.int64)
    _place(sources, keys, offsets[:-1].copy(), order, placed)
    over_ranges(count, threads, lambda start, stop: _sort_rows(offsets, placed, order, start, stop))
    return offsets, order


@njit(nogil=True, cache=True)
def _place(sources, keys, cursors, order, placed):
    for i in range(sources.size):
        place = cursors[sources[i]]
        cursors[sources[i]] = place + 1
        order[place] = i
        placed[place] = keys[i]


@njit(nogil=True, cache=True)
def _sort_rows(offsets, keys, order, start, stop):
    for row in range(start, stop):
        low, high = offsets[row], offsets[row + 1]
        if high - low > 64:
            ranks = np.argsort(keys[low:high], kind="mergesort")
            order[low:high] = order[low:high][ranks]
            continue
        for i in range(low + 1, high):
            key, edge = keys[i], order[i]
            j = i
            while j > low and keys[j - 1] > key:
                keys[j], order[j] = keys[j - 1], order[j - 1]
                j -= 1
            keys[j], order[j] = key, edge
