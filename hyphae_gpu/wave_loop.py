"""The waves of one epoch: rounds and sweeps, then the rules that what was met sets off, until none fires (spec 8.1)."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import numpy as np
import torch

from hyphae_gpu.backends.protocol import Backend
from hyphae_gpu.clock import Clock
from hyphae_gpu.columns import as_tensor
from hyphae_gpu.config import Settings
from hyphae_gpu.digest import DeliveryDigest
from hyphae_gpu.emergence.contradictions import Meetings, Texts, Verifier
from hyphae_gpu.emergence.resolution import contradiction_diffs, judge, supersede, superseded_diffs, with_raised
from hyphae_gpu.gossip.catch import Catch
from hyphae_gpu.gossip.tally import Tally
from hyphae_gpu.gossip.waves import propagate
from hyphae_gpu.intake import as_diffs, joined, rows_of
from hyphae_gpu.progress import Progress
from hyphae_gpu.propagation import batches, rules_of
from hyphae_gpu.state import F32, F64, I8, I64, ContradictionTable, DiffTable, Flags, Supersessions, SwarmState
from hyphae_gpu.swarm import Adjacency, Nodes


@dataclass(kw_only=True)
class Waves:
    """An epoch's waves. Made with what they start from; `run` leaves what they did.

    state: the project, whose diffs, pairs and superseded cells change in place; nodes, images int8 [n, d], lengths
    float64 [n]: its nodes as gossip sees them; adjacency: the graph, without the cells that were superseded; saliences
    float32 [n]: decayed; live bool [n]: live cells, changes in place.
    """

    state: SwarmState
    nodes: Nodes
    images: I8
    lengths: F64
    adjacency: Adjacency
    saliences: F32
    live: Flags
    as_of: int
    settings: Settings
    backend: Backend
    clock: Clock
    progress: Progress
    verifier: Verifier | None = None
    texts: Texts | None = None

    count: int = 0
    tally: Tally = field(default_factory=Tally)
    digest: DeliveryDigest = field(default_factory=DeliveryDigest)
    made: list[DiffTable] = field(default_factory=list)
    ended: list[I64] = field(default_factory=list)
    raised: list[ContradictionTable] = field(default_factory=list)
    met_after: Counter[int] = field(default_factory=Counter)
    superseded: list[Supersessions] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.catch = Catch(self.nodes.types)
        self._spoken = np.zeros(len(self.nodes), np.bool_)

    def run(self) -> None:
        """Run waves until none sets anything off: the first with every diff whose origin is live."""
        sending = self.live[self.state.diffs.origins]
        wave = rows_of(self.state.diffs, sending)
        while len(wave):
            self.count += 1
            wave = self._wave(wave)

    def _wave(self, table: DiffTable) -> DiffTable:
        """Run one wave of these diffs and return the next wave's."""
        settings, number = self.settings, self.state.epoch + 1
        meetings = Meetings(
            self.state.nodes,
            self.images,
            self.lengths,
            self.live,
            theta_sim=settings.theta_sim,
            backend=self.backend,
            verifier=self.verifier,
            texts=self.texts,
        )
        rules, sweep = rules_of(settings, number), number % settings.anti_entropy_every == 0
        for batch in batches(as_diffs(table), self.adjacency, settings, self.progress):
            with self.clock.part("gossip"):
                found, counts = propagate(self.backend, self.nodes, self.adjacency, batch, rules, sweep=sweep)
            self.tally.add(batch, found, counts)
            self.digest.add(found)
            self.catch.add(batch, found)
            with self.clock.part("contradictions"):
                meetings.add(batch, found)
        with self.clock.part("contradictions"):
            return self._judged(meetings)

    def _judged(self, meetings: Meetings) -> DiffTable:
        """Judge what the wave brought together; return the diffs that tell of it (spec 6.2, 6.3, 6.6)."""
        state, settings = self.state, self.settings
        verdict = judge(
            meetings.opposing(state.contradictions),
            state.nodes,
            self.saliences,
            self.live,
            state.accesses,
            policy=settings.policy,
            as_of=self.as_of,
        )
        state.contradictions = with_raised(state.contradictions, verdict.raised)
        self.raised.append(verdict.raised)
        self.met_after.update(verdict.hops.tolist())
        speaking = verdict.speaking[~self._spoken[verdict.speaking]]
        self._spoken[speaking] = True
        life = {"ttl_epochs": settings.ttl_epochs, "max_hops": settings.max_hops}
        told = self._enter(contradiction_diffs(state, speaking, self.saliences, **life))
        self._lose(verdict.superseded)
        return joined(told, self._enter(superseded_diffs(state, verdict.superseded, self.saliences, **life)))

    def _lose(self, gone: Supersessions) -> None:
        """Take superseded cells and their edges out of gossip; their own diffs end (spec 6.6)."""
        if not len(gone):
            return
        self.ended.append(supersede(self.state, gone))
        self.superseded.append(gone)
        self.live[gone.losers] = False
        taking_part = np.ones(len(self.nodes), np.bool_)
        taking_part[gone.losers] = False
        self.adjacency = self.adjacency.among(as_tensor(taking_part))

    def _enter(self, diffs: DiffTable) -> DiffTable:
        """Let new diffs live from now on."""
        self.state.diffs = joined(self.state.diffs, diffs)
        self.state.next_diff += len(diffs)
        np.add.at(self.state.sequences, diffs.origins, 1)
        self.made.append(diffs)
        return diffs


def open_shares(waves: Waves, agents: torch.Tensor, at_most: int) -> dict[int, float]:
    """Return for each agent the share of the epoch's diffs that its gate lets in, by node number (spec 3.3).

    agents int32; of many diffs `at_most` are looked at, evenly spaced.
    """
    diffs = as_diffs(waves.state.diffs)
    step = max(1, -(-len(diffs) // at_most))
    some = diffs.take(torch.arange(0, len(diffs), step))
    if not len(some):
        return {}
    counts = waves.backend.open_counts(waves.nodes, some, rules_of(waves.settings, waves.state.epoch + 1), agents)
    return dict(zip(agents.tolist(), (counts / len(some)).tolist(), strict=True))
