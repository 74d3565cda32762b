"""The layers above the ground and the edges between layers, against spec 2.2, 2.3, 2.7 read in plain Python."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from hyphae_gpu.backends.cpu.backend import CpuBackend
from hyphae_gpu.topology.hnsw import LAYER_SHAPES, HnswIndex
from hyphae_gpu.topology.refresh import TopologyRules, ground, whole
from hyphae_gpu.vectors import lengths
from hyphae_gpu.vocabulary import EdgeKind, EdgeType, NodeType
from tests.oracles import topology as oracle
from tests.topology.tables import access_pairs, edge_table, images_of, node_table, rows_of

SEMANTIC, CAUSAL, PROMOTED = int(EdgeType.SEMANTIC), int(EdgeType.CAUSAL), int(EdgeType.PROMOTED)


def refreshed(nodes, live, homes, indexes, *, pairs=(), declared=()):
    """One refresh of a swarm with layers."""
    images, backend = images_of(nodes), CpuBackend()
    base = ground(nodes, images, lengths(images), live, index=indexes[0], rules=TopologyRules(), backend=backend)
    return whole(
        base,
        nodes,
        images,
        lengths(images),
        live,
        upper=indexes[1:],
        declared=edge_table(declared),
        pairs=access_pairs(sorted(pairs)),
        backend=backend,
        node_scenes=homes,
    )


def new_indexes():
    return [HnswIndex(3, shape) for shape in LAYER_SHAPES]


@st.composite
def swarms(draw):
    """Cells, agents and beacons below, scenes and promoted nodes above, few directions; some are dead or ended."""
    count, random = draw(st.sampled_from([3, 12, 33])), np.random.default_rng(draw(st.integers(0, 2**32)))
    spread = draw(st.sampled_from([1, 3, 9]))
    vectors = random.integers(-spread, spread + 1, (count, 3)).astype(np.float32)
    vectors[~vectors.any(axis=1)] = 1
    types = random.choice(list(NodeType), count, p=[0.6, 0.1, 0.2, 0.1]).astype(np.int8)
    placed = (types == NodeType.CELL) | (types == NodeType.BEACON) | (random.random(count) < 0.8)
    vectors[~placed] = 0
    nodes = node_table(vectors, types, placed=placed)
    raised = (types == NodeType.CELL) & (random.random(count) < 0.4)
    layers = np.where(raised, random.integers(1, 3, count), np.where(types == NodeType.SCENE, 1, 0)).astype(np.int8)
    ground_cells = np.flatnonzero((types == NodeType.CELL) & (layers == 0))
    made_of = np.full(count, -1, np.int32)
    if len(ground_cells):
        made_of[raised] = random.choice(ground_cells, int(raised.sum()))
    nodes = replace(nodes, layers=layers, made_of=made_of)
    live = (types == NodeType.CELL) & (random.random(count) < 0.9)
    homes, scenes = np.full(count, -1, np.int32), np.flatnonzero((types == NodeType.SCENE) & placed)
    below = (layers == 0) & ((types != NodeType.CELL) | live)
    if len(scenes):
        homes[below] = random.choice([-1, *scenes], int(below.sum()))
    return nodes, live, homes, random


def upper_edges(nodes, live, homes, indexes):
    """Every edge of the layers above and between layers, as {(source, target, type): (kind, weight, bandwidth)}."""
    images, edges = images_of(nodes), {}
    there = np.where(nodes.types == NodeType.CELL, live, nodes.placed)
    for layer in (1, 2):
        index, members = indexes[layer], np.flatnonzero(there & (nodes.layers == layer)).tolist()
        at = {bytes(image): point for point, image in enumerate(index.images)}
        standing = [None] * len(index)
        for group in oracle.distinct_images(images, members):
            standing[at[bytes(images[group[0]])]] = group[0]
        offsets, targets = index.base_links()
        near, far = oracle.near_and_far(images, standing, [targets[a:b].tolist() for a, b in pairwise(offsets)])
        for found, kind in (
            (near, EdgeKind.NEAR),
            (far, EdgeKind.FAR),
            (oracle.copy_pairs(images, members), EdgeKind.COPY),
        ):
            for a, b in found:
                weight = 1.0 if kind == EdgeKind.COPY else float(oracle.weight(images, a, b))
                edges[a, b, SEMANTIC] = edges[b, a, SEMANTIC] = (int(kind), weight, -1)
    for node in range(len(nodes)):
        down = (int(EdgeKind.NONE), 1.0, -1)
        if homes[node] >= 0 and nodes.types[node] in (NodeType.CELL, NodeType.AGENT) and there[node]:
            edges[int(homes[node]), node, PROMOTED] = down
        if nodes.layers[node] > 0 and nodes.made_of[node] >= 0 and there[node] and there[nodes.made_of[node]]:
            edges[node, int(nodes.made_of[node]), PROMOTED] = down
    return edges


@settings(max_examples=120, deadline=None)
@given(swarms())
def test_upper_layers_and_promoted_edges_equal_the_oracle(swarm):
    nodes, live, homes, _ = swarm
    topology = refreshed(nodes, live, homes, new_indexes())
    layers = nodes.layers
    found = {key: edge for key, edge in rows_of(topology.edges).items() if layers[key[0]] > 0 or layers[key[1]] > 0}
    assert found == upper_edges(nodes, live, homes, [layer.index for layer in topology.layers])
    there = np.where(nodes.types == NodeType.CELL, live, nodes.placed)
    assert topology.facts["layers"] == [int((live & (layers == 0)).sum())] + [
        int((there & (layers == layer)).sum()) for layer in (1, 2)
    ]


@settings(max_examples=60, deadline=None)
@given(swarms(), swarms())
def test_the_indexes_of_upper_layers_grow_and_are_taken_up(first, second):
    """spec 2.2: kept as arrays between epochs; the next epoch's links are those of the index that lived on"""
    nodes, live, homes, _ = first
    lived = [layer.index for layer in refreshed(nodes, live, homes, new_indexes()).layers]
    restored = [
        HnswIndex.from_arrays(index.arrays(), 3, shape) for index, shape in zip(lived, LAYER_SHAPES, strict=True)
    ]
    nodes, live, homes, _ = second
    one, other = (rows_of(refreshed(nodes, live, homes, indexes).edges) for indexes in (lived, restored))
    assert one == other


