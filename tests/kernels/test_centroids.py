"""Centroids on the shim equal the numba backend's, with == (spec 1.3, 6.4)."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hyphae_gpu.backends.cpu.backend import CpuBackend

seeds = st.integers(0, 2**32 - 1)


def assert_equal(backend, *asked) -> None:
    (vectors, having), (expected, existing) = backend.centroids(*asked), CpuBackend().centroids(*asked)
    assert (vectors.dtype, having.dtype) == (np.float32, np.bool_)
    assert vectors.tobytes() == expected.tobytes()
    assert having.tolist() == existing.tolist()


@settings(max_examples=25, deadline=None)
@given(
    seeds,
    st.sampled_from([2, 3, 16, 31, 32, 33, 100, 384]),
    st.sampled_from([0, 1, 2, 7]),
    st.sampled_from([1, 4097, 2**40]),
)
def test_centroids_equal_the_cpu_backends(on_cuda, seed: int, dimension: int, groups: int, heaviest: int):
    """Some groups are empty, some weights 0, some cells in many groups."""
    random = np.random.default_rng(seed)
    images = random.integers(-127, 128, (40, dimension)).astype(np.int8)
    sizes = random.integers(0, 30, groups) * random.integers(0, 2, groups)
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    cells = random.integers(0, random.choice([3, 40]), offsets[-1]).astype(np.int32)
    assert_equal(on_cuda(seed), images, offsets, cells, random.integers(0, heaviest, offsets[-1]))


def test_cells_that_cancel_out_give_no_position(on_cuda):
    images = np.array([[127, -127], [-127, 127]], np.int8)
    asked = (images, np.array([0, 2, 3]), np.array([0, 1, 1], np.int32), np.array([9, 9, 0]))
    vectors, having = on_cuda(2).centroids(*asked)
    assert (vectors.any(), having.any()) == (False, False)
    assert_equal(on_cuda(3), *asked)


def unit(components: list[int], order: int) -> list[np.float32]:
    """The unit vector of integers, its norm summed forwards (order 1) or backwards (-1)."""
    square = 0.0
    for component in components[::order]:
        square += float(component) * float(component)
    return [np.float32(component / math.sqrt(square)) for component in components]


def test_the_norm_is_summed_in_the_order_of_the_components(on_cuda):
    """The last component is chosen so that the norm's last bit decides how its float32 is rounded."""
    others = np.random.default_rng(1).integers(2**44, 2**46, 32).tolist()
    rest = math.sqrt(sum(other**2 for other in others))
    for step in range(4096):
        tie = (2**24 + 2 * step + 1) / 2**27  # halfway between two float32
        components = [*others, round(rest * tie / math.sqrt(1 - tie**2))]
        if unit(components, 1) != unit(components, -1):
            break
    else:
        pytest.fail("no case in which the order shows")
    offsets, cells = np.array([0, 33]), np.arange(33, dtype=np.int32)
    asked = (np.eye(33, dtype=np.int8), offsets, cells, np.array(components))
    assert_equal(on_cuda(1), *asked)
    assert on_cuda(2).centroids(*asked)[0][0].tolist() == unit(components, 1)


@pytest.mark.parametrize("dimension", [1024, 16_000])
def test_long_vectors(on_cuda, dimension: int):
    """More words than a block has threads."""
    random = np.random.default_rng(dimension)
    images = random.integers(-127, 128, (6, dimension)).astype(np.int8)
    cells, weights = random.integers(0, 6, 9).astype(np.int32), random.integers(1, 2**40, 9)
    assert_equal(on_cuda(5), images, np.array([0, 4, 9]), cells, weights)


def test_a_scene_of_many_cells(on_cuda):
    random = np.random.default_rng(8)
    images = random.integers(-127, 128, (300, 24)).astype(np.int8)
    assert_equal(on_cuda(8), images, np.array([0, 300]), np.arange(300, dtype=np.int32), random.integers(0, 4097, 300))
