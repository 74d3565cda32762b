"""Case topology: the graph of an epoch in which all nodes are new, by part, beside faiss, numpy and scipy (spec 2)."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import faiss
import numpy as np
import numpy.typing as npt
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components

from benchmarks import swarms
from benchmarks.graphs import linked
from benchmarks.result import Column, DifferentError
from benchmarks.timing import alternating, copy_bandwidth, floor, load_average, peak_memory, say
from hyphae_gpu.backends.cpu.backend import CpuBackend
from hyphae_gpu.state import NodeTable
from hyphae_gpu.topology.adjacency import adjacency_of, as_edges
from hyphae_gpu.topology.hnsw import LAYER_SHAPES, HnswIndex, point_levels, unit_vectors
from hyphae_gpu.topology.near import NEAR_COUNT
from hyphae_gpu.topology.refresh import Topology
from hyphae_gpu.vectors import lengths, quantise

_PARTS = ("hnsw", "near", "components", "attach", "csr")
_SAMPLE = 200
COLUMNS = (
    Column("nodes", "nodes", "d"),
    Column("dimension", "dimension", "d"),
    Column("threads", "threads", "d"),
    Column("whole, s", "seconds", ".2f"),
    *(Column(f"{part}, s", f"parts.{part}", ".3f") for part in _PARTS),
    Column("floor, s", "floor.seconds", ".3f"),
    Column("faiss alone, ratio", "peers.faiss.ratio", ".2f"),
    Column("near by numpy, ratio", "peers.numpy near.ratio", ".1f"),
    Column("components by scipy", "peers.scipy components.ratio", ".2f"),
    Column("rows by numpy", "peers.numpy adjacency.ratio", ".2f"),
    Column("equal", "equal", ""),
    Column("edges", "edges", ",d"),
    Column("peak, MiB", "peak_memory_bytes", ".0f", 1 / 2**20),
    Column("load", "load_average.0", ".1f"),
)


def add_arguments(parser: argparse.ArgumentParser, cores: int) -> None:
    """Declare what this case takes."""
    parser.add_argument("--nodes", type=int, nargs="+", default=[10_000, 100_000], help="nodes of each graph")
    parser.add_argument("--dimension", type=int, default=384)
    parser.add_argument("--threads", type=int, nargs="+", default=[cores], help="one row each")
    parser.add_argument("--repeat", type=int, default=1, help="runs of each, of which the median counts")


def rows(arguments: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Yield one result a size and thread count. Raises DifferentError where a peer found something else."""
    for count in arguments.nodes:
        for threads in arguments.threads:
            say(f"{count} nodes, threads {threads}")
            yield _row(count, threads, arguments)


@dataclass(frozen=True, kw_only=True)
class _Made:
    """A swarm and the graph that it got."""

    table: NodeTable
    images: npt.NDArray[np.int8]
    spans: npt.NDArray[np.float64]
    topology: Topology
    threads: int


def _row(count: int, threads: int, arguments: argparse.Namespace) -> dict[str, Any]:
    _graph(200, arguments.dimension, threads)  # numba compiles
    with peak_memory() as peak:
        made = _graph(count, arguments.dimension, threads)
    seconds: dict[str, list[float]] = {part: [] for part in _PARTS}

    def ours() -> None:
        rng = np.random.default_rng(swarms.SEED)
        topology = linked(made.table, made.images, made.spans, rng, threads=threads)
        for part in _PARTS:
            seconds[part].append(topology.seconds[part])

    peers = _peers(made)
    for name, peer in peers.items():
        say(f"  checking against {name}")
        if not peer.equal():
            raise DifferentError(f"{name} found something else at {count} nodes; no time is told")
    parts: dict[str, Callable[[], object]] = {"hyphae-gpu": ours}
    for name, peer in peers.items():
        parts[f"our part of {name}"] = peer.ours
        parts[name] = peer.theirs
    runs = alternating(parts, arguments.repeat)
    candidates = round(_candidates(made))
    size = int(len(made.topology.layers[0].index) * (candidates * arguments.dimension + 4 * arguments.dimension))
    return {
        "nodes": count,
        "dimension": arguments.dimension,
        "threads": threads,
        **runs["hyphae-gpu"].facts(),
        "parts": {part: float(np.median(seconds[part])) for part in _PARTS},
        "facts": made.topology.facts,
        "edges": len(made.topology.adjacency.targets),
        "equal": True,
        "floor": floor(
            size,
            copy_bandwidth(threads),
            f"near: the images of all {candidates} nodes within two links ({arguments.dimension} bytes) are "
            "read once each, from memory; hnsw: each vector (4 bytes a number) is read once, its distances are free",
        ),
        "peers": {
            name: {
                **runs[name].facts(),
                "our_seconds": runs[f"our part of {name}"].seconds,
                "ratio": runs[name].seconds * peer.scale / runs[f"our part of {name}"].seconds,
                "equal": True,
                "what": peer.what,
            }
            for name, peer in peers.items()
        },
        "load_average": load_average(),
        **peak.facts(),
    }


def _graph(count: int, dimension: int, threads: int) -> _Made:
    rng = np.random.default_rng(swarms.SEED)
    table = swarms.node_table(count, dimension, rng)
    images = quantise(table.vectors)
    spans = lengths(images)
    topology = linked(table, images, spans, np.random.default_rng(swarms.SEED), threads=threads)
    return _Made(table=table, images=images, spans=spans, topology=topology, threads=threads)


@dataclass(frozen=True, kw_only=True)
class _Peer:
    """One operation, ours and theirs; `scale` is what their time has to be multiplied by to stand for the same work."""

    what: str
    ours: Callable[[], Any]
    theirs: Callable[[], Any]
    equal: Callable[[], bool]
    scale: float = 1.0


