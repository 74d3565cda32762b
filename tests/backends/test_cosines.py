import numpy as np
import pytest

from hyphae_gpu.backends.cpu.cosines import cosines
from hyphae_gpu.vectors import lengths
from tests.oracles import cosine as oracle


@pytest.mark.parametrize("dimension", [2, 3, 15, 16, 17, 31, 32, 33, 384])
def test_cosines_equal_the_oracle_at_vector_width_boundaries(dimension):
    images = np.random.default_rng(dimension).integers(-127, 128, (20, dimension)).astype(np.int8)
    left, right = (side.ravel().astype(np.int32) for side in np.mgrid[0:20, 0:20])
    expected = [oracle.cosine(images[a], images[b]) for a, b in zip(left, right, strict=True)]
    assert cosines(images, lengths(images), left, right).tolist() == expected


def test_the_longest_vectors_do_not_overflow_the_dot_product():
    images = np.full((2, 16_000), 127, np.int8)
    images[1] = -127
    both = cosines(images, lengths(images), np.array([0, 0], np.int32), np.array([0, 1], np.int32))
    assert both.tolist() == [oracle.cosine(images[0], images[0]), oracle.cosine(images[0], images[1])]


def test_threads_do_not_change_cosines():
    images = np.random.default_rng(0).integers(-127, 128, (500, 24)).astype(np.int8)
    left, right = np.random.default_rng(1).integers(0, 500, (2, 5_000)).astype(np.int32)
    one, three = (cosines(images, lengths(images), left, right, threads=threads) for threads in (1, 3))
    assert one.tolist() == three.tolist()


def test_no_pairs_give_no_cosines():
    images = np.ones((1, 4), np.int8)
    assert cosines(images, lengths(images), np.zeros(0, np.int32), np.zeros(0, np.int32)).tolist() == []
