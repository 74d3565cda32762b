"""Scenes against their oracle, with ==: communities, numbers kept, centroids, the nearest scene (spec 6.4)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from hyphae_gpu.backends.cpu.backend import CpuBackend
from hyphae_gpu.emerged import SceneTable
from hyphae_gpu.emergence.nearest import nearest_rows
from hyphae_gpu.emergence.scene_tables import scene_nodes
from hyphae_gpu.emergence.scenes import Links, Scenes, communities, crystallise, kept_numbers, scene_links
from hyphae_gpu.linking import cells as cells_of
from hyphae_gpu.linking import link
from hyphae_gpu.state import EdgeTable
from hyphae_gpu.swarm import Edges
from hyphae_gpu.vectors import lengths, quantise
from hyphae_gpu.vocabulary import EdgeKind, EdgeType, NodeType
from tests.oracles import scenes as oracle
from tests.oracles.cosine import cosine

DATA = Path(__file__).parents[2].parent / "shared" / "data"
#: The number of the first scene of a `World`.
FIRST = 1000
RESOLUTIONS = [(2, 1), (1, 1), (4, 1), (1, 3), (7, 5)]


def linked(numbers: list[int], pairs: dict[tuple[int, int], int]) -> tuple[Links, oracle.Links]:
    """The same symmetric links as rows and as the oracle wants them; pairs by place."""
    both = {(a, b): w for (x, y), w in pairs.items() for a, b in ((x, y), (y, x))}
    rows = sorted(both.items())
    offsets = np.zeros(len(numbers) + 1, np.int64)
    np.cumsum(np.bincount([a for (a, _), _ in rows], minlength=len(numbers)), out=offsets[1:])
    links = Links(
        offsets=offsets,
        targets=np.array([b for (_, b), _ in rows], np.int32),
        weights=np.array([w for _, w in rows], np.int64),
    )
    return links, {(numbers[a], numbers[b]): w for (a, b), w in both.items()}


def edge_table(edges: Edges) -> EdgeTable:
    """The edges as an epoch has them, here in an order of no meaning."""
    rows = np.random.default_rng(len(edges)).permutation(len(edges))
    names = ("sources", "targets", "types", "kinds", "weights", "bandwidths")
    return EdgeTable(**{name: getattr(edges, name).numpy()[rows] for name in names})


def planted(seed: int, *, count: int, blocks: int, degree: float, mixing: float, ties: bool) -> tuple:
    """A graph with planted blocks; node numbers have gaps, weights few values where they are to tie."""
    rng = np.random.default_rng(seed)
    numbers = np.sort(rng.choice(4 * count, count, replace=False)).tolist()
    block = rng.integers(0, blocks, count)
    pairs = {}
    for _ in range(int(count * degree / 2)):
        a = int(rng.integers(count))
        others = np.arange(count) if rng.random() < mixing else np.flatnonzero(block == block[a])
        b = int(rng.choice(others))
        if a != b:
            pairs[min(a, b), max(a, b)] = int(rng.choice([1, 4096])) if ties else int(rng.integers(1, 4097))
    return numbers, pairs


graphs = st.builds(
    planted,
    st.integers(0, 2**32 - 1),
    count=st.sampled_from([1, 2, 5, 31, 32, 33, 90]),
    blocks=st.integers(1, 9),
    degree=st.floats(0, 10),
    mixing=st.sampled_from([0.0, 0.1, 0.5, 1.0]),
    ties=st.booleans(),
)


@settings(max_examples=150)
@given(graphs, st.sampled_from(RESOLUTIONS))
def test_communities_are_those_of_the_rule(graph: tuple, resolution: tuple[int, int]) -> None:
    numbers, pairs = graph
    links, plain = linked(numbers, pairs)
    found = communities(links, np.array(numbers, np.int64), resolution, CpuBackend())
    expected = oracle.communities(numbers, plain, *resolution)
    assert [numbers[row] for row in found] == [expected[number] for number in numbers]


@pytest.mark.parametrize("resolution", RESOLUTIONS)
def test_larger_graphs_of_several_levels_equal_the_rule(resolution: tuple[int, int]) -> None:
    numbers, pairs = planted(5, count=900, blocks=30, degree=8, mixing=0.15, ties=False)
    links, plain = linked(numbers, pairs)
    found = communities(links, np.array(numbers, np.int64), resolution, CpuBackend())
    expected = oracle.communities(numbers, plain, *resolution)
    assert [numbers[row] for row in found] == [expected[number] for number in numbers]


@pytest.mark.parametrize("threads", [2, 3, 8])
def test_threads_do_not_change_communities(threads: int) -> None:
    rng = np.random.default_rng(2)
    count = 40_000
    block = rng.integers(0, 200, count)
    order = np.argsort(block, kind="stable")
    left = rng.integers(0, count - 9, 6 * count)
    pairs = np.stack([order[left], order[left + rng.integers(1, 9, len(left))]])
    keys = np.unique(np.concatenate([pairs[0] * count + pairs[1], pairs[1] * count + pairs[0]]))
    sources, targets = np.divmod(keys, count)
    weights = 1 + (sources * targets) % 4096
    offsets = np.concatenate([[0], np.cumsum(np.bincount(sources, minlength=count))])
    links = Links(offsets=offsets, targets=targets.astype(np.int32), weights=weights)
    numbers = np.arange(count)
    one = communities(links, numbers, (2, 1), CpuBackend(1))
    assert 50 < len(np.unique(one)) < count // 5
    assert np.array_equal(one, communities(links, numbers, (2, 1), CpuBackend(threads)))


def test_hashes_choose_who_moves_when() -> None:
    """The published first output of splitmix64, and that node numbers, not places, decide."""
    assert oracle.splitmix64(0) == 0xE220A8397B1DCDAF
    pairs = {(i, i + 1): 1 for i in range(40)}
    partitions = set()
    for shift in range(4):
        numbers = [number + shift for number in range(41)]
        links, plain = linked(numbers, pairs)
        found = communities(links, np.array(numbers, np.int64), (2, 1), CpuBackend())
        expected = oracle.communities(numbers, plain, 2, 1)
        assert [numbers[row] for row in found] == [expected[number] for number in numbers]
        partitions.add(tuple(found.tolist()))
    assert len(partitions) > 1


def test_sums_beyond_32_bits_are_kept() -> None:
    """A star of weights whose sum needs 33 bits beside a clique: still the rule's answer."""
    pairs = {(0, leaf): 2**28 for leaf in range(1, 21)}
    pairs |= {(a, b): 2**20 for a in range(21, 30) for b in range(a + 1, 30)} | {(20, 21): 1}
    numbers = list(range(30))
    links, plain = linked(numbers, pairs)
    found = communities(links, np.arange(30), (2, 1), CpuBackend())
    expected = oracle.communities(numbers, plain, 2, 1)
    assert found.tolist() == [expected[number] for number in numbers]


