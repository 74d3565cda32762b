"""Connected components of an undirected graph (spec 2.6)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit


def components(count: int, left: npt.NDArray[np.int32], right: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    """Return each node's component as its lowest member, int32 [count]; left, right int32 [m] are the edges' ends."""
    labels = np.arange(count, dtype=np.int32)
    _components(left, right, labels)
    return labels


@njit(nogil=True, cache=True)
def _root(labels, node):
    """Return the root of a node's tree and halve the path to it."""
    while labels[node] != node:
        labels[node] = labels[labels[node]]
        node = labels[node]
    return node


@njit(nogil=True, cache=True)
def _components(left, right, labels):
    """Union by lowest root, so that a root is always its component's lowest member."""
    for i in range(left.size):
        a, b = _root(labels, left[i]), _root(labels, right[i])
        if a < b:
            labels[b] = a
        elif b < a:
            labels[a] = b
    for node in range(labels.size):
        labels[node] = _root(labels, node)
