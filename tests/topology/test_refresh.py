"""The whole refresh against spec 2.3-2.7 read in plain Python, given the links that the index made."""

import json
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hyphae_gpu.vocabulary import EdgeKind, EdgeType, NodeType
from tests.oracles import topology as oracle
from tests.topology.tables import access_pairs, edge_table, images_of, node_table, refreshed, rows_of

SEMANTIC, CAUSAL, SUBSCRIPTION = int(EdgeType.SEMANTIC), int(EdgeType.CAUSAL), int(EdgeType.SUBSCRIPTION)
FANIN, RADIUS = 4, 0.5


@st.composite
def swarms(draw, counts=(0, 1, 2, 11, 31, 32, 33)):
    """Nodes of few distinct directions: equal images, ties, dead cells, agents without a position, beacons."""
    count = draw(st.sampled_from(counts))
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    spread = draw(st.sampled_from([1, 2, 9]))
    vectors = random.integers(-spread, spread + 1, (count, 3)).astype(np.float32)
    vectors[~vectors.any(axis=1)] = 1
    others = draw(st.sampled_from([0.0, 0.3]))
    types = random.choice(
        [NodeType.CELL, NodeType.AGENT, NodeType.BEACON], count, p=[1 - others, others / 2, others / 2]
    ).astype(np.int8)
    placed = (types != NodeType.AGENT) | (random.random(count) < 0.7)
    vectors[~placed] = 0
    radii = np.where((types == NodeType.BEACON) & (random.random(count) < 0.5), 0.9, np.nan)
    nodes = node_table(vectors, types, placed=placed, radii=radii)
    live = (types == NodeType.CELL) & (random.random(count) >= draw(st.sampled_from([0.0, 0.2, 1.0])))
    return nodes, live, random


def own_edges(nodes, live, index, pairs):
    """Every edge of the epoch, as {(source, target, type): (kind, weight, bandwidth)}."""
    images = images_of(nodes)
    cells = np.flatnonzero(live).tolist()
    groups = oracle.distinct_images(images, cells)
    at = {bytes(image): point for point, image in enumerate(index.images)}
    representatives = [None] * len(index)
    for group in groups:
        representatives[at[bytes(images[group[0]])]] = group[0]
    offsets, targets = index.base_links()
    links = [targets[low:high].tolist() for low, high in pairwise(offsets)]
    near, far = oracle.near_and_far(images, representatives, links)
    copies = oracle.copy_pairs(images, cells)
    far |= oracle.joining_pairs(images, cells, near | far | copies)

    edges = {}

    def both_ways(a, b, edge_type, kind, weight):
        for source, target in ((a, b), (b, a)):
            assert (source, target, edge_type) not in edges
            edges[source, target, edge_type] = (int(kind), float(weight), -1)

    for found, kind in ((near, EdgeKind.NEAR), (far, EdgeKind.FAR)):
        for a, b in found:
            both_ways(a, b, SEMANTIC, kind, oracle.weight(images, a, b))
    for a, b in copies:
        both_ways(a, b, SEMANTIC, EdgeKind.COPY, 1.0)
    # So few points that each links to all others, and a search finds them all.
    found = [group[0] for group in groups]
    for node in range(len(nodes)):
        if nodes.types[node] == NodeType.AGENT and nodes.placed[node]:
            for cell in oracle.nearest(images, node, found, 10):
                both_ways(node, cell, SEMANTIC, EdgeKind.ATTACH, oracle.weight(images, node, cell))
        if nodes.types[node] == NodeType.BEACON:
            radius = RADIUS if np.isnan(nodes.radii[node]) else nodes.radii[node]
            for cell in oracle.subscriptions(images, node, found, FANIN, radius):
                edges[cell, node, SUBSCRIPTION] = (int(EdgeKind.NONE), 1.0, -1)
    for agent, cell, recency in pairs:
        if nodes.placed[agent]:
            both_ways(agent, cell, CAUSAL, EdgeKind.ACCESS, np.float32(recency))
    return edges


def some_pairs(nodes, live, random):
    agents, cells = np.flatnonzero(nodes.types == NodeType.AGENT), np.flatnonzero(live)
    return [(int(a), int(c), 0.5) for a in agents for c in cells if random.random() < 0.2]


@settings(max_examples=150)
@given(swarms())
def test_edges_equal_the_oracle(swarm):
    nodes, live, random = swarm
    pairs = some_pairs(nodes, live, random)
    topology = refreshed(nodes, live, pairs=access_pairs(pairs), beacon_fanin=FANIN, beacon_radius=RADIUS)
    expected = own_edges(nodes, live, topology.index, pairs)
    found = rows_of(topology.edges)
    assert found == expected
    assert list(found) == sorted(expected)


@settings(max_examples=60)
@given(swarms(), swarms(counts=(33,)))
def test_a_second_epoch_equals_the_oracle_on_the_grown_index(first, second):
    nodes, live, _ = first
    index = refreshed(nodes, live).index
    nodes, live, random = second
    pairs = some_pairs(nodes, live, random)
    topology = refreshed(nodes, live, index=index, pairs=access_pairs(pairs), beacon_fanin=FANIN, beacon_radius=RADIUS)
    assert rows_of(topology.edges) == own_edges(nodes, live, topology.index, pairs)


