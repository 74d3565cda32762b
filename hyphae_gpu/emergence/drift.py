"""Where agents stand: the weighted centroid of the cells they lately touched (spec 1.3)."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from hyphae_gpu.backends.protocol import Backend
from hyphae_gpu.emergence.decay import GRID, days_since, on_grid
from hyphae_gpu.state import AccessLog, AccessPairs, NodeTable

#: lambda of spec 1.3, per access unit.
RECENCY_RATE = 0.1
#: Of each agent the newest pairs that count, and the least recency that does (spec 1.3).
NEWEST_PAIRS = 256
LEAST_RECENCY = 0.05


def counting_pairs(log: AccessLog, as_of: int, live: npt.NDArray[np.bool_], *, access_unit_days: float) -> AccessPairs:
    """Return the (agent, live cell) pairs that count at `as_of`, with their recency (spec 1.3).

    live bool [n]: which nodes are live cells. A pair's time is its newest row that is not later than `as_of`; of each
    agent the newest 256 count (ties: lowest cell number), those of recency >= 0.05.
    """
    rows = np.flatnonzero((log.at <= as_of) & live[log.cells])
    agents, cells, at = log.agents[rows], log.cells[rows], log.at[rows]
    order = np.lexsort((at, cells, agents))
    agents, cells, at = agents[order], cells[order], at[order]
    last = np.ones(len(order), np.bool_)
    last[:-1] = (agents[1:] != agents[:-1]) | (cells[1:] != cells[:-1])
    agents, cells, at = agents[last], cells[last], at[last]

    newest = np.lexsort((cells, -at, agents))
    starts = np.searchsorted(agents[newest], agents[newest], side="left")
    kept = np.sort(newest[np.arange(len(newest)) - starts < NEWEST_PAIRS])
    recencies = _recencies(days_since(as_of, at[kept]), access_unit_days)
    counting = recencies >= LEAST_RECENCY
    kept = kept[counting]
    return AccessPairs(agents=agents[kept], cells=cells[kept], recencies=recencies[counting].astype(np.float32))


def drift(
    nodes: NodeTable,
    images: npt.NDArray[np.int8],
    saliences: npt.NDArray[np.float32],
    pairs: AccessPairs,
    backend: Backend,
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.float32]]:
    """Return the agents that move and their new positions, float32 unit vectors [k, d] (spec 1.3).

    images int8 [n, d] are the nodes' int8 images, saliences float32 [n] the decayed ones. An agent without a pair, or
    whose sum is zero, stays; one that would get the vector it has is not listed.
    """
    agents, starts = np.unique(pairs.agents, return_index=True)
    offsets = np.append(starts, len(pairs)).astype(np.int64)
    scaled = (float(GRID) * saliences[pairs.cells].astype(np.float64)) * pairs.recencies.astype(np.float64)
    vectors, having = backend.centroids(images, offsets, pairs.cells, np.rint(scaled).astype(np.int64))
    moves = having & (~nodes.placed[agents] | (vectors != nodes.vectors[agents]).any(axis=1))
    return agents[moves], vectors[moves]


def _recencies(days: npt.NDArray[np.float64], access_unit_days: float) -> npt.NDArray[np.float64]:
    """Return exp(-0.1 * dt) on the grid, dt in access units, once a distinct value by Python's math (spec 0.2)."""
    distinct, which = np.unique(days, return_inverse=True)
    values = [on_grid(math.exp(-RECENCY_RATE * (day / access_unit_days))) for day in distinct.tolist()]
    return np.array(values, np.float64)[which]
