"""Case propagate: gossip rounds over a given graph, beside masked (max, +) products and a numpy loop (spec 3.5)."""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from threadpoolctl import threadpool_limits

from benchmarks import swarms
from benchmarks.answer import Answer
from benchmarks.graphs import Graph, made_graph
from benchmarks.numpy_peer import NumpyPeer
from benchmarks.result import Column, DifferentError
from benchmarks.timing import alternating, copy_bandwidth, floor, load_average, peak_memory, say
from hyphae_gpu.backends.cpu.backend import CpuBackend
from hyphae_gpu.gossip.waves import propagate
from hyphae_gpu.swarm import Diffs, GossipCounts, GossipRules

PEERS = ("python-graphblas", "numpy")
COLUMNS = (
    Column("nodes", "nodes", "d"),
    Column("diffs", "diffs", "d"),
    Column("fanout", "fanout", "d"),
    Column("threads", "threads", "d"),
    Column("ours, s", "seconds", ".3f"),
    Column("floor, s", "floor.seconds", ".3f"),
    Column("graphblas, s", "peers.python-graphblas.seconds", ".3f"),
    Column("of it gates", "peers.python-graphblas.gate_seconds", ".3f"),
    Column("ratio", "peers.python-graphblas.ratio", ".2f"),
    Column("without gates", "peers.python-graphblas.ratio_without_gates", ".2f"),
    Column("numpy ratio", "peers.numpy.ratio", ".1f"),
    Column("equal", "equal", ""),
    Column("CPU s, ours", "processor_seconds", ".3f"),
    Column("graphblas", "peers.python-graphblas.processor_seconds", ".3f"),
    Column("deliveries/s", "deliveries_per_second", ",.0f"),
    Column("gates/s", "gates_per_second", ",.0f"),
    Column("relaxations/s", "relaxations_per_second", ",.0f"),
    Column("peak, MiB", "peak_memory_bytes", ".0f", 1 / 2**20),
    Column("load", "load_average.0", ".1f"),
)


def add_arguments(parser: argparse.ArgumentParser, cores: int) -> None:
    """Declare what this case takes."""
    parser.add_argument("--nodes", type=int, nargs="+", default=[100_000], help="nodes of each graph")
    parser.add_argument("--dimension", type=int, default=384)
    parser.add_argument("--diffs", type=int, default=1_024)
    parser.add_argument("--threads", type=int, nargs="+", default=sorted({1, cores}), help="one row each")
    parser.add_argument("--fanout", type=int, nargs="+", default=[0, 10], help="one row each; 0 = all edges")
    parser.add_argument("--sigma-min", type=float, default=0.30)
    parser.add_argument("--cos-min", type=float, default=0.25)
    parser.add_argument("--max-hops", type=int, default=64)
    parser.add_argument("--repeat", type=int, default=5, help="runs of each, of which the median counts")
    parser.add_argument("--peers", nargs="*", choices=PEERS, default=list(PEERS))
    parser.add_argument("--sample", type=int, default=32, help="diffs that the numpy peer propagates")
    parser.add_argument("--cache", type=Path, default=None, help="folder where built graphs are kept between runs")


