"""Places in the plane for points that are many-dimensional: what is near stays near. No randomness."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Floats: TypeAlias = npt.NDArray[np.float64]

#: Nearest points of each that distances are walked over.
_NEAREST = 5
#: Points that no walk joins are this many times as far apart as the farthest that one joins.
_APART = 1.2
#: Distances below this share of their mean count as this much, so that twins do not outweigh all others.
_LEAST_SHARE = 0.1
_STEPS, _SETTLED = 100, 1e-3


def places(vectors: Sequence[Sequence[float]]) -> Floats:
    """Return a place in the plane for each vector, float64 [n, 2], around 0; equal input gives equal places.

    Distances are walked from neighbour to neighbour by cosine (Isomap, Tenenbaum 2000), since few planes hold more than
    a tenth of what topics vary in; places start from classical scaling and majorise the stress that weighs near pairs
    most (Gansner 2004). The first axis is that of the largest spread; of each axis the farthest place is positive.
    """
    count = len(vectors)
    if count < 2:
        return np.zeros((count, 2))
    walked = _walked(_distances(np.asarray(vectors, np.float64)))
    if not walked.any():
        return np.zeros((count, 2))
    return _upright(_settled(walked, _classical(walked)))


def _distances(vectors: Floats) -> Floats:
    """Return the chords between unit vectors; a zero vector is at right angles to all."""
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    units = vectors / np.where(norms > 0, norms, 1.0)
    chords: Floats = np.sqrt(np.maximum(2.0 - 2.0 * np.clip(units @ units.T, -1.0, 1.0), 0.0))
    chords[chords < 1e-6] = 0.0
    np.fill_diagonal(chords, 0.0)
    return chords


def _walked(distances: Floats) -> Floats:
    """Return the shortest walks over each point's nearest ones (ties: the first), both ways."""
    count = len(distances)
    others = distances + np.diag(np.full(count, np.inf))
    nearest = np.argsort(others, axis=1, kind="stable")[:, : min(_NEAREST, count - 1)]
    rows = np.repeat(np.arange(count), nearest.shape[1])
    walked = np.full((count, count), np.inf)
    walked[rows, nearest.ravel()] = walked[nearest.ravel(), rows] = distances[rows, nearest.ravel()]
    np.fill_diagonal(walked, 0.0)
    for over in range(count):
        walked = np.minimum(walked, walked[:, over : over + 1] + walked[over])
    joined = np.isfinite(walked)
    walked[~joined] = _APART * max(float(walked[joined].max()), float(distances.max()))
    return walked


def _classical(distances: Floats) -> Floats:
    """Return the two axes that hold most of the distances (Torgerson 1952)."""
    squares = distances**2
    inner = -0.5 * (squares - squares.mean(axis=0) - squares.mean(axis=1, keepdims=True) + squares.mean())
    values, axes = np.linalg.eigh((inner + inner.T) / 2)
    found: Floats = axes[:, [-1, -2]] * np.sqrt(np.maximum(values[[-1, -2]], 0.0))
    return found


def _settled(distances: Floats, at: Floats) -> Floats:
    """Return places whose distances are the given ones as nearly as they can be, near ones first."""
    floor = _LEAST_SHARE * float(distances.mean())
    weights = 1.0 / np.maximum(distances, floor) ** 2
    np.fill_diagonal(weights, 0.0)
    # All pairs have a weight, so this inverts the Laplacian but for the mean, which the forces do not move.
    pull = np.linalg.inv(np.diag(weights.sum(axis=1)) - weights + 1.0 / len(at))
    forces = weights * distances
    for _ in range(_STEPS):
        across, up = at[:, None, 0] - at[:, 0], at[:, None, 1] - at[:, 1]
        apart = np.sqrt(across * across + up * up)
        ratios = np.divide(forces, apart, out=np.zeros_like(apart), where=apart > 0)
        moved = pull @ ((np.diag(ratios.sum(axis=1)) - ratios) @ at)
        still = float(np.abs(moved - at).max()) < _SETTLED * float(distances.max())
        at = moved
        if still:
            break
    return at


def _upright(at: Floats) -> Floats:
    """Turn places so that their largest spread lies along the first axis, and fix the signs."""
    at = at - at.mean(axis=0)
    _, axes = np.linalg.eigh(at.T @ at)
    turned = at @ axes[:, ::-1]
    farthest = turned[np.abs(turned).argmax(axis=0), [0, 1]]
    fixed: Floats = turned * np.where(farthest < 0, -1.0, 1.0)
    return fixed
