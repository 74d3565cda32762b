"""Gossip over a given graph, without a store: spec 3 and 4 alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch

from hyphae_gpu.backends.select import select
from hyphae_gpu.clock import Clock
from hyphae_gpu.config import Settings
from hyphae_gpu.gossip.resonance import flow_of, resonances
from hyphae_gpu.gossip.waves import propagate as waves
from hyphae_gpu.progress import Progress, Silent
from hyphae_gpu.swarm import Adjacency, Deliveries, Diffs, Edges, GossipCounts, GossipRules, Nodes
from hyphae_gpu.topology.adjacency import adjacency_of


@dataclass(frozen=True, kw_only=True)
class Propagation:
    """What reached whom, what it took, and the seconds by stage.

    resonances int64, one a delivery, where they were asked for (spec 3.12).
    """

    deliveries: Deliveries
    resonances: torch.Tensor | None
    counts: GossipCounts
    seconds: dict[str, float]


def propagate(
    nodes: Nodes,
    edges: Edges,
    diffs: Diffs,
    settings: Settings | None = None,
    *,
    resonance: bool = False,
    progress: Progress | None = None,
) -> Propagation:
    """Propagate diffs over a given graph: spec 3 and 4, stateless, no store, no sweeps, epoch 0.

    Batches of `settings.batch_size` diffs, or all at once where an edge has a bandwidth (spec 2.8). Raises DeviceError
    when the device asked for cannot be used, ValueError when an edge or a diff names a node that is none.
    """
    settings = settings or Settings()
    progress = progress or Silent()
    clock = Clock(progress)
    chosen = select(settings.device, settings.threads)
    progress.note(chosen.why)
    for name, column in (("source", edges.sources), ("target", edges.targets), ("origin", diffs.origins)):
        if len(column) and (int(column.min()) < 0 or int(column.max()) >= len(nodes)):
            raise ValueError(f"every {name} must be a node number in [0, {len(nodes)})")
    with clock.stage("build"):
        adjacency = adjacency_of(edges, len(nodes), chosen.backend)
    if resonance:
        with clock.part("resonance"):
            flow = flow_of(chosen.backend, nodes, adjacency)
    counts = GossipCounts()
    found, strengths = [], []
    progress.stage("gossip")
    for batch in batches(diffs, adjacency, settings, progress):
        with clock.part("gossip"):
            part, step = waves(chosen.backend, nodes, adjacency, batch, rules_of(settings, 0))
        counts.add(step)
        found.append(part)
        if resonance:
            with clock.part("resonance"):
                strengths.append(resonances(chosen.backend, flow, batch, part))
    return Propagation(
        deliveries=Deliveries.concat(found),
        resonances=torch.cat([torch.zeros(0, dtype=torch.int64), *strengths]) if resonance else None,
        counts=counts,
        seconds=clock.seconds,
    )


def rules_of(settings: Settings, epoch: int) -> GossipRules:
    """Return the rules that gossip goes by in an epoch."""
    return GossipRules(
        sigma_min=settings.sigma_min,
        cos_min=settings.cos_min,
        fanout=settings.fanout,
        loss=settings.loss,
        seed=settings.seed,
        epoch=epoch,
    )


def batches(diffs: Diffs, adjacency: Adjacency, settings: Settings, progress: Progress) -> Iterator[Diffs]:
    """Cut diffs into batches; all are one where bandwidths tie them together (spec 2.8)."""
    size = max(1, len(diffs) if adjacency.limited else settings.batch_size)
    for first in range(0, len(diffs), size):
        last = min(first + size, len(diffs))
        yield diffs.take(torch.arange(first, last))
        progress.advance(last, len(diffs))
