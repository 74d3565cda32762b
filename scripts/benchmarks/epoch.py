"""Case epoch: whole epochs of a project in the embedded store, by stage; equal for any thread count (spec 8.1)."""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import swarms
from benchmarks.result import Column, DifferentError
from benchmarks.stored import rows_of
from benchmarks.timing import copy_bandwidth, floor, load_average, peak_memory, say
from hyphae_gpu.config import Settings
from hyphae_gpu.engine import EpochReport, run_epochs
from hyphae_gpu.store import open_store

_HOUR = 3_600_000_000
_STAGES = (
    *("taking in", "drift", "topology", "scenes", "layers", "gossip", "promotions", "resonance", "inboxes"),
    *("patterns", "checkpoint"),
)
COLUMNS = (
    Column("nodes", "nodes", "d"),
    Column("agents", "agents", "d"),
    Column("dimension", "dimension", "d"),
    Column("threads", "threads", "d"),
    Column("epoch", "epoch", "d"),
    Column("live diffs", "counts.live_diffs", "d"),
    Column("whole, s", "seconds", ".2f"),
    *(Column(f"{stage}, s", f"parts.{stage}", ".3f") for stage in _STAGES),
    Column("load, s", "load_seconds", ".2f"),
    Column("floor, s", "floor.seconds", ".3f"),
    Column("deliveries", "counts.deliveries", ",d"),
    Column("inbox", "counts.inbox", ",d"),
    Column("equal", "equal", ""),
    Column("peak, MiB", "peak_memory_bytes", ".0f", 1 / 2**20),
    Column("load", "load_average.0", ".1f"),
)


def add_arguments(parser: argparse.ArgumentParser, cores: int) -> None:
    """Declare what this case takes."""
    parser.add_argument("--nodes", type=int, nargs="+", default=[20_000], help="cells of each project")
    parser.add_argument("--agents", type=int, default=200)
    parser.add_argument("--dimension", type=int, default=384)
    parser.add_argument("--diffs", type=int, default=1_024, help="new cells an epoch, each of which makes a diff")
    parser.add_argument("--epochs", type=int, default=2, help="the first one links all cells, later ones the new")
    parser.add_argument("--threads", type=int, nargs="+", default=sorted({1, cores}), help="one project each")


def rows(arguments: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Yield one result an epoch, size and thread count. Raises DifferentError where thread counts decide otherwise."""
    for count in arguments.nodes:
        small = argparse.Namespace(**vars(arguments) | {"diffs": 8, "agents": 4, "epochs": 1})
        _project(200, arguments.threads[0], small)  # numba compiles
        wanted: list[str] = []
        for threads in arguments.threads:
            say(f"{count} cells, {arguments.agents} agents, threads {threads}")
            made = _project(count, threads, arguments)
            hashes = [row["state_hash"] for row in made]
            wanted = wanted or hashes
            if hashes != wanted:
                raise DifferentError(
                    f"{threads} threads decided otherwise than {arguments.threads[0]}; no time is told"
                )
            yield from made


def _project(count: int, threads: int, arguments: argparse.Namespace) -> list[dict[str, Any]]:
    rng = np.random.default_rng(swarms.SEED)
    news = arguments.diffs * arguments.epochs
    told = count + arguments.agents
    nodes = swarms.node_table(told + news, arguments.dimension, rng, agents=arguments.agents, news=news)
    settings = Settings(threads=threads)
    bandwidth = copy_bandwidth(threads)
    made = []
    with (
        tempfile.TemporaryDirectory(prefix="hyphae-bench-") as folder,
        open_store(database_url=None, data_dir=Path(folder) / "data", hold="bench") as store,
    ):
        pairs = swarms.access_pairs(nodes, rng, among=told)
        store.write_rows(rows_of(nodes, np.arange(told), pairs), diffs=False)
        for epoch in range(1, arguments.epochs + 1):
            first = told + (epoch - 1) * arguments.diffs
            store.write_rows(rows_of(nodes, np.arange(first, first + arguments.diffs)), diffs=True)
            say(f"  epoch {epoch}")
            with peak_memory() as peak:
                start = time.perf_counter()
                [report] = run_epochs(store, settings, as_of=swarms.NOW + epoch * _HOUR)
                whole = time.perf_counter() - start
            row = _row(report, whole, bandwidth, arguments.dimension)
            shape = {"nodes": first + arguments.diffs, "agents": arguments.agents, "dimension": arguments.dimension}
            made.append({**shape, "threads": threads, **row, "load_average": load_average(), **peak.facts()})
    return made


def _row(report: EpochReport, whole: float, bandwidth: float, dimension: int) -> dict[str, Any]:
    parts = {name: spent for name, spent in report.seconds.items() if not name.startswith("topology.")}
    counts = {name: value for name, value in report.counts.items() if isinstance(value, int)}
    size = counts["relaxations"] * (4 + 4) + counts["gates"] * (dimension + 4)
    return {
        "epoch": report.epoch,
        "seconds": sum(parts.values()),
        "load_seconds": whole - sum(parts.values()),
        "parts": parts,
        "topology": {
            name.removeprefix("topology."): spent
            for name, spent in report.seconds.items()
            if name.startswith("topology.")
        },
        "counts": counts,
        "state_hash": report.state_hash,
        "equal": True,
        "peers": {},
        "floor": floor(size, bandwidth, "gossip alone, as in case propagate: edges, images and energies read once"),
    }
