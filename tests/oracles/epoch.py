"""Plain reading of an epoch (spec 8.1) on a graph that is given: decay, drift, diffs, who gets what, what it restores.

The graph is data (spec 0.5), so the epoch's edges come in from outside; all else is worked out here, in Python numbers.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass

import numpy as np
import torch

from hyphae_gpu.config import Settings
from hyphae_gpu.state import (
    PENDING_CREATED,
    PENDING_PATTERN,
    PENDING_SILENT,
    PENDING_UPDATED,
    EdgeTable,
    SwarmState,
)
from hyphae_gpu.swarm import Edges, GossipRules, Nodes
from hyphae_gpu.vocabulary import ENERGY_MULTIPLIER, DiffType, EdgeKind, NodeType
from tests.oracles import gossip, resonance
from tests.oracles.inbox import Arrival, Inboxes, Limits, inboxes

MICROSECONDS_A_DAY = 86_400_000_000
#: spec 8.1, 6.4: what a waiting cell says
TELLING = {
    PENDING_CREATED: DiffType.CREATED,
    PENDING_UPDATED: DiffType.UPDATED,
    PENDING_PATTERN: DiffType.PATTERN,
}


@dataclass
class News:
    """A diff as the epoch knows it."""

    number: int
    origin: int
    sequence: int
    type: int
    knowledge_type: int
    vector: list[float]
    salience: float
    energy: int
    max_hops: int
    ttl: int
    epoch_created: int


@dataclass
class Epoch:
    """All that an epoch decides; lists are by node number, ttl is as after the epoch."""

    saliences: list[float]
    live: list[bool]
    pairs: dict[tuple[int, int], float]
    positions: dict[int, list[float]]
    new_diffs: list[News]
    ended: set[int]
    alive: dict[int, int]
    inbox: Inboxes
    last_access: list[int]
    deliveries: dict[tuple[int, int], gossip.Delivery]
    held: set[tuple[int, int, int]]


def epoch(state: SwarmState, edges: EdgeTable, as_of: int, settings: Settings) -> Epoch:
    """Work out the epoch after `state`; `edges` are its own edges and the declared ones, in any order."""
    nodes = state.nodes
    last_access = _last_access(state, as_of)
    new, ended = _taken_in(state, settings)
    saliences = [_salience(state, node, last_access[node], as_of, settings) for node in range(len(nodes))]
    live = [_is_live(state, node, saliences[node], settings) for node in range(len(nodes))]
    pairs = _pairs(state, live, as_of, settings)
    images = [quantised(vector) if placed else None for vector, placed in zip(nodes.vectors, nodes.placed, strict=True)]
    positions = _positions(pairs, saliences, images)
    for agent, position in positions.items():
        images[agent] = quantised(position)

    new += _supersessions(state, saliences, len(new), new, settings)
    standing = [news for news in _diffs(state) if news.number not in ended] + new
    sent = [news for news in standing if live[news.origin]]
    takes_part = [
        live[node] if nodes.types[node] == NodeType.CELL else bool(images[node]) for node in range(len(nodes))
    ]
    graph = _graph(state, edges, images, takes_part)
    diffs = [_diff(news) for news in sent]
    sweep = (state.epoch + 1) % settings.anti_entropy_every == 0
    deliveries, _ = gossip.closure(graph.gossip, diffs, _rules(state, settings), sweep=sweep)
    filled = _inboxes(state, graph, diffs, deliveries, settings)
    origins = {diff.number: diff.origin for diff in diffs}
    for entry in filled.entries:
        last_access[origins[entry.diff]] = max(last_access[origins[entry.diff]], as_of)

    for news in standing:
        news.ttl -= 1
    alive = {news.number: news.ttl for news in standing if news.ttl > 0}
    held = {*_held(state), *((entry.agent, entry.diff, entry.via) for entry in filled.entries)}
    return Epoch(
        saliences=saliences,
        live=live,
        pairs=pairs,
        positions=positions,
        new_diffs=new,
        ended=ended,
        alive=alive,
        inbox=filled,
        last_access=last_access,
        deliveries=deliveries,
        held={key for key in held if key[1] in alive},
    )


def quantised(vector: list[float] | np.ndarray) -> list[int]:
    """spec 0.4"""
    wide = [float(x) for x in vector]
    greatest = max(abs(x) for x in wide)
    return [round(127 * x / greatest) for x in wide]


def _last_access(state: SwarmState, as_of: int) -> list[int]:
    """spec 6.5, 6.6: an updated cell is accessed now, a logged access counts once its time has come"""
    pending = state.nodes.pending
    last = [as_of if pending[i] == PENDING_UPDATED else at for i, at in enumerate(state.nodes.last_access.tolist())]
    for _, cell, at in _log(state):
        if at <= as_of:
            last[cell] = max(last[cell], at)
    return last


def _log(state: SwarmState) -> list[tuple[int, int, int]]:
    log = state.accesses
    return list(zip(log.agents.tolist(), log.cells.tolist(), log.at.tolist(), strict=True))


def _diffs(state: SwarmState) -> list[News]:
    table = state.diffs
    columns = (
        table.numbers,
        table.origins,
        table.sequence,
        table.types,
        table.knowledge_types,
        table.vectors,
        table.saliences,
        table.units,
        table.max_hops,
        table.ttl,
        table.epoch_created,
    )
    return [News(*row) for row in zip(*(column.tolist() for column in columns), strict=True)]


def _taken_in(state: SwarmState, settings: Settings) -> tuple[list[News], set[int]]:
    """spec 8.1, 6.6: a diff for each new or changed cell; older ones of changed and superseded cells end"""
    nodes = state.nodes
    new = []
    for node in range(len(nodes)):
        superseded = nodes.superseded_by[node] >= 0
        if nodes.types[node] != NodeType.CELL or superseded:
            continue
        if nodes.pending[node] not in TELLING:
            continue
        salience, kind = float(nodes.saliences[node]), int(nodes.knowledge_types[node])
        energy = (10 * math.sqrt(salience)) * ENERGY_MULTIPLIER[kind]
        new.append(
            News(
                number=state.next_diff + len(new),
                origin=node,
                sequence=int(state.sequences[node]),
                type=TELLING[nodes.pending[node]],
                knowledge_type=kind,
                vector=nodes.vectors[node].tolist(),
                salience=salience,
                energy=math.floor(1024 * energy),
                max_hops=settings.max_hops,
                ttl=settings.ttl_epochs,
                epoch_created=state.epoch + 1,
            )
        )
    ended = {
        news.number
        for news in _diffs(state)
        if nodes.pending[news.origin] in (PENDING_UPDATED, PENDING_SILENT) or nodes.superseded_by[news.origin] >= 0
    }
    return new, ended


def _supersessions(
    state: SwarmState, saliences: list[float], already: int, created: list[News], settings: Settings
) -> list[News]:
    """spec 6.6: the superseding cell tells of each cell that it superseded since the last epoch, unless it is silent"""
    nodes = state.nodes
    told = []
    sent = {news.origin: 1 for news in created}
    for loser in range(len(nodes)):
        winner = int(nodes.superseded_by[loser])
        if winner < 0 or winner == nodes.told_superseded[loser]:
            continue
        if nodes.pending[winner] == PENDING_SILENT or nodes.superseded_by[winner] >= 0:
            continue
        kind = int(nodes.knowledge_types[loser])
        energy = (10 * math.sqrt(saliences[loser])) * ENERGY_MULTIPLIER[kind]
        told.append(
            News(
                number=state.next_diff + already + len(told),
                origin=winner,
                sequence=int(state.sequences[winner]) + sent.get(winner, 0),
                type=DiffType.SUPERSEDED,
                knowledge_type=kind,
                vector=nodes.vectors[loser].tolist(),
                salience=saliences[loser],
                energy=math.floor(1024 * energy),
                max_hops=settings.max_hops,
                ttl=settings.ttl_epochs,
                epoch_created=state.epoch + 1,
            )
        )
        sent[winner] = sent.get(winner, 0) + 1
    return told


def _salience(state: SwarmState, node: int, last_access: int, as_of: int, settings: Settings) -> float:
    """spec 6.5, 0.1, 0.2"""
    given = float(state.nodes.saliences[node])
    if state.nodes.types[node] != NodeType.CELL:
        return given
    days = max(0, as_of - last_access) / MICROSECONDS_A_DAY
    power = round(math.pow(settings.decay_per_day, days) * 4096) / 4096
    return float(np.float32(given * power))


def _is_live(state: SwarmState, node: int, salience: float, settings: Settings) -> bool:
    """spec 1.2"""
    nodes = state.nodes
    return bool(
        nodes.types[node] == NodeType.CELL
        and salience >= settings.salience_threshold
        and nodes.superseded_by[node] < 0
        and not nodes.quarantined[node]
    )


def _pairs(state: SwarmState, live: list[bool], as_of: int, settings: Settings) -> dict[tuple[int, int], float]:
    """spec 1.3"""
    newest: dict[int, dict[int, int]] = defaultdict(dict)
    for agent, cell, at in _log(state):
        if at <= as_of and live[cell]:
            newest[agent][cell] = max(at, newest[agent].get(cell, at))
    pairs = {}
    for agent, times in newest.items():
        for cell in sorted(times, key=lambda c: (-times[c], c))[:256]:
            days = (as_of - times[cell]) / MICROSECONDS_A_DAY
            recency = round(math.exp(-0.1 * (days / settings.access_unit_days)) * 4096) / 4096
            if recency >= 0.05:
                pairs[agent, cell] = recency
    return pairs


def _positions(
    pairs: dict[tuple[int, int], float], saliences: list[float], images: list[list[int] | None]
) -> dict[int, list[float]]:
    """spec 1.3"""
    sums: dict[int, list[int]] = {}
    for (agent, cell), recency in pairs.items():
        weight = round(4096 * saliences[cell] * recency)
        image = images[cell]
        assert image is not None
        total = sums.setdefault(agent, [0] * len(image))
        sums[agent] = [t + weight * q for t, q in zip(total, image, strict=True)]
    positions = {}
    for agent, total in sums.items():
        norm = math.sqrt(sum(t * t for t in total))
        if norm:
            positions[agent] = [float(np.float32(t / norm)) for t in total]
    return positions


@dataclass
class Graph:
    """The epoch's graph among those that take part, as the oracles of gossip and resonance want it."""

    nodes: Nodes
    edges: Edges
    gossip: gossip.Graph


