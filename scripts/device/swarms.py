"""Graphs for the check: random ones with everything in them, and clustered ones of any size, made on any device."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from hyphae_gpu.swarm import Adjacency, Diffs, Nodes, costs_of
from hyphae_gpu.vectors import lengths, quantise
from hyphae_gpu.vocabulary import KINDS_OF_TYPE, EdgeKind, EdgeType, NodeType

#: Few values, so that ties are common; the smallest saturates the cost.
_WEIGHTS = np.array([1.0, 0.9, 0.75, 0.5, 0.5, 0.25, 0.05, 1e-38], np.float32)
#: Edges a node of a clustered graph has within its cluster, within its topic, and to other topics.
_CLUSTER_EDGES, _TOPIC_EDGES, _FAR_EDGES = 16, 6, 2
DEGREE = _CLUSTER_EDGES + _TOPIC_EDGES + _FAR_EDGES
#: The shares of topic, cluster and own noise in a vector: cosines near 0.7 within a cluster, 0.4 within a topic.
_TOPIC_SHARE, _CLUSTER_SHARE, _OWN_SHARE = 0.4, 0.3, 0.3
#: About what the cosine of an edge is, by where it leads.
_EDGE_COSINES = (0.7, 0.4, 0.05)
#: Nodes that are made at a time: their edges' keys take some 400 MB.
_CHUNK = 1 << 20


@dataclass(frozen=True)
class Made:
    """A graph and diffs to send over it, on one device."""

    nodes: Nodes
    adjacency: Adjacency
    diffs: Diffs

    def to(self, device: torch.device | str) -> Made:
        """Return a copy on another device; itself where it is there."""
        return Made(self.nodes.to(device), self.adjacency.to(device), self.diffs.to(device))


def scattered(seed: int, *, nodes: int, degree: float, diffs: int, dimension: int, limited: float = 0.0) -> Made:
    """Make a random graph on the host: all types of nodes and edges, interests, ties, a share of limited edges."""
    rng = np.random.default_rng(seed)
    vectors = (rng.normal(size=dimension) + 0.5 * rng.normal(size=(nodes, dimension))).astype(np.float32)
    types = rng.choice([NodeType.CELL, NodeType.AGENT, NodeType.SCENE, NodeType.BEACON], nodes, p=[0.6, 0.2, 0.1, 0.1])
    types[0] = NodeType.CELL
    interests = np.zeros((nodes, 9), np.float32)
    listens = np.isin(types, [NodeType.AGENT, NodeType.BEACON]) & (rng.random(nodes) < 0.7)
    interests[listens] = rng.choice([0.0, 0.5, 1.0], (int(listens.sum()), 9))

    pairs = rng.integers(0, nodes, (int(nodes * degree), 2))
    edge_types = rng.choice(list(EdgeType), len(pairs), p=[0.6, 0.2, 0.1, 0.1])
    keep = (pairs[:, 0] != pairs[:, 1]) & (types[pairs[:, 0]] != NodeType.BEACON)
    keys = np.unique(np.column_stack([pairs, edge_types])[keep], axis=0)
    kinds = np.array([rng.choice(KINDS_OF_TYPE[EdgeType(it)]) for it in keys[:, 2]], np.int8)
    weights = rng.choice(_WEIGHTS, len(keys))
    bandwidths = np.where(rng.random(len(keys)) < limited, rng.integers(1, 3, len(keys)), -1).astype(np.int32)
    costs = costs_of(torch.from_numpy(weights)).numpy()
    order = np.lexsort((keys[:, 2], keys[:, 1], costs, keys[:, 0]))
    offsets = np.zeros(nodes + 1, np.int64)
    np.cumsum(np.bincount(keys[:, 0], minlength=nodes), out=offsets[1:])

    origins = rng.choice(np.flatnonzero(types != NodeType.BEACON), diffs).astype(np.int32)
    strangers = rng.normal(size=(diffs, dimension)).astype(np.float32)
    images = quantise(np.where(rng.random((diffs, 1)) < 0.7, vectors[origins], strangers))
    return Made(
        nodes=Nodes.build(vectors, types=types.astype(np.int8), interests=interests),
        adjacency=Adjacency(
            offsets=torch.from_numpy(offsets),
            targets=torch.from_numpy(keys[order, 1].astype(np.int32)),
            costs=torch.from_numpy(costs[order]),
            types=torch.from_numpy(keys[order, 2].astype(np.int8)),
            kinds=torch.from_numpy(kinds[order]),
            weights=torch.from_numpy(weights[order]),
            bandwidths=torch.from_numpy(bandwidths[order]),
        ),
        diffs=Diffs(
            numbers=torch.from_numpy(rng.permutation(diffs).astype(np.int64)),
            origins=torch.from_numpy(origins),
            types=torch.zeros(diffs, dtype=torch.int8),
            knowledge_types=torch.from_numpy(rng.integers(0, 9, diffs).astype(np.int8)),
            images=torch.from_numpy(images),
            lengths=torch.from_numpy(lengths(images)),
            saliences=torch.from_numpy(rng.random(diffs).astype(np.float32)),
            energies=torch.from_numpy(rng.choice([0, 1, 3000, 9000, 20000], diffs).astype(np.int32)),
            max_hops=torch.from_numpy(rng.choice([0, 2, 64, 64], diffs).astype(np.int32)),
        ),
    )


def clustered(
    device: torch.device | str,
    seed: int,
    *,
    nodes: int,
    diffs: int,
    dimension: int,
    cluster: int = 256,
    topic: int = 32,
    limited: float = 0.0,
) -> Made:
    """Make a graph of cells in clusters of topics, on `device`: 24 edges a node, most within its cluster.

    cluster: nodes a cluster, at least 18; topic: clusters a topic, at least 8; `nodes` must be a multiple of both times
    four at least. Neighbouring numbers stand near each other, as the engine numbers them.
    """
    if (
        cluster < _CLUSTER_EDGES + 2
        or topic < _TOPIC_EDGES + 2
        or nodes % (cluster * topic)
        or nodes < 4 * cluster * topic
    ):
        raise ValueError(f"{nodes} nodes in clusters of {cluster} and topics of {topic} clusters cannot be made")
    dice = torch.Generator(device).manual_seed(seed)
    images = torch.empty((nodes, dimension), dtype=torch.int8, device=device)
    targets, costs = (torch.empty((nodes, DEGREE), dtype=torch.int32, device=device) for _ in range(2))
    weights = torch.empty((nodes, DEGREE), dtype=torch.float32, device=device)
    topics = _normal((nodes // (cluster * topic), dimension), device, dice)
    clusters = _normal((nodes // cluster, dimension), device, dice)
    norms = torch.empty(nodes, dtype=torch.float64, device=device)
    for first in range(0, nodes, _CHUNK):
        rows = torch.arange(first, min(first + _CHUNK, nodes), device=device)
        images[rows] = _images(rows, topics, clusters, cluster, topic, dice)
        # the sum of at most 16,000 squares of 127 is exact in float64
        norms[rows] = torch.cat([part.double().square().sum(1) for part in images[rows].split(1 << 16)]).sqrt()
        targets[rows], costs[rows], weights[rows] = _edges(rows, nodes, cluster, topic, dice)
    edges = nodes * DEGREE
    bandwidths = torch.full((edges,), -1, dtype=torch.int32, device=device)
    if limited:
        chosen = torch.rand(edges, generator=dice, device=device) < limited
        bandwidths[chosen] = torch.randint(1, 3, (int(chosen.sum()),), generator=dice, device=device, dtype=torch.int32)
    cells = torch.zeros(nodes, dtype=torch.int8, device=device)
    made = Nodes(
        types=cells,
        layers=cells,
        images=images,
        lengths=norms,
        interest_rows=torch.full((nodes,), -1, dtype=torch.int32, device=device),
        interests=torch.zeros((0, 9), device=device),
    )
    adjacency = Adjacency(
        offsets=torch.arange(nodes + 1, device=device) * DEGREE,
        targets=targets.flatten(),
        costs=costs.flatten(),
        types=torch.full((edges,), EdgeType.SEMANTIC, dtype=torch.int8, device=device),
        kinds=torch.full((edges,), EdgeKind.NEAR, dtype=torch.int8, device=device),
        weights=weights.flatten(),
        bandwidths=bandwidths,
    )
    return Made(nodes=made, adjacency=adjacency, diffs=diffs_of(made, diffs, seed))


def diffs_of(nodes: Nodes, count: int, seed: int) -> Diffs:
    """Make diffs that start at random cells, in order of their origins, with energies of 4 to 12 hops' cost."""
    device = nodes.images.device
    dice = torch.Generator(device).manual_seed(seed + 1)
    origins = torch.randint(0, len(nodes), (count,), generator=dice, device=device).sort().values
    saliences = torch.rand(count, generator=dice, device=device)
    return Diffs(
        numbers=torch.arange(count, device=device),
        origins=origins.to(torch.int32),
        types=torch.zeros(count, dtype=torch.int8, device=device),
        knowledge_types=torch.randint(0, 9, (count,), generator=dice, device=device, dtype=torch.int8),
        images=nodes.images[origins],
        lengths=nodes.lengths[origins],
        saliences=saliences,
        energies=torch.randint(6_000, 18_000, (count,), generator=dice, device=device, dtype=torch.int32),
        max_hops=torch.full((count,), 64, dtype=torch.int32, device=device),
    )


