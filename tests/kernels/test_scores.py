"""Scores, open gates and losses as kernels equal the numba backend, in any order of threads."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from hyphae_gpu.backends.cpu.backend import CpuBackend
from hyphae_gpu.backends.cpu.losses import philox_word
from hyphae_gpu.swarm import Diffs, GossipRules, Nodes
from tests.graphs import swarm

seeds = st.integers(0, 2**32 - 1)


@settings(max_examples=25, deadline=None)
@given(seed=seeds, dimension=st.sampled_from([2, 3, 4, 31, 32, 33, 384]), nodes=st.sampled_from([1, 2, 33, 90]))
def test_scores_equal_the_cpu_backends(on_cuda, seed, dimension, nodes):
    made = swarm(seed, nodes=nodes, degree=0, diffs=5, dimension=dimension, spread=0.7)
    rng = np.random.default_rng(seed)
    count = int(rng.integers(0, 100))
    rows = torch.from_numpy(rng.integers(0, 5, count)), torch.from_numpy(rng.integers(0, nodes, count))
    expected = CpuBackend().scores(made.nodes, made.diffs, *rows)
    assert torch.equal(on_cuda(seed).scores(made.nodes, made.diffs, *rows), expected)


@settings(max_examples=25, deadline=None)
@given(seed=seeds, dimension=st.sampled_from([2, 33, 384]), diffs=st.sampled_from([0, 1, 31, 32, 33, 70]))
def test_open_counts_equal_the_cpu_backends(on_cuda, seed, dimension, diffs):
    made = swarm(seed, nodes=40, degree=0, diffs=diffs, dimension=dimension, spread=0.7)
    rows = torch.from_numpy(np.random.default_rng(seed).integers(0, 40, 11).astype(np.int32))
    rules = GossipRules(sigma_min=0.3, cos_min=0.2)
    expected = CpuBackend().open_counts(made.nodes, made.diffs, rules, rows)
    assert torch.equal(on_cuda(seed).open_counts(made.nodes, made.diffs, rules, rows), expected)


def test_rows_that_are_not_aligned_are_copied(on_cuda):
    """A view into a larger matrix may start anywhere."""
    made = swarm(4, nodes=33, degree=0, diffs=5, dimension=32)
    shifted = torch.zeros(33 * 32 + 1, dtype=torch.int8)[1:].view(33, 32).copy_(made.nodes.images)
    assert shifted.data_ptr() % 16 == 1
    rows = torch.arange(33) % 5, torch.arange(33)
    moved = replace(made.nodes, images=shifted)
    assert torch.equal(on_cuda(0).scores(moved, made.diffs, *rows), CpuBackend().scores(made.nodes, made.diffs, *rows))


@settings(max_examples=25, deadline=None)
@given(seed=seeds, loss=st.sampled_from([0.0, 0.1, 0.5, 0.999]), count=st.sampled_from([0, 1, 300]))
def test_losses_equal_the_cpu_backends(on_cuda, seed, loss, count):
    rng = np.random.default_rng(seed)
    rules = GossipRules(loss=loss, seed=int(rng.integers(0, 2**64, dtype=np.uint64)), epoch=int(rng.integers(0, 2**40)))
    drawn = (
        torch.from_numpy(rng.integers(0, 4096, count)),
        *(torch.from_numpy(rng.integers(0, 2**31, count).astype(np.int32)) for _ in range(2)),
        torch.from_numpy(rng.integers(0, 2**62, count)),
    )
    found = on_cuda(seed).losses(rules, *drawn)
    assert torch.equal(found, CpuBackend().losses(rules, *drawn))
    if count and loss == 0.5:
        assert not found.any() or 0 < int(found.sum()) < count + 1


@pytest.mark.parametrize("seed", [0, 1, 2**63, 2**64 - 1])
def test_losses_take_any_seed(on_cuda, seed):
    rules = GossipRules(loss=0.5, seed=seed)
    drawn = (torch.arange(64), torch.arange(64).int(), torch.arange(64).int(), torch.arange(64))
    assert torch.equal(on_cuda(0).losses(rules, *drawn), CpuBackend().losses(rules, *drawn))


def test_the_longest_vectors_do_not_overflow(on_cuda):
    """16,000 products of 127 * 127 (spec 1.1), in both signs."""
    vectors = np.ones((3, 16_000), np.float32) * np.array([[1.0], [-1.0], [1.0]], np.float32)
    nodes = Nodes.build(vectors)
    diffs = Diffs.build(nodes, np.array([0]), knowledge_types=np.array([5]), saliences=np.array([0.5]))
    rows = torch.zeros(3, dtype=torch.int64), torch.arange(3)
    expected = CpuBackend().scores(nodes, diffs, *rows)
    assert torch.equal(on_cuda(0).scores(nodes, diffs, *rows), expected)
    assert expected[1] == ((0.6 * -1.0) + (0.3 * 0.0)) + (0.1 * 0.5)


def test_a_transmission_is_lost_below_the_threshold_and_not_at_it(on_cuda):
    """spec 3.10: a word below floor(loss * 2^32)."""
    seed, drawn = (7 << 32) + 3, (5, 11, 12, 13)
    word = int(philox_word(3, 7, *drawn))
    columns = (torch.tensor([5]), torch.tensor([11]).int(), torch.tensor([12]).int(), torch.tensor([13]))
    for threshold, lost in ((word, False), (word + 1, True)):
        rules = GossipRules(loss=threshold / 2**32, seed=seed)
        assert on_cuda(0).losses(rules, *columns).tolist() == CpuBackend().losses(rules, *columns).tolist() == [lost]
