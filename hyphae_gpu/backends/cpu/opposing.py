"""Near pairs of cells that oppose each other (spec 6.2)."""

from __future__ import annotations

import numpy as np
from numba import njit

from hyphae_gpu.arrays import F64, I8, I32, I64
from hyphae_gpu.backends.cpu.gate import dot
from hyphae_gpu.backends.cpu.ranges import over_ranges
from hyphae_gpu.swarm import LEAST_STANCE, Sides


def opposing(
    images: I8, lengths: F64, sides: Sides | None, left: I32, right: I32, least: float, *, threads: int = 1
) -> tuple[I64, F64]:
    """Return which pairs oppose each other, and their cosines; see `Backend.opposing`."""
    none = (np.zeros(0, np.int32), np.zeros(0, np.int32), np.zeros(0, np.float32))
    columns = (sides.subjects, sides.values, sides.stances) if sides else none
    opposed, cosines = np.empty(len(left), np.bool_), np.empty(len(left))

    def judge(start: int, stop: int) -> None:
        _opposing(images, lengths, sides is not None, columns, left, right, least, start, stop, opposed, cosines)

    over_ranges(len(left), threads, judge)
    which = np.flatnonzero(opposed)
    return which, cosines[which]


@njit(nogil=True, cache=True)
def _opposing(images, lengths, by_rule, columns, left, right, least, start, stop, opposed, cosines):
    for i in range(start, stop):
        a, b = left[i], right[i]
        opposed[i] = False
        if not by_rule or _oppose(columns, a, b):
            cosines[i] = np.float64(dot(images, a, images, b)) / (lengths[a] * lengths[b])
            opposed[i] = cosines[i] >= least


@njit(nogil=True, cache=True)
def _oppose(columns, a, b):
    """Return whether two cells claim different values of one subject, or take opposite sides (spec 6.2 a, b)."""
    subjects, values, stances = columns
    if subjects[a] >= 0 and subjects[a] == subjects[b] and values[a] >= 0 and values[b] >= 0 and values[a] != values[b]:
        return True
    one, other = stances[a], stances[b]
    return (one >= LEAST_STANCE and other <= -LEAST_STANCE) or (one <= -LEAST_STANCE and other >= LEAST_STANCE)
