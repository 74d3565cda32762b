"""The check for a machine with a GPU, run here at its smallest size on the kernels' shim, so that it cannot rot."""

from __future__ import annotations

import ast
import importlib
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from hyphae_gpu.backends.cpu.backend import CpuBackend
from hyphae_gpu.backends.cuda.backend import CudaBackend
from hyphae_gpu.backends.cuda.dense import GateCosts
from hyphae_gpu.backends.cuda.device import why_not_cuda
from hyphae_gpu.gossip.waves import propagate
from hyphae_gpu.swarm import GossipRules
from tests.kernels.shim_launcher import ShimLauncher, need_compiler

ROOT = Path(__file__).parents[1]
#: What the device machine has beside the standard library.
THERE = {"torch", "numpy", "numba", "cupy", "scipy"}
SIZES = {"nodes": 2048, "cluster": 32, "topic": 16}


@pytest.fixture(scope="module")
def device():
    """A function that imports a module of the check, which lies outside the package."""
    with pytest.MonkeyPatch.context() as patched:
        patched.syspath_prepend(str(ROOT / "scripts"))
        yield lambda name: importlib.import_module(f"device.{name}")


@pytest.fixture(scope="module")
def on_shim(tmp_path_factory):
    need_compiler()
    launcher = ShimLauncher(tmp_path_factory.mktemp("shim"), find_races=False)
    return CudaBackend(launcher, costs=GateCosts(pair=0.0, cell=1.0))


def sizes(device):
    return replace(device("parity").SMALL, relaxations=4000, scattered=(1, 33), diffs=8, dimension=20, **SIZES)


class Doubted(CudaBackend):
    """Drops the last record of a wave, as a backend with a fault would."""

    def advance(self, *columns, **how):
        state, offers, counts = super().advance(*columns, **how)
        state.energies[-1:] += 1
        return state, offers, counts


def test_parity_holds_on_the_shim(device, on_shim):
    found = []
    clock = device("clock").Clock(500)
    assert device("parity").run(on_shim, CpuBackend(), sizes(device), clock, keep=found.append)
    last = found[-1]
    assert last["equal"]
    assert last["enough"]
    assert last["relaxations"] >= 4000
    names = [case["case"] for case in last["cases"]]
    assert sum(name.startswith("scattered") for name in names) == 12
    assert sum(name.startswith("clustered") for name in names) >= 4
    assert names[-2:] == ["resonance", "operations"]


def test_a_difference_is_found_and_named(device, on_shim):
    wrong = Doubted(on_shim.launcher, costs=GateCosts(pair=0.0, cell=1.0))
    made = device("swarms").scattered(3, nodes=33, degree=6, diffs=9, dimension=8)
    case = device("parity").compare(wrong, CpuBackend(), made, GossipRules(), sweep=False)
    assert case["differs"] == ["column energies"]
    clock = device("clock").Clock(500)
    found = []
    small = replace(sizes(device), scattered=(33,), relaxations=1)
    assert not device("parity").run(wrong, CpuBackend(), small, clock, keep=found.append)
    assert not found[-1]["equal"]


class Rounded(CpuBackend):
    """Its results compare as equal to the right ones."""

    def cosines(self, *asked):
        found = super().cosines(*asked)
        return np.where(found == 0, -0.0, found)

    def components(self, *asked):
        return super().components(*asked).astype(np.int64)


def test_operations_agree_to_the_bit_or_are_named(device):
    shape = {"cluster": 18, "topic": 8}
    # of two dimensions, so that some cosines are 0
    assert device("operations").differing(CpuBackend(), CpuBackend(), shape, dimension=2, diffs=2) == []
    found = device("operations").differing(Rounded(), CpuBackend(), shape, dimension=2, diffs=2)
    assert found == ["cosines", "components"]


def test_no_time_is_said_and_not_called_enough(device, on_shim):
    found = []
    clock = device("clock").Clock(-1)
    assert not device("parity").run(on_shim, CpuBackend(), sizes(device), clock, keep=found.append)
    assert (found[-1]["equal"], found[-1]["enough"], found[-1]["cases"]) == (True, False, [])


def test_speed_says_rates_floors_and_peers(device, on_shim):
    speed = device("speed")
    small = replace(
        speed.SMALL,
        nodes=(SIZES["nodes"],),
        cluster=32,
        topic=16,
        diffs=(8,),
        dimension=16,
        pairs=64,
        host_diffs=4,
        columns=4,
    )
    found = []
    here = torch.device("cpu")
    bandwidth = device("machine").bandwidths(here, device_bytes=1 << 20, host_bytes=1 << 20)
    assert speed.run(on_shim, CpuBackend(), here, bandwidth, small, device("clock").Clock(500), keep=found.append)
    last = json.loads(json.dumps(found[-1]))
    (row,) = last["gossip"]
    assert row["deliveries"] > 8
    assert row["floor_bytes"] == row["relaxations"] * 6 + row["gates"] * 20
    assert row["share_of_floor"] == pytest.approx(row["floor_bytes"] / bandwidth["device"] / row["seconds"])
    assert last["torch_sparse"]["ran"]
    assert last["host"]["differs"] == []
    assert last["gate"]["gates_a_second"] > 0
    (profile,) = last["where"]
    assert profile["ran"]
    assert (profile["nodes"], profile["diffs"]) == (SIZES["nodes"], 8)
    assert any(row["name"].startswith("aten::") and row["calls"] > 0 for row in profile["host"])
    assert last["goals"]["10M nodes x 4096 diffs, under 2 s"] is None