def test_each_layer_has_its_own_shape():
    """spec 2.2"""
    assert [(shape.m, shape.ef_construction) for shape in LAYER_SHAPES] == [(24, 128), (16, 100), (8, 64)]


@settings(max_examples=60, deadline=None)
@given(swarms())
def test_nothing_goes_up_and_only_promoted_edges_go_down(swarm):
    """spec 2.7: neither accesses nor what rows declare make another way between layers"""
    nodes, live, homes, random = swarm
    agents, cells = np.flatnonzero(nodes.types == NodeType.AGENT), np.flatnonzero(live)
    pairs = [(int(a), int(c), 0.5) for a in agents for c in cells]
    ends = np.unique(random.integers(0, len(nodes), (60, 2)), axis=0)
    declared = [
        (int(s), int(t), of, EdgeKind.DECLARED if of == CAUSAL else EdgeKind.NONE, 0.5, -1)
        for s, t in ends
        for of in (CAUSAL, PROMOTED)
        if s != t
    ]
    topology = refreshed(nodes, live, homes, new_indexes(), pairs=pairs, declared=declared)
    sources, targets = topology.adjacency.sources().numpy(), topology.adjacency.targets.numpy()
    above, below = nodes.layers[sources], nodes.layers[targets]
    types = topology.adjacency.types.numpy()
    assert ((above == below) | ((above > below) & (types == PROMOTED))).all()
    there = np.where(nodes.types == NodeType.CELL, live, nodes.placed)
    kept = {
        (s, t, of)
        for s, t, of, *_ in declared
        if there[s]
        and there[t]
        and (nodes.layers[s] == nodes.layers[t] or (of == PROMOTED and nodes.layers[s] > nodes.layers[t]))
    }
    assert kept <= set(zip(sources.tolist(), targets.tolist(), types.tolist(), strict=True))