def _graph(state: SwarmState, edges: EdgeTable, images: list[list[int] | None], takes_part: list[bool]) -> Graph:
    nothing = [0] * state.dimension
    nodes = Nodes.of_images(
        np.array([image or nothing for image in images], np.int8).reshape(len(images), state.dimension),
        np.ones(len(images)),
        types=state.nodes.types,
        layers=state.nodes.layers,
        interests=state.nodes.interests,
    )
    kept = np.array([takes_part[s] and takes_part[t] for s, t in zip(edges.sources, edges.targets, strict=True)], bool)
    columns = ("sources", "targets", "types", "kinds", "weights", "bandwidths")
    among = Edges(**{name: torch.from_numpy(getattr(edges, name)[kept]) for name in columns})
    return Graph(nodes, among, gossip.Graph(nodes, among))


def _diff(news: News) -> gossip.Diff:
    return gossip.Diff(
        number=news.number,
        origin=news.origin,
        knowledge_type=news.knowledge_type,
        image=quantised(news.vector),
        salience=news.salience,
        energy=news.energy,
        max_hops=news.max_hops,
    )


def _rules(state: SwarmState, settings: Settings) -> GossipRules:
    return GossipRules(
        sigma_min=settings.sigma_min,
        cos_min=settings.cos_min,
        fanout=settings.fanout,
        loss=settings.loss,
        seed=settings.seed,
        epoch=state.epoch + 1,
    )


