import numpy as np
import pytest

from hyphae_gpu.backends.cpu.backend import CpuBackend
from hyphae_gpu.topology.hnsw import HnswIndex
from hyphae_gpu.topology.points import place

BACKEND = CpuBackend()


def images_of(*numbers):
    """One image a number, equal for equal numbers."""
    return np.array([[127, number, -number] for number in numbers], np.int8)


def placed(index, images, cells):
    return place(index, images, np.array(cells, np.int32), BACKEND)


def test_points_are_added_in_node_number_order_and_equal_images_share_one():
    standing = placed(HnswIndex(3), images_of(5, 7, 5, 9, 7), range(5))
    assert standing.points.tolist() == [0, 1, 0, 2, 1]
    assert standing.index.founders.tolist() == [0, 1, 3]
    assert standing.representatives.tolist() == [0, 1, 3]
    assert standing.holders.tolist() == [0, 1, 0, 3, 1]


def test_a_cell_that_is_not_live_gets_no_point_until_it_is():
    images = images_of(5, 7, 9)
    standing = placed(HnswIndex(3), images, [0, 2])
    assert standing.index.founders.tolist() == [0, 2]
    again = placed(standing.index, images, [0, 1, 2])
    assert again.index.founders.tolist() == [0, 2, 1]
    assert (again.added, again.rebuilt) == (1, False)


def test_the_representative_is_the_lowest_live_cell_whoever_founded_the_point():
    images = images_of(5, 7, 5, 5)
    standing = placed(HnswIndex(3), images, [1, 2, 3])
    assert standing.representatives.tolist() == [1, 2]
    again = placed(standing.index, images, [0, 1, 3])
    assert again.representatives.tolist() == [1, 0]
    assert again.index.founders.tolist() == [1, 2]
    assert again.added == 0


def test_an_updated_vector_is_a_new_point_and_the_old_one_is_dead():
    numbers = list(range(10))
    standing = placed(HnswIndex(3), images_of(*numbers), range(10))
    moved = placed(standing.index, images_of(100, *numbers[1:]), range(10))
    assert moved.points.tolist() == [10, 1, 2, 3, 4, 5, 6, 7, 8, 9]
    assert moved.representatives.tolist() == [-1, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0]
    assert moved.dead_share == 1 / 11


def test_a_vector_that_comes_back_stands_on_its_old_point():
    images = images_of(*range(10))
    index = placed(HnswIndex(3), images, range(10)).index
    index = placed(index, images_of(100, *range(1, 10)), range(10)).index
    back = placed(index, images, range(10))
    assert back.points[0] == 0
    assert (back.added, len(back.index)) == (0, 11)


@pytest.mark.parametrize(("live", "rebuilt"), [(7, False), (6, True), (0, True)])
def test_an_index_is_rebuilt_when_more_than_three_points_in_ten_are_dead(live, rebuilt):
    images = images_of(*range(10))
    index = placed(HnswIndex(3), images, range(10)).index
    left = placed(index, images, range(10 - live, 10))
    assert left.rebuilt is rebuilt
    assert left.dead_share == (10 - live) / 10
    assert len(left.index) == (live if rebuilt else 10)
    if rebuilt:
        assert left.index is not index
        assert left.index.founders.tolist() == list(range(10 - live, 10))
        assert left.representatives.tolist() == left.index.founders.tolist()


def test_a_rebuilt_index_is_the_one_that_the_live_cells_alone_would_have_made():
    images = images_of(*range(60))
    index = placed(HnswIndex(3), images, range(59, 9, -1)[::-1]).index
    rebuilt = placed(index, images, range(0, 60, 3))
    fresh = placed(HnswIndex(3), images, range(0, 60, 3))
    assert rebuilt.rebuilt
    assert rebuilt.points.tolist() == fresh.points.tolist()
    assert rebuilt.index.arrays().links.tolist() == fresh.index.arrays().links.tolist()


def test_no_cells_at_all():
    standing = placed(HnswIndex(3), images_of(5), [])
    assert (len(standing.index), standing.dead_share, standing.rebuilt) == (0, 0.0, False)
