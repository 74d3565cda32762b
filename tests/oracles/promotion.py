"""Plain reading of spec 5: waves of rounds and sweeps, closed by the rules of promotion, until none fires."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from hyphae_gpu.swarm import GossipRules
from hyphae_gpu.vocabulary import DiffType, KnowledgeType, NodeType
from tests.oracles import gossip
from tests.oracles.gossip import Delivery, Diff, Graph, Run

DECISION, CONSTRAINT = KnowledgeType.DECISION, KnowledgeType.CONSTRAINT
LAYER_1 = (DECISION, KnowledgeType.PATTERN, CONSTRAINT, KnowledgeType.LESSON)
LAYER_2 = (DECISION, CONSTRAINT)


@dataclass
class Swarm:
    """What the rules look at.

    types, layers, scene_of (-1: none), makers by node; diff_types by diff number; open: cells in an open contradiction;
    takes_part: nodes of the upper layers that are in the graph; pairs: (agent, live cell).
    """

    types: list[int]
    layers: list[int]
    scene_of: list[int]
    makers: list[int]
    diff_types: dict[int, int]
    takes_part: list[bool]
    open: set[int] = field(default_factory=set)
    pairs: list[tuple[int, int]] = field(default_factory=list)
    confirm_by: str = "delivery"


@dataclass
class Promotion:
    """One promotion: v* and its energy, where it goes on (-1: nowhere), how many counted in which scenes, and who."""

    carrier: int
    energy: int
    entry: int
    scenes: list[tuple[int, int]]
    carried: list[int]


def waves(
    graph: Graph, diffs: list[Diff], rules: GossipRules, swarm: Swarm, *, sweep: bool
) -> tuple[Run, dict[tuple[int, int], Promotion]]:
    """spec 5.2: the diffs' deliveries, and (diff number, layer) -> promotion"""
    run, fired = Run(), {}
    run.start(diffs)
    running = diffs
    while running:
        gossip.until_quiet(graph, running, rules, run, sweep=sweep)
        run.frontiers = {}
        found = {}
        for diff in running:
            for layer in (1, 2):
                promotion = None if (diff.number, layer) in fired else promoted(graph, diff, layer, run, swarm)
                if promotion:
                    found[diff.number, layer] = promotion
        fired |= found
        running = [diff for diff in running if go_on(diff, [found.get((diff.number, k)) for k in (1, 2)], run)]
    return run, fired


def go_on(diff: Diff, promotions: list[Promotion | None], run: Run) -> bool:
    """spec 5.2: offer the entries E(v*) + 5.0 as arrivals of the next round; whether the diff goes on"""
    hop = run.rounds[diff.number] + 1
    raised = []
    for promotion in promotions:
        if promotion is None or promotion.entry < 0 or hop >= diff.max_hops:
            continue
        key, energy = (diff.number, promotion.entry), promotion.energy + 5 * 1024
        held = run.state.get(key)
        if held is None or energy > held.energy:
            run.state[key] = Delivery(held.hop if held else hop, energy, promotion.carrier)
            raised.append(promotion.entry)
    if raised:
        run.frontiers[diff.number] = raised
        run.rounds[diff.number] += 1
    return bool(raised)


def promoted(graph: Graph, diff: Diff, layer: int, run: Run, swarm: Swarm) -> Promotion | None:
    """spec 5.1, 5.2: the rule of one layer, and where it leads"""
    if swarm.diff_types[diff.number] == DiffType.CONTRADICTION or diff.origin in swarm.open:
        return None
    reached = {node: held.energy for (number, node), held in run.state.items() if number == diff.number}
    if layer == 1:
        if diff.knowledge_type not in LAYER_1:
            return None
        by_scene = counted(graph, diff, reached, swarm)
        counts = Counter({scene: len(nodes) for scene, nodes in by_scene.items() if len(nodes) >= 5})
        if not counts:
            return None
        scenes = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        carried = by_scene[scenes[0][0]]
    else:
        if diff.knowledge_type not in LAYER_2 or diff.salience < 0.8:
            return None
        carried = {node for node in reached if swarm.types[node] == NodeType.SCENE}
        if len(carried) < 3:
            return None
        scenes = [(node, 1) for node in in_order(carried, reached)]
    ordered = in_order(carried, reached)
    above = [n for n in range(len(swarm.types)) if swarm.layers[n] == layer and swarm.takes_part[n]]
    star = graph.images[ordered[0]]
    entry = max(above, key=lambda n: (gossip.cosine(star, graph.images[n]), -n), default=-1)
    return Promotion(ordered[0], reached[ordered[0]], entry, scenes, ordered)


def in_order(nodes: set[int], reached: dict[int, int]) -> list[int]:
    """Greatest energy first, ties to the lowest number"""
    return sorted(nodes, key=lambda node: (-reached[node], node))


def counted(graph: Graph, diff: Diff, reached: dict[int, int], swarm: Swarm) -> dict[int, set[int]]:
    """The nodes of each scene that count: spec 5.1, or 5.3"""
    by_scene: dict[int, set[int]] = {}
    if swarm.confirm_by == "delivery":
        for node in reached:
            if swarm.types[node] in (NodeType.CELL, NodeType.AGENT) and swarm.scene_of[node] >= 0:
                by_scene.setdefault(swarm.scene_of[node], set()).add(node)
        return by_scene
    for agent, cell in swarm.pairs:
        if agent not in reached or agent == swarm.makers[diff.origin] or swarm.scene_of[cell] < 0:
            continue
        if gossip.cosine(diff.image, graph.images[cell]) >= 0.5:
            by_scene.setdefault(swarm.scene_of[cell], set()).add(agent)
    return by_scene
