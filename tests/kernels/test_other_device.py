"""On a device that is not the host's memory no operation meets tensors of both, and the results stay the CPU's."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from hyphae_gpu import propagation
from hyphae_gpu.backends.cpu.backend import CpuBackend
from hyphae_gpu.backends.cuda.backend import CudaBackend
from hyphae_gpu.backends.select import Selection
from hyphae_gpu.config import Settings
from hyphae_gpu.engine import Engine
from hyphae_gpu.gossip.resonance import flow_of, resonances
from hyphae_gpu.gossip.waves import propagate
from hyphae_gpu.swarm import Deliveries, GossipRules, Sides
from tests.engine.test_epoch import Life, settings_of
from tests.graphs import swarm
from tests.kernels.conftest import DENSE, SPARSE
from tests.kernels.other_device import DEVICE, Elsewhere, OtherDeviceLauncher, other_device

ROOT = Path(__file__).parents[2]
RULES = [
    GossipRules(),
    GossipRules(fanout=0),
    GossipRules(sigma_min=0.2, cos_min=0.1, fanout=3, loss=0.2, seed=2**40 + 7, epoch=3),
]


@pytest.fixture(scope="module")
def swarms():
    """The device check's graphs, which have everything in them."""
    with pytest.MonkeyPatch.context() as patched:
        patched.syspath_prepend(str(ROOT / "scripts"))
        import device.swarms

        yield device.swarms
    sys.modules.pop("device.swarms", None)


@pytest.fixture
def make(shim_folder):
    """Make a backend of the other device."""
    return lambda costs=SPARSE: CudaBackend(OtherDeviceLauncher(shim_folder, find_races=False), costs=costs)


def test_the_other_device_refuses_what_a_gpu_refuses():
    with other_device():
        there = torch.arange(4, device=DEVICE)
        assert (there + 1).device == DEVICE
        assert (there + 1).tolist() == [1, 2, 3, 4]
        with pytest.raises(RuntimeError, match="found one on the CPU"):
            there + torch.ones(4)
        with pytest.raises(TypeError, match="cpu"):
            there.numpy()
        assert there[torch.tensor([1])].tolist() == [1]
        with pytest.raises(RuntimeError, match="found one on the CPU"):
            torch.arange(4)[there]


@pytest.mark.parametrize("costs", [SPARSE, DENSE])
@pytest.mark.parametrize("limited", [0.0, 0.3])
@pytest.mark.parametrize("rules", RULES)
@pytest.mark.parametrize("stays", [False, True])
def test_propagation_keeps_to_its_device(make, swarms, rules, limited, costs, stays):
    made = swarms.scattered(3, nodes=33, degree=6, diffs=20, dimension=20, limited=limited)
    sweep = bool(rules.loss or limited)
    expected, counts = propagate(CpuBackend(), made.nodes, made.adjacency, made.diffs, rules, sweep=sweep)
    with other_device():
        its = made.to(DEVICE) if stays else made
        found, its_counts = propagate(make(costs), its.nodes, its.adjacency, its.diffs, rules, sweep=sweep)
    assert its_counts == counts
    assert (found.nodes.device == DEVICE) == stays
    for name in Deliveries.__dataclass_fields__:
        assert torch.equal(below(getattr(found, name)), getattr(expected, name))


@pytest.mark.parametrize("costs", [SPARSE, DENSE])
def test_open_counts_and_resonance_keep_to_their_device(make, swarms, costs):
    made = swarms.scattered(5, nodes=40, degree=8, diffs=12, dimension=16)
    cpu, rows = CpuBackend(), torch.arange(40, dtype=torch.int32)
    found, _ = propagate(cpu, made.nodes, made.adjacency, made.diffs, GossipRules())
    flow = flow_of(cpu, made.nodes, made.adjacency)
    with other_device():
        backend = make(costs)
        opened = backend.open_counts(made.nodes, made.diffs, GossipRules(), rows)
        theirs = flow_of(backend, made.nodes, made.adjacency)
        ranked = resonances(backend, flow, made.diffs, found)
    assert torch.equal(opened, cpu.open_counts(made.nodes, made.diffs, GossipRules(), rows))
    assert torch.equal(theirs.weights, flow.weights)
    assert torch.equal(ranked, resonances(cpu, flow, made.diffs, found))