def test_no_nodes_have_no_communities() -> None:
    links, _ = linked([], {})
    assert communities(links, np.zeros(0, np.int64), (2, 1), CpuBackend()).tolist() == []


@given(st.integers(0, 2**32 - 1), st.integers(0, 60), st.integers(1, 6), st.integers(1, 6))
def test_a_scene_keeps_the_number_it_shares_most_cells_with(seed: int, cells: int, old: int, new: int) -> None:
    rng = np.random.default_rng(seed)
    before = (3 * rng.integers(-1, old, cells)).clip(-1).astype(np.int32)
    places = rng.integers(-1, new, cells)
    found = kept_numbers(before, places, new, 100)
    groups = [np.flatnonzero(places == place).tolist() for place in range(new)]
    former = {cell: int(number) for cell, number in enumerate(before) if number >= 0}
    assert found.tolist() == oracle.kept_ids(former, groups, 100)
    assert len(set(found.tolist())) == new


class World:
    """A made swarm with its graph: topics of cells, some of them dead, agents and beacons."""

    def __init__(self, seed: int = 1, *, cells: int = 240, topics: int = 8, dimension: int = 12) -> None:
        rng = np.random.default_rng(seed)
        centres = rng.normal(size=(topics, dimension))
        topic = rng.integers(0, topics, cells)
        vectors = centres[topic] + 0.35 * rng.normal(size=(cells, dimension))
        vectors[5] = vectors[3]
        listeners = centres[rng.integers(0, topics, 12)] + 0.2 * rng.normal(size=(12, dimension))
        vectors = np.concatenate([vectors, listeners]).astype(np.float32)
        self.nodes = cells_of(vectors)
        self.nodes.types[cells:] = NodeType.AGENT
        self.nodes.types[-4:] = NodeType.BEACON
        self.nodes.placed[-1] = False
        self.images, self.count = quantise(vectors), cells
        self.lengths = lengths(self.images)
        self.saliences = np.round(rng.random(len(vectors)), 2).astype(np.float32)
        self.live = (self.nodes.types == NodeType.CELL) & (self.saliences >= 0.05)
        alive = np.flatnonzero(self.live)
        edges = link(vectors[alive])
        self.edges = Edges(
            sources=torch.from_numpy(alive[edges.sources.numpy()].astype(np.int32)),
            targets=torch.from_numpy(alive[edges.targets.numpy()].astype(np.int32)),
            types=edges.types,
            kinds=edges.kinds,
            weights=edges.weights,
            bandwidths=edges.bandwidths,
        )

    def crystallise(self, before: np.ndarray | None = None, following: int = FIRST, threads: int = 1) -> Scenes:
        nowhere = np.full(len(self.nodes), -1, np.int32)
        return crystallise(
            self.nodes,
            self.images,
            self.lengths,
            self.saliences,
            self.live,
            edge_table(self.edges),
            nowhere if before is None else before,
            following=following,
            resolution=(2, 1),
            backend=CpuBackend(threads),
        )

    def plain(self) -> list[list[int]]:
        columns = (self.edges.sources, self.edges.targets, self.edges.kinds, self.edges.weights)
        edges = list(zip(*(column.tolist() for column in columns), strict=True))
        alive = np.flatnonzero(self.live).tolist()
        return oracle.scenes(alive, oracle.links_of(self.images.tolist(), edges, set(alive)), 2, 1)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_scenes_of_an_epoch_are_those_of_the_rule(seed: int) -> None:
    world = World(seed)
    found, expected = world.crystallise(), world.plain()
    assert len(expected) > 4
    assert (world.edges.kinds == EdgeKind.COPY).any()
    groups = [np.flatnonzero((found.of_nodes == n) & world.live).tolist() for n in found.numbers]
    assert groups == expected
    assert found.numbers.tolist() == list(range(FIRST, FIRST + len(expected)))
    assert found.sizes.tolist() == [len(cells) for cells in expected]
    assert found.changed.all()
    lonely = set(np.flatnonzero(world.live)) - {cell for cells in expected for cell in cells}
    assert all(found.of_nodes[cell] == -1 for cell in lonely | set(np.flatnonzero(~world.live[: world.count])))


