"""Vectors and the one cosine that decides everything (spec 0.4)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

#: Norms outside this range are refused (spec 0.4).
NORM_RANGE = (1e-6, 1e6)
_CHUNK_ELEMENTS = 1 << 22


def norms(vectors: npt.NDArray[np.float32]) -> npt.NDArray[np.float64]:
    """Return the Euclidean norm of each row in float64; shape [n] for vectors of shape [n, d]."""
    wide = (row.astype(np.float64) for row in _chunks(vectors))
    parts = [np.sqrt(np.einsum("ij,ij->i", block, block)) for block in wide]
    return np.concatenate(parts) if parts else np.zeros(0)


def quantise(vectors: npt.NDArray[np.float32]) -> npt.NDArray[np.int8]:
    """Return the int8 image of each row, q = rint(127 * e / max|e|) in float64, halves to even (spec 0.4).

    `vectors` has shape [n, d], float32, every row finite and not all zero; the image has the same shape.
    """
    images = np.empty(vectors.shape, np.int8)
    start = 0
    for block in _chunks(vectors):
        wide = block.astype(np.float64)
        peak = np.abs(wide).max(axis=1, keepdims=True)
        images[start : start + len(block)] = np.rint(127.0 * wide / peak)
        start += len(block)
    return images


def lengths(images: npt.NDArray[np.int8]) -> npt.NDArray[np.float64]:
    """Return sqrt(q . q) of each image, the dot product exact in int64 (spec 0.4); float64 [n]."""
    squares = np.empty(len(images), np.int64)
    start = 0
    for block in _chunks(images):
        wide = block.astype(np.int32)
        squares[start : start + len(block)] = np.einsum("ij,ij->i", wide, wide, dtype=np.int64)
        start += len(block)
    return np.sqrt(squares.astype(np.float64))


def _chunks(rows: npt.NDArray[np.generic]) -> list[npt.NDArray[np.generic]]:
    """Split rows so that a float64 copy of one piece stays small."""
    step = max(1, _CHUNK_ELEMENTS // max(1, rows.shape[1]))
    return [rows[i : i + step] for i in range(0, len(rows), step)]
