"""The nearest of few candidates, by exact search."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from hyphae_gpu.arrays import F64, I8, I64

#: Products of int8 images summed to less than this are exact in float32, whatever their order (spec 0.4).
_EXACT_IN_FLOAT32 = 1 << 24
#: Cosines that are computed at once.
_AT_ONCE = 1 << 22


def nearest_rows(images: I8, lengths: F64, among: I8, among_lengths: F64) -> I64:
    """Return the row of `among` of greatest cosine with each image (ties: lowest row); int64 [a] (spec 0.4).

    images int8 [a, d], among int8 [k, d], no row zero, with their lengths float64. Without candidates all are 0.
    """
    nearest = np.zeros(len(images), np.int64)
    if not len(among) or not len(images):
        return nearest
    exact: Any = np.float32 if images.shape[1] * 127 * 127 < _EXACT_IN_FLOAT32 else np.float64
    columns: npt.NDArray[Any] = np.ascontiguousarray(among.T, exact)
    block = max(1, _AT_ONCE // len(among))
    for first in range(0, len(images), block):
        rows = slice(first, first + block)
        dots = (images[rows].astype(exact) @ columns).astype(np.float64)
        nearest[rows] = (dots / (lengths[rows, None] * among_lengths)).argmax(axis=1)
    return nearest
