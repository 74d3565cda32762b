"""What changed between two epochs' edges, so that a checkpoint writes no more than that (spec 8.3)."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import numpy.typing as npt

from hyphae_gpu.state import EdgeTable
from hyphae_gpu.topology.adjacency import taken


def edge_changes(old: EdgeTable, new: EdgeTable) -> tuple[EdgeTable, EdgeTable]:
    """Return (edges of `old` that are gone, edges of `new` that came or changed).

    Both tables are sorted by (source, target, type), which is an edge's key.
    """
    old_keys, new_keys = _keys(old), _keys(new)
    at = np.searchsorted(new_keys, old_keys)
    stays = np.zeros(len(old), np.bool_)
    inside = at < len(new)
    stays[inside] = new_keys[at[inside]] == old_keys[inside]
    same = stays.copy()
    for name in ("kinds", "weights", "bandwidths"):
        same[stays] &= getattr(old, name)[stays] == getattr(new, name)[at[stays]]
    written = np.ones(len(new), np.bool_)
    written[at[same]] = False
    return taken(old, ~stays), taken(new, written)


def no_edges() -> EdgeTable:
    """Return a table without rows."""
    kinds = (np.int32, np.int32, np.int8, np.int8, np.float32, np.int32)
    return EdgeTable(**{spec.name: np.zeros(0, kind) for spec, kind in zip(fields(EdgeTable), kinds, strict=True)})


def _keys(table: EdgeTable) -> npt.NDArray[np.uint64]:
    sources, targets = table.sources.astype(np.uint64), table.targets.astype(np.uint64)
    keys = np.left_shift(sources, np.uint64(33))
    keys |= np.left_shift(targets, np.uint64(2))
    keys |= table.types.astype(np.uint64)
    return keys
