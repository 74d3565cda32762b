"""Plain reading of spec 3.11, 3.13, 3.14: from what reached whom to what lies in whose inbox, in which order."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from hyphae_gpu.vocabulary import NodeType
from tests.oracles import resonance

GOSSIP = -1


@dataclass(frozen=True)
class Arrival:
    """A delivery, with the number of its diff and of the agent that made the diff (-1: none)."""

    diff: int
    maker: int
    node: int
    hop: int
    energy: int
    score: float
    resonance: int
    parent: int


@dataclass(frozen=True)
class Entry:
    agent: int
    diff: int
    via: int
    hop: int
    energy: int
    score: float
    resonance: int
    relevance: float | None
    parent: int
    place: int


@dataclass(frozen=True)
class Limits:
    inbox: int
    beacon: int
    audience: int | None = None


@dataclass
class Inboxes:
    """The new entries by (agent, via, place), and how many were cut."""

    entries: list[Entry] = field(default_factory=list)
    cut: int = 0


def inboxes(
    arrivals: Iterable[Arrival],
    *,
    types: Sequence[int],
    owners: Sequence[int],
    activity: Mapping[int, int],
    held: set[tuple[int, int, int]],
    limits: Limits,
) -> Inboxes:
    """Sort what reached agents and beacons into inboxes; held: (agent, diff, via) that were written before."""
    by_gossip: dict[int, list[Arrival]] = defaultdict(list)
    by_beacon: list[Arrival] = []
    for arrival in arrivals:
        kind, node = types[arrival.node], arrival.node
        if kind == NodeType.AGENT and node != arrival.maker:
            by_gossip[arrival.diff].append(arrival)
        elif kind == NodeType.BEACON and owners[node] != arrival.maker:
            by_beacon.append(arrival)

    offered: dict[tuple[int, int], list[Arrival]] = defaultdict(list)
    for reached in by_gossip.values():
        people = [(a.node, a.score, a.resonance, activity.get(a.node, 0)) for a in reached]
        kept = resonance.audience(people, limits.audience)
        for a in reached:
            if a.node in kept and (a.node, a.diff, GOSSIP) not in held:
                offered[a.node, GOSSIP].append(a)
    for a in by_beacon:
        if (owners[a.node], a.diff, a.node) not in held:
            offered[owners[a.node], a.node].append(a)

    found = Inboxes()
    for agent, via in sorted(offered):
        mine = {a.diff: a for a in offered[agent, via]}
        if via == GOSSIP:
            ranked: list[tuple[int, float | None]] = list(
                resonance.inbox([(a.diff, a.score, a.resonance) for a in mine.values()], limits.inbox)
            )
        else:
            ranked = [(diff, None) for diff in sorted(mine, key=lambda diff: (-mine[diff].score, diff))]
            ranked = ranked[: limits.beacon]
        found.cut += len(mine) - len(ranked)
        for place, (diff, relevance) in enumerate(ranked):
            a = mine[diff]
            found.entries.append(
                Entry(agent, diff, via, a.hop, a.energy, a.score, a.resonance, relevance, a.parent, place)
            )
    return found