def _normal(shape: tuple[int, int], device: torch.device | str, dice: torch.Generator) -> torch.Tensor:
    return torch.randn(shape, generator=dice, device=device)


def _images(
    rows: torch.Tensor, topics: torch.Tensor, clusters: torch.Tensor, cluster: int, topic: int, dice: torch.Generator
) -> torch.Tensor:
    """Return the int8 images of some nodes: a topic's direction, a cluster's and their own."""
    out = []
    for part in rows.split(1 << 16):
        wide = _OWN_SHARE**0.5 * _normal((len(part), topics.shape[1]), part.device, dice)
        wide += _CLUSTER_SHARE**0.5 * clusters[part // cluster]
        wide += _TOPIC_SHARE**0.5 * topics[part // (cluster * topic)]
        out.append(torch.round(127 * wide / wide.abs().amax(1, keepdim=True)).to(torch.int8))
    return torch.cat(out)


def _edges(
    rows: torch.Tensor, nodes: int, cluster: int, topic: int, dice: torch.Generator
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return targets, costs and weights of some nodes' edges, [r, 24] each, rows in order of (cost, target)."""
    device, count = rows.device, len(rows)

    def drawn(high: int, width: int) -> torch.Tensor:
        return torch.randint(0, high, (count, width), generator=dice, device=device)

    def steps(width: int, ring: int) -> torch.Tensor:
        """Return different steps along a ring of places, never a whole turn."""
        return 1 + (drawn(ring - 1, 1) + torch.arange(width, device=device)) % (ring - 1)

    own, area = rows[:, None], cluster * topic
    near = own // cluster * cluster + (own % cluster + steps(_CLUSTER_EDGES, cluster)) % cluster
    others = (own // cluster % topic + steps(_TOPIC_EDGES, topic)) % topic
    related = own // area * area + others * cluster + drawn(cluster, _TOPIC_EDGES)
    away = (own // area + steps(_FAR_EDGES, nodes // area)) % (nodes // area)
    far = away * area + drawn(area, _FAR_EDGES)
    targets = torch.cat([near, related, far], 1)
    middle = torch.repeat_interleave(
        torch.tensor(_EDGE_COSINES, device=device),
        torch.tensor([_CLUSTER_EDGES, _TOPIC_EDGES, _FAR_EDGES], device=device),
    )
    weights = middle * (0.9 + 0.2 * torch.rand((count, DEGREE), generator=dice, device=device))
    costs = costs_of(weights)
    order = (costs.long() << 32 | targets).argsort(1)
    return targets.gather(1, order).to(torch.int32), costs.gather(1, order), weights.gather(1, order)
