import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyphae_gpu.backends.cpu.near import nearest_linked
from hyphae_gpu.vectors import lengths
from tests.oracles.topology import nearest


def linked(links):
    """Rows of links as offsets and targets."""
    offsets = np.cumsum([0, *map(len, links)]).astype(np.int64)
    return offsets, np.array([target for row in links for target in row], np.int32)


def expected(images, representatives, links, count):
    """Spec 2.3 for each point, padded with -1."""
    rows = []
    for point, node in enumerate(representatives):
        reached = set(links[point]) | {second for first in links[point] for second in links[first]}
        others = {representatives[other] for other in reached - {point}} - {-1}
        found = nearest(images, node, others, count) if node >= 0 else []
        rows.append(found + [-1] * (count - len(found)))
    return rows


@st.composite
def graphs(draw):
    """Few distinct images, so that cosines tie; points in another order than nodes; some of them dead."""
    points = draw(st.sampled_from([1, 2, 3, 11, 31, 32, 33]))
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    images = random.integers(-1, 2, (points + 3, 3)).astype(np.int8)
    images[~images.any(axis=1)] = 1
    representatives = random.permutation(points + 3)[:points].astype(np.int32)
    representatives[random.random(points) < draw(st.sampled_from([0.0, 0.3, 1.0]))] = -1
    links = [sorted(set(random.integers(0, points, random.integers(0, 6)).tolist()) - {p}) for p in range(points)]
    return images, representatives, links


@given(graphs(), st.sampled_from([1, 2, 10]))
def test_nearest_among_links_and_links_of_links_as_the_oracle(graph, count):
    images, representatives, links = graph
    found = nearest_linked(images, lengths(images), representatives, *linked(links), count=count)
    assert found.tolist() == expected(images, representatives.tolist(), links, count)


def test_dead_points_are_walked_through_and_not_taken():
    images = np.array([[1, 0], [1, 1], [0, 1]], np.int8)
    found = nearest_linked(
        images, lengths(images), np.array([0, -1, 2], np.int32), *linked([[1], [0, 2], [1]]), count=2
    )
    assert found.tolist() == [[2, -1], [-1, -1], [0, -1]]


@pytest.mark.parametrize("threads", [2, 5])
def test_threads_do_not_change_what_is_nearest(threads):
    random = np.random.default_rng(3)
    images = random.integers(-127, 128, (2_000, 20)).astype(np.int8)
    offsets, links = linked(random.integers(0, 2_000, (2_000, 8)).tolist())
    representatives = np.arange(2_000, dtype=np.int32)
    arguments = (images, lengths(images), representatives, offsets, links)
    one = nearest_linked(*arguments, count=10)
    assert one.tolist() == nearest_linked(*arguments, count=10, threads=threads).tolist()


def test_an_index_without_points_has_no_rows():
    images = np.ones((1, 2), np.int8)
    found = nearest_linked(images, lengths(images), np.zeros(0, np.int32), *linked([]), count=10)
    assert found.shape == (0, 10)
