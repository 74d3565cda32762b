"""Case checkpoint: rows into the embedded PostgreSQL, an epoch's changes, and the whole project back out (spec 8)."""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import psycopg
from pgvector.psycopg import register_vector

from benchmarks import swarms
from benchmarks.result import Column, DifferentError
from benchmarks.stored import rows_of
from benchmarks.timing import Runs, floor, load_average, peak_memory, say
from hyphae_gpu.backends.cpu.backend import CpuBackend
from hyphae_gpu.config import Settings
from hyphae_gpu.engine import Engine
from hyphae_gpu.rows import Rows
from hyphae_gpu.state import Checkpoint, NodeTable
from hyphae_gpu.store import Store, open_store
from hyphae_gpu.store.embedded import EmbeddedServer

_PEER = "psycopg rows"
_TIMED = ("ingest", "checkpoint", "load", _PEER)
_WRITTEN_BYTES = 1 << 27
COLUMNS = (
    Column("nodes", "nodes", "d"),
    Column("dimension", "dimension", "d"),
    Column("ingest, s", "parts.ingest", ".2f"),
    Column("rows/s", "ingest_rows_per_second", ",.0f"),
    Column("floor, s", "floor.seconds", ".2f"),
    Column("a COPY row by row, s", "peers.psycopg rows.seconds", ".2f"),
    Column("ratio", "peers.psycopg rows.ratio", ".1f"),
    Column("checkpoint, s", "parts.checkpoint", ".2f"),
    Column("its rows", "checkpoint_rows", ",d"),
    Column("rows/s", "checkpoint_rows_per_second", ",.0f"),
    Column("load, s", "parts.load", ".2f"),
    Column("rows/s", "load_rows_per_second", ",.0f"),
    Column("equal", "equal", ""),
    Column("peak, MiB", "peak_memory_bytes", ".0f", 1 / 2**20),
    Column("load average", "load_average.0", ".1f"),
)


def add_arguments(parser: argparse.ArgumentParser, _cores: int) -> None:
    """Declare what this case takes."""
    parser.add_argument("--nodes", type=int, nargs="+", default=[20_000], help="nodes of each project")
    parser.add_argument("--dimension", type=int, nargs="+", default=[384, 1_536], help="one row each")
    parser.add_argument("--diffs", type=int, default=1_024, help="diffs that the epoch makes")
    parser.add_argument("--repeat", type=int, default=3, help="runs of each, each in a new database")


