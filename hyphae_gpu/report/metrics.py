"""Figures of a run, from its record alone: pure functions that return plain values, in a fixed order."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hyphae_gpu.report.record import Epoch, InboxSize, Record, Topology
from hyphae_gpu.vocabulary import KnowledgeType, names


@dataclass(frozen=True, kw_only=True)
class Totals:
    """Diffs sent and how many of them are in an inbox; inbox entries; agents, and how many of them have one."""

    sent: int
    arrived: int
    entries: int
    agents: int
    reached: int


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
    """Least, quartiles and greatest of whole numbers, and their mean."""

    least: int
    lower: int
    median: int
    upper: int
    greatest: int
    mean: float


def totals(record: Record) -> Totals:
    """Return what was sent and what arrived."""
    return Totals(
        sent=sum(total.diffs for total in record.types),
        arrived=sum(total.arrived for total in record.types),
        entries=sum(size.entries for size in record.sizes),
        agents=len(record.sizes),
        reached=sum(size.entries > 0 for size in record.sizes),
    )


def fullest(sizes: Sequence[InboxSize]) -> list[InboxSize]:
    """Return the inboxes' sizes, the fullest first (ties: by agent)."""
    return sorted(sizes, key=lambda size: (-size.entries, size.agent))


def hops(counted: Mapping[int, int]) -> dict[int, int]:
    """Return how many inbox entries arrived after each number of hops, from 0 to the greatest, none left out."""
    return {hop: counted.get(hop, 0) for hop in range(max(counted, default=-1) + 1)}


def met_after(epochs: Sequence[Epoch]) -> dict[int, int]:
    """Return after how many hops the cells of how many contradictions met, over all epochs, no number left out."""
    counted: Counter[int] = Counter()
    for epoch in epochs:
        counted.update({int(hop): count for hop, count in epoch.counts.get("met_after", {}).items()})
    return hops(counted)


def rounds(epochs: Sequence[Epoch]) -> dict[int, tuple[int, int]]:
    """Return each epoch's rounds of gossip and the sweeps behind them (spec 7.2)."""
    return {epoch.epoch: (epoch.counts.get("rounds", 0), epoch.counts.get("sweeps", 0)) for epoch in epochs}


def summed(epochs: Sequence[Epoch], count: str) -> int:
    """Return the sum of a count over epochs, 0 where none kept it."""
    return sum(epoch.counts.get(count, 0) for epoch in epochs)


def scopes(record: Record) -> list[Scope]:
    """Return energy and reach by knowledge type, in the vocabulary's order, unknown ones last."""
    order = [*names(KnowledgeType), *sorted(total.knowledge_type for total in record.types)]
    found = []
    for total in sorted(record.types, key=lambda total: order.index(total.knowledge_type)):
        by_epoch = (epoch.counts.get("by_type", {}).get(total.knowledge_type) for epoch in record.epochs)
        kept = [part for part in by_epoch if part]
        waves = sum(part["diffs"] for part in kept)
        found.append(
            Scope(
                knowledge_type=total.knowledge_type,
                diffs=total.diffs,
                energy=total.energy,
                agents=total.agents,
                hops=max((part["hops_max"] for part in kept), default=None),
                nodes=math.fsum(part["reach_mean"] * part["diffs"] for part in kept) / waves if waves else None,
                hop_bound=max((part["hop_bound"] for part in kept), default=None),
                node_bound=max((part["node_bound"] for part in kept), default=None),
            )
        )
    return found


def stage_seconds(epochs: Sequence[Epoch]) -> dict[str, list[float]]:
    """Return wall seconds by stage, one value an epoch; stages in the order in which epochs name them, no parts."""
    stages = dict.fromkeys(stage for epoch in epochs for stage in epoch.seconds if "." not in stage)
    return {stage: [float(epoch.seconds.get(stage, 0.0)) for epoch in epochs] for stage in stages}


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
