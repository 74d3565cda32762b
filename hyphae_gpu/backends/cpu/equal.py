"""Which image rows are equal, byte for byte (spec 2.6)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

_PRIME = np.uint64(0x100000001B3)
_START = np.uint64(0xCBF29CE484222325)


def equal_rows(
    known: npt.NDArray[np.int8], images: npt.NDArray[np.int8], rows: npt.NDArray[np.int32]
) -> npt.NDArray[np.int64]:
    """Return which distinct image each row has: the known ones first, then new ones in order of appearance.

    known int8 [p, d], no two equal; images int8 [n, d]; rows int32 [k] of `images`. The result is int64 [k]: i < p for
    the image known[i], p for the first image that is not known, p + 1 for the next, and so on. A hash finds the place,
    the bytes decide.
    """
    size = 1 << max(4, int(2 * (len(known) + len(rows)) - 1).bit_length())
    out = np.empty(len(rows), np.int64)
    _equal_rows(known, images, rows, np.full(size, -1, np.int64), out)
    return out


@njit(nogil=True, cache=True)
def _hash(row):
    """FNV-1a with a final mix, since its low bits alone choose the place."""
    value = _START
    for i in range(row.size):
        value = (value ^ np.uint64(np.uint8(row[i]))) * _PRIME
    return value ^ (value >> np.uint64(29))


@njit(nogil=True, cache=True)
def _same(left, right):
    place = 0
    while place < left.size and left[place] == right[place]:
        place += 1
    return place == left.size


@njit(nogil=True, cache=True)
def _equal_rows(known, images, rows, places, out):
    """Open addressing; a place holds a known row's number, or p + the first of `rows` with that image."""
    mask = np.uint64(places.size - 1)
    for i in range(len(known)):
        place = _hash(known[i]) & mask
        while places[place] >= 0:
            place = (place + np.uint64(1)) & mask
        places[place] = i
    fresh = len(known)
    for i in range(rows.size):
        row = images[rows[i]]
        place = _hash(row) & mask
        while True:
            holder = places[place]
            if holder < 0:
                places[place] = len(known) + i
                out[i] = fresh
                fresh += 1
                break
            if holder < len(known):
                if _same(known[holder], row):
                    out[i] = holder
                    break
            elif _same(images[rows[holder - len(known)]], row):
                out[i] = out[holder - len(known)]
                break
            place = (place + np.uint64(1)) & mask
