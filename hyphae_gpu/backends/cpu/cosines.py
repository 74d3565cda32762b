"""Exact cosines of given pairs of nodes (spec 0.4)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

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
def cosine(images, lengths, left, right):
    """Return the cosine of two nodes.

    The dot product stays below 2^31 for up to 16,000 products of 127 * 127. The casts keep the loop in 32 bits, and the
    rows are not sliced, so that it vectorises.
    """
    total = np.int32(0)
    for i in range(images.shape[1]):
        total = np.int32(total + np.int32(np.int32(images[left, i]) * np.int32(images[right, i])))
    return np.float64(total) / (lengths[left] * lengths[right])


@njit(nogil=True, cache=True)
def _cosines(images, lengths, left, right, start, stop, out):
    for i in range(start, stop):
        out[i] = cosine(images, lengths, left[i], right[i])
