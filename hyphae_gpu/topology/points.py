"""Which node stands on which point of the index (spec 2.2, 2.6)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hyphae_gpu.backends.protocol import Backend
from hyphae_gpu.topology.cagra import base_builder
from hyphae_gpu.topology.hnsw import HnswIndex

#: An index with a greater share of points that no live node stands on is rebuilt: 3 in 10 (spec 2.6).
_DEAD_LIMIT = (3, 10)


@dataclass(frozen=True, kw_only=True)
class Standing:
    """Live cells on an index's points.

    cells int32 [k]: the live cells of the layer, ascending; points int64 [k]: where each stands; representatives
    int32 [p]: the lowest-numbered live cell of each point, -1 where none stands; dead_share: dead points by all, before
    a rebuild; rebuilt: whether the index was; added: how many points came; built_by: who linked them (`HnswIndex.add`).
    """

    index: HnswIndex
    cells: npt.NDArray[np.int32]
    points: npt.NDArray[np.int64]
    representatives: npt.NDArray[np.int32]
    dead_share: float
    rebuilt: bool
    added: int
    built_by: str

    @property
    def holders(self) -> npt.NDArray[np.int32]:
        """The representative of each live cell, int32 [k]; its own number where it is the representative."""
        return self.representatives[self.points]


def place(index: HnswIndex, images: npt.NDArray[np.int8], cells: npt.NDArray[np.int32], backend: Backend) -> Standing:
    """Put every live cell on a point: the one of its image, else a new one, in node-number order (spec 2.2, 2.6).

    images int8 [n, d]; cells int32 [k], the layer's live cells, ascending. `index` grows in place; where more than 30 %
    of its points would be dead, a new index over the live ones takes its place.
    """
    known = len(index)
    points = backend.equal_rows(index.images, images, cells)
    total = max(known, int(points.max(initial=-1)) + 1)
    dead = total - len(np.unique(points))
    rebuilt = dead * _DEAD_LIMIT[1] > total * _DEAD_LIMIT[0]
    if rebuilt:
        index = HnswIndex(index.dimension, index.shape, threads=index.threads)
        distinct, firsts, which = np.unique(points, return_index=True, return_inverse=True)
        order = np.argsort(firsts)
        renumbered = np.empty(len(distinct), np.int64)
        renumbered[order] = np.arange(len(distinct))
        points = renumbered[which]
        known = 0
    founders = _lowest(points, cells, max(len(index), int(points.max(initial=-1)) + 1))
    fresh = founders[known:]
    built_by = index.add(images[fresh], fresh, graph=base_builder(backend, len(fresh)))
    return Standing(
        index=index,
        cells=cells,
        points=points,
        representatives=founders,
        dead_share=dead / total if total else 0.0,
        rebuilt=rebuilt,
        added=len(fresh),
        built_by=built_by,
    )


def _lowest(points: npt.NDArray[np.int64], cells: npt.NDArray[np.int32], count: int) -> npt.NDArray[np.int32]:
    """Return the first cell on each point, -1 where none stands; cells are ascending."""
    lowest = np.full(count, -1, np.int32)
    lowest[points[::-1]] = cells[::-1]
    return lowest
