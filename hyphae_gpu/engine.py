"""The one place that calls the stages in order: the epochs of a project (spec 8.1)."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import torch

from hyphae_gpu.backends.protocol import Backend
from hyphae_gpu.backends.select import select
from hyphae_gpu.clock import Clock
from hyphae_gpu.columns import as_tensor
from hyphae_gpu.config import Settings
from hyphae_gpu.digest import state_hash
from hyphae_gpu.emergence.contradictions import Texts, Verifier, no_longer_opposed
from hyphae_gpu.emergence.decay import decayed_saliences, live_cells
from hyphae_gpu.emergence.drift import counting_pairs, drift
from hyphae_gpu.emergence.resolution import declared_supersessions, superseded_diffs
from hyphae_gpu.emergence.scene_tables import next_scenes
from hyphae_gpu.gossip.catch import Filled, Held, Limits
from hyphae_gpu.intake import joined, rows_of, take_in
from hyphae_gpu.plugins import load_function
from hyphae_gpu.progress import Progress, Silent
from hyphae_gpu.state import (
    PENDING_CREATED,
    SETTLED,
    AccessPairs,
    Checkpoint,
    ContradictionTable,
    DiffTable,
    InboxKeys,
    InboxTable,
    Resolved,
    Supersessions,
    SwarmState,
)
from hyphae_gpu.swarm import Adjacency, Nodes
from hyphae_gpu.topology.changes import edge_changes
from hyphae_gpu.topology.hnsw import HnswIndex
from hyphae_gpu.topology.refresh import Topology, TopologyRules, refresh
from hyphae_gpu.vectors import lengths, quantise
from hyphae_gpu.vocabulary import ENERGY_UNITS, NodeType
from hyphae_gpu.wave_loop import Waves, open_shares

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

    def texts(self, numbers: npt.NDArray[np.integer[Any]]) -> Sequence[str | None]:
        """Return the texts of nodes by number."""


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
    engine = Engine(store.load(), chosen.backend, settings, progress, store.texts)
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
    """A project between epochs, in memory: the same as what the store holds (spec 8.3).

    texts: from node numbers to their texts; a verifier reads them, and scenes are named by them.
    """

    state: SwarmState
    backend: Backend
    settings: Settings
    progress: Progress = field(default_factory=Silent)
    texts: Texts | None = None

    def __post_init__(self) -> None:
        self._index = HnswIndex.from_arrays(self.state.index, self.state.dimension, threads=self.settings.threads)
        nodes, entry = self.state.nodes, self.settings.verifier
        self._verifier: Verifier | None = load_function("verifier", entry) if entry else None
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
            changed = ~np.isin(nodes.pending, (SETTLED, PENDING_CREATED))
            gone, told = declared_supersessions(nodes)
            new_diffs, ended = take_in(state, as_of, ttl_epochs=settings.ttl_epochs, max_hops=settings.max_hops)
            saliences = decayed_saliences(nodes, as_of, decay_per_day=settings.decay_per_day)
            live = live_cells(nodes, saliences, threshold=settings.salience_threshold)
            new_diffs = joined(new_diffs, self._tell(gone, told, saliences))
            resolved = self._resolve(changed)
        with clock.stage("drift"):
            pairs = counting_pairs(state.accesses, as_of, live, access_unit_days=settings.access_unit_days)
            moved, positions = drift(nodes, self._images, saliences, pairs, self.backend)
            self._move(moved, positions)
        with clock.stage("topology"):
            topology = self._refresh(live, pairs)
        with clock.stage("scenes"):
            scenes = next_scenes(
                state,
                self._images,
                self._lengths,
                saliences,
                live,
                topology.adjacency,
                updated=changed,
                resolution=settings.resolution_ratio,
                backend=self.backend,
                texts=self.texts,
            )
        self.progress.stage(f"epoch {number}: gossip")
        silent = int((~live[state.diffs.origins]).sum())
        waves = Waves(
            state=state,
            nodes=self._nodes(),
            images=self._images,
            lengths=self._lengths,
            adjacency=topology.adjacency,
            saliences=saliences,
            live=live.copy(),
            as_of=as_of,
            settings=settings,
            backend=self.backend,
            clock=clock,
            progress=self.progress,
            verifier=self._verifier,
            texts=self.texts,
        )
        waves.run()
        with clock.stage("inboxes"):
            filled = self._fill(waves)
            inbox = _inbox_table(filled)
            self._restore(inbox, as_of)

        accessed = np.flatnonzero(nodes.last_access != accessed_before).astype(np.int32)
        removed, written = edge_changes(state.topology, topology.edges)
        ended = np.concatenate([ended, *waves.ended])
        raised = ContradictionTable.concat(waves.raised)
        superseded = Supersessions.concat([gone, *waves.superseded])
        done = Checkpoint(
            epoch=number,
            started_at=started_at,
            as_of=as_of,
            moved=moved,
            moved_vectors=positions,
            accessed=accessed,
            accessed_at=nodes.last_access[accessed],
            new_diffs=_aged([new_diffs, *waves.made], ended),
            ended_diffs=ended,
            removed_edges=removed,
            written_edges=written,
            inbox=inbox,
            index=topology.index.arrays() if topology.index_changed else None,
            contradictions=raised,
            resolved=resolved,
            superseded=superseded,
            scenes=scenes,
            seconds=clock.seconds | {f"topology.{part}": spent for part, spent in topology.seconds.items()},
            counts=self._counts(waves, topology, silent)
            | {"inbox": len(inbox), "cut": filled.inboxes.cut, "moved": len(moved), "access_pairs": len(pairs)}
            | {"contradictions": len(raised), "superseded": len(superseded), "scenes": len(state.scenes)},
            state_hash=state_hash(self._decided(saliences, waves, inbox, raised, superseded)),
            settings=settings.rules(),
        )
        self._go_on(done, topology)
        return done

    def _tell(self, gone: Supersessions, told: npt.NDArray[np.bool_], saliences: npt.NDArray[np.float32]) -> DiffTable:
        """Let the diffs live that tell what rows superseded (spec 6.6), and return them."""
        state, settings = self.state, self.settings
        spoken = Supersessions(losers=gone.losers[told], winners=gone.winners[told])
        made = superseded_diffs(state, spoken, saliences, ttl_epochs=settings.ttl_epochs, max_hops=settings.max_hops)
        state.nodes.told_superseded[gone.losers] = gone.winners
        state.diffs = joined(state.diffs, made)
        state.next_diff += len(made)
        np.add.at(state.sequences, made.origins, 1)
        return made

    def _resolve(self, changed: npt.NDArray[np.bool_]) -> Resolved:
        """Close the open contradictions that rows have settled since the last epoch."""
        known = self.state.contradictions
        resolved = no_longer_opposed(
            known,
            self.state.nodes,
            self._images,
            self._lengths,
            changed,
            theta_sim=self.settings.theta_sim,
            backend=self.backend,
            verifier=self._verifier,
            texts=self.texts,
        )
        over = set(zip(resolved.a.tolist(), resolved.b.tolist(), strict=True))
        pairs = zip(known.a.tolist(), known.b.tolist(), strict=True)
        known.open &= np.array([pair not in over for pair in pairs], np.bool_)
        return resolved

    def _refresh(self, live: npt.NDArray[np.bool_], pairs: AccessPairs) -> Topology:
        settings = self.settings
        topology = refresh(
            self.state.nodes,
            self._images,
            self._lengths,
            live,
            index=self._index,
            declared=self.state.declared,
            pairs=pairs,
            rules=TopologyRules(beacon_fanin=settings.beacon_fanin, beacon_radius=settings.beacon_radius),
            backend=self.backend,
        )
        self._index = topology.index
        return topology

    def _nodes(self) -> Nodes:
        columns = self.state.nodes
        return Nodes.of_images(
            self._images, self._lengths, types=columns.types, layers=columns.layers, interests=columns.interests
        )

    def _fill(self, waves: Waves) -> Filled:
        """Fill the inboxes from what the waves brought."""
        settings, delivered = self.settings, self.state.delivered
        makers = as_tensor(self.state.nodes.makers)
        return waves.catch.fill(
            self.backend,
            waves.nodes,
            waves.adjacency,
            owners=makers,
            makers=makers,
            held=Held(
                agents=as_tensor(delivered.agents), diffs=as_tensor(delivered.diffs), vias=as_tensor(delivered.vias)
            ),
            limits=Limits(audience=settings.audience_limit, inbox=settings.inbox_limit, beacon=settings.beacon_limit),
        )

    def _counts(self, waves: Waves, topology: Topology, silent: int) -> dict[str, Any]:
        """Return what the epoch's row and the report tell of graph and waves."""
        weights = topology.adjacency.weights
        placed = (self.state.nodes.types == NodeType.AGENT) & self.state.nodes.placed
        agents = torch.from_numpy(np.flatnonzero(placed).astype(np.int32))
        waves.tally.open_shares = open_shares(waves, agents, OPEN_SHARE_DIFFS)
        return {
            **asdict(waves.tally.counts),
            "waves": waves.count,
            "met_after": {str(hop): count for hop, count in sorted(waves.met_after.items())},
            "live_diffs": len(self.state.diffs),
            "silent_diffs": silent,
            "live_cells": int(waves.live.sum()),
            "topology": topology.facts,
            **waves.tally.summary(
                float(weights.double().mean()) if len(weights) else 0.0,
                float(weights.max()) if len(weights) else 0.0,
            ),
        }

    def _move(self, moved: npt.NDArray[Any], positions: npt.NDArray[Any]) -> None:
        self.state.nodes.vectors[moved] = positions
        self.state.nodes.placed[moved] = True
        self._images[moved] = quantise(positions)
        self._lengths[moved] = lengths(self._images[moved])

    def _restore(self, inbox: InboxTable, as_of: int) -> None:
        """Note that a cell whose own diff came into an inbox was accessed now (spec 6.5)."""
        diffs, nodes = self.state.diffs, self.state.nodes
        delivered = diffs.origins[np.searchsorted(diffs.numbers, np.unique(inbox.diffs))]
        nodes.last_access[delivered] = np.maximum(nodes.last_access[delivered], as_of)

    def _decided(
        self,
        saliences: npt.NDArray[np.float32],
        waves: Waves,
        inbox: InboxTable,
        raised: ContradictionTable,
        superseded: Supersessions,
    ) -> list[npt.NDArray[Any]]:
        """Return what `state_hash` covers: all that the epoch decided, without wall-clock, hop or parent."""
        nodes, adjacency = self.state.nodes, waves.adjacency
        return [
            nodes.types,
            nodes.layers,
            self._images,
            saliences,
            waves.live,
            *(getattr(adjacency, spec.name).numpy() for spec in fields(Adjacency)),
            waves.digest.words(),
            *(getattr(inbox, name) for name in _DECIDED_OF_INBOX),
            *(raised.a, raised.b, raised.similarities, raised.reasons, raised.open),
            *(superseded.losers, superseded.winners),
            self.state.node_scenes,
        ]

    def _go_on(self, done: Checkpoint, topology: Topology) -> None:
        """Stand where the store will stand once it has written the checkpoint."""
        state = self.state
        state.epoch = done.epoch
        state.topology = topology.edges
        state.index = done.index or state.index
        state.diffs.ttl -= 1
        ended = np.isin(state.diffs.numbers, done.ended_diffs)
        state.diffs = rows_of(state.diffs, (state.diffs.ttl > 0) & ~ended)
        agents, diffs, vias = (
            np.concatenate([getattr(state.delivered, name), getattr(done.inbox, name)])
            for name in ("agents", "diffs", "vias")
        )
        alive = np.isin(diffs, state.diffs.numbers)
        state.delivered = InboxKeys(agents=agents[alive], diffs=diffs[alive], vias=vias[alive])


def _aged(made: list[DiffTable], ended: npt.NDArray[np.int64]) -> DiffTable:
    """Return an epoch's new diffs as they stand after it: one epoch older, or ended."""
    aged = made[0]
    for more in made[1:]:
        aged = joined(aged, more)
    aged = rows_of(aged, np.arange(len(aged)))
    aged.ttl = np.where(np.isin(aged.numbers, ended), 0, aged.ttl - 1).astype(np.int32)
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
