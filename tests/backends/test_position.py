import math

import numpy as np
import pytest

from hyphae_gpu.backends.cpu.position import centroids


@pytest.mark.parametrize("dimension", [2, 31, 32, 33, 384])
def test_a_centroid_is_the_integer_sum_as_a_unit_vector(dimension):
    random = np.random.default_rng(dimension)
    images = random.integers(-127, 128, (40, dimension)).astype(np.int8)
    cells, weights = random.integers(0, 40, 256).astype(np.int32), random.integers(0, 4097, 256)
    vectors, having = centroids(images, np.array([0, 0, 1, 256], np.int64), cells, weights)
    assert having.tolist() == [False, True, True]
    assert not vectors[0].any()
    for group, (low, high) in enumerate([(0, 0), (0, 1), (1, 256)]):
        total = [sum(int(weights[i]) * int(images[cells[i], j]) for i in range(low, high)) for j in range(dimension)]
        square = 0.0
        for value in total:
            square += float(value) * float(value)
        expected = [np.float32(value / math.sqrt(square)) if square else np.float32(0) for value in total]
        assert vectors[group].tolist() == [float(value) for value in expected]


def test_cells_that_cancel_out_give_no_position():
    images = np.array([[127, -127], [-127, 127]], np.int8)
    vectors, having = centroids(images, np.array([0, 2]), np.array([0, 1], np.int32), np.array([9, 9]))
    assert (vectors.any(), having.any()) == (False, False)


def test_weights_of_zero_give_no_position():
    images = np.array([[127, -127]], np.int8)
    assert not centroids(images, np.array([0, 1]), np.array([0], np.int32), np.array([0]))[1].any()
