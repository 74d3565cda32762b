"""The closest pairs on the shim equal the oracle's and the numba backend's, with == (spec 2.6)."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hyphae_gpu.backends.cpu.backend import CpuBackend
from hyphae_gpu.backends.cuda import closest as orchestration
from hyphae_gpu.vectors import lengths
from tests.backends.test_join import expected, ranked

seeds = st.integers(0, 2**32 - 1)


def pairs(backend, images, members, ranks) -> list[tuple[int, int]]:
    nodes, partners = backend.closest_pairs(images, lengths(images), members, ranks)
    assert (nodes.dtype, partners.dtype) == (np.int32, np.int32)
    return list(zip(nodes.tolist(), partners.tolist(), strict=True))


@settings(max_examples=25, deadline=None)
@given(ranked(), seeds)
def test_the_closest_pair_with_what_was_joined_before_as_the_oracle(on_cuda, case: tuple, seed: int):
    assert pairs(on_cuda(seed), *case) == expected(*case)


@pytest.mark.parametrize("slice_rows", [1, 7, 64, 512])
@pytest.mark.parametrize("results", [1, 50])
def test_the_slices_that_the_search_is_cut_into_do_not_show(on_shim, monkeypatch, slice_rows: int, results: int):
    monkeypatch.setattr(orchestration, "_SLICE_ROWS", slice_rows)
    monkeypatch.setattr(orchestration, "_RESULTS_AT_ONCE", results)
    random = np.random.default_rng(5)
    images = random.integers(-2, 3, (120, 4)).astype(np.int8)
    images[~images.any(axis=1)] = 1
    members = np.flatnonzero(random.random(120) < 0.8).astype(np.int32)
    ranks = np.concatenate([random.integers(0, 4, len(members) - 4), np.arange(4)]).astype(np.int32)
    ranks[random.random(len(members)) < 0.7] = 0
    ranks[-4:] = np.arange(4)
    assert pairs(on_shim(slice_rows), images, members, ranks) == pairs(CpuBackend(), images, members, ranks)


@pytest.mark.parametrize("dimension", [2, 33, 384, 1_041])
def test_rows_of_any_length(on_cuda, dimension: int):
    # 127 * 127 * 1,041 is past what float32 holds; the two candidates' dot products differ by one.
    images = np.full((3, dimension), 127, np.int8)
    images[1, 0], images[2, 0], images[2, 1] = 126, 126, 126
    case = (images, np.arange(3, dtype=np.int32), np.array([1, 0, 0], np.int32))
    assert pairs(on_cuda(dimension), *case) == expected(*case)


def test_one_component_and_no_members_have_nothing_to_join(on_cuda):
    for count in (0, 3):
        images, members = np.ones((3, 2), np.int8), np.arange(count, dtype=np.int32)
        assert pairs(on_cuda(count), images, members, np.zeros(count, np.int32)) == []
