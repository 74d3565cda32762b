"""The near and far links of given vectors, for those who have a graph's nodes and no edges (spec 2.2-2.6)."""

from __future__ import annotations

from dataclasses import fields

import numpy as np

from hyphae_gpu.backends.select import select
from hyphae_gpu.columns import Column
from hyphae_gpu.config import Settings
from hyphae_gpu.state import AccessPairs, EdgeTable, NodeTable
from hyphae_gpu.swarm import Edges
from hyphae_gpu.topology.changes import no_edges
from hyphae_gpu.topology.hnsw import HnswIndex
from hyphae_gpu.topology.refresh import TopologyRules, refresh
from hyphae_gpu.vectors import lengths, quantise
from hyphae_gpu.vocabulary import KnowledgeType, NodeType


def link(vectors: Column, settings: Settings | None = None) -> Edges:
    """Return the links that an epoch would make among live cells with these vectors, float32 [n, d].

    Near, far and copy links, all components joined. Raises UsageError where faiss is not installed, DeviceError when
    the device asked for cannot be used.
    """
    settings = settings or Settings()
    backend = select(settings.device, settings.threads).backend
    given = np.asarray(vectors, np.float32)
    images, count = quantise(given), len(given)
    none = np.zeros(0, np.int32)
    topology = refresh(
        cells(given),
        images,
        lengths(images),
        np.ones(count, np.bool_),
        index=HnswIndex(given.shape[1], threads=settings.threads),
        declared=no_edges(),
        pairs=AccessPairs(agents=none, cells=none, recencies=np.zeros(0, np.float32)),
        rules=TopologyRules(),
        backend=backend,
    )
    return Edges(**{spec.name: getattr(topology.edges, spec.name) for spec in fields(EdgeTable)})


def cells(vectors: np.ndarray) -> NodeTable:
    """Return one settled cell a vector, float32 [n, d], of salience 1, with neither maker nor history."""
    count = len(vectors)
    return NodeTable(
        types=np.full(count, NodeType.CELL, np.int8),
        layers=np.zeros(count, np.int8),
        vectors=vectors,
        placed=np.ones(count, np.bool_),
        knowledge_types=np.full(count, KnowledgeType.FACT, np.int8),
        saliences=np.ones(count, np.float32),
        makers=np.full(count, -1, np.int32),
        created_at=np.zeros(count, np.int64),
        last_access=np.zeros(count, np.int64),
        superseded_by=np.full(count, -1, np.int32),
        pending=np.zeros(count, np.int8),
        interests=np.zeros((count, len(KnowledgeType)), np.float32),
        radii=np.full(count, np.nan),
        quarantined=np.zeros(count, np.bool_),
    )
