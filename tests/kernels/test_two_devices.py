"""Columns of the host and of the device are never mixed, on a machine where the device has a memory of its own."""

from __future__ import annotations

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
from hyphae_gpu.swarm import GossipRules
from tests.engine.test_epoch import Life, settings_of
from tests.graphs import swarm
from tests.kernels.conftest import DENSE, SPARSE
from tests.kernels.two_devices import DEVICE, HOST, DeviceShim, TwoDevices, where

LOSSY = GossipRules(sigma_min=0.1, cos_min=-1.0, fanout=3, loss=0.3, seed=5)


@pytest.fixture
def apart(shim_folder):
    """Make a CUDA backend whose device is not the host."""
    return lambda seed, **how: CudaBackend(DeviceShim(shim_folder, seed=seed), **({"costs": SPARSE} | how))


def test_tensors_of_two_devices_do_not_mix(apart):
    with TwoDevices():
        host, device = torch.arange(3), torch.arange(3, device=DEVICE)
        assert (host.device, device.device, device.to(HOST).device) == (HOST, DEVICE, HOST)
        assert (host.to(DEVICE) + device).device == DEVICE
        assert torch.equal(device[host.flip(0)].cpu(), torch.tensor([2, 1, 0]))
        assert (device + torch.tensor(1)).device == DEVICE
        for mistake in (
            lambda: host + device,
            lambda: host[device],
            lambda: torch.cat([host, device]),
            lambda: torch.searchsorted(device, host),
        ):
            with pytest.raises(RuntimeError):
                mistake()
        with pytest.raises(TypeError):
            device.numpy()
        with pytest.raises(RuntimeError, match="argument 3 lies on the host"):
            apart(0).launcher.launch("losses", (1, 2, 3, host), grid=1)


@pytest.mark.parametrize("costs", [SPARSE, DENSE], ids=["sparse", "dense"])
@pytest.mark.parametrize("limited", [0.0, 0.4])
@pytest.mark.parametrize("rules", [GossipRules(), LOSSY], ids=["plain", "lossy"])
@pytest.mark.parametrize("diffs_on", [HOST, DEVICE], ids=str)
def test_rounds_and_sweeps(apart, costs, limited, rules, diffs_on):
    made = swarm(3, nodes=40, degree=5, diffs=9, spread=0.4, limited=limited)
    backend = apart(1, costs=costs)
    with TwoDevices():
        found, counts = propagate(
            backend, made.nodes, made.adjacency, made.diffs.to(diffs_on), rules, sweep=bool(limited or rules.loss)
        )
        assert {where(column) for column in vars(found).values()} == {diffs_on}
    expected, theirs = propagate(
        CpuBackend(), made.nodes, made.adjacency, made.diffs, rules, sweep=bool(limited or rules.loss)
    )
    assert counts == theirs
    for name, column in vars(found).items():
        assert torch.equal(column, getattr(expected, name)), name


@pytest.mark.parametrize("everything_on", [HOST, DEVICE], ids=str)
def test_resonance(apart, everything_on):
    made = swarm(4, nodes=40, degree=5, diffs=6, spread=0.4)
    backend = apart(2)
    found, _ = propagate(CpuBackend(), made.nodes, made.adjacency, made.diffs, GossipRules())
    expected = resonances(CpuBackend(), flow_of(CpuBackend(), made.nodes, made.adjacency), made.diffs, found)
    with TwoDevices():
        nodes, graph, diffs, came = (
            columns.to(everything_on) for columns in (made.nodes, made.adjacency, made.diffs, found)
        )
        flow = flow_of(backend, nodes, graph)
        assert torch.equal(resonances(backend, flow, diffs, came).cpu(), expected)


@pytest.mark.parametrize("seed", range(4))
def test_epochs(apart, seed):
    settings, life = settings_of(seed), Life(seed)
    for _ in range(2):
        life.rows()
        with TwoDevices():
            ours = Engine(life.project.load(), apart(seed), settings).epoch(life.now)
        theirs = Engine(life.project.load(), CpuBackend(), settings).epoch(life.now)
        assert ours.state_hash == theirs.state_hash
        life.project.checkpoint(theirs)


def test_the_command_propagate(apart, monkeypatch):
    made = swarm(8, nodes=60, degree=6, diffs=7, spread=0.5)
    chosen = Selection(backend=apart(1), why="for a test")
    monkeypatch.setattr(propagation, "select", lambda *_: chosen)
    with TwoDevices():
        done = propagation.propagate(
            made.nodes, made.edges, made.diffs, Settings(threads=1, batch_size=3), resonance=True
        )
    assert np.isfinite(done.resonances.numpy()).all()