def _peers(made: _Made) -> dict[str, _Peer]:
    return {
        "faiss": _faiss(made),
        "numpy near": _near(made),
        "scipy components": _components(made),
        "numpy adjacency": _adjacency(made),
    }


def _faiss(made: _Made) -> _Peer:
    index = made.topology.layers[0].index
    dimension, shape = made.images.shape[1], LAYER_SHAPES[0]

    def ours() -> HnswIndex:
        grown = HnswIndex(dimension, shape, threads=made.threads)
        grown.add(index.images, index.founders)
        return grown

    def theirs() -> npt.NDArray[np.int32]:
        bare = faiss.IndexHNSWFlat(dimension, shape.m, faiss.METRIC_INNER_PRODUCT)
        bare.hnsw.efConstruction = shape.ef_construction
        levels = point_levels(len(index), shape.m, int(bare.hnsw.assign_probas.size()) - 1)
        faiss.copy_array_to_vector(levels + 1, bare.hnsw.levels)
        before = faiss.omp_get_max_threads()
        faiss.omp_set_num_threads(made.threads)
        bare.add(unit_vectors(index.images))
        faiss.omp_set_num_threads(before)
        hnsw: Any = bare.hnsw
        links: npt.NDArray[np.int32] = faiss.vector_to_array(hnsw.neighbors)
        return links

    return _Peer(
        what="the index alone, same levels, same vectors: links equal",
        ours=ours,
        theirs=theirs,
        equal=lambda: np.array_equal(theirs(), index.arrays().links),
    )


def _near(made: _Made) -> _Peer:
    index = made.topology.layers[0].index
    offsets, links = index.base_links()
    founders, images, spans = index.founders, made.images, made.spans
    backend = CpuBackend(threads=made.threads)
    sample = np.linspace(0, max(0, len(index) - 1), min(_SAMPLE, len(index))).astype(np.int64)

    def ours() -> npt.NDArray[np.int32]:
        return backend.nearest_linked(images, spans, founders, offsets, links, NEAR_COUNT)

    def theirs() -> npt.NDArray[np.int32]:
        found = np.full((len(sample), NEAR_COUNT), -1, np.int32)
        for row, point in enumerate(sample):
            nodes = founders[_within_two(point, offsets, links)]
            dots = images[nodes].astype(np.int32) @ images[founders[point]].astype(np.int32)
            cosines = dots / (spans[founders[point]] * spans[nodes])
            best = nodes[np.lexsort((nodes, -cosines))[:NEAR_COUNT]]
            found[row, : len(best)] = best
        return found

    return _Peer(
        what=f"{len(sample)} points, their time taken for as many as there are: same nodes in the same order",
        ours=ours,
        theirs=theirs,
        equal=lambda: np.array_equal(theirs(), ours()[sample]),
        scale=len(index) / max(1, len(sample)),
    )


def _within_two(point: int, offsets: npt.NDArray[np.int64], links: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    """Return the points one and two links away."""
    first = links[offsets[point] : offsets[point + 1]]
    second = [links[offsets[other] : offsets[other + 1]] for other in first]
    around = np.unique(np.concatenate([first, *second]))
    others: npt.NDArray[np.int32] = around[around != point]
    return others


def _candidates(made: _Made) -> float:
    """Return how many points lie within two links of one, over a sample."""
    offsets, links = made.topology.layers[0].index.base_links()
    sample = np.linspace(0, max(0, len(offsets) - 2), min(_SAMPLE, len(offsets) - 1)).astype(np.int64)
    return float(np.mean([len(_within_two(point, offsets, links)) for point in sample])) if len(sample) else 0.0


def _components(made: _Made) -> _Peer:
    edges, count = made.topology.edges, len(made.table)
    backend = CpuBackend(threads=made.threads)

    def ours() -> npt.NDArray[np.int32]:
        return backend.components(count, edges.sources, edges.targets)

    def theirs() -> npt.NDArray[np.int32]:
        matrix = coo_matrix((np.ones(len(edges), np.int8), (edges.sources, edges.targets)), shape=(count, count))
        found, labels = connected_components(matrix, directed=False)
        lowest = np.full(found, count, np.int64)
        np.minimum.at(lowest, labels, np.arange(count))
        named: npt.NDArray[np.int32] = lowest[labels].astype(np.int32)
        return named

    return _Peer(
        what="lowest member of each node's component, over all edges",
        ours=ours,
        theirs=theirs,
        equal=lambda: np.array_equal(ours(), theirs()),
    )


def _adjacency(made: _Made) -> _Peer:
    edges, count = as_edges(made.topology.edges), len(made.table)
    backend = CpuBackend(threads=made.threads)

    def ours() -> list[npt.NDArray[Any]]:
        found = adjacency_of(edges, count, backend)
        return [found.offsets.numpy(), found.targets.numpy(), found.costs.numpy(), found.types.numpy()]

    def theirs() -> list[npt.NDArray[Any]]:
        costs = np.ceil(1024 / edges.weights.numpy().astype(np.float64)).clip(max=1 << 24).astype(np.int32)
        sources, targets, types = (column.numpy() for column in (edges.sources, edges.targets, edges.types))
        order = np.lexsort((types, targets, costs, sources))
        offsets = np.concatenate([[0], np.cumsum(np.bincount(sources, minlength=count))])
        rest = (edges.kinds.numpy()[order], edges.weights.numpy()[order], edges.bandwidths.numpy()[order])
        return [offsets, targets[order], costs[order], types[order], *rest][:4]

    return _Peer(
        what="all edges into rows by (cost, target, type): offsets, targets, costs and types equal",
        ours=ours,
        theirs=theirs,
        equal=lambda: all(np.array_equal(a, b) for a, b in zip(ours(), theirs(), strict=True)),
    )
