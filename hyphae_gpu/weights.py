"""The integer weights of links: what resonance spreads over and scenes are made of (spec 3.12)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from hyphae_gpu.backends.protocol import Backend

#: Weights are integers in this fraction of 1.
GRID = 4096.0
_LEAST_COSINE = 0.05


def near_weights(
    backend: Backend,
    images: npt.NDArray[np.int8],
    lengths: npt.NDArray[np.float64],
    left: npt.NDArray[np.int32],
    right: npt.NDArray[np.int32],
) -> npt.NDArray[np.int32]:
    """Return max(1, rint(4096 * c^4)), c = max(cos, 0.05), of each pair of nodes; int32 [m] (spec 3.12)."""
    cosines = np.maximum(backend.cosines(images, lengths, left, right), _LEAST_COSINE)
    squares = cosines * cosines
    return _on_grid(squares * squares)


def whole_weights(weights: npt.NDArray[np.float32]) -> npt.NDArray[np.int32]:
    """Return max(1, rint(4096 * w)) of each edge's weight; int32 [m] (spec 3.12)."""
    return _on_grid(weights.astype(np.float64))


def _on_grid(values: npt.NDArray[np.float64]) -> npt.NDArray[np.int32]:
    whole: npt.NDArray[np.int32] = np.maximum(np.rint(GRID * values), 1.0).astype(np.int32)
    return whole
