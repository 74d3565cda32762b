"""Cosines of pairs on the shim equal the numba backend's and the oracle's, with == (spec 0.4)."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hyphae_gpu.backends.cpu.backend import CpuBackend
from hyphae_gpu.backends.cuda import cosines as orchestration
from hyphae_gpu.vectors import lengths
from tests.oracles import cosine as oracle

seeds = st.integers(0, 2**32 - 1)


def images_of(seed: int, count: int, dimension: int) -> np.ndarray:
    images = np.random.default_rng(seed).integers(-127, 128, (count, dimension)).astype(np.int8)
    images[:, 0] = 127
    return images


@settings(max_examples=25, deadline=None)
@given(
    seeds,
    st.sampled_from([2, 3, 15, 16, 17, 31, 32, 33, 64, 65, 384, 2048]),
    st.sampled_from([1, 2, 33, 90]),
    st.sampled_from([0, 1, 5, 200]),
)
def test_cosines_equal_the_cpu_backends(on_cuda, seed: int, dimension: int, count: int, pairs: int):
    """Where few rows are asked of, only those go to the device."""
    images = images_of(seed, count, dimension)
    left, right = np.random.default_rng(seed).integers(0, count, (2, pairs)).astype(np.int32)
    found = on_cuda(seed).cosines(images, lengths(images), left, right)
    assert found.dtype == np.float64
    assert found.tolist() == CpuBackend().cosines(images, lengths(images), left, right).tolist()
    expected = [oracle.cosine(images[a], images[b]) for a, b in zip(left[:9], right[:9], strict=True)]
    assert found[:9].tolist() == expected


def test_the_longest_vectors_do_not_overflow_the_dot_product(on_cuda):
    images = np.full((2, 16_000), 127, np.int8)
    images[1] = -127
    ends = np.array([0, 0], np.int32), np.array([0, 1], np.int32)
    assert on_cuda(1).cosines(images, lengths(images), *ends).tolist() == [1.0, -1.0]


def test_the_pieces_that_pairs_are_cut_into_do_not_show(on_shim, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(orchestration, "_PAIRS_AT_ONCE", 7)
    images = images_of(3, 20, 24)
    left, right = np.random.default_rng(3).integers(0, 20, (2, 22)).astype(np.int32)
    found = on_shim(3).cosines(images, lengths(images), left, right)
    assert found.tolist() == CpuBackend().cosines(images, lengths(images), left, right).tolist()


def test_images_that_cannot_be_written_to_or_lie_apart_are_taken(on_cuda):
    images = images_of(4, 12, 20)
    apart, ends = images[::2], np.arange(6, dtype=np.int32)
    images.flags.writeable = False
    expected = CpuBackend().cosines(apart.copy(), lengths(apart), ends, ends[::-1].copy()).tolist()
    assert on_cuda(4).cosines(apart, lengths(apart), ends, ends[::-1]).tolist() == expected
