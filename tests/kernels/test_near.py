"""The nearest within two links on the shim equal the oracle's and the numba backend's, with == (spec 2.3)."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hyphae_gpu.backends.cpu.backend import CpuBackend
from hyphae_gpu.backends.cuda import near as orchestration
from hyphae_gpu.vectors import lengths
from tests.backends.test_near import expected, graphs, linked

seeds = st.integers(0, 2**32 - 1)


def assert_equal(backend, images, representatives, links, count: int) -> np.ndarray:
    asked = (images, lengths(images), representatives, *linked(links), count)
    found = backend.nearest_linked(*asked)
    assert found.dtype == np.int32
    assert found.tolist() == CpuBackend().nearest_linked(*asked).tolist()
    return found


@settings(max_examples=25, deadline=None)
@given(graphs(), st.sampled_from([0, 1, 2, 10, 40]), seeds)
def test_nearest_among_links_and_links_of_links_as_the_oracle(on_cuda, graph: tuple, count: int, seed: int):
    images, representatives, links = graph
    found = assert_equal(on_cuda(seed), images, representatives, links, count)
    assert found.tolist() == expected(images, representatives.tolist(), links, count)


@settings(max_examples=10, deadline=None)
@given(seeds, st.sampled_from([17, 33, 384]), st.sampled_from([1, 9, 40]))
def test_rows_and_neighbourhoods_of_any_length(on_cuda, seed: int, dimension: int, degree: int):
    """Few of many nodes stand on points, so that only their rows go to the device."""
    random = np.random.default_rng(seed)
    images = random.integers(-127, 128, (400, dimension)).astype(np.int8)
    representatives = random.permutation(400)[:60].astype(np.int32)
    links = [random.integers(0, 60, random.integers(0, degree + 1)).tolist() for _ in range(60)]
    assert_equal(on_cuda(seed), images, representatives, links, 10)


def test_a_hub_that_all_points_link_to(on_cuda):
    """Its neighbourhood is everything, and so is everybody's; half of the images are equal."""
    images = np.tile(np.random.default_rng(1).integers(-9, 10, (75, 8)).astype(np.int8), (2, 1))
    images[:, 0] = 127
    links = [list(range(1, 150)), *[[0]] * 149]
    assert_equal(on_cuda(1), images, np.arange(150, dtype=np.int32), links, 10)


def test_few_places_are_taken_in_turns(on_shim, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(orchestration, "_ALL_PLACES", 1)
    random = np.random.default_rng(2)
    images = random.integers(-127, 128, (40, 8)).astype(np.int8)
    links = random.integers(0, 40, (40, 5)).tolist()
    assert_equal(on_shim(2), images, np.arange(40, dtype=np.int32), links, 10)


def test_an_index_without_points_has_no_rows(on_cuda):
    images = np.ones((1, 2), np.int8)
    assert assert_equal(on_cuda(0), images, np.zeros(0, np.int32), [], 10).shape == (0, 10)
