"""Random graphs for tests, as Hypothesis strategies: every edge type, agents, beacons, interests, hostile weights."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from hypothesis import strategies as st

from hyphae_gpu.swarm import Adjacency, Diffs, Edges, Nodes, costs_of
from hyphae_gpu.vectors import lengths, quantise
from hyphae_gpu.vocabulary import KINDS_OF_TYPE, EdgeType, NodeType

#: Few values, so that ties are common; the smallest saturates the cost.
WEIGHTS = np.array([1.0, 0.9, 0.75, 0.5, 0.5, 0.25, 0.05, 1e-38], np.float32)


@dataclass
class Swarm:
    nodes: Nodes
    edges: Edges
    adjacency: Adjacency
    diffs: Diffs


def adjacency_of(edges: Edges, nodes: int) -> Adjacency:
    """Sort edges by (source, cost, target, type), slowly."""
    costs = costs_of(edges.weights)
    keys = zip(edges.sources.tolist(), costs.tolist(), edges.targets.tolist(), edges.types.tolist(), strict=True)
    order = torch.tensor([i for i, _ in sorted(enumerate(keys), key=lambda pair: pair[1])], dtype=torch.int64)
    offsets = torch.zeros(nodes + 1, dtype=torch.int64)
    offsets[1:] = torch.bincount(edges.sources.long(), minlength=nodes).cumsum(0)
    return Adjacency(
        offsets=offsets,
        targets=edges.targets[order],
        costs=costs[order],
        types=edges.types[order],
        kinds=edges.kinds[order],
        weights=edges.weights[order],
        bandwidths=edges.bandwidths[order],
    )


def swarm(
    seed: int,
    *,
    nodes: int,
    degree: float,
    diffs: int,
    dimension: int = 4,
    limited: float = 0.0,
    spread: float = 1.0,
    max_hops: int = 64,
) -> Swarm:
    """Make a random swarm; `spread` is how far vectors lie apart, `limited` the share of edges with a bandwidth."""
    rng = np.random.default_rng(seed)
    centre = rng.normal(size=dimension)
    vectors = (centre + spread * rng.normal(size=(nodes, dimension))).astype(np.float32)
    types = rng.choice([NodeType.CELL, NodeType.AGENT, NodeType.SCENE, NodeType.BEACON], nodes, p=[0.6, 0.2, 0.1, 0.1])
    types[0] = NodeType.CELL
    interests = np.zeros((nodes, 9), np.float32)
    listens = np.isin(types, [NodeType.AGENT, NodeType.BEACON]) & (rng.random(nodes) < 0.7)
    interests[listens] = rng.choice([0.0, 0.5, 1.0], (int(listens.sum()), 9))

    count = int(nodes * degree)
    pairs = rng.integers(0, nodes, (count, 2))
    edge_types = rng.choice(list(EdgeType), count, p=[0.6, 0.2, 0.1, 0.1])
    keep = (pairs[:, 0] != pairs[:, 1]) & (types[pairs[:, 0]] != NodeType.BEACON)
    keys = np.column_stack([pairs, edge_types])[keep]
    keys = rng.permutation(np.unique(keys, axis=0)) if len(keys) else keys
    kinds = [rng.choice(KINDS_OF_TYPE[EdgeType(edge_type)]) for edge_type in keys[:, 2]]
    edges = Edges(
        sources=torch.from_numpy(keys[:, 0].astype(np.int32)),
        targets=torch.from_numpy(keys[:, 1].astype(np.int32)),
        types=torch.from_numpy(keys[:, 2].astype(np.int8)),
        kinds=torch.tensor(kinds, dtype=torch.int8),
        weights=torch.from_numpy(rng.choice(WEIGHTS, len(keys))),
        bandwidths=torch.from_numpy(
            np.where(rng.random(len(keys)) < limited, rng.integers(1, 3, len(keys)), -1).astype(np.int32)
        ),
    )
    origins = rng.choice(np.flatnonzero(types != NodeType.BEACON), diffs).astype(np.int32)
    own = rng.random(diffs) < 0.7
    queries = np.where(own[:, None], vectors[origins], rng.normal(size=(diffs, dimension))).astype(np.float32)
    images = quantise(queries) if diffs else np.zeros((0, dimension), np.int8)
    return Swarm(
        nodes=Nodes.build(vectors, types=types.astype(np.int8), interests=interests),
        edges=edges,
        adjacency=adjacency_of(edges, nodes),
        diffs=Diffs(
            numbers=torch.from_numpy(rng.permutation(diffs).astype(np.int64)),
            origins=torch.from_numpy(origins),
            types=torch.zeros(diffs, dtype=torch.int8),
            knowledge_types=torch.from_numpy(rng.integers(0, 9, diffs).astype(np.int8)),
            images=torch.from_numpy(images),
            lengths=torch.from_numpy(lengths(images)),
            saliences=torch.from_numpy(rng.random(diffs).astype(np.float32)),
            energies=torch.from_numpy(rng.choice([0, 1, 1024, 3000, 9000, 20000], diffs).astype(np.int32)),
            max_hops=torch.from_numpy(rng.choice([0, 1, 2, 3, max_hops, max_hops], diffs).astype(np.int32)),
        ),
    )


small_swarms = st.builds(
    swarm,
    st.integers(0, 2**32 - 1),
    nodes=st.integers(1, 9),
    degree=st.floats(0, 5),
    diffs=st.just(1),
    spread=st.sampled_from([0.1, 0.5, 1.0]),
    max_hops=st.sampled_from([4, 64]),
)
swarms = st.builds(
    swarm,
    st.integers(0, 2**32 - 1),
    nodes=st.sampled_from([1, 2, 31, 32, 33, 120, 300]),
    degree=st.floats(0, 8),
    diffs=st.integers(0, 6),
    dimension=st.sampled_from([2, 4, 31, 33]),
    spread=st.sampled_from([0.1, 0.5, 1.0]),
)
limited_swarms = st.builds(
    swarm,
    st.integers(0, 2**32 - 1),
    nodes=st.sampled_from([2, 20, 60]),
    degree=st.floats(1, 6),
    diffs=st.integers(1, 8),
    limited=st.sampled_from([0.2, 1.0]),
    spread=st.sampled_from([0.1, 0.5]),
)
