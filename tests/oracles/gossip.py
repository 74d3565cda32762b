"""Plain readings of spec 3: Algorithm 1 as a recursion, and the batched meaning as a closure. Slow and obvious."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from hyphae_gpu.swarm import Diffs, Edges, GossipRules, Nodes
from hyphae_gpu.vocabulary import EdgeType


@dataclass
class Diff:
    number: int
    origin: int
    knowledge_type: int
    image: list[int]
    salience: float
    energy: int
    max_hops: int


@dataclass
class Edge:
    source: int
    target: int
    type: int
    weight: float
    bandwidth: int


class Graph:
    """Nodes and edges as Python lists."""

    def __init__(self, nodes: Nodes, edges: Edges) -> None:
        self.images = nodes.images.tolist()
        self.interests = [[0.0] * 9 if row < 0 else nodes.interests[row].tolist() for row in nodes.interest_rows]
        columns = (edges.sources, edges.targets, edges.types, edges.weights, edges.bandwidths)
        self.edges = [Edge(*row) for row in zip(*(column.tolist() for column in columns), strict=True)]
        self.out: list[list[Edge]] = [[] for _ in self.images]
        for edge in self.edges:
            self.out[edge.source].append(edge)


def diffs_of(diffs: Diffs) -> list[Diff]:
    columns = (
        diffs.numbers,
        diffs.origins,
        diffs.knowledge_types,
        diffs.images,
        diffs.saliences,
        diffs.energies,
        diffs.max_hops,
    )
    return [Diff(*row) for row in zip(*(column.tolist() for column in columns), strict=True)]


def cosine(a: list[int], b: list[int]) -> float:
    """spec 0.4"""
    dot = sum(x * y for x, y in zip(a, b, strict=True))
    return dot / (math.sqrt(sum(x * x for x in a)) * math.sqrt(sum(y * y for y in b)))


def score(graph: Graph, diff: Diff, node: int) -> float:
    """spec 3.3"""
    cos = cosine(diff.image, graph.images[node])
    return ((0.6 * cos) + (0.3 * graph.interests[node][diff.knowledge_type])) + (0.1 * diff.salience)


def gate(graph: Graph, diff: Diff, node: int, rules: GossipRules) -> bool:
    """spec 3.3"""
    return score(graph, diff, node) >= rules.sigma_min and cosine(diff.image, graph.images[node]) >= rules.cos_min


def cost(weight: float) -> int:
    """spec 3.6"""
    return min(math.ceil(1024 / weight), 2**24)


def fanout_edges(graph: Graph, diff: Diff, node: int, rules: GossipRules) -> list[Edge]:
    """spec 3.4: of the semantic edges the K whose targets score highest; all others."""
    semantic = [edge for edge in graph.out[node] if edge.type == EdgeType.SEMANTIC]
    if rules.fanout:
        semantic.sort(key=lambda edge: (-score(graph, diff, edge.target), edge.target))
        semantic = semantic[: rules.fanout]
    return semantic + [edge for edge in graph.out[node] if edge.type != EdgeType.SEMANTIC]


def algorithm_1(graph: Graph, diff: Diff, rules: GossipRules) -> dict[int, int]:
    """spec 3.2: every copy carries its own visited set; the greatest energy delivered to each node."""
    delivered: dict[int, int] = {}

    def visit(node: int, energy: int, hop: int, path: frozenset[int]) -> None:
        if energy <= 0 or hop >= diff.max_hops or node in path:
            return
        delivered[node] = max(delivered.get(node, 0), energy)
        for edge in fanout_edges(graph, diff, node, rules):
            if edge.target in path | {node}:
                continue
            if gate(graph, diff, edge.target, rules) and energy >= cost(edge.weight):
                visit(edge.target, energy - cost(edge.weight), hop + 1, path | {node})

    visit(diff.origin, diff.energy, 0, frozenset())
    return delivered


def philox(key: tuple[int, int], counter: tuple[int, int, int, int]) -> int:
    """First word of Philox4x32-10 (Salmon 2011)."""
    k0, k1 = key
    c0, c1, c2, c3 = counter
    for _ in range(10):
        product0, product1 = 0xD2511F53 * c0, 0xCD9E8D57 * c2
        c0, c1, c2, c3 = (
            (product1 >> 32) ^ c1 ^ k0,
            product1 & 0xFFFFFFFF,
            (product0 >> 32) ^ c3 ^ k1,
            product0 & 0xFFFFFFFF,
        )
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return c0


def lost(rules: GossipRules, t: int, source: int, target: int, diff: int) -> bool:
    """spec 3.10"""
    word = 0xFFFFFFFF
    counter = ((rules.epoch * 4096 + t) & word, source & word, target & word, diff & word)
    return philox((rules.seed & word, (rules.seed >> 32) & word), counter) < math.floor(rules.loss * 2**32)


@dataclass
class Delivery:
    hop: int
    energy: int
    parent: int


@dataclass
class Counts:
    rounds: int = 0
    relaxations: int = 0
    throttled: int = 0
    lost: int = 0
    sweeps: int = 0


@dataclass
class Run:
    """Where diffs stand: (diff number, node) -> delivery; by diff number the frontier, the rounds and sweeps run."""

    state: dict[tuple[int, int], Delivery] = field(default_factory=dict)
    frontiers: dict[int, list[int]] = field(default_factory=dict)
    rounds: dict[int, int] = field(default_factory=dict)
    sweeps: dict[int, int] = field(default_factory=dict)
    counts: Counts = field(default_factory=Counts)

    def start(self, diffs: list[Diff]) -> None:
        """spec 3.5: E_0 and frontier_0"""
        for diff in diffs:
            self.rounds[diff.number] = self.sweeps[diff.number] = 0
            if diff.energy >= 1 and diff.max_hops >= 1:
                self.state[diff.number, diff.origin] = Delivery(0, diff.energy, -1)
                self.frontiers[diff.number] = [diff.origin]

    def ran(self) -> dict[int, int]:
        """spec 3.10: t, the diff's rounds and sweeps so far"""
        return {number: self.rounds[number] + self.sweeps[number] for number in self.rounds}


