"""Whole epochs decide the same over kernels as over the CPU backend, hops and parents included (spec 0.5)."""

from __future__ import annotations

import pytest
import torch

from hyphae_gpu import propagation
from hyphae_gpu.backends.cpu.backend import CpuBackend
from hyphae_gpu.backends.select import Selection
from hyphae_gpu.config import Settings
from hyphae_gpu.engine import Engine
from tests.engine.test_determinism import decided
from tests.engine.test_epoch import Life, settings_of
from tests.graphs import swarm


@pytest.mark.parametrize("seed", range(6))
def test_epochs_decide_what_the_cpu_backends_decide(on_cuda, seed):
    """Contradictions, bandwidths, losses and sweeps, beacons, inboxes: all that the engine asks of a backend."""
    settings, life = settings_of(seed), Life(seed)
    for _ in range(3):
        life.rows()
        ours, theirs = (
            Engine(life.project.load(), backend, settings).epoch(life.now) for backend in (on_cuda(seed), CpuBackend())
        )
        assert ours.state_hash == theirs.state_hash
        assert decided(ours) == decided(theirs)
        life.project.checkpoint(theirs)


@pytest.mark.parametrize("batch_size", [3, 4096])
def test_propagate_gives_the_same_with_either_backend(on_cuda, monkeypatch, batch_size):
    made = swarm(8, nodes=90, degree=6, diffs=11, spread=0.5)
    found = []
    for backend in (on_cuda(1), CpuBackend()):
        chosen = Selection(backend=backend, why="for a test")
        monkeypatch.setattr(propagation, "select", lambda *_, chosen=chosen: chosen)
        settings = Settings(threads=1, batch_size=batch_size)
        found.append(propagation.propagate(made.nodes, made.edges, made.diffs, settings, resonance=True))
    ours, theirs = found
    assert ours.counts == theirs.counts
    assert torch.equal(ours.resonances, theirs.resonances)
    for name in ("diffs", "nodes", "hops", "energies", "scores", "parents"):
        assert torch.equal(getattr(ours.deliveries, name), getattr(theirs.deliveries, name))