def rows(arguments: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Yield one result a size and dimension. Raises DifferentError where the store gives other vectors back."""
    for count in arguments.nodes:
        for dimension in arguments.dimension:
            say(f"{count} nodes of dimension {dimension}")
            yield _row(count, dimension, arguments)


def _row(count: int, dimension: int, arguments: argparse.Namespace) -> dict[str, Any]:
    rng = np.random.default_rng(swarms.SEED)
    news = min(arguments.diffs, count)
    nodes = swarms.node_table(count + news, dimension, rng, agents=int(count * swarms.AGENT_SHARE), news=news)
    given = rows_of(nodes, np.arange(count), swarms.access_pairs(nodes, rng, among=count))
    told = rows_of(nodes, np.arange(count, count + news))
    runs = {name: Runs() for name in _TIMED}
    with tempfile.TemporaryDirectory(prefix="hyphae-bench-") as folder:
        with open_store(database_url=None, data_dir=Path(folder) / "warm", hold="bench") as store:
            done = _computed(store, given, told)
            with peak_memory() as peak:
                store.checkpoint(done)
        for i in range(arguments.repeat):
            say(f"  run {i + 1} of {arguments.repeat}")
            _once(Path(folder) / str(i), nodes, (given, told), done, runs)
        speed = _write_speed(Path(folder))
    seconds = {name: run.seconds for name, run in runs.items()}
    written = _size(done)
    return {
        "nodes": count,
        "dimension": dimension,
        "diffs": news,
        "seconds": seconds["ingest"],
        "parts": {name: seconds[name] for name in ("ingest", "checkpoint", "load")},
        "runs": {name: run.wall for name, run in runs.items()},
        "ingest_rows": len(given),
        "ingest_rows_per_second": len(given) / seconds["ingest"],
        "checkpoint_rows": sum(written.values()),
        "checkpoint_rows_of": written,
        "checkpoint_rows_per_second": sum(written.values()) / seconds["checkpoint"],
        "load_rows": count + news + sum(written.values()),
        "load_rows_per_second": (count + news + sum(written.values())) / seconds["load"],
        "equal": True,
        "floor": floor(
            given.cells.nbytes + given.agents.nbytes,
            speed,
            "ingest: the rows' bytes are written to this disk once, in one piece, and synced",
        ),
        "peers": {
            _PEER: {
                **runs[_PEER].facts(),
                "our_seconds": seconds["ingest"],
                "ratio": seconds[_PEER] / seconds["ingest"],
                "equal": True,
                "what": "the same cells alone, by psycopg's binary COPY row by row, into a table with the same keys",
            }
        },
        "load_average": load_average(),
        **peak.facts(),
    }


def _computed(store: Store, given: Rows, told: Rows) -> Checkpoint:
    """Return a real epoch of these rows, computed but not written."""
    say("  computing the epoch that is going to be written")
    store.write_rows(given, diffs=False)
    store.write_rows(told, diffs=True)
    settings = Settings()
    return Engine(store.load(), CpuBackend(threads=settings.threads), settings).epoch(swarms.NOW + 1)


def _once(
    folder: Path, nodes: NodeTable, rows_given: tuple[Rows, Rows], done: Checkpoint, runs: dict[str, Runs]
) -> None:
    """Fill a new database, write the epoch, read all back; raises DifferentError where it is not what was written."""
    given, told = rows_given
    with open_store(database_url=None, data_dir=folder, hold="bench") as store:
        runs["ingest"].time(lambda: store.write_rows(given, diffs=False))
        store.write_rows(told, diffs=True)
        if not np.array_equal(store.load().nodes.vectors, nodes.vectors):
            raise DifferentError("the store gave back other vectors than it got; no time is told")
        runs["checkpoint"].time(lambda: store.checkpoint(done))
        state = runs["load"].time(store.load)
        kept = (state.topology.targets, state.topology.weights, state.diffs.vectors, state.nodes.vectors[done.moved])
        wrote = (done.written_edges.targets, done.written_edges.weights, done.new_diffs.vectors, done.moved_vectors)
        if not all(np.array_equal(a, b) for a, b in zip(kept, wrote, strict=True)):
            raise DifferentError("the store gave back another epoch than it got; no time is told")
        _row_by_row(folder, nodes, given, runs[_PEER])


def _row_by_row(folder: Path, nodes: NodeTable, given: Rows, run: Runs) -> None:
    """Write the cells as a plain program does: one tuple after the other."""
    dimension = nodes.vectors.shape[1]
    cells = given.cells.drop_columns("embedding").to_pylist()
    server = EmbeddedServer(folder)
    try:
        with psycopg.connect(server.conninfo) as connection:
            register_vector(connection)
            connection.execute(
                "create table peer (num bigint primary key, id text unique, knowledge_type smallint, salience real, "
                f"confidence real, created_at bigint, text text, payload text, embedding vector({dimension}))"
            )
            connection.commit()
            run.time(lambda: _copied(connection, cells, nodes.vectors))
            kept = connection.execute("select embedding from peer order by num limit 1000").fetchall()
    finally:
        server.close()
    if not np.array_equal(np.array([vector.to_numpy() for (vector,) in kept]), nodes.vectors[: len(kept)]):
        raise DifferentError("the peer's table holds other vectors; no time is told")


def _copied(connection: psycopg.Connection[Any], cells: list[dict[str, Any]], vectors: npt.NDArray[np.float32]) -> None:
    names = ("id", "knowledge_type", "salience", "confidence", "created_at", "text", "payload")
    with (
        connection.cursor() as cursor,
        cursor.copy(f"copy peer (num, {', '.join(names)}, embedding) from stdin (format binary)") as stream,
    ):
        stream.set_types(["int8", "text", "int2", "float4", "float4", "int8", "text", "text", "vector"])
        for number, cell in enumerate(cells):
            stream.write_row((number, *(cell[name] for name in names), vectors[number]))
    connection.commit()


def _size(done: Checkpoint) -> dict[str, int]:
    """Return how many rows an epoch writes, by what they are."""
    return {
        "moved": len(done.moved),
        "diffs": len(done.new_diffs),
        "edges": len(done.written_edges),
        "inbox": len(done.inbox),
        "nodes": len(done.new_nodes),
        "promotions": len(done.promotions),
        "points": sum(len(index) for index in done.indexes.values()),
    }


def _write_speed(folder: Path) -> float:
    """Return the bytes a second that this folder's disk takes in one piece, synced."""
    block = np.random.default_rng(0).bytes(_WRITTEN_BYTES)
    start = time.perf_counter()
    with (folder / "written").open("wb") as file:
        file.write(block)
        file.flush()
        os.fsync(file.fileno())
    return len(block) / (time.perf_counter() - start)
