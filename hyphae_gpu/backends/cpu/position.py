"""Weighted integer sums of images, and unit vectors of them (spec 1.3)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit


def centroids(
    images: npt.NDArray[np.int8],
    offsets: npt.NDArray[np.int64],
    cells: npt.NDArray[np.int32],
    weights: npt.NDArray[np.int64],
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.bool_]]:
    """Return for each group the unit vector of the sum of weight * image over its cells (spec 1.3).

    Group g holds the cells at offsets[g] : offsets[g + 1]; offsets int64 [g + 1], cells int32 [m], weights int64 [m].
    The sums are int64, the norm is summed in float64 in the order of the components, so that every machine agrees.
    The result is float32 [g, d] and bool [g]: whether the sum was other than zero (its row is zeros where not).
    """
    groups = len(offsets) - 1
    out = np.zeros((groups, images.shape[1]), np.float32)
    having = np.zeros(groups, np.bool_)
    _centroids(images, offsets, cells, weights, out, having)
    return out, having


@njit(nogil=True, cache=True)
def _centroids(images, offsets, cells, weights, out, having):
    sums = np.empty(images.shape[1], np.int64)
    for group in range(having.size):
        sums[:] = 0
        for i in range(offsets[group], offsets[group + 1]):
            row = images[cells[i]]
            for j in range(sums.size):
                sums[j] += weights[i] * np.int64(row[j])
        square = 0.0
        for j in range(sums.size):
            square += np.float64(sums[j]) * np.float64(sums[j])
        if square > 0.0:
            having[group] = True
            norm = np.sqrt(square)
            for j in range(sums.size):
                out[group, j] = np.float32(np.float64(sums[j]) / norm)
