"""The one place that calls the stages in order: a stateless propagation, and the epochs of a project (spec 8.1)."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Protocol

import numpy as np
import torch

from hyphae_gpu.backends.protocol import Backend
from hyphae_gpu.backends.select import select
from hyphae_gpu.columns import as_tensor
from hyphae_gpu.config import Settings
from hyphae_gpu.digest import DeliveryDigest, state_hash
from hyphae_gpu.emergence.decay import decayed_saliences, live_cells
from hyphae_gpu.emergence.drift import counting_pairs, drift
from hyphae_gpu.gossip.catch import Catch, Filled, Held, Limits
from hyphae_gpu.gossip.resonance import flow_of, resonances
from hyphae_gpu.gossip.tally import Tally
from hyphae_gpu.gossip.waves import propagate as waves
from hyphae_gpu.intake import as_diffs, rows_of, take_in
from hyphae_gpu.progress import Progress, Silent
from hyphae_gpu.state import Checkpoint, DiffTable, InboxKeys, InboxTable, SwarmState
from hyphae_gpu.swarm import Adjacency, Deliveries, Diffs, Edges, GossipCounts, GossipRules, Nodes
from hyphae_gpu.topology.adjacency import adjacency_of
from hyphae_gpu.topology.changes import edge_changes
from hyphae_gpu.topology.hnsw import HnswIndex
from hyphae_gpu.topology.refresh import Topology, TopologyRules, refresh
from hyphae_gpu.vectors import lengths, quantise
from hyphae_gpu.vocabulary import ENERGY_UNITS, NodeType

#: Diffs, at most, of which the open share of each agent is reported.
OPEN_SHARE_DIFFS = 1024
#: What `state_hash` covers of an inbox: no hop, parent or way (interfaces).
_DECIDED_OF_INBOX = ("agents", "diffs", "vias", "places", "energies", "scores", "resonances", "relevances")


class Project(Protocol):
    """What the engine needs of a store: one project, held by this engine alone."""

    def load(self) -> SwarmState:
        """Return the project as the last whole epoch left it, with the rows that came since."""

    def checkpoint(self, done: Checkpoint) -> None:
        """Write an epoch, whole or not at all."""


class Clock:
    """Wall-clock seconds by stage, told to whoever watches."""

    def __init__(self, progress: Progress, prefix: str = "") -> None:
        self.seconds: dict[str, float] = {}
        self._progress = progress
        self._prefix = prefix

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Time a block under this name, and say that it begins."""
        self._progress.stage(self._prefix + name)
        with self.part(name):
            yield

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        """Time a block under this name, adding to what it has."""
        start = time.perf_counter()
        yield
        self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - start


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
    for batch in _batches(diffs, adjacency, settings, progress):
        with clock.part("gossip"):
            part, step = waves(chosen.backend, nodes, adjacency, batch, _rules(settings, 0))
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


def _rules(settings: Settings, epoch: int) -> GossipRules:
    return GossipRules(
        sigma_min=settings.sigma_min,
        cos_min=settings.cos_min,
        fanout=settings.fanout,
        loss=settings.loss,
        seed=settings.seed,
        epoch=epoch,
    )


def _batches(diffs: Diffs, adjacency: Adjacency, settings: Settings, progress: Progress) -> Iterator[Diffs]:
    """Cut diffs into batches; all are one where bandwidths tie them together (spec 2.8)."""
    size = max(1, len(diffs) if adjacency.limited else settings.batch_size)
    for first in range(0, len(diffs), size):
        last = min(first + size, len(diffs))
        yield diffs.take(torch.arange(first, last))
        progress.advance(last, len(diffs))


@dataclass(frozen=True, kw_only=True)
class EpochReport:
    """One epoch for whoever asked for it: counts and facts as in the store's `epochs`, seconds by stage."""

    epoch: int
    as_of: int
    counts: dict[str, Any]
    seconds: dict[str, float]
    state_hash: str


