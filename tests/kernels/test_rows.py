"""Rows that the device's sorts make equal the numba backend's, ties included."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from hyphae_gpu.backends.cpu.rows import order_rows

seeds = st.integers(0, 2**32 - 1)


@settings(max_examples=40, deadline=None)
@given(
    seeds,
    st.sampled_from([1, 2, 33, 200]),
    st.sampled_from([0, 1, 2, 32, 500]),
    st.sampled_from([(0, 1), (-3, 4), (-(2**63), 2**63 - 1)]),
)
def test_edges_of_equal_source_and_key_keep_their_order(on_cuda, seed: int, count: int, edges: int, span: tuple):
    random = np.random.default_rng(seed)
    sources, keys = random.integers(0, count, edges).astype(np.int32), random.integers(*span, edges)
    for mine, its in zip(on_cuda(seed).order_rows(count, sources, keys), order_rows(count, sources, keys), strict=True):
        assert mine.dtype == its.dtype
        assert mine.tolist() == its.tolist()


def test_no_nodes_have_no_rows(on_cuda):
    offsets, order = on_cuda(0).order_rows(0, np.zeros(0, np.int32), np.zeros(0, np.int64))
    assert (offsets.tolist(), order.tolist()) == ([0], [])