def test_a_centroid_is_the_salience_weighted_sum_of_images() -> None:
    world = World()
    found = world.crystallise()
    for row, cells in enumerate(world.plain()):
        total = np.array(oracle.centroid(cells, world.saliences.tolist(), world.images.tolist()), np.float64)
        norm = np.sqrt(sum(float(x) * float(x) for x in total))
        assert found.centroids[row].tolist() == (total / norm).astype(np.float32).tolist()


def test_agents_and_beacons_belong_to_the_nearest_centroid() -> None:
    world = World()
    found = world.crystallise()
    marks = quantise(found.centroids).tolist()
    for node in range(world.count, len(world.nodes) - 1):
        cosines = [cosine(world.images[node], mark) for mark in marks]
        assert found.of_nodes[node] == found.numbers[cosines.index(max(cosines))]
    assert found.of_nodes[-1] == -1


def test_equally_near_centroids_give_the_lowest_scene() -> None:
    images = np.array([[100, 100], [-5, 0]], np.int8)
    marks = np.array([[0, 127], [127, 0], [0, 127]], np.int8)
    assert nearest_rows(images, lengths(images), marks, lengths(marks)).tolist() == [0, 0]
    assert nearest_rows(images, lengths(images), marks[:0], lengths(marks)[:0]).tolist() == [0, 0]


def test_numbers_stay_while_the_world_changes_and_are_never_used_again() -> None:
    world = World()
    first = world.crystallise()
    following = FIRST + len(first)
    again = world.crystallise(first.of_nodes, following, threads=2)
    assert np.array_equal(first.of_nodes, again.of_nodes)
    assert not again.changed.any()

    ended = FIRST + 2
    gone = np.flatnonzero((first.of_nodes == ended) & world.live)
    world.live[gone] = False
    keep = ~(np.isin(world.edges.sources.numpy(), gone) | np.isin(world.edges.targets.numpy(), gone))
    columns = ("sources", "targets", "types", "kinds", "weights", "bandwidths")
    world.edges = Edges(**{name: getattr(world.edges, name)[torch.from_numpy(keep)] for name in columns})
    later = world.crystallise(first.of_nodes, following)
    before = {cell: int(first.of_nodes[cell]) for cell in np.flatnonzero(first.of_nodes[: world.count] >= 0)}
    plain = world.plain()
    expected = oracle.kept_ids(before, plain, following)
    assert {int(later.of_nodes[cells[0]]): len(cells) for cells in plain} == dict(
        zip(later.numbers.tolist(), later.sizes.tolist(), strict=True)
    )
    assert [int(later.of_nodes[cells[0]]) for cells in plain] == expected
    assert ended not in later.numbers
    assert (later.of_nodes[gone] == -1).all()
    for row, number in enumerate(later.numbers.tolist()):
        members = np.flatnonzero((later.of_nodes == number) & world.live)
        former = np.flatnonzero(first.of_nodes[: world.count] == number)
        assert later.changed[row] == (members.tolist() != former.tolist())