def closure(
    graph: Graph, diffs: list[Diff], rules: GossipRules, *, sweep: bool = False
) -> tuple[dict[tuple[int, int], Delivery], Counts]:
    """spec 3.5-3.10, 2.8 and 7.2: all diffs in lock-step, synchronous rounds; (diff number, node) -> delivery."""
    run = Run()
    run.start(diffs)
    until_quiet(graph, diffs, rules, run, sweep=sweep)
    return run.state, run.counts


def until_quiet(graph: Graph, diffs: list[Diff], rules: GossipRules, run: Run, *, sweep: bool) -> None:
    """spec 3.5, 7.2: rounds while a frontier is left, then sweeps until no holder has anything to offer"""
    state, counts = run.state, run.counts
    while True:
        senders = [
            (diff, run.frontiers[diff.number])
            for diff in diffs
            if run.frontiers.get(diff.number) and run.rounds[diff.number] + 1 < diff.max_hops
        ]
        if not senders:
            break
        hops = {diff.number: run.rounds[diff.number] + 1 for diff, _ in senders}
        run.frontiers, _ = synchronous_round(
            graph, senders, rules, state, counts, run.ran(), lambda d, held, hops=hops: hops[d]
        )
        for diff, _ in senders:
            run.rounds[diff.number] += 1
        counts.rounds = max(counts.rounds, *run.rounds.values())
    sweeping, swept = list(diffs) if sweep else [], 0
    while sweeping:
        senders = [
            (diff, [v for d, v in sorted(state) if d == diff.number and state[d, v].hop + 1 < diff.max_hops])
            for diff in sweeping
        ]
        _, offered = synchronous_round(graph, senders, rules, state, counts, run.ran(), lambda d, held: held.hop + 1)
        for diff in sweeping:
            run.sweeps[diff.number] += 1
        sweeping = [diff for diff in sweeping if diff.number in offered]
        swept += bool(sweeping)
    counts.sweeps = max(counts.sweeps, swept)


def synchronous_round(graph, senders, rules, state, counts, ran, hop_from):
    """One round: every sender offers over its edges; return the next frontiers and which diffs offered anything.

    ran: the rounds and sweeps of each diff so far, by number; hop_from(diff number, sender's delivery) is the hop of a
    first arrival. Offers are judged against the round's start.
    """
    offers: list[tuple[Diff, Edge, int]] = []
    for diff, nodes in senders:
        for node in nodes:
            for edge in fanout_edges(graph, diff, node, rules):
                energy = state[diff.number, node].energy - cost(edge.weight)
                if energy <= 0:
                    continue
                counts.relaxations += 1
                held = state.get((diff.number, edge.target))
                if gate(graph, diff, edge.target, rules) and energy > (held.energy if held else 0):
                    offers.append((diff, edge, energy))

    crossing: list[tuple[Diff, Edge, int]] = []
    for edge in graph.edges:
        mine = sorted((o for o in offers if o[1] is edge), key=lambda o: (-o[2], o[0].number))
        if edge.bandwidth >= 0:
            counts.throttled += len(mine[edge.bandwidth :])
            mine = mine[: edge.bandwidth]
        crossing += mine

    raised: dict[tuple[int, int], tuple[int, int]] = {}
    for diff, edge, energy in crossing:
        if rules.loss and lost(rules, ran[diff.number], edge.source, edge.target, diff.number):
            counts.lost += 1
            continue
        key = (diff.number, edge.target)
        best = raised.get(key)
        if best is None or (energy, -edge.source) > (best[0], -best[1]):
            raised[key] = (energy, edge.source)
    hops = {
        key: state[key].hop if key in state else hop_from(key[0], state[key[0], source])
        for key, (_, source) in raised.items()
    }
    frontiers: dict[int, list[int]] = {}
    for (number, node), (energy, source) in raised.items():
        state[number, node] = Delivery(hops[number, node], energy, source)
        frontiers.setdefault(number, []).append(node)
    return frontiers, {diff.number for diff, _, _ in offers}
