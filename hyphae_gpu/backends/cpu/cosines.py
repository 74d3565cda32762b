"""Exact cosines of given pairs of nodes (spec 0.4)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

from hyphae_gpu.backends.cpu.gate import dot
from hyphae_gpu.backends.cpu.ranges import over_ranges


def cosines(
    images: npt.NDArray[np.int8],
    lengths: npt.NDArray[np.float64],
    left: npt.NDArray[np.int32],
    right: npt.NDArray[np.int32],
    *,
    threads: int = 1,
) -> npt.NDArray[np.float64]:
    """Return cos(left[i], right[i]) of every pair, float64 [m] (spec 0.4).

    images int8 [n, d] and lengths float64 [n] as `swarm.Nodes` has them; left, right int32 [m] node numbers.
    """
    out = np.empty(len(left), np.float64)
    over_ranges(len(left), threads, lambda start, stop: _cosines(images, lengths, left, right, start, stop, out))
    return out


@njit(nogil=True, cache=True)
def _cosines(images, lengths, left, right, start, stop, out):
    for i in range(start, stop):
        out[i] = np.float64(dot(images, left[i], images, right[i])) / (lengths[left[i]] * lengths[right[i]])
