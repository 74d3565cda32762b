"""Decay of cells, and which of them are live (spec 1.2, 6.5)."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from hyphae_gpu.state import NodeTable
from hyphae_gpu.vocabulary import NodeType

#: Powers and exponentials of time are rounded to this fraction (spec 0.2).
GRID = 4096
MICROSECONDS_A_DAY = 86_400_000_000


def days_since(as_of: int, times: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """Return the fractional days from each time to `as_of`, 0 for later ones; microseconds in, float64 out."""
    days: npt.NDArray[np.float64] = np.maximum(np.int64(as_of) - times, 0) / MICROSECONDS_A_DAY
    return days


def on_grid(value: float) -> float:
    """Return the value rounded to a multiple of 2^-12, halves to even (spec 0.2)."""
    return round(value * GRID) / GRID


def decayed_saliences(nodes: NodeTable, as_of: int, *, decay_per_day: float) -> npt.NDArray[np.float32]:
    """Return each node's salience at `as_of`: float32(s0 * decay_per_day^dt), dt days since last access (spec 6.5).

    Nodes that are no cells keep what they have. Powers are computed once a distinct dt, by Python's math (spec 0.2).
    """
    cells = np.flatnonzero(nodes.types == NodeType.CELL)
    days, which = np.unique(days_since(as_of, nodes.last_access[cells]), return_inverse=True)
    powers = np.array([on_grid(math.pow(decay_per_day, day)) for day in days.tolist()], np.float64)
    saliences = nodes.saliences.copy()
    saliences[cells] = (nodes.saliences[cells].astype(np.float64) * powers[which]).astype(np.float32)
    return saliences


def live_cells(nodes: NodeTable, saliences: npt.NDArray[np.float32], *, threshold: float) -> npt.NDArray[np.bool_]:
    """Return which nodes are live cells: salient enough, neither superseded nor quarantined; bool [n] (spec 1.2).

    `saliences` are the decayed ones; `threshold` is compared in float64.
    """
    salient = saliences.astype(np.float64) >= threshold
    live: npt.NDArray[np.bool_] = (
        (nodes.types == NodeType.CELL) & salient & (nodes.superseded_by < 0) & ~nodes.quarantined
    )
    return live
