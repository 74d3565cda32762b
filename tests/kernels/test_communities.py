"""Communities and merged links on the shim equal the numba backend and the oracle, with == (spec 6.4)."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hyphae_gpu.backends.cpu.backend import CpuBackend
from hyphae_gpu.backends.cuda import communities as orchestration
from hyphae_gpu.backends.cuda.sources import kernel_source
from hyphae_gpu.emergence.scenes import Links, communities
from tests.emergence.test_scenes import RESOLUTIONS, graphs, linked, planted
from tests.oracles import scenes as oracle

seeds = st.integers(0, 2**32 - 1)
Pairs = dict[tuple[int, int], int]


class BothBackends:
    """Asks the CPU's and another backend, and insists on one answer, level by level."""

    def __init__(self, other) -> None:
        self.cpu, self.other = CpuBackend(), other

    def communities(self, *asked):
        expected, found = self.cpu.communities(*asked), self.other.communities(*asked)
        assert found.dtype == expected.dtype
        assert found.tolist() == expected.tolist()
        return found

    def merged_links(self, *asked):
        expected, found = self.cpu.merged_links(*asked), self.other.merged_links(*asked)
        for mine, its in zip(found, expected, strict=True):
            assert mine.dtype == its.dtype
            assert mine.tolist() == its.tolist()
        return found


def assert_equal(backend, numbers: list[int], pairs: Pairs, resolution: tuple[int, int]) -> list[int]:
    """Check all levels against the CPU's, and the outcome against the oracle."""
    links, plain = linked(numbers, pairs)
    found = communities(links, np.array(numbers, np.int64), resolution, BothBackends(backend))
    expected = oracle.communities(numbers, plain, *resolution)
    assert [numbers[row] for row in found] == [expected[number] for number in numbers]
    return found.tolist()


@settings(max_examples=20, deadline=None)
@given(graphs, st.sampled_from(RESOLUTIONS), seeds)
def test_communities_are_those_of_the_rule(on_cuda, graph: tuple, resolution: tuple[int, int], seed: int):
    assert_equal(on_cuda(seed), *graph, resolution)


def test_a_graph_of_several_levels(on_cuda):
    numbers, pairs = planted(5, count=300, blocks=12, degree=8, mixing=0.15, ties=False)
    assert 5 < len(set(assert_equal(on_cuda(5), numbers, pairs, (2, 1)))) < 60


def clique(count: int, weight: int) -> Pairs:
    return {(a, b): weight for a in range(count) for b in range(a + 1, count)}


def star(leaves: int, weight: int) -> Pairs:
    return {(0, leaf): weight for leaf in range(1, leaves + 1)}


HOSTILE = {
    "nothing": ({}, 0),
    "no links": ({}, 40),
    "a clique": (clique(40, 4096), 40),
    "a star": (star(70, 9), 71),
    "equal weights in a ring": ({(a, (a + 1) % 64): 1 for a in range(64)}, 64),
    "weights whose sums pass 2^53": ({(a, b): w * 2**40 + a for (a, b), w in clique(30, 8191).items()}, 30),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_graphs(on_cuda, name: str):
    pairs, count = HOSTILE[name]
    assert_equal(on_cuda(2), list(range(count)), pairs, (2, 1))


@pytest.mark.parametrize("degree", [127, 128, 129, 256, 300])
@pytest.mark.parametrize("ties", [True, False])
def test_hubs_whose_rows_are_a_blocks_work_choose_as_any_other(on_cuda, degree: int, ties: bool):
    """Three hubs over the same leaves, of which some are linked, so that hubs have many communities to choose from."""
    rng = np.random.default_rng(degree)
    weights = rng.integers(1, 4 if ties else 4097, 4 * degree).tolist()
    ends = [(hub, leaf) for hub in range(3) for leaf in range(3, degree + 3)]
    ends += [(leaf, leaf + 1) for leaf in range(3, degree + 2, 3)]
    pairs = dict(zip(ends, weights, strict=False))
    links, _ = linked(list(range(degree + 3)), pairs)
    assert int(np.diff(links.offsets).max()) == degree
    communities(links, np.arange(degree + 3), (2, 1), BothBackends(on_cuda(degree)))


def test_host_and_kernel_call_the_same_rows_long():
    source = kernel_source("communities")
    assert int(re.search(r"LONGEST_OF_WARP = (\d+);", source)[1]) == orchestration._LONGEST_OF_WARP


def test_few_tables_for_long_rows_take_turns(on_shim, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(orchestration, "_ALL_PLACES", 1)
    links, _ = linked(list(range(200)), {(a, b): 1 + a * b % 7 for a in range(8) for b in range(8, 200)})
    communities(links, np.arange(200), (2, 1), BothBackends(on_shim(4)))


def level(rows: list[list[tuple[int, int]]]) -> Links:
    """Links by node, as (target, weight), in the order given."""
    return Links(
        offsets=np.cumsum([0, *map(len, rows)]).astype(np.int64),
        targets=np.array([target for row in rows for target, _ in row], np.int32),
        weights=np.array([weight for row in rows for _, weight in row], np.int64),
    )


def test_a_link_with_itself_counts_for_the_node_and_not_for_its_community(on_cuda):
    """Of three nodes in a chain the middle one has a heavy link with itself."""
    for own in (1, 10, 1000):
        links = level([[(1, 5)], [(0, 5), (1, own), (2, 4)], [(1, 4)]])
        asked = (links.offsets, links.targets, links.weights, np.array([0, 1, 2]), (2, 1))
        BothBackends(on_cuda(own)).communities(*asked)


@settings(max_examples=40, deadline=None)
@given(st.sampled_from([1, 2, 33, 200]), st.integers(1, 40), st.sampled_from([0, 1, 30, 700]), seeds)
def test_links_of_groups_stand_in_the_order_in_which_they_are_met(on_cuda, count: int, groups: int, size: int, seed):
    rng = np.random.default_rng(seed)
    sources = np.sort(rng.integers(0, count, size))
    offsets = np.concatenate([[0], np.cumsum(np.bincount(sources, minlength=count))])
    targets, weights = rng.integers(0, count, size).astype(np.int32), rng.integers(1, 2**40, size)
    groups = min(groups, count)
    of = rng.permutation(np.concatenate([np.arange(groups), rng.integers(0, groups, count - groups)])).astype(np.int32)
    BothBackends(on_cuda(seed)).merged_links(offsets, targets, weights, of)


def test_no_groups_have_no_links(on_cuda):
    none = np.zeros(0, np.int64)
    merged = BothBackends(on_cuda(0)).merged_links(np.zeros(1, np.int64), none.astype(np.int32), none, none)
    assert [len(column) for column in merged] == [1, 0, 0]


def test_parts_of_a_community_that_hang_together_only_through_others_are_split(on_cuda):
    """spec 6.4: a node that held two parts together may move away; what is left is two communities."""
    split = 0
    for seed in range(4):
        numbers, pairs = planted(seed, count=60, blocks=4, degree=4, mixing=0.4, ties=True)
        split += len(set(assert_equal(on_cuda(seed), numbers, pairs, (1, 3))))
    assert split > 4