def _held(state: SwarmState) -> set[tuple[int, int, int]]:
    keys = state.delivered
    return set(zip(keys.agents.tolist(), keys.diffs.tolist(), keys.vias.tolist(), strict=True))


def _inboxes(
    state: SwarmState,
    graph: Graph,
    diffs: list[gossip.Diff],
    deliveries: dict[tuple[int, int], gossip.Delivery],
    settings: Settings,
) -> Inboxes:
    """spec 3.9, 3.11-3.14"""
    makers = {diff.number: int(state.nodes.makers[diff.origin]) for diff in diffs}
    by_number = {diff.number: diff for diff in diffs}
    flow = resonance.flow_weights(graph.nodes, graph.edges)
    felt = {diff.number: resonance.resonance(flow, len(state.nodes), diff.origin)[0] for diff in diffs}
    activity: dict[int, int] = defaultdict(int)
    columns = (graph.edges.sources, graph.edges.kinds, graph.edges.weights)
    for source, kind, weight in zip(*(column.tolist() for column in columns), strict=True):
        if kind == EdgeKind.ACCESS:
            activity[source] += max(1, round(4096 * weight))
    arrivals = [
        Arrival(
            diff=number,
            maker=makers[number],
            node=node,
            hop=found.hop,
            energy=found.energy,
            score=gossip.score(graph.gossip, by_number[number], node),
            resonance=int(felt[number][node]),
            parent=found.parent,
        )
        for (number, node), found in deliveries.items()
        if state.nodes.types[node] != NodeType.CELL
    ]
    return inboxes(
        arrivals,
        types=state.nodes.types.tolist(),
        owners=state.nodes.makers.tolist(),
        activity=activity,
        held=_held(state),
        limits=Limits(inbox=settings.inbox_limit, beacon=settings.beacon_limit, audience=settings.audience_limit),
    )
