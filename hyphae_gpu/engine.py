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
from hyphae_gpu.config import Settings
from hyphae_gpu.digest import DeliveryDigest, state_hash
from hyphae_gpu.emergence.decay import decayed_saliences, live_cells
from hyphae_gpu.emergence.drift import counting_pairs, drift
from hyphae_gpu.gossip.inboxes import Candidates, Inboxes, candidates, ordered, without_delivered
from hyphae_gpu.gossip.tally import Tally
from hyphae_gpu.gossip.waves import propagate as waves
from hyphae_gpu.intake import as_diffs, rows_of, take_in
from hyphae_gpu.progress import Progress, Silent
from hyphae_gpu.state import Checkpoint, DiffTable, InboxKeys, InboxTable, SwarmState
from hyphae_gpu.swarm import Adjacency, Deliveries, Diffs, Edges, GossipCounts, GossipRules, Nodes, as_tensor
from hyphae_gpu.topology.adjacency import adjacency_of
from hyphae_gpu.topology.changes import edge_changes
from hyphae_gpu.topology.hnsw import HnswIndex
from hyphae_gpu.topology.refresh import Topology, TopologyRules, refresh
from hyphae_gpu.vectors import lengths, quantise
from hyphae_gpu.vocabulary import ENERGY_UNITS


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
        """Time a block under this name."""
        self._progress.stage(self._prefix + name)
        start = time.perf_counter()
        yield
        self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - start


@dataclass(frozen=True, kw_only=True)
class Propagation:
    """What reached whom, what it took, and the seconds by stage."""

    deliveries: Deliveries
    counts: GossipCounts
    seconds: dict[str, float]


def propagate(
    nodes: Nodes, edges: Edges, diffs: Diffs, settings: Settings | None = None, *, progress: Progress | None = None
) -> Propagation:
    """Propagate diffs over a given graph: spec 3 and 4, stateless, no store, no sweeps, epoch 0.

    Raises DeviceError when the device asked for cannot be used, ValueError when an edge or a diff names a node that
    is none. Batches of `settings.batch_size` diffs, or all at once where an edge has a bandwidth (spec 2.8).
    """
    settings = settings or Settings()
    progress = progress or Silent()
    clock = Clock(progress)
    chosen = select(settings.device, settings.threads)
    progress.note(chosen.why)
    for name, column in (
        ("edges.sources", edges.sources),
        ("edges.targets", edges.targets),
        ("diffs.origins", diffs.origins),
    ):
        if len(column) and (int(column.min()) < 0 or int(column.max()) >= len(nodes)):
            raise ValueError(f"{name} must be node numbers in [0, {len(nodes)})")
    with clock.stage("build"):
        adjacency = adjacency_of(edges, len(nodes), chosen.backend)
    counts = GossipCounts()
    found: list[Deliveries] = []
    with clock.stage("gossip"):
        for _, part, step in _batches(chosen.backend, nodes, adjacency, diffs, _rules(settings, 0), settings, progress):
            found.append(part)
            counts.add(step)
    return Propagation(deliveries=_concatenated(found), counts=counts, seconds=clock.seconds)


def _rules(settings: Settings, epoch: int) -> GossipRules:
    return GossipRules(
        sigma_min=settings.sigma_min,
        cos_min=settings.cos_min,
        fanout=settings.fanout,
        loss=settings.loss,
        seed=settings.seed,
        epoch=epoch,
    )


def _batches(
    backend: Backend,
    nodes: Nodes,
    adjacency: Adjacency,
    diffs: Diffs,
    rules: GossipRules,
    settings: Settings,
    progress: Progress,
) -> Iterator[tuple[Diffs, Deliveries, GossipCounts]]:
    """Propagate the diffs batch by batch; all at once where bandwidths tie them together (spec 2.8)."""
    size = len(diffs) if adjacency.limited else settings.batch_size
    for first in range(0, len(diffs), max(1, size)):
        rows = torch.arange(first, min(first + size, len(diffs)))
        batch = diffs.take(rows)
        yield batch, *waves(backend, nodes, adjacency, batch, rules)
        progress.advance(first + len(rows), len(diffs))


def _concatenated(parts: list[Deliveries]) -> Deliveries:
    if len(parts) == 1:
        return parts[0]
    kinds = (torch.int64, torch.int32, torch.int32, torch.int32, torch.float64, torch.int32)
    empty = [torch.zeros(0, dtype=kind) for kind in kinds]
    names = [spec.name for spec in fields(Deliveries)]
    return Deliveries(
        **{
            name: torch.cat([none, *(getattr(part, name) for part in parts)])
            for name, none in zip(names, empty, strict=True)
        }
    )


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
        with clock.stage("gossip"):
            sending = live[state.diffs.origins]
            tally, offered, digest = self._gossip(topology, rows_of(state.diffs, sending), number)
        with clock.stage("inboxes"):
            held = state.delivered
            fresh = without_delivered(offered, as_tensor(held.agents), as_tensor(held.diffs), as_tensor(held.vias))
            inboxes = ordered(fresh, inbox_limit=settings.inbox_limit, beacon_limit=settings.beacon_limit)
            inbox = _inbox_table(inboxes)
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
                "cut": inboxes.cut,
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

    def _gossip(self, topology: Topology, table: DiffTable, number: int) -> tuple[Tally, Candidates, DeliveryDigest]:
        """Propagate an epoch's diffs; keep what can become inbox entries, count and digest the rest (spec 8.3)."""
        state = self.state
        nodes = Nodes.of_images(
            self._images,
            self._lengths,
            types=state.nodes.types,
            layers=state.nodes.layers,
            interests=state.nodes.interests,
        )
        diffs = as_diffs(table)
        types, owners = as_tensor(state.nodes.types), as_tensor(state.nodes.makers)
        makers = as_tensor(state.nodes.makers[table.origins])
        tally, digest = Tally(), DeliveryDigest()
        offered: list[Candidates] = []
        rules = _rules(self.settings, number)
        batches = _batches(self.backend, nodes, topology.adjacency, diffs, rules, self.settings, self.progress)
        for batch, found, counts in batches:
            tally.add(batch, found, counts)
            digest.add(found)
            offered.append(candidates(found, types, owners, diffs.numbers, makers))
        return tally, Candidates.concat(offered), digest

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
            *(getattr(inbox, spec.name) for spec in fields(InboxTable) if spec.name not in ("hops", "parents")),
        ]

    def _go_on(self, done: Checkpoint, topology: Topology) -> None:
        """Stand where the store will stand once it has written the checkpoint."""
        state = self.state
        state.epoch = done.epoch
        state.topology = topology.edges
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


def _inbox_table(inboxes: Inboxes) -> InboxTable:
    entries = inboxes.entries
    scores = entries.scores.numpy()
    return InboxTable(
        agents=entries.agents.numpy(),
        diffs=entries.diffs.numpy(),
        vias=entries.vias.numpy(),
        hops=entries.hops.numpy(),
        energies=(entries.energies.numpy() / np.float32(ENERGY_UNITS)).astype(np.float32),
        scores=scores,
        resonances=np.zeros(len(scores), np.int64),
        relevances=scores,
        parents=entries.parents.numpy(),
        places=inboxes.places.numpy(),
    )
