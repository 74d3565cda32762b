"""One layer of the graph: its points and the semantic links among its nodes (spec 2.2, 2.3, 2.6)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hyphae_gpu.arrays import F64, I8, I32
from hyphae_gpu.backends.protocol import Backend
from hyphae_gpu.state import EdgeTable
from hyphae_gpu.topology.adjacency import concatenated, edges_both_ways
from hyphae_gpu.topology.hnsw import HnswIndex
from hyphae_gpu.topology.near import PairKeys, copy_pairs, ends, near_and_far, weights_of
from hyphae_gpu.topology.points import Standing, place
from hyphae_gpu.vocabulary import EdgeKind, EdgeType


@dataclass(frozen=True, kw_only=True)
class Layer:
    """Where a layer's live nodes stand, and their links: near, far and copy pairs."""

    standing: Standing
    near: PairKeys
    far: PairKeys
    copies: PairKeys

    @property
    def index(self) -> HnswIndex:
        """The index to go on with."""
        return self.standing.index

    @property
    def index_changed(self) -> bool:
        """Whether it is another one than before."""
        return self.standing.rebuilt or self.standing.added > 0


def layer_of(index: HnswIndex, images: I8, lengths: F64, members: I32, backend: Backend) -> Layer:
    """Put a layer's live nodes on points and link them.

    images int8 [n, d], lengths float64 [n]; members int32, ascending: the layer's live nodes. `index` grows in place or
    is replaced (`points.place`).
    """
    standing = place(index, images, members, backend)
    near, far = near_and_far(standing, images, lengths, backend)
    return Layer(standing=standing, near=near, far=far, copies=copy_pairs(standing))


def semantic_edges(layer: Layer, images: I8, lengths: F64, backend: Backend) -> tuple[EdgeTable, EdgeTable]:
    """Return a layer's edges both ways: near and copy ones, of which scenes are made (spec 6.4), and far ones."""
    near = cosine_edges(layer.near, EdgeKind.NEAR, images, lengths, backend)
    return concatenated([near, _copy_edges(layer.copies)]), cosine_edges(
        layer.far, EdgeKind.FAR, images, lengths, backend
    )


def cosine_edges(keys: PairKeys, kind: EdgeKind, images: I8, lengths: F64, backend: Backend) -> EdgeTable:
    """Return semantic edges both ways between the pairs, weighted by cosine (spec 2.3)."""
    left, right = ends(keys)
    weights = weights_of(backend.cosines(images, lengths, left, right))
    return edges_both_ways(left, right, weights, EdgeType.SEMANTIC, kind)


def _copy_edges(keys: PairKeys) -> EdgeTable:
    """Return the edges between copies and their representatives, of weight 1 (spec 2.6)."""
    left, right = ends(keys)
    return edges_both_ways(left, right, np.ones(len(keys), np.float32), EdgeType.SEMANTIC, EdgeKind.COPY)