def test_graph_operations_keep_to_their_device(make):
    rng = np.random.default_rng(7)
    images = rng.integers(-127, 128, (50, 20)).astype(np.int8)
    lengths = np.sqrt((images.astype(np.float64) ** 2).sum(1))
    left, right = (rng.integers(0, 50, 80).astype(np.int32) for _ in range(2))
    offsets = np.arange(0, 51 * 4, 4)
    targets = np.concatenate([rng.choice(50, 4, replace=False) for _ in range(50)]).astype(np.int32)
    keys = np.unique(np.concatenate([left * 50 + right, right * 50 + left])).astype(np.int64)
    links = np.searchsorted(keys // 50, np.arange(51)), (keys % 50).astype(np.int32), 1 + keys % 50 + keys // 50
    claims = {name: rng.integers(-1, 3, 50).astype(np.int32) for name in ("subjects", "values")}
    sides = Sides(**claims, stances=rng.choice([np.nan, -1.0, 1.0], 50).astype(np.float32))
    asked = {
        "cosines": (images, lengths, left, right),
        "opposing": (images, lengths, sides, left, right, -0.5),
        "nearest_linked": (images, lengths, np.arange(50, dtype=np.int32), offsets, targets, 3),
        "closest_pairs": (images, lengths, np.arange(50, dtype=np.int32), (np.arange(50) % 3).astype(np.int32)),
        "order_rows": (50, left, rng.integers(0, 9, 80)),
        "centroids": (images, np.array([0, 3, 3, 8]), right[:8], rng.integers(1, 4097, 8)),
        "components": (50, left[:20], right[:20]),
        "communities": (*links, np.arange(50), (2, 1)),
        "merged_links": (*links, (np.arange(50) % 7).astype(np.int32)),
    }
    with other_device():
        backend = make()
        found = {name: getattr(backend, name)(*arguments) for name, arguments in asked.items()}
    for name, arguments in asked.items():
        expected = getattr(CpuBackend(), name)(*arguments)
        pairs = zip(found[name], expected, strict=True) if isinstance(expected, tuple) else [(found[name], expected)]
        assert all(np.array_equal(one, other) for one, other in pairs), name


@pytest.mark.parametrize("seed", range(4))
def test_epochs_keep_to_their_device(make, seed):
    """Contradictions, bandwidths, losses and sweeps, beacons, scenes, promotions: all that the engine asks of it."""
    settings, life = settings_of(seed), Life(seed)
    for _ in range(2):
        life.rows()
        with other_device():
            ours = Engine(life.project.load(), make(), settings).epoch(life.now)
        theirs = Engine(life.project.load(), CpuBackend(), settings).epoch(life.now)
        assert ours.state_hash == theirs.state_hash
        life.project.checkpoint(theirs)


def test_the_command_propagate_keeps_to_its_device(make, monkeypatch):
    made, settings = swarm(8, nodes=60, degree=6, diffs=7, spread=0.5), Settings(threads=1, batch_size=3)
    found = []
    for backend in (make(), CpuBackend()):
        chosen = Selection(backend=backend, why="for a test")
        monkeypatch.setattr(propagation, "select", lambda *_, chosen=chosen: chosen)
        with other_device():
            found.append(propagation.propagate(made.nodes, made.edges, made.diffs, settings, resonance=True))
    assert found[0].counts == found[1].counts
    assert torch.equal(found[0].resonances, found[1].resonances)


def below(column: torch.Tensor) -> torch.Tensor:
    return column.below if isinstance(column, Elsewhere) else column


def test_columns_that_are_there_stay_the_same_ones(swarms):
    """The backend keeps what it brought by whose columns they are, so a copy would be brought anew."""
    made = swarms.scattered(3, nodes=9, degree=3, diffs=2, dimension=8)
    with other_device():
        there = made.nodes.to(DEVICE)
        assert there.to(DEVICE) is there
        assert there.to("meta") is there
        assert there.to("cpu") is not there
    assert made.nodes.to("cpu") is made.nodes


@pytest.mark.gpu
def test_a_device_without_a_number_is_the_current_one(swarms):
    there = swarms.scattered(3, nodes=9, degree=3, diffs=2, dimension=8).nodes.to(torch.device("cuda", 0))
    assert there.to("cuda") is there
