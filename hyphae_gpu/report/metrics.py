"""Figures of a run, from its record alone: pure functions that return plain values, in a fixed order."""

from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hyphae_gpu.report.record import Epoch, Received, Record, Sent, Topology
from hyphae_gpu.vocabulary import KnowledgeType, names


@dataclass(frozen=True, kw_only=True)
class InboxSize:
    """How many entries an agent has, by gossip and through its beacons."""

    agent: str
    gossip: int
    beacons: int

    @property
    def entries(self) -> int:
        """All of them."""
        return self.gossip + self.beacons


@dataclass(frozen=True, kw_only=True)
class Reach:
    """How far one diff came: distinct agents whose inbox it is in, and the most hops to one of them."""

    sent: Sent
    agents: int
    hops: int


@dataclass(frozen=True, kw_only=True)
class Scope:
    """One knowledge type's energy and what became of it (spec 4.3), over all epochs.

    energy, hop_bound (E0 * greatest weight, which no diff can pass) and node_bound (E0 * mean weight, the paper's
    Proposition 2 read as a count of nodes, which waves do pass) are those of the strongest diff; nodes: mean of nodes
    reached in an epoch; agents: mean of distinct agents whose inbox a diff is in; hops: most to any node. None where
    no epoch kept it.
    """

    knowledge_type: str
    diffs: int
    energy: float
    agents: float
    hops: int | None
    nodes: float | None
    hop_bound: float | None
    node_bound: float | None


@dataclass(frozen=True, kw_only=True)
class Spread:
    """Least, quartiles and greatest of a list of whole numbers, and their mean."""

    least: int
    lower: int
    median: int
    upper: int
    greatest: int
    mean: float


def inbox_sizes(record: Record) -> list[InboxSize]:
    """Return every agent's inbox size, the fullest first (ties: by name); agents without entries are there too."""
    gossip: Counter[str] = Counter()
    beacons: Counter[str] = Counter()
    for entry in record.received:
        (gossip if entry.via is None else beacons)[entry.agent] += 1
    agents = {*record.agents, *gossip, *beacons}
    sizes = [InboxSize(agent=agent, gossip=gossip[agent], beacons=beacons[agent]) for agent in agents]
    return sorted(sizes, key=lambda size: (-size.entries, size.agent))


def reaches(record: Record) -> list[Reach]:
    """Return how far each diff came, the farthest first: by agents, then hops (ties: lowest number)."""
    by_diff: defaultdict[int, list[Received]] = defaultdict(list)
    for entry in record.received:
        by_diff[entry.diff].append(entry)
    found = [
        Reach(
            sent=sent,
            agents=len({entry.agent for entry in by_diff[sent.number]}),
            hops=max((entry.hop for entry in by_diff[sent.number]), default=0),
        )
        for sent in record.sent
    ]
    return sorted(found, key=lambda reach: (-reach.agents, -reach.hops, reach.sent.number))


def hops(received: Sequence[Received]) -> dict[int, int]:
    """Return how many inbox entries arrived after each number of hops, from 0 to the greatest, none left out."""
    counted = Counter(entry.hop for entry in received)
    return {hop: counted[hop] for hop in range(max(counted, default=-1) + 1)}


def scopes(record: Record) -> list[Scope]:
    """Return energy and reach by knowledge type, in the vocabulary's order; types without diffs are left out."""
    by_type: defaultdict[str, list[Reach]] = defaultdict(list)
    for reach in reaches(record):
        by_type[reach.sent.knowledge_type].append(reach)
    found = []
    for name in [*names(KnowledgeType), *sorted(set(by_type) - set(names(KnowledgeType)))]:
        group = by_type.get(name)
        if not group:
            continue
        kept = [epoch.counts["by_type"][name] for epoch in record.epochs if name in epoch.counts.get("by_type", {})]
        waves = sum(part["diffs"] for part in kept)
        found.append(
            Scope(
                knowledge_type=name,
                diffs=len(group),
                energy=max(reach.sent.energy for reach in group),
                agents=_mean([reach.agents for reach in group]),
                hops=max((part["hops_max"] for part in kept), default=None),
                nodes=sum(part["reach_mean"] * part["diffs"] for part in kept) / waves if waves else None,
                hop_bound=max((part["hop_bound"] for part in kept), default=None),
                node_bound=max((part["node_bound"] for part in kept), default=None),
            )
        )
    return found


def stage_seconds(epochs: Sequence[Epoch]) -> dict[str, list[float]]:
    """Return wall seconds by stage, one value an epoch, stages in the order in which epochs name them, no parts."""
    stages = dict.fromkeys(stage for epoch in epochs for stage in epoch.seconds if "." not in stage)
    return {stage: [float(epoch.seconds.get(stage, 0.0)) for epoch in epochs] for stage in stages}


def rounds(epochs: Sequence[Epoch]) -> list[int]:
    """Return each epoch's gossip rounds, 0 where the epoch does not say."""
    return [int(epoch.counts.get("rounds", 0)) for epoch in epochs]


def spread(counted: Mapping[int, int]) -> Spread | None:
    """Return the quartiles (nearest rank) and mean of whole numbers, given how often each occurs; None for none."""
    total = sum(counted.values())
    if not total:
        return None
    ordered = sorted(counted)
    upto = list(itertools.accumulate(counted[value] for value in ordered))

    def rank(share: float) -> int:
        wanted = max(1, math.ceil(share * total))
        return next(value for value, reached in zip(ordered, upto, strict=True) if reached >= wanted)

    return Spread(
        least=rank(0.0),
        lower=rank(0.25),
        median=rank(0.5),
        upper=rank(0.75),
        greatest=rank(1.0),
        mean=math.fsum(value * times for value, times in counted.items()) / total,
    )


def degree_counts(topology: Topology, bins: int = 24) -> list[tuple[int, int, int]]:
    """Return (from, to, nodes) of outgoing degrees: at most `bins` bins of one whole width, both ends counted in."""
    if not topology.degrees:
        return []
    least, greatest = min(topology.degrees), max(topology.degrees)
    width = max(1, math.ceil((greatest - least + 1) / bins))
    counted: Counter[int] = Counter()
    for degree, nodes in topology.degrees.items():
        counted[(degree - least) // width] += nodes
    return [
        (least + place * width, least + (place + 1) * width - 1, counted[place]) for place in range(max(counted) + 1)
    ]


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)