def test_far_links_and_other_layers_make_no_scene() -> None:
    world = World()
    world.nodes.layers[:10] = 1
    found = world.crystallise()
    assert (found.of_nodes[:10] == -1).all()
    world.edges = Edges.build(world.edges.sources, world.edges.targets, world.edges.weights)
    far = torch.full((len(world.edges),), int(EdgeKind.FAR), dtype=torch.int8)
    columns = ("sources", "targets", "types", "weights", "bandwidths")
    world.edges = Edges(kinds=far, **{name: getattr(world.edges, name) for name in columns})
    assert (world.edges.types == EdgeType.SEMANTIC).all()
    assert len(world.crystallise()) == 0


def test_a_world_without_cells_has_no_scenes() -> None:
    world = World()
    world.live[:] = False
    world.edges = Edges.build(np.zeros(0, np.int32), np.zeros(0, np.int32), np.zeros(0, np.float32))
    found = world.crystallise()
    assert len(found) == 0
    assert (found.of_nodes == -1).all()


def test_a_scenes_own_node_stands_at_its_centroid_and_nowhere_without_one() -> None:
    """Nodes 2 to 7 are the scenes there were: 2 stays, 3 moves, 4 loses its centroid, 5 gets one, 6 and 7 end."""
    east, north, up, none = np.concatenate([np.eye(3), np.zeros((1, 3))]).astype(np.float32)
    nodes = cells_of(np.stack([east, east, east, north, north, none, up, none]))
    nodes.types[2:] = NodeType.SCENE
    nodes.placed[[5, 7]] = False
    before = SceneTable(
        numbers=np.arange(2, 8, dtype=np.int32),
        sizes=np.full(6, 5, np.int32),
        epochs=np.ones(6, np.int32),
        names=[""] * 6,
    )
    found = Scenes(
        of_nodes=np.full(len(nodes), -1, np.int32),
        numbers=np.array([2, 3, 4, 5, 8, 9], np.int32),
        sizes=np.full(6, 5, np.int32),
        centroids=np.stack([east, up, none, north, up, none]),
        placed=np.array([True, True, False, True, True, False]),
        changed=np.ones(6, np.bool_),
        offsets=np.zeros(7, np.int64),
        cells=np.zeros(0, np.int32),
    )
    made = scene_nodes(nodes, before, found)
    assert (made.moved.tolist(), made.vectors.tolist()) == ([3, 5], [up.tolist(), north.tolist()])
    assert made.displaced.tolist() == [4, 6]
    assert made.new.vectors.tolist() == [up.tolist(), none.tolist()]
    assert (made.new.types.tolist(), made.new.layers.tolist()) == ([NodeType.SCENE] * 2, [1, 1])
    assert (made.new.made_of.tolist(), made.new.knowledge_types.tolist()) == ([-1, -1], [-1, -1])


@pytest.mark.parametrize("resolution", [(2, 1), (4, 1)])
def test_scenes_of_real_proposals_equal_the_rule(resolution: tuple[int, int]) -> None:
    file = DATA / "kep.minilm.npy"
    if not file.is_file():
        pytest.skip(f"the shared data lacks {file}: scenes of real vectors go untested")
    vectors = np.load(file).astype(np.float32)
    images, edges = quantise(vectors), link(vectors)
    numbers, cells = list(range(len(vectors))), np.arange(len(vectors), dtype=np.int32)
    links = scene_links(cells, images, lengths(images), edge_table(edges), CpuBackend(2))
    found = communities(links, cells.astype(np.int64), resolution, CpuBackend(2))

    columns = (edges.sources, edges.targets, edges.kinds, edges.weights)
    rows = list(zip(*(column.tolist() for column in columns), strict=True))
    plain = oracle.links_of(images.tolist(), rows, set(numbers))
    assert links.weights.sum() == sum(plain.values())
    expected = oracle.communities(numbers, plain, *resolution)
    assert found.tolist() == [expected[number] for number in numbers]
    assert len(set(expected.values())) > 10
