"""The one place that calls the stages in order: the epochs of a project (spec 8.1)."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from hyphae_gpu.backends.protocol import Backend
from hyphae_gpu.backends.select import select
from hyphae_gpu.clock import Clock
from hyphae_gpu.columns import as_tensor
from hyphae_gpu.config import Settings
from hyphae_gpu.digest import state_hash
from hyphae_gpu.emerged import ContradictionTable, NewNodes, PromotedKeys, Resolved, Supersessions
from hyphae_gpu.emergence.contradictions import Texts, Verifier, no_longer_opposed
from hyphae_gpu.emergence.decay import decayed_saliences, live_cells
from hyphae_gpu.emergence.drift import counting_pairs, drift
from hyphae_gpu.emergence.patterns import Summariser, find_patterns, pattern_nodes
from hyphae_gpu.emergence.promotion import promoted_nodes
from hyphae_gpu.emergence.resolution import declared_supersessions, superseded_diffs
from hyphae_gpu.emergence.scene_tables import next_scenes
from hyphae_gpu.gossip.catch import Filled, Held, Limits
from hyphae_gpu.intake import enter, joined, rows_of, take_in
from hyphae_gpu.outcome import aged, counts_of, decided, inbox_table
from hyphae_gpu.plugins import load_function
from hyphae_gpu.progress import Progress, Silent
from hyphae_gpu.state import (
    PENDING_CREATED,
    PENDING_PATTERN,
    SETTLED,
    AccessPairs,
    Checkpoint,
    DiffTable,
    EdgeTable,
    InboxKeys,
    InboxTable,
    SwarmState,
)
from hyphae_gpu.swarm import Nodes
from hyphae_gpu.topology.changes import edge_changes
from hyphae_gpu.topology.hnsw import LAYER_SHAPES, HnswIndex
from hyphae_gpu.topology.refresh import Ground, Topology, TopologyRules, ground, whole
from hyphae_gpu.vectors import lengths, quantise
from hyphae_gpu.vocabulary import PROMOTED_TYPES
from hyphae_gpu.wave_loop import Waves


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
        threads = self.settings.threads
        self._indexes = [
            HnswIndex.from_arrays(arrays, self.state.dimension, shape, threads=threads)
            for arrays, shape in zip(self.state.indexes, LAYER_SHAPES, strict=True)
        ]
        nodes, entry = self.state.nodes, self.settings.verifier
        self._verifier: Verifier | None = load_function("verifier", entry) if entry else None
        entry = self.settings.summariser
        self._summariser: Summariser | None = load_function("summariser", entry) if entry else None
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
            changed = ~np.isin(nodes.pending, (SETTLED, PENDING_CREATED, PENDING_PATTERN))
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
            base = self._ground(live)
        with clock.stage("scenes"):
            scenes, places = next_scenes(
                state,
                self._images,
                self._lengths,
                saliences,
                live,
                base.links,
                updated=changed,
                resolution=settings.resolution_ratio,
                backend=self.backend,
                texts=self.texts,
            )
            self._move(places.moved, places.vectors)
            self._displace(places.displaced)
            self._append(places.new, as_of)
            saliences = np.append(saliences, places.new.saliences)
            live = np.append(live, np.zeros(len(places.new), np.bool_))
        with clock.stage("layers"):
            topology = self._whole(base, live, pairs)
        self.progress.stage(f"epoch {number}: gossip")
        silent = int((~live[state.diffs.origins]).sum())
        waves = Waves(
            state=state,
            nodes=self._nodes(),
            images=self._images,
            lengths=self._lengths,
            adjacency=topology.adjacency,
            members={layer: topology.layers[layer].standing.cells for layer in PROMOTED_TYPES},
            pairs=pairs,
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
            inbox = inbox_table(filled)
            self._restore(inbox, as_of)
        with clock.stage("patterns"):
            patterns = self._patterns(waves, base.links)

        promotions = waves.promotions.recorded(len(state.nodes))
        raised_nodes = promoted_nodes(promotions, state.nodes, saliences)
        made = NewNodes.concat([raised_nodes, patterns])
        self._append(made, as_of)
        accessed = np.flatnonzero(state.nodes.last_access[: len(accessed_before)] != accessed_before).astype(np.int32)
        removed, written = edge_changes(state.topology, topology.edges)
        ended = np.concatenate([ended, *waves.ended])
        raised = ContradictionTable.concat(waves.raised)
        superseded = Supersessions.concat([gone, *waves.superseded])
        done = Checkpoint(
            epoch=number,
            started_at=started_at,
            as_of=as_of,
            moved=np.concatenate([moved, places.moved]),
            moved_vectors=np.concatenate([positions, places.vectors]),
            displaced=places.displaced,
            new_nodes=NewNodes.concat([places.new, made]),
            first_new_node=len(accessed_before),
            accessed=accessed,
            accessed_at=state.nodes.last_access[accessed],
            new_diffs=aged([new_diffs, *waves.made], ended),
            ended_diffs=ended,
            removed_edges=removed,
            written_edges=written,
            inbox=inbox,
            indexes={i: layer.index.arrays() for i, layer in enumerate(topology.layers) if layer.index_changed},
            contradictions=raised,
            resolved=resolved,
            superseded=superseded,
            scenes=scenes,
            promotions=promotions,
            seconds=clock.seconds | {f"topology.{part}": spent for part, spent in topology.seconds.items()},
            counts=counts_of(waves, topology, silent)
            | {"inbox": len(inbox), "cut": filled.inboxes.cut, "moved": len(moved), "access_pairs": len(pairs)}
            | {"contradictions": len(raised), "superseded": len(superseded), "scenes": len(state.scenes)}
            | {"promotions": len(promotions), "promoted": waves.promotions.fired, "patterns": len(patterns)},
            state_hash=state_hash(decided(waves, self._images, inbox, raised, superseded, promotions)),
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
        enter(state, made)
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

    def _ground(self, live: npt.NDArray[np.bool_]) -> Ground:
        settings = self.settings
        return ground(
            self.state.nodes,
            self._images,
            self._lengths,
            live,
            index=self._indexes[0],
            rules=TopologyRules(beacon_fanin=settings.beacon_fanin, beacon_radius=settings.beacon_radius),
            backend=self.backend,
        )

    def _whole(self, base: Ground, live: npt.NDArray[np.bool_], pairs: AccessPairs) -> Topology:
        topology = whole(
            base,
            self.state.nodes,
            self._images,
            self._lengths,
            live,
            upper=self._indexes[1:],
            declared=self.state.declared,
            pairs=pairs,
            backend=self.backend,
            node_scenes=self.state.node_scenes,
        )
        self._indexes = [layer.index for layer in topology.layers]
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

    def _patterns(self, waves: Waves, links: EdgeTable) -> NewNodes:
        """Return the cells of patterns that the epoch found (spec 6.4); their diffs go out in the next one."""
        nodes = self.state.nodes
        patterns = (nodes.made_of >= 0) & (nodes.layers == 0)
        led = np.zeros(len(nodes), np.bool_)
        led[nodes.made_of[patterns]] = True
        found = find_patterns(
            nodes,
            self._images,
            self._lengths,
            waves.saliences,
            waves.live,
            self.state.node_scenes,
            links,
            excluded=patterns,
            led=led,
            eps=self.settings.pattern_eps,
            backend=self.backend,
            summariser=self._summariser,
            texts=self.texts,
        )
        return pattern_nodes(found)

    def _append(self, new: NewNodes, as_of: int) -> None:
        """Let the project have nodes that an epoch made."""
        if not len(new):
            return
        state, count = self.state, len(new)
        state.nodes = state.nodes.extended(new, as_of)
        state.sequences = np.append(state.sequences, np.zeros(count, state.sequences.dtype))
        state.node_scenes = np.append(state.node_scenes, np.full(count, -1, state.node_scenes.dtype))
        images, placed = np.zeros(new.vectors.shape, np.int8), new.vectors.any(axis=1)
        images[placed] = quantise(new.vectors[placed])
        self._images = np.concatenate([self._images, images])
        self._lengths = np.concatenate([self._lengths, np.where(placed, lengths(images), 1.0)])

    def _move(self, moved: npt.NDArray[Any], positions: npt.NDArray[Any]) -> None:
        self.state.nodes.vectors[moved] = positions
        self.state.nodes.placed[moved] = True
        self._images[moved] = quantise(positions)
        self._lengths[moved] = lengths(self._images[moved])

    def _displace(self, nodes: npt.NDArray[np.int32]) -> None:
        """Take a position from nodes that have none any more; a store that is read again has zeros there."""
        self.state.nodes.vectors[nodes] = 0
        self.state.nodes.placed[nodes] = False
        self._images[nodes] = 0
        self._lengths[nodes] = 1

    def _restore(self, inbox: InboxTable, as_of: int) -> None:
        """Note that a cell whose own diff came into an inbox was accessed now (spec 6.5)."""
        diffs, nodes = self.state.diffs, self.state.nodes
        delivered = diffs.origins[np.searchsorted(diffs.numbers, np.unique(inbox.diffs))]
        nodes.last_access[delivered] = np.maximum(nodes.last_access[delivered], as_of)

    def _go_on(self, done: Checkpoint, topology: Topology) -> None:
        """Stand where the store will stand once it has written the checkpoint."""
        state = self.state
        state.epoch = done.epoch
        state.topology = topology.edges
        state.indexes = [done.indexes.get(layer, kept) for layer, kept in enumerate(state.indexes)]
        state.diffs.ttl -= 1
        ended = np.isin(state.diffs.numbers, done.ended_diffs)
        state.diffs = rows_of(state.diffs, (state.diffs.ttl > 0) & ~ended)
        agents, diffs, vias = (
            np.concatenate([getattr(state.delivered, name), getattr(done.inbox, name)])
            for name in ("agents", "diffs", "vias")
        )
        alive = np.isin(diffs, state.diffs.numbers)
        promoted = PromotedKeys.concat([state.promoted, done.promotions.keys()])
        state.promoted = promoted.take(np.isin(promoted.diffs, state.diffs.numbers))
        state.delivered = InboxKeys(agents=agents[alive], diffs=diffs[alive], vias=vias[alive])