def rows(arguments: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Yield one result a size, fanout and thread count. Raises DifferentError where a peer found something else."""
    for count in arguments.nodes:
        graph = made_graph(count, arguments.dimension, threads=max(arguments.threads), cache=arguments.cache)
        rng = np.random.default_rng([swarms.SEED, arguments.diffs])
        diffs = swarms.diffs_of(graph.table, arguments.diffs, rng, max_hops=arguments.max_hops)
        for fanout in arguments.fanout:
            rules = GossipRules(sigma_min=arguments.sigma_min, cos_min=arguments.cos_min, fanout=fanout)
            for threads in arguments.threads:
                say(f"{count} nodes, {len(diffs)} diffs, fanout {fanout}, threads {threads}")
                with threadpool_limits(threads, "blas"):
                    yield _row(graph, diffs, rules, threads, arguments)


def _row(graph: Graph, diffs: Diffs, rules: GossipRules, threads: int, arguments: argparse.Namespace) -> dict[str, Any]:
    backend = CpuBackend(threads=threads)

    def ours(some: Diffs = diffs) -> tuple[Answer, GossipCounts]:
        found, counts = propagate(backend, graph.nodes, graph.adjacency, some, rules)
        return Answer.of(found), counts

    few = diffs.take(torch.arange(min(arguments.sample, len(diffs))))
    ours(few)  # numba compiles
    with peak_memory() as peak:
        answer, counts = ours()
    row = {
        "nodes": len(graph.nodes),
        "edges": len(graph.adjacency.targets),
        "dimension": graph.nodes.dimension,
        "diffs": len(diffs),
        "fanout": rules.fanout,
        "sigma_min": rules.sigma_min,
        "cos_min": rules.cos_min,
        "max_hops": arguments.max_hops,
        "threads": threads,
        "counts": {name: getattr(counts, name) for name in ("deliveries", "rounds", "relaxations", "gates")},
        "reach": counts.deliveries / (len(diffs) * len(graph.nodes)),
        "floor": _floor(counts, graph.nodes.dimension, copy_bandwidth(threads)),
        **peak.facts(),
    }
    peers: dict[str, dict[str, Any]] = {}
    parts: dict[str, Any] = {"hyphae-gpu": ours}
    if "python-graphblas" in arguments.peers and not rules.fanout:
        from benchmarks.graphblas_peer import GraphblasPeer  # noqa: PLC0415 - other peers run without it

        fabric = GraphblasPeer(graph.nodes, graph.adjacency, diffs, rules, threads=threads)
        fabric.tune()
        peers[fabric.name] = _check(fabric.name, fabric.run, answer) | {"way": fabric.facts()}
        fabric.gate_seconds.clear()
        parts[fabric.name] = fabric.run
    if "numpy" in arguments.peers:
        loop = NumpyPeer(graph.nodes, graph.adjacency, few, rules)
        peers[loop.name] = _check(loop.name, lambda: loop.run(len(few)), answer.first(len(few))) | {"diffs": len(few)}
        parts["hyphae-gpu on the sample"] = lambda: ours(few)
        parts[loop.name] = lambda: loop.run(len(few))

    runs = alternating(parts, arguments.repeat)
    row |= runs["hyphae-gpu"].facts() | {
        "load_average": load_average(),
        "equal": all(p["equal"] for p in peers.values()),
    }
    for name in ("deliveries", "gates", "relaxations"):
        row[f"{name}_per_second"] = row["counts"][name] / row["seconds"]
    for name, facts in peers.items():
        mine = runs["hyphae-gpu on the sample" if name == "numpy" else "hyphae-gpu"].seconds
        facts.update(runs[name].facts(), our_seconds=mine, ratio=runs[name].seconds / mine)
        if name != "numpy":
            facts["gate_seconds"] = statistics.median(fabric.gate_seconds)
            facts["ratio_without_gates"] = (facts["seconds"] - facts["gate_seconds"]) / mine
    return row | {"peers": peers}


def _check(name: str, run: Any, wanted: Answer) -> dict[str, Any]:
    """Run a peer once, see that it answers the same, and say what memory it took; raises DifferentError."""
    say(f"  checking against {name}")
    with peak_memory() as peak:
        found = run()
    if not wanted.equals(found):
        raise DifferentError(
            f"{name} found other deliveries: {len(found.nodes)} of them, ours {len(wanted.nodes)}; no time is told"
        )
    return {"equal": True, **peak.facts()}


def _floor(counts: GossipCounts, dimension: int, bandwidth: float) -> dict[str, Any]:
    size = counts.relaxations * (4 + 4) + counts.gates * dimension + counts.gates * 4
    return floor(
        size,
        bandwidth,
        f"each of {counts.relaxations} edges looked at is read once (target and cost, 4 + 4 bytes), each of "
        f"{counts.gates} images gated ({dimension} bytes) and each energy touched (4 bytes) once, all from memory; "
        "what a cache keeps from diff to diff goes below it",
    )
