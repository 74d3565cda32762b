"""The closest pair between each component and those joined before it, by exact search (spec 2.6)."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

#: Below this every sum of a float32 product of images is an integer that float32 holds (spec 0.4).
_EXACT_IN_FLOAT32 = float(1 << 24)
_ROWS, _COLUMNS = 512, 8192


def closest_pairs(
    images: npt.NDArray[np.int8],
    lengths: npt.NDArray[np.float64],
    members: npt.NDArray[np.int32],
    ranks: npt.NDArray[np.int32],
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
    """Return for each rank r = 1, 2, ... the pair of greatest cosine between its members and all of lower rank.

    members int32 [k] node numbers, ascending; ranks int32 [k]: 0 for the component that the others are joined to, then
    1, 2, ... in the order of joining, none left out. The result is (nodes, partners), int32 [greatest rank]:
    nodes[r - 1] is of rank r. Ties go to the lowest node, then to the lowest partner.
    """
    joined = int(ranks.max(initial=0))
    if not joined:
        return np.zeros(0, np.int32), np.zeros(0, np.int32)
    seeking = np.flatnonzero(ranks > 0)
    best = np.full(len(seeking), -np.inf)
    partners = np.full(len(seeking), -1, np.int32)
    exact: type[np.floating[Any]] = np.float32 if lengths[members].max() ** 2 < _EXACT_IN_FLOAT32 else np.float64
    for low in range(0, len(members), _COLUMNS):
        offered = slice(low, low + _COLUMNS)
        columns = images[members[offered]].astype(exact).T
        for start in range(0, len(seeking), _ROWS):
            rows = slice(start, start + _ROWS)
            asking = seeking[rows]
            _keep_best(
                images[members[asking]].astype(exact) @ columns,
                lengths[members[asking]],
                lengths[members[offered]],
                ranks[asking],
                ranks[offered],
                members[offered],
                best[rows],
                partners[rows],
            )
    # Stable, so that of equal cosines the lowest node stands first in its rank.
    order = np.lexsort((-best, ranks[seeking]))
    firsts = order[np.searchsorted(ranks[seeking][order], np.arange(1, joined + 1))]
    return members[seeking[firsts]], partners[firsts]


@njit(nogil=True, cache=True)
def _keep_best(dots, row_lengths, column_lengths, row_ranks, column_ranks, offered, best, partners):
    """Take the first column of greatest cosine and lower rank into each row's best; columns come in ascending order."""
    for i in range(dots.shape[0]):
        for j in range(dots.shape[1]):
            if column_ranks[j] < row_ranks[i]:
                value = np.float64(dots[i, j]) / (row_lengths[i] * column_lengths[j])
                if value > best[i]:
                    best[i] = value
                    partners[i] = offered[j]