def test_clustered_graphs_are_what_they_say(device):
    made = device("swarms").clustered("cpu", 5, diffs=4, dimension=96, **SIZES)
    nodes, graph = made.nodes, made.adjacency
    sources, targets = graph.sources(), graph.targets.long()
    assert len(targets) == 24 * len(nodes)
    assert not bool((sources == targets).any())
    assert len(torch.unique(sources * len(nodes) + targets)) == len(targets)
    keys = torch.stack([sources, graph.costs.long(), targets]).T.tolist()
    assert keys == sorted(keys)
    exact = nodes.images.long().square().sum(1).double().sqrt()
    assert torch.equal(nodes.lengths, exact)
    dots = (nodes.images[sources].long() * nodes.images[targets].long()).sum(1)
    cosines = dots / nodes.lengths[sources] / nodes.lengths[targets]
    assert 0.6 < float(cosines[sources // 32 == targets // 32].mean()) < 0.8
    again = device("swarms").clustered("cpu", 5, diffs=4, dimension=96, **SIZES)
    assert torch.equal(again.adjacency.targets, graph.targets)
    found, _ = propagate(CpuBackend(), nodes, graph, made.diffs, GossipRules())
    assert len(found) > 20


def test_the_file_is_whole_after_every_part(device, tmp_path):
    record = device("clock").Record(tmp_path / "out.json")
    record.put("a", 1)
    assert json.loads((tmp_path / "out.json").read_text()) == {"a": 1}
    record.put("b", [2])
    assert json.loads((tmp_path / "out.json").read_text()) == {"a": 1, "b": [2]}
    assert [path.name for path in tmp_path.iterdir()] == ["out.json"]


def test_the_clock_ends_what_hangs_and_keeps_what_was_found(tmp_path):
    text = (
        "import time\nfrom pathlib import Path\nfrom device.clock import Clock, Record\n"
        "record = Record(Path('out.json'))\nrecord.put('a', 1)\nrecord.stop_at(Clock(0.2))\ntime.sleep(60)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", text], cwd=tmp_path, env=environment(), capture_output=True, timeout=50, check=False
    )
    assert done.returncode == 3
    assert json.loads((tmp_path / "out.json").read_text()) == {"a": 1, "stopped": "by the clock, after 0 s"}


def test_a_part_that_raises_fails_and_the_next_runs(device, on_shim, monkeypatch):
    main = device("__main__")
    monkeypatch.setattr(device("machine"), "facts", lambda clock: 1 / 0)
    record, clock = device("clock").Record(None), device("clock").Clock(300)
    here = torch.device("cpu")
    fine = main.check(on_shim, CpuBackend(), here, record, clock, ("facts", "bandwidth"), small=True)
    assert not fine
    assert record.parts["facts failed"] == "ZeroDivisionError: division by zero"
    assert record.parts["bandwidth"]["host"] > 0


@pytest.fixture
def fake_tool(device, tmp_path, monkeypatch):
    """Put a script in the sanitizer's place; it gets the sanitizer's arguments."""

    def put(text: str) -> None:
        tool = tmp_path / "compute-sanitizer"
        tool.write_text(f"#!/bin/sh\n{text}\n")
        tool.chmod(0o755)
        monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)

    return put


@pytest.mark.parametrize(
    ("text", "clean", "finished"),
    [
        ("exit 0", True, True),
        ('echo "a race"; test "$2" = memcheck || exit 97', False, True),
        ('echo "$*" | grep -q -e "--report-api-errors no" || exit 97', True, True),
        ("sleep 60 & wait", True, False),
        ("exit 3", True, False),
        ("echo 3 cases: equal; exit 1", True, False),
        ('echo "a race"; echo DIFFERS: scattered; exit 1', False, True),
    ],
)
def test_the_sanitizers_findings_count_and_a_slow_one_is_stopped_whole(device, fake_tool, text, clean, finished):
    fake_tool(text)
    found = device("machine").sanitized(device("clock").Clock(2))
    assert found["clean"] is clean
    assert found["racecheck"]["finished"] is finished
    if not clean:
        assert found["racecheck"]["said"][0] == "a race"


def test_no_sanitizer_is_said(device, monkeypatch):
    monkeypatch.setattr(device("machine"), "sanitizer", lambda: None)
    found = device("machine").sanitized(device("clock").Clock(2))
    assert not found["ran"]
    assert "not on PATH" in found["why"]


def test_all_parts_together_keep_to_eight_minutes(device):
    main = device("__main__")
    assert sum(main.BUDGETS.values()) <= main.TOTAL <= 480


def test_without_a_device_it_is_refused_in_one_line():
    if why_not_cuda() is None:
        pytest.skip("there is a device")
    command = [str(ROOT / "scripts" / "device_check"), "--small"]
    environ = environment() | {"PYTHON": sys.executable}
    done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 5
    assert done.stdout == ""
    assert done.stderr.startswith("device check: PyTorch")
    assert done.stderr.count("\n") == 1


def test_it_needs_nothing_that_the_device_machine_lacks():
    """What it imports itself; that the numeric core needs no more is a contract of its own."""
    core = ("backends", "gossip", "columns", "swarm", "vectors", "wave_state", "vocabulary", "errors", "cuda_facts")
    for path in (ROOT / "scripts" / "device").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [node.module] if isinstance(node, ast.ImportFrom) else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            for name in names:
                top, *rest = name.split(".")
                allowed = top in THERE or top in sys.stdlib_module_names or top == "device"
                assert allowed or (top == "hyphae_gpu" and rest[0] in core), f"{path.name}: {name}"


def environment() -> dict[str, str]:
    return os.environ | {"PYTHONPATH": f"{ROOT}:{ROOT / 'scripts'}"}