def run_epochs(
    store: Project,
    settings: Settings,
    *,
    epochs: int = 1,
    as_of: int | None = None,
    progress: Progress | None = None,
) -> list[EpochReport]:
    """Run epochs of a project, with a checkpoint after each; called again, it goes on from the last (spec 8).

    `as_of` is the epochs' time in microseconds since 1970 UTC; left out, each epoch reads the clock once.
    Raises DeviceError, DatabaseError, BusyError.
    """
    progress = progress or Silent()
    chosen = select(settings.device, settings.threads)
    progress.note(chosen.why)
    progress.stage("loading the project")
    engine = Engine(store.load(), chosen.backend, settings, progress)
    reports = []
    for _ in range(epochs):
        done = engine.epoch(time.time_ns() // 1000 if as_of is None else as_of)
        progress.stage(f"epoch {done.epoch}: checkpoint")
        start = time.perf_counter()
        store.checkpoint(done)
        seconds = done.seconds | {"checkpoint": time.perf_counter() - start}
        reports.append(
            EpochReport(
                epoch=done.epoch, as_of=done.as_of, counts=done.counts, seconds=seconds, state_hash=done.state_hash
            )
        )
    return reports


@dataclass
class Engine:
    """A project between epochs, in memory: the same as what the store holds (spec 8.3)."""

    state: SwarmState
    backend: Backend
    settings: Settings
    progress: Progress = field(default_factory=Silent)

    def __post_init__(self) -> None:
        self._index = HnswIndex.from_arrays(self.state.index, self.state.dimension, threads=self.settings.threads)
        nodes = self.state.nodes
        self._images = np.zeros(nodes.vectors.shape, np.int8)
        self._images[nodes.placed] = quantise(nodes.vectors[nodes.placed])
        self._lengths = np.ones(len(nodes))
        self._lengths[nodes.placed] = lengths(self._images[nodes.placed])

    def epoch(self, as_of: int) -> Checkpoint:
        """Compute the next epoch at this time and return what it changed (spec 8.1)."""
        state, settings = self.state, self.settings
        nodes, number = state.nodes, state.epoch + 1
        started_at = time.time_ns() // 1000
        clock = Clock(self.progress, f"epoch {number}: ")
        accessed_before = nodes.last_access.copy()

        with clock.stage("taking in"):
            new_diffs, ended = take_in(state, as_of, ttl_epochs=settings.ttl_epochs, max_hops=settings.max_hops)
            saliences = decayed_saliences(nodes, as_of, decay_per_day=settings.decay_per_day)
            live = live_cells(nodes, saliences, threshold=settings.salience_threshold)
        with clock.stage("drift"):
            pairs = counting_pairs(state.accesses, as_of, live, access_unit_days=settings.access_unit_days)
            moved, positions = drift(nodes, self._images, saliences, pairs, self.backend)
            self._move(moved, positions)
        with clock.stage("topology"):
            topology = refresh(
                nodes,
                self._images,
                self._lengths,
                live,
                index=self._index,
                declared=state.declared,
                pairs=pairs,
                rules=TopologyRules(beacon_fanin=settings.beacon_fanin, beacon_radius=settings.beacon_radius),
                backend=self.backend,
            )
            self._index = topology.index
        sending = live[state.diffs.origins]
        tally, digest, filled = self._gossip(topology, rows_of(state.diffs, sending), number, clock)
        inbox = _inbox_table(filled)
        self._restore(inbox, as_of)

        accessed = np.flatnonzero(nodes.last_access != accessed_before).astype(np.int32)
        removed, written = edge_changes(state.topology, topology.edges)
        weights = topology.adjacency.weights
        done = Checkpoint(
            epoch=number,
            started_at=started_at,
            as_of=as_of,
            moved=moved,
            moved_vectors=positions,
            accessed=accessed,
            accessed_at=nodes.last_access[accessed],
            new_diffs=_aged(new_diffs),
            ended_diffs=ended,
            removed_edges=removed,
            written_edges=written,
            inbox=inbox,
            index=topology.index.arrays() if topology.index_changed else None,
            seconds=clock.seconds | {f"topology.{part}": spent for part, spent in topology.seconds.items()},
            counts={
                **asdict(tally.counts),
                "live_diffs": len(state.diffs),
                "silent_diffs": int((~sending).sum()),
                "inbox": len(inbox),
                "cut": filled.inboxes.cut,
                "moved": len(moved),
                "access_pairs": len(pairs),
                "topology": topology.facts,
                **tally.summary(
                    float(weights.double().mean()) if len(weights) else 0.0,
                    float(weights.max()) if len(weights) else 0.0,
                ),
            },
            state_hash=state_hash(self._decided(saliences, live, topology, digest, inbox)),
            settings=settings.rules(),
        )
        self._go_on(done, topology)
        return done

    def _move(self, moved: np.ndarray[Any, Any], positions: np.ndarray[Any, Any]) -> None:
        self.state.nodes.vectors[moved] = positions
        self.state.nodes.placed[moved] = True
        self._images[moved] = quantise(positions)
        self._lengths[moved] = lengths(self._images[moved])

    def _gossip(
        self, topology: Topology, table: DiffTable, number: int, clock: Clock
    ) -> tuple[Tally, DeliveryDigest, Filled]:
        """Propagate an epoch's diffs; keep what comes to agents, count and digest the rest (spec 8.3)."""
        columns, settings = self.state.nodes, self.settings
        nodes = Nodes.of_images(
            self._images, self._lengths, types=columns.types, layers=columns.layers, interests=columns.interests
        )
        diffs, makers = as_diffs(table), as_tensor(columns.makers[table.origins])
        delivered = self.state.delivered
        held = Held(
            agents=as_tensor(delivered.agents), diffs=as_tensor(delivered.diffs), vias=as_tensor(delivered.vias)
        )
        limits = Limits(audience=settings.audience_limit, inbox=settings.inbox_limit, beacon=settings.beacon_limit)
        with clock.stage("flow"):
            catch = Catch(self.backend, nodes, topology.adjacency, as_tensor(columns.makers), held, limits)
        tally, digest = Tally(), DeliveryDigest()
        self.progress.stage(f"epoch {number}: gossip")
        for batch in _batches(diffs, topology.adjacency, settings, self.progress):
            with clock.part("gossip"):
                sweep = number % settings.anti_entropy_every == 0
                rules = _rules(settings, number)
                found, counts = waves(self.backend, nodes, topology.adjacency, batch, rules, sweep=sweep)
            tally.add(batch, found, counts)
            digest.add(found)
            with clock.part("resonance"):
                catch.add(batch, found, makers[diffs.rows_of(batch.numbers)])
        tally.open_shares = self._open_shares(nodes, diffs, _rules(settings, number))
        with clock.stage("inboxes"):
            return tally, digest, catch.fill(diffs)

    def _open_shares(self, nodes: Nodes, diffs: Diffs, rules: GossipRules) -> dict[int, float]:
        """Return for each placed agent the share of diffs that its gate lets in, by node number (spec 3.3).

        Of many diffs a fixed number is looked at, evenly spaced.
        """
        placed = (self.state.nodes.types == NodeType.AGENT) & self.state.nodes.placed
        agents = torch.from_numpy(np.flatnonzero(placed).astype(np.int32))
        step = max(1, -(-len(diffs) // OPEN_SHARE_DIFFS))
        some = diffs.take(torch.arange(0, len(diffs), step))
        if not len(some):
            return {}
        counts = self.backend.open_counts(nodes, some, rules, agents)
        return dict(zip(agents.tolist(), (counts / len(some)).tolist(), strict=True))

    def _restore(self, inbox: InboxTable, as_of: int) -> None:
        """Note that a cell whose own diff came into an inbox was accessed now (spec 6.5)."""
        diffs, nodes = self.state.diffs, self.state.nodes
        delivered = diffs.origins[np.searchsorted(diffs.numbers, np.unique(inbox.diffs))]
        nodes.last_access[delivered] = np.maximum(nodes.last_access[delivered], as_of)

    def _decided(
        self,
        saliences: np.ndarray[Any, Any],
        live: np.ndarray[Any, Any],
        topology: Topology,
        digest: DeliveryDigest,
        inbox: InboxTable,
    ) -> list[np.ndarray[Any, Any]]:
        """Return what `state_hash` covers: all that the epoch decided, without wall-clock, hop or parent."""
        nodes, adjacency = self.state.nodes, topology.adjacency
        return [
            nodes.types,
            nodes.layers,
            self._images,
            saliences,
            live,
            *(getattr(adjacency, spec.name).numpy() for spec in fields(Adjacency)),
            digest.words(),
            *(getattr(inbox, name) for name in _DECIDED_OF_INBOX),
        ]

    def _go_on(self, done: Checkpoint, topology: Topology) -> None:
        """Stand where the store will stand once it has written the checkpoint."""
        state = self.state
        state.epoch = done.epoch
        state.topology = topology.edges
        state.index = done.index or state.index
        state.diffs.ttl -= 1
        state.diffs = rows_of(state.diffs, state.diffs.ttl > 0)
        agents, diffs, vias = (
            np.concatenate([getattr(state.delivered, name), getattr(done.inbox, name)])
            for name in ("agents", "diffs", "vias")
        )
        alive = np.isin(diffs, state.diffs.numbers)
        state.delivered = InboxKeys(agents=agents[alive], diffs=diffs[alive], vias=vias[alive])


def _aged(diffs: DiffTable) -> DiffTable:
    """Return new diffs as they stand after the epoch that made them: one epoch older."""
    aged = rows_of(diffs, np.arange(len(diffs)))
    aged.ttl = aged.ttl - 1
    return aged


def _inbox_table(filled: Filled) -> InboxTable:
    entries = filled.inboxes.entries
    return InboxTable(
        agents=entries.agents.numpy(),
        diffs=entries.diffs.numpy(),
        vias=entries.vias.numpy(),
        hops=entries.hops.numpy(),
        energies=(entries.energies.numpy() / ENERGY_UNITS).astype(np.float32),
        scores=entries.scores.numpy(),
        resonances=entries.resonances.numpy(),
        relevances=filled.inboxes.relevances.numpy(),
        parents=entries.parents.numpy(),
        places=filled.inboxes.places.numpy(),
        throughs=filled.throughs.numpy(),
        path_offsets=filled.path_offsets.numpy(),
        paths=filled.path_nodes.numpy(),
    )
