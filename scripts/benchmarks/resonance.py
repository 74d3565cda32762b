"""Case resonance: the (+, x) rounds that rank deliveries, beside scipy's products and beside the gossip (spec 3.12)."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
import torch

from benchmarks import swarms
from benchmarks.graphs import Graph, made_graph
from benchmarks.result import Column, DifferentError
from benchmarks.timing import alternating, copy_bandwidth, floor, load_average, peak_memory, say
from hyphae_gpu.backends.cpu.backend import CpuBackend
from hyphae_gpu.gossip.resonance import flow_of, resonances
from hyphae_gpu.gossip.waves import propagate
from hyphae_gpu.swarm import FLOW_LAW, Deliveries, Diffs, Flow, GossipRules

COLUMNS = (
    Column("nodes", "nodes", "d"),
    Column("diffs", "diffs", "d"),
    Column("threads", "threads", "d"),
    Column("gossip, s", "gossip.seconds", ".3f"),
    Column("flow, s", "flow.seconds", ".3f"),
    Column("resonance, s", "seconds", ".3f"),
    Column("of gossip", "of_gossip", ".2f"),
    Column("floor, s", "floor.seconds", ".4f"),
    Column("scipy ratio", "peers.scipy.ratio", ".1f"),
    Column("equal", "equal", ""),
    Column("CPU s", "processor_seconds", ".3f"),
    Column("peak, MiB", "peak_memory_bytes", ".0f", 1 / 2**20),
    Column("load", "load_average.0", ".1f"),
)


def add_arguments(parser: argparse.ArgumentParser, cores: int) -> None:
    """Declare what this case takes."""
    parser.add_argument("--nodes", type=int, nargs="+", default=[100_000], help="nodes of each graph")
    parser.add_argument("--dimension", type=int, default=384)
    parser.add_argument("--diffs", type=int, default=1_024)
    parser.add_argument("--threads", type=int, nargs="+", default=sorted({1, cores}), help="one row each")
    parser.add_argument("--repeat", type=int, default=5, help="runs of each, of which the median counts")
    parser.add_argument("--sample", type=int, default=32, help="diffs that the peer computes")
    parser.add_argument("--cache", type=Path, default=None, help="folder where built graphs are kept between runs")


def rows(arguments: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Yield one result a size and thread count. Raises DifferentError where the peer found something else."""
    for count in arguments.nodes:
        graph = made_graph(count, arguments.dimension, threads=max(arguments.threads), cache=arguments.cache)
        diffs = swarms.diffs_of(graph.table, arguments.diffs, np.random.default_rng(swarms.SEED), max_hops=64)
        for threads in arguments.threads:
            say(f"{count} nodes, {len(diffs)} diffs, threads {threads}")
            yield _row(graph, diffs, threads, arguments)


def _row(graph: Graph, diffs: Diffs, threads: int, arguments: argparse.Namespace) -> dict[str, Any]:
    backend, rules = CpuBackend(threads), GossipRules(fanout=0)
    flow = flow_of(backend, graph.nodes, graph.adjacency)
    found, _ = propagate(backend, graph.nodes, graph.adjacency, diffs, rules)
    with peak_memory() as peak:
        values = resonances(backend, flow, diffs, found)
    few = diffs.take(torch.arange(min(arguments.sample, len(diffs))))
    theirs = found.take(torch.nonzero(diffs.rows_of(found.diffs) < len(few)).flatten())
    if not np.array_equal(_by_products(flow, few, theirs), resonances(backend, flow, few, theirs).numpy()):
        raise DifferentError("scipy found other resonances; no time is told")
    runs = alternating(
        {
            "gossip": lambda: propagate(backend, graph.nodes, graph.adjacency, diffs, rules),
            "flow": lambda: flow_of(backend, graph.nodes, graph.adjacency),
            "resonance": lambda: resonances(backend, flow, diffs, found),
            "resonance of the sample": lambda: resonances(backend, flow, few, theirs),
            "scipy": lambda: _by_products(flow, few, theirs),
        },
        arguments.repeat,
    )
    whole = runs["flow"].seconds + runs["resonance"].seconds
    return {
        "nodes": len(graph.nodes),
        "diffs": len(diffs),
        "threads": threads,
        "deliveries": len(found),
        "resonant": int((values > 0).sum()),
        **runs["resonance"].facts(),
        "gossip": runs["gossip"].facts(),
        "flow": runs["flow"].facts(),
        "of_gossip": whole / runs["gossip"].seconds,
        "floor": floor(
            len(found) * (4 + 8 + 8),
            copy_bandwidth(threads),
            "each delivery's node is read and its sum read and written once; the rounds' edges are left out",
        ),
        "peers": {
            "scipy": runs["scipy"].facts()
            | {
                "equal": True,
                "diffs": len(few),
                "ratio": runs["scipy"].seconds / runs["resonance of the sample"].seconds,
            }
        },
        "equal": True,
        "load_average": load_average(),
        **peak.facts(),
    }


def _by_products(flow: Flow, diffs: Diffs, found: Deliveries) -> npt.NDArray[np.int64]:
    """Return the same by one sparse product a round over all of a batch's origins, int64."""
    count = len(flow.totals)
    links = sp.csr_array(
        (flow.weights.numpy().astype(np.int64), flow.targets.numpy(), flow.offsets.numpy()), shape=(count, count)
    )
    totals = flow.totals.numpy()
    origins = diffs.origins.numpy()
    held = sp.csr_array(
        (np.full(len(origins), FLOW_LAW.start), (np.arange(len(origins)), origins)), (len(origins), count)
    )
    summed = sp.csr_array((len(origins), count), dtype=np.int64)
    for _ in range(FLOW_LAW.rounds):
        entries = held.tocoo()
        sends = (entries.data > FLOW_LAW.cut) & (totals[entries.col] > 0)
        rows, columns, data = entries.row[sends], entries.col[sends], entries.data[sends]
        factors = (data // FLOW_LAW.denominator * FLOW_LAW.numerator) // totals[columns]
        held = sp.csr_array((factors, (rows, columns)), shape=held.shape) @ links
        summed = summed + held
    rows = diffs.rows_of(found.diffs).numpy().copy()
    return np.asarray(summed[rows, found.nodes.numpy().copy()], np.int64).ravel()
