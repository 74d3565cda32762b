"""A made swarm with the graph that the project's own topology gives it, kept between runs where a folder is named."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, fields
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks import swarms
from benchmarks.timing import say
from hyphae_gpu import topology
from hyphae_gpu.backends.cpu import components, cosines, equal, join, near, rows
from hyphae_gpu.backends.cpu.backend import CpuBackend
from hyphae_gpu.state import NodeTable
from hyphae_gpu.swarm import Adjacency, Nodes
from hyphae_gpu.topology.hnsw import HnswIndex
from hyphae_gpu.topology.refresh import Topology, TopologyRules, refresh
from hyphae_gpu.vectors import lengths, quantise
from hyphae_gpu.vocabulary import NodeType


@dataclass(frozen=True, kw_only=True)
class Graph:
    """Nodes, what links them, and the nodes' table that both were made of."""

    table: NodeTable
    nodes: Nodes
    adjacency: Adjacency


def made_graph(count: int, dimension: int, *, threads: int, cache: Path | None) -> Graph:
    """Return the swarm of this size; its adjacency is read from `cache` where it lies there, else built and put there.

    The file's name holds a digest of all that the graph depends on but the processor: the code and faiss's version.
    """
    rng = np.random.default_rng(swarms.SEED)
    say(f"making {count} nodes of dimension {dimension}")
    table = swarms.node_table(count, dimension, rng)
    images = quantise(table.vectors)
    spans = lengths(images)
    nodes = Nodes.of_images(images, spans, types=table.types, layers=table.layers, interests=table.interests)
    file = cache / f"adjacency-{count}-{dimension}-{_digest()}.npz" if cache else None
    if file and file.exists():
        say(f"reading the graph from {file}")
        with np.load(file, allow_pickle=False) as held:
            columns = {spec.name: torch.from_numpy(held[spec.name]) for spec in fields(Adjacency)}
        return Graph(table=table, nodes=nodes, adjacency=Adjacency(**columns))
    say("linking them (HNSW)")
    adjacency = linked(table, images, spans, rng, threads=threads).adjacency
    if file:
        file.parent.mkdir(parents=True, exist_ok=True)
        np.savez(file, **{spec.name: getattr(adjacency, spec.name).numpy() for spec in fields(Adjacency)})
    return Graph(table=table, nodes=nodes, adjacency=adjacency)


def linked(
    table: NodeTable,
    images: np.ndarray[Any, np.dtype[np.int8]],
    spans: np.ndarray[Any, np.dtype[np.float64]],
    rng: np.random.Generator,
    *,
    threads: int,
) -> Topology:
    """Return the graph of an epoch in which all these nodes are new."""
    return refresh(
        table,
        images,
        spans,
        table.types == NodeType.CELL,
        index=HnswIndex(images.shape[1], threads=threads),
        declared=swarms.no_edges(),
        pairs=swarms.access_pairs(table, rng),
        rules=TopologyRules(),
        backend=CpuBackend(threads=threads),
    )


def _digest() -> str:
    digest = hashlib.sha256(version("faiss-cpu").encode())
    files = [Path(str(module.__file__)) for module in (swarms, components, cosines, equal, join, near, rows)]
    for file in [*files, *sorted(file for folder in topology.__path__ for file in Path(folder).glob("*.py"))]:
        digest.update(file.read_bytes())
    return digest.hexdigest()[:16]
