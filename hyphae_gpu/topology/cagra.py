"""The base level of a large new index by CAGRA on a GPU (Ootomo 2024), where faiss brings it (faiss-gpu-cuvs).

CAGRA gives each point as many links as HNSW's base level has places for. The levels above, a few points in a hundred,
are HNSW's own, so that searches descend and later points are added as to any other index.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

import numpy as np
import torch

from hyphae_gpu.arrays import F32, I32, I64
from hyphae_gpu.backends.protocol import Backend
from hyphae_gpu.topology.faiss_module import load_faiss

#: Fewer points than that take HNSW some seconds on one core.
LEAST_POINTS = 1 << 14
#: CAGRA prunes a graph of so many times the links to those that it keeps (its own default).
_BEFORE_PRUNING = 2
_BLOCK = 65_536

#: From unit vectors float32 [n, d] and a number of links a point to these links, int64 [n, at least 1], nearest first.
KnnGraph = Callable[[F32, int], I64]


def base_builder(backend: Backend, points: int) -> KnnGraph | None:
    """Return what builds the base level of a new index of so many points; None where HNSW does."""
    if backend.name != "cuda" or points < LEAST_POINTS:
        return None
    faiss = load_faiss()
    if not hasattr(faiss, "GpuIndexCagra"):
        return None
    return lambda vectors, degree: _cagra(faiss, vectors, degree)


def _cagra(faiss: ModuleType, vectors: F32, degree: int) -> I64:
    """Build on torch's current device.

    Raises MemoryError where cuVS has no memory for that, RuntimeError where faiss or CUDA refuses, as faiss does.
    """
    config = faiss.GpuIndexCagraConfig()
    config.device = torch.cuda.current_device()
    config.graph_degree, config.intermediate_graph_degree = degree, _BEFORE_PRUNING * degree
    # torch keeps what it frees, and faiss asks the driver
    torch.cuda.empty_cache()
    # of unit vectors the nearest have the greatest inner product
    index = faiss.GpuIndexCagra(faiss.StandardGpuResources(), vectors.shape[1], faiss.METRIC_L2, config)
    index.train(vectors)
    graph: I64 = faiss.vector_to_array(index.get_knngraph())
    if not len(graph) or len(graph) % len(vectors):
        raise RuntimeError(f"its graph has {len(graph)} links, expected as many for each of {len(vectors)} points")
    return graph.reshape(len(vectors), -1)


def base_table(graph: I64, width: int) -> I32:
    """Return a graph's links as rows of `width` places, int32 [n, width], -1 behind the last.

    graph int64 [n, k]; links to the point itself, to no point and to one that stands before in its row are left out.
    """
    table = np.full((len(graph), width), -1, np.int32)
    for low in range(0, len(graph), _BLOCK):
        block = graph[low : low + _BLOCK]
        by_target = np.argsort(block, axis=1, kind="stable")
        targets = np.take_along_axis(block, by_target, 1)
        again = np.zeros(block.shape, np.bool_)
        np.put_along_axis(again, by_target[:, 1:], targets[:, 1:] == targets[:, :-1], 1)
        itself = block == np.arange(low, low + len(block))[:, None]
        fine = (block >= 0) & (block < len(graph)) & ~itself & ~again
        first = np.argsort(~fine, axis=1, kind="stable")[:, :width]
        table[low : low + len(block), : first.shape[1]] = np.take_along_axis(np.where(fine, block, -1), first, 1)
    return table
