"""Connected components on the shim equal the numba backend's, in any order of threads (spec 2.6)."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hyphae_gpu.backends.cpu.components import components
from tests.oracles import topology as oracle

seeds = st.integers(0, 2**32 - 1)


@settings(max_examples=40, deadline=None)
@given(st.sampled_from([1, 2, 31, 32, 33, 300]), st.sampled_from([0, 1, 20, 33, 250, 900]), seeds)
def test_every_node_gets_the_lowest_member_of_its_component(on_cuda, count: int, edges: int, seed: int):
    """With edges of a node with itself and edges given twice."""
    left, right = np.random.default_rng(seed).integers(0, count, (2, edges)).astype(np.int32)
    found = on_cuda(seed).components(count, left, right)
    assert found.dtype == np.int32
    assert found.tolist() == components(count, left, right).tolist()
    if count <= 33:
        parts = oracle.components(range(count), set(zip(left.tolist(), right.tolist(), strict=True)))
        assert found.tolist() == [min(part) for node in range(count) for part in parts if node in part]


@pytest.mark.parametrize("seed", range(3))
def test_long_chains_are_one_component_in_any_direction(on_cuda, seed: int):
    chain = np.arange(1_000, dtype=np.int32)
    shuffled = np.random.default_rng(seed).permutation(chain)
    for row in (chain, chain[::-1], shuffled):
        assert not on_cuda(seed).components(1_000, row[:-1], row[1:]).any()


def test_a_star_around_its_highest_node_hangs_on_its_lowest(on_cuda):
    """All threads hook the same tree."""
    leaves = np.arange(3, 503, dtype=np.int32)
    labels = on_cuda(8).components(504, np.full(500, 503, np.int32), leaves)
    assert labels.tolist() == [0, 1, 2, *[3] * 501]


def test_no_nodes_and_no_edges(on_cuda):
    none = np.zeros(0, np.int32)
    assert on_cuda(0).components(0, none, none).tolist() == []
    assert on_cuda(0).components(3, none, none).tolist() == [0, 1, 2]


def test_edges_that_cannot_be_written_to_are_taken(on_cuda):
    """Read-only arrays come from memory that is shared."""
    ends = np.array([0, 1], np.int32)
    ends.flags.writeable = False
    assert on_cuda(0).components(3, ends, ends + 1).tolist() == [0, 0, 0]
