"""The waves of one epoch: rounds and sweeps, then the rules that what was met sets off, until none fires (spec 8.1)."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import numpy as np
import torch

from hyphae_gpu.arrays import F32, F64, I8, I32, I64, Flags
from hyphae_gpu.backends.protocol import Backend
from hyphae_gpu.clock import Clock
from hyphae_gpu.columns import as_tensor
from hyphae_gpu.config import Settings
from hyphae_gpu.digest import DeliveryDigest
from hyphae_gpu.emerged import ContradictionTable, Supersessions
from hyphae_gpu.emergence.contradictions import Meetings, Texts, Verifier
from hyphae_gpu.emergence.resolution import contradiction_diffs, judge, supersede, superseded_diffs, with_raised
from hyphae_gpu.gossip.catch import Catch
from hyphae_gpu.gossip.tally import Tally
from hyphae_gpu.gossip.waves import deliveries, origins, until_quiet
from hyphae_gpu.intake import as_diffs, enter, joined, rows_of
from hyphae_gpu.progress import Progress
from hyphae_gpu.promotions import Held, Promotions
from hyphae_gpu.propagation import batches, rules_of
from hyphae_gpu.state import AccessPairs, DiffTable, SwarmState
from hyphae_gpu.swarm import Adjacency, Deliveries, Diffs, GossipCounts, Nodes
from hyphae_gpu.wave_state import WaveState


@dataclass(frozen=True, kw_only=True)
class _Wave:
    """The diffs of a wave; the first of them go on from where they stood after the last one."""

    diffs: Diffs
    resumed: WaveState | None = None

    @classmethod
    def of(cls, further: list[tuple[Diffs, WaveState]], new: Diffs) -> _Wave:
        """Return the wave of what goes on and what is new."""
        if not further:
            return cls(diffs=new)
        diffs = Diffs.concat([*(part for part, _ in further), new])
        return cls(diffs=diffs, resumed=WaveState.concat([state for _, state in further]))

    def start(self, backend: Backend, nodes: Nodes, batch: Diffs, first: int) -> WaveState:
        """Return where a batch begins whose first diff is row `first` of the wave."""
        if self.resumed is None or first >= len(self.resumed.rounds):
            return origins(backend, nodes, batch)
        last = min(first + len(batch), len(self.resumed.rounds))
        fresh = batch.take(torch.arange(last - first, len(batch)))
        return WaveState.concat([self.resumed.take(torch.arange(first, last)), origins(backend, nodes, fresh)])

    def news(self, batch: Diffs, found: Deliveries, start: WaveState, nodes: int) -> Deliveries:
        """Return the deliveries that were none before this wave."""
        if self.resumed is None:
            return found
        before = start.energies > 0
        known = start.rows()[before] * nodes + start.nodes[before]
        keys = batch.rows_of(found.diffs) * nodes + found.nodes
        # what was reached stays so: each known one is among the keys, and both ascend
        fresh = torch.ones(len(keys), dtype=torch.bool)
        fresh[torch.searchsorted(keys, known)] = False
        return found.take(fresh)


@dataclass(kw_only=True)
class Waves:
    """An epoch's waves. Made with what they start from; `run` leaves what they did.

    state: the project, whose diffs, pairs and superseded cells change in place; nodes, images int8 [n, d], lengths
    float64 [n]: its nodes as gossip sees them; adjacency: the graph, without the cells that were superseded; members:
    the live nodes of layers 1 and 2, by layer; pairs: the access pairs that count; saliences float32 [n]: decayed; live
    bool [n]: live cells, changes in place.
    """

    state: SwarmState
    nodes: Nodes
    images: I8
    lengths: F64
    adjacency: Adjacency
    members: dict[int, I32]
    pairs: AccessPairs
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
        self.promotions = Promotions(
            state=self.state,
            nodes=self.nodes,
            images=self.images,
            lengths=self.lengths,
            members=self.members,
            pairs=self.pairs,
            live=self.live,
            confirm_by=self.settings.confirm_by,
            backend=self.backend,
        )

    def run(self) -> None:
        """Run waves until none sets anything off: the first with every diff whose origin is live."""
        sending = self.live[self.state.diffs.origins]
        wave = _Wave(diffs=as_diffs(rows_of(self.state.diffs, sending)))
        while len(wave.diffs):
            self.count += 1
            wave = self._wave(wave)

    def _wave(self, wave: _Wave) -> _Wave:
        """Run one wave of these diffs and return the next one: what goes on, and what is new."""
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
        held: list[Held] = []
        taken = GossipCounts()
        first = 0
        for batch in batches(wave.diffs, self.adjacency, settings, self.progress):
            with self.clock.part("gossip"):
                start = wave.start(self.backend, self.nodes, batch, first)
                state, counts = until_quiet(self.backend, self.nodes, self.adjacency, batch, rules, start, sweep=sweep)
                found = deliveries(batch, state)
            first += len(batch)
            taken.add(counts)
            with self.clock.part("contradictions"):
                meetings.add(batch, wave.news(batch, found, start, len(self.nodes)))
            with self.clock.part("promotions"):
                one, mask = self.promotions.hold(batch, state, found)
                held += [one] if one else []
            self._settle(batch, found, ~mask)
        self.tally.ran(taken)
        with self.clock.part("contradictions"):
            table = self._judged(meetings)
        return _Wave.of(self._promoted(held), as_diffs(table))

    def _settle(self, diffs: Diffs, found: Deliveries, over: torch.Tensor) -> None:
        """Add the diffs that do not go on in this epoch, bool [b], to what it brought."""
        if not bool(over.all()):
            found = found.take(over[diffs.rows_of(found.diffs)])
            diffs = diffs.take(over)
        with self.clock.part("inboxes"):
            self.tally.add(diffs, found)
            self.digest.add(found)
            self.catch.add(diffs, found, self.promotions.stems)

    def _promoted(self, held: list[Held]) -> list[tuple[Diffs, WaveState]]:
        """Let promoted diffs go on from their entries (spec 5.2); settle the others."""
        ended = np.concatenate([np.zeros(0, np.int64), *self.ended])
        further = []
        for one in held:
            with self.clock.part("promotions"):
                state, going_on = self.promotions.fire(one, ended)
            self._settle(one.diffs, one.found, ~going_on)
            which = torch.nonzero(going_on).flatten()
            further.append((one.diffs.take(which), state.take(which)))
        return further

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
        enter(self.state, diffs)
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
