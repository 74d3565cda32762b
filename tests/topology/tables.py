"""Small nodes, edges and pairs for topology tests."""

import numpy as np

from hyphae_gpu.backends.cpu.backend import CpuBackend
from hyphae_gpu.state import AccessPairs, EdgeTable, NodeTable
from hyphae_gpu.topology.hnsw import HnswIndex
from hyphae_gpu.topology.refresh import TopologyRules, refresh
from hyphae_gpu.vectors import lengths, quantise
from hyphae_gpu.vocabulary import NodeType


def node_table(vectors, types=None, **columns):
    """Nodes with these vectors, cells unless said otherwise; any column can be given."""
    vectors = np.asarray(vectors, np.float32)
    count = len(vectors)
    given = {
        "types": np.full(count, NodeType.CELL, np.int8) if types is None else np.asarray(types, np.int8),
        "layers": np.zeros(count, np.int8),
        "vectors": vectors,
        "placed": np.ones(count, np.bool_),
        "knowledge_types": np.zeros(count, np.int8),
        "saliences": np.full(count, 0.5, np.float32),
        "makers": np.full(count, -1, np.int32),
        "created_at": np.zeros(count, np.int64),
        "last_access": np.zeros(count, np.int64),
        "superseded_by": np.full(count, -1, np.int32),
        "pending": np.zeros(count, np.int8),
        "interests": np.zeros((count, 9), np.float32),
        "radii": np.full(count, np.nan),
        "quarantined": np.zeros(count, np.bool_),
    }
    return NodeTable(**given | columns)


def edge_table(rows=()):
    """Edges of (source, target, type, kind, weight, bandwidth)."""
    dtypes = (np.int32, np.int32, np.int8, np.int8, np.float32, np.int32)
    columns = zip(*rows, strict=True) if rows else [()] * 6
    names = ("sources", "targets", "types", "kinds", "weights", "bandwidths")
    return EdgeTable(**{n: np.array(c, t) for n, c, t in zip(names, columns, dtypes, strict=True)})


def access_pairs(rows=()):
    """Pairs of (agent, cell, recency)."""
    agents, cells, recencies = zip(*rows, strict=True) if rows else ((), (), ())
    return AccessPairs(
        agents=np.array(agents, np.int32), cells=np.array(cells, np.int32), recencies=np.array(recencies, np.float32)
    )


def images_of(nodes):
    """The int8 image of every placed node, zeros for the others."""
    images = np.zeros(nodes.vectors.shape, np.int8)
    images[nodes.placed] = quantise(nodes.vectors[nodes.placed])
    return images


def refreshed(nodes, live, *, index=None, declared=None, pairs=None, threads=1, **rules):
    """Run one refresh with what most tests do not care about filled in."""
    images = images_of(nodes)
    return refresh(
        nodes,
        images,
        lengths(images),
        np.asarray(live, np.bool_),
        index=HnswIndex(nodes.vectors.shape[1], threads=threads) if index is None else index,
        declared=edge_table() if declared is None else declared,
        pairs=access_pairs() if pairs is None else pairs,
        rules=TopologyRules(**rules),
        backend=CpuBackend(threads=threads),
    )


def rows_of(table):
    """The edges as {(source, target, type): (kind, weight, bandwidth)}, in table order."""
    columns = (table.sources, table.targets, table.types, table.kinds, table.weights, table.bandwidths)
    return {(s, t, y): (k, w, b) for s, t, y, k, w, b in zip(*(c.tolist() for c in columns), strict=True)}
