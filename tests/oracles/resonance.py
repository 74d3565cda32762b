"""Plain readings of spec 3.12-3.14: resonance by dense integers, audiences and inboxes by sorting."""

from __future__ import annotations

import numpy as np

from hyphae_gpu.swarm import Edges, Nodes
from hyphae_gpu.vocabulary import EdgeKind, EdgeType, NodeType
from tests.oracles.gossip import cosine


def flow_weights(nodes: Nodes, edges: Edges) -> dict[tuple[int, int], int]:
    """The flow edges and their integer weights, parallel ones summed (spec 3.12)."""
    columns = (edges.sources, edges.targets, edges.types, edges.kinds, edges.weights)
    rows = list(zip(*(column.tolist() for column in columns), strict=True))
    agents = {node for node, kind in enumerate(nodes.types.tolist()) if kind == NodeType.AGENT}
    without_access = agents - {source for source, _, _, kind, _ in rows if kind == EdgeKind.ACCESS}
    images = nodes.images.tolist()
    weights: dict[tuple[int, int], int] = {}
    for source, target, edge_type, kind, weight in rows:
        as_near = kind == EdgeKind.NEAR or (
            kind == EdgeKind.ATTACH and (source in without_access or target in without_access)
        )
        if as_near:
            c = max(cosine(images[source], images[target]), 0.05)
            value = max(1, round(4096 * ((c * c) * (c * c))))
        elif kind == EdgeKind.COPY or (edge_type == EdgeType.CAUSAL):
            value = max(1, round(4096 * weight))
        else:
            continue
        weights[source, target] = weights.get((source, target), 0) + value
    return weights


def resonance(
    weights: dict[tuple[int, int], int], count: int, origin: int, *, rounds: int = 8, cut: int = 2**42
) -> tuple[list[int], list[int]]:
    """Each node's resonance with a diff of this origin, and how many nodes sent in each round."""
    matrix = np.zeros((count, count), object)
    for (source, target), weight in weights.items():
        matrix[source, target] = weight
    total = matrix.sum(axis=1) if count else []
    held, summed, senders = [0] * count, [0] * count, []
    held[origin] = 2**52
    for _ in range(rounds):
        received = [0] * count
        sending = [v for v in range(count) if held[v] > cut and total[v] > 0]
        senders.append(sum(held[v] > cut for v in range(count)))
        for v in sending:
            share = (held[v] // 10 * 7) // total[v]
            for u in np.flatnonzero(matrix[v]):
                received[u] += share * matrix[v, u]
        summed = [a + b for a, b in zip(summed, received, strict=True)]
        held = received
    return summed, senders


def rank(value: float, among: list[float]) -> int:
    """How many have strictly more (spec 3.13)."""
    return sum(other > value for other in among)


def audience(people: list[tuple[int, float, int, int]], limit: int | None) -> list[int]:
    """Of (agent, score, resonance, activity) the agents kept (spec 3.13)."""

    def fused(person: tuple[int, float, int, int]) -> float:
        ranks = [rank(person[column], [other[column] for other in people]) for column in (1, 2, 3)]
        return 1 / (20 + ranks[0]) + 1 / (20 + ranks[1]) + 1 / (20 + ranks[2])

    best = sorted(people, key=lambda person: (-fused(person), person[0]))
    return sorted(person[0] for person in best[:limit])


def inbox(entries: list[tuple[int, float, int]], limit: int) -> list[tuple[int, float]]:
    """Of one agent's (diff, score, resonance) the entries kept, in order, with their relevance (spec 3.14)."""
    relevances = [
        (
            diff,
            1 / (20 + rank(score, [e[1] for e in entries])) + 1 / (20 + rank(resonant, [e[2] for e in entries])),
        )
        for diff, score, resonant in entries
    ]
    return sorted(relevances, key=lambda entry: (-entry[1], entry[0]))[:limit]
