import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyphae_gpu.backends.cpu.groups import groups
from hyphae_gpu.vectors import lengths
from tests.oracles.cosine import cosine


def expected(images, links, scenes, least):
    """Spec 6.4: in each scene, turn by turn, who is not yet grouped leads and takes those it is linked to and like."""
    leaders = [-1] * len(images)
    for scene in scenes:
        for cell in scene:
            if leaders[cell] >= 0:
                continue
            leaders[cell] = cell
            for other in links[cell]:
                if other in scene and leaders[other] < 0 and cosine(images[cell], images[other]) >= least:
                    leaders[other] = cell
    return leaders


def found(images, links, scenes, least, threads=1):
    offsets, begins = (np.cumsum([0, *map(len, rows)]).astype(np.int64) for rows in (links, scenes))
    targets, cells = (np.array([one for row in rows for one in row], np.int32) for rows in (links, scenes))
    return groups(images, lengths(images), offsets, targets, begins, cells, least, threads=threads).tolist()


@given(st.sampled_from([2, 31, 32, 33, 384]), st.sampled_from([1, 2, 40]), st.integers(1, 5), st.integers(0, 2**32 - 1))
def test_groups_are_those_of_the_rule(dimension, count, scenes, seed):
    rng = np.random.default_rng(seed)
    images = rng.integers(-60, 128, (count, dimension)).astype(np.int8)
    images[:, 0] |= 1
    links = [rng.integers(0, count, rng.integers(0, 30)).tolist() for _ in range(count)]
    turns = rng.permutation(count)[: rng.integers(0, count + 1)]
    cut = [part.tolist() for part in np.array_split(turns, scenes)]
    least = float(rng.choice([-1.0, 0.2, 0.3, 0.5]))
    assert found(images, links, cut, least) == expected(images.tolist(), links, cut, least)


@pytest.mark.parametrize(("least", "leader"), [(0.8, 0), (float(np.nextafter(0.8, 1)), 1)])
def test_a_cosine_of_exactly_the_least_is_enough(least, leader):
    images = np.array([[5, 0], [4, 3]], np.int8)
    assert found(images, [[1], [0]], [[0, 1]], least) == [0, leader]


def test_threads_do_not_change_groups():
    rng = np.random.default_rng(0)
    images = rng.integers(1, 128, (4000, 8)).astype(np.int8)
    links = rng.integers(0, 4000, (4000, 40)).tolist()
    scenes = np.array_split(rng.permutation(4000), 700)
    one, four = (found(images, links, scenes, 0.8, threads) for threads in (1, 4))
    assert one == four


def test_no_nodes_have_no_groups():
    assert found(np.zeros((0, 3), np.int8), [], [], 0.8) == []
