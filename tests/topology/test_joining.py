import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyphae_gpu.backends.cpu.backend import CpuBackend
from hyphae_gpu.topology.joining import join_components
from hyphae_gpu.topology.near import ends, pair_keys
from hyphae_gpu.vectors import lengths
from tests.oracles import topology as oracle


def joined(images, cells, pairs):
    """Join the components of a graph given as pairs of node numbers; the pairs that come, what is reported."""
    left, right = zip(*pairs, strict=True) if pairs else ((), ())
    keys = pair_keys(np.array(left, np.int32), np.array(right, np.int32))
    representatives = np.array([group[0] for group in oracle.distinct_images(images, cells)], np.int32)
    arguments = (images, lengths(images), CpuBackend())
    found = join_components(np.array(sorted(cells), np.int32), keys, np.sort(representatives), *arguments)
    return set(zip(*(side.tolist() for side in ends(found.pairs)), strict=True)), found


@given(st.sampled_from([1, 2, 11, 31, 32, 33]), st.integers(0, 30), st.integers(0, 2**32))
def test_components_are_joined_as_the_oracle_joins_them(count, wanted, seed):
    random = np.random.default_rng(seed)
    images = random.integers(-2, 3, (count + 3, 3)).astype(np.int8)
    images[~images.any(axis=1)] = 1
    cells = sorted(random.permutation(count + 3)[:count].tolist())
    pairs = oracle.copy_pairs(images, cells)
    for _ in range(wanted if count > 1 else 0):
        pairs.add(tuple(sorted(random.choice(cells, 2, replace=False).tolist())))
    added, found = joined(images, cells, pairs)
    before = oracle.components(cells, pairs)
    assert added == oracle.joining_pairs(images, cells, pairs)
    assert found.joined == len(before) - 1
    assert found.reachability == max(map(len, before)) / count
    assert len(oracle.components(cells, pairs | added)) == 1


def test_of_equal_components_the_one_of_the_lowest_member_is_joined_to():
    images = np.array([[10, 0], [0, 10], [9, 1], [1, 9]], np.int8)
    added, found = joined(images, range(4), {(0, 2), (1, 3)})
    assert added == {(2, 3)}
    assert (found.joined, found.reachability) == (1, 0.5)


def test_copies_count_in_a_components_size():
    # Two images against one that four cells share: the copies' component is the larger one.
    images = np.array([[10, 0], [9, 1], [0, 10], [0, 10], [0, 10], [5, 6]], np.int8)
    added, found = joined(images, range(6), {(0, 1), (1, 5), (2, 3), (2, 4)})
    assert found.reachability == 0.5
    assert added == {(2, 5)}


@pytest.mark.parametrize("cells", [[], [3]])
def test_one_cell_or_none_has_nothing_to_join(cells):
    added, found = joined(np.ones((5, 2), np.int8), cells, set())
    assert (added, found.joined, found.reachability) == (set(), 0, 1.0)
