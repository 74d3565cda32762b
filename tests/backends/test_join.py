import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyphae_gpu.backends.cpu import join
from hyphae_gpu.vectors import lengths
from tests.oracles.cosine import cosine


def expected(images, members, ranks):
    """For each rank the pair of greatest cosine with lower ranks, ties to the lowest node, then partner."""
    rows = list(zip(members.tolist(), ranks.tolist(), strict=True))
    found = []
    for rank in range(1, int(ranks.max(initial=0)) + 1):
        pairs = [(a, b) for a, of in rows if of == rank for b, other in rows if other < rank]
        found.append(min(pairs, key=lambda pair: (-cosine(images[pair[0]], images[pair[1]]), pair)))
    return found


@st.composite
def ranked(draw):
    """Members with ties, every rank from 0 to the greatest taken."""
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    joined = draw(st.integers(1, 5))
    count = draw(st.sampled_from([joined + 1, 31, 32, 33]))
    images = random.integers(-1, 2, (count + 4, 3)).astype(np.int8)
    images[~images.any(axis=1)] = 1
    members = np.sort(random.permutation(count + 4)[:count]).astype(np.int32)
    ranks = random.permutation(np.append(np.arange(joined + 1), random.integers(0, joined + 1, count - joined - 1)))
    return images, members, ranks.astype(np.int32)


@given(ranked())
def test_the_closest_pair_with_what_was_joined_before_as_the_oracle(case):
    images, members, ranks = case
    nodes, partners = join.closest_pairs(images, lengths(images), members, ranks)
    assert list(zip(nodes.tolist(), partners.tolist(), strict=True)) == expected(images, members, ranks)


def test_the_blocks_that_the_search_is_cut_into_do_not_show(monkeypatch):
    random = np.random.default_rng(5)
    images = random.integers(-2, 3, (300, 4)).astype(np.int8)
    images[~images.any(axis=1)] = 1
    members, ranks = np.arange(300, dtype=np.int32), random.integers(0, 4, 300).astype(np.int32)
    whole = join.closest_pairs(images, lengths(images), members, ranks)
    monkeypatch.setattr(join, "_ROWS", 7)
    monkeypatch.setattr(join, "_COLUMNS", 13)
    for mine, its in zip(whole, join.closest_pairs(images, lengths(images), members, ranks), strict=True):
        assert mine.tolist() == its.tolist()


@pytest.mark.parametrize("dimension", [1_040, 1_041, 4_096])
def test_dot_products_beyond_what_float32_holds_are_exact(dimension):
    # 127 * 127 * 1,041 is past 2^24; the two candidates' dot products differ by one.
    images = np.full((3, dimension), 127, np.int8)
    images[1, 0], images[2, 0], images[2, 1] = 126, 126, 126
    nodes, partners = join.closest_pairs(
        images, lengths(images), np.arange(3, dtype=np.int32), np.array([1, 0, 0], np.int32)
    )
    assert [(nodes[0], partners[0])] == expected(images, np.arange(3), np.array([1, 0, 0]))


def test_one_component_has_nothing_to_join():
    images = np.ones((3, 2), np.int8)
    nodes, partners = join.closest_pairs(images, lengths(images), np.arange(3, dtype=np.int32), np.zeros(3, np.int32))
    assert (len(nodes), len(partners)) == (0, 0)