@settings(max_examples=60)
@given(swarms(), st.integers(0, 40))
def test_the_adjacency_holds_all_edges_whose_ends_take_part_in_order(swarm, wanted):
    nodes, live, random = swarm
    count = len(nodes)
    declared = {}
    for _ in range(wanted if count > 1 else 0):
        source, target = random.choice(count, 2, replace=False).tolist()
        edge_type, kind = [(SEMANTIC, 1), (CAUSAL, 6), (SUBSCRIPTION, 0), (3, 0)][random.integers(4)]
        weight = float(np.float32(random.choice([1e-38, 0.1, 0.5, 1.0])))
        declared[source, target, edge_type] = (kind, weight, int(random.choice([-1, 3])))
    table = edge_table([(*key, *value) for key, value in sorted(declared.items())])
    topology = refreshed(nodes, live, declared=table)
    takes_part = [bool(live[v]) if nodes.types[v] == NodeType.CELL else bool(nodes.placed[v]) for v in range(count)]
    own = rows_of(topology.edges)
    assert not own.keys() & declared.keys()
    undeclared = rows_of(refreshed(nodes, live).edges)
    assert own == {key: value for key, value in undeclared.items() if key not in declared}
    everything = own | {key: value for key, value in declared.items() if takes_part[key[0]] and takes_part[key[1]]}
    adjacency = topology.adjacency
    expected = sorted(
        (s, min(int(np.ceil(1024.0 / w)), 2**24), t, y, k, w, b) for (s, t, y), (k, w, b) in everything.items()
    )
    columns = (
        np.repeat(np.arange(count), np.diff(adjacency.offsets.numpy())),
        adjacency.costs,
        adjacency.targets,
        adjacency.types,
        adjacency.kinds,
        adjacency.weights,
        adjacency.bandwidths,
    )
    assert list(zip(*(column.tolist() for column in columns), strict=True)) == expected


@settings(max_examples=30)
@given(swarms(counts=(33,)))
def test_every_live_cell_reaches_every_other(swarm):
    nodes, live, _ = swarm
    edges = rows_of(refreshed(nodes, live).edges)
    cells = np.flatnonzero(live).tolist()
    assert len(oracle.components(cells, {(a, b) for a, b, _ in edges if live[a] and live[b]})) == bool(cells)


@pytest.mark.parametrize("count", [1, 2, 11, 31, 32, 33, 400])
def test_all_equal_vectors_hang_on_the_lowest(count):
    topology = refreshed(node_table(np.full((count, 5), 0.25)), np.ones(count, np.bool_))
    pairs = {(0, copy) for copy in range(1, count)}
    assert rows_of(topology.edges).keys() == {(*pair[::way], SEMANTIC) for pair in pairs for way in (1, -1)}
    assert topology.facts["duplicates"] == count - 1
    assert len(topology.index) == 1


def test_cells_of_upper_layers_are_left_alone():
    layers = np.array([0, 0, 1, 2], np.int8)
    topology = refreshed(node_table(np.eye(4), layers=layers), np.ones(4, np.bool_))
    assert {source for source, _, _ in rows_of(topology.edges)} == {0, 1}


def test_nothing_live_leaves_no_edges_and_says_so():
    nodes = node_table(np.eye(4), [NodeType.CELL, NodeType.CELL, NodeType.AGENT, NodeType.BEACON])
    topology = refreshed(nodes, np.zeros(4, np.bool_))
    assert (len(topology.edges), topology.adjacency.nodes, len(topology.adjacency.targets)) == (0, 4, 0)
    assert topology.facts["live_cells"] == 0


def test_the_facts_say_what_the_graph_is_like():
    images = np.array([[1, 0], [1, 0], [0, 1], [-1, 0], [1, 1]], np.float32)
    topology = refreshed(node_table(images), [True, True, True, True, False])
    assert topology.layers[0].index_changed
    assert json.loads(json.dumps(topology.facts)) == {
        "live_cells": 4,
        "points": 3,
        "built_by": "hnsw",
        "duplicates": 1,
        "dead_share": 0.0,
        "rebuilt": False,
        "reachability": 1.0,
        "joined_components": 0,
        "degrees": {"min": 1, "mean": 2.0, "max": 3},
        "edges": {"near": 6, "far": 0, "attach": 0, "copy": 2, "access": 0, "subscription": 0, "promoted": 0},
        "layers": [4],
    }
    assert list(topology.seconds) == ["hnsw", "near", "components", "attach", "layers", "csr"]
    again = refreshed(node_table(images), [True, True, True, True, False], index=topology.index)
    assert not again.layers[0].index_changed


def test_agents_hear_from_the_live_cells_when_most_of_the_index_is_dead():
    random = np.random.default_rng(4)
    vectors = random.normal(size=(2_000, 8)).astype(np.float32)
    types = np.zeros(2_000, np.int8)
    types[-50:] = NodeType.AGENT
    nodes, cells = node_table(vectors, types), types == NodeType.CELL
    index = refreshed(nodes, cells).index
    live = cells & (random.random(2_000) < 0.72)
    topology = refreshed(nodes, live, index=index)
    assert topology.facts["rebuilt"] is False
    assert topology.facts["dead_share"] > 0.25
    assert topology.facts["edges"]["attach"] == 2 * 50 * 10
