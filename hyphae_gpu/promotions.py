"""Promotions within an epoch: which diffs a wave promotes, where they go on, what is recorded (spec 5.2)."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import torch

from hyphae_gpu.arrays import F64, I8, I32, I64, Flags
from hyphae_gpu.backends.protocol import Backend
from hyphae_gpu.columns import as_tensor
from hyphae_gpu.emerged import PromotionTable
from hyphae_gpu.emergence.confirmation import confirming
from hyphae_gpu.emergence.nearest import nearest_rows
from hyphae_gpu.emergence.promotion import (
    Confirmed,
    Counted,
    confirmed_by_scene,
    confirmed_by_scenes,
    promotable,
)
from hyphae_gpu.emergence.resolution import in_open_contradiction
from hyphae_gpu.gossip.entries import Entries, entered
from hyphae_gpu.gossip.paths import Stems, paths
from hyphae_gpu.state import AccessPairs, SwarmState
from hyphae_gpu.swarm import Deliveries, Diffs, Nodes
from hyphae_gpu.vocabulary import ENERGY_UNITS, PROMOTED_TYPES, PROMOTION_ENERGY, NodeType
from hyphae_gpu.wave_state import WaveState

_BONUS = int(PROMOTION_ENERGY * ENERGY_UNITS)
AGENTS = "agents"


@dataclass(kw_only=True)
class Held:
    """Diffs of a wave that a rule would promote: their state, all their deliveries, and by layer what carries them."""

    diffs: Diffs
    state: WaveState
    found: Deliveries
    confirmed: dict[int, Confirmed]


@dataclass(kw_only=True)
class Promotions:
    """An epoch's promotions. Made with what they start from; `recorded` and `new_nodes` tell what they did.

    nodes, images int8 [n, d], lengths float64 [n]: the graph's nodes; members: the live nodes of layers 1 and 2,
    ascending, by layer; pairs: the access pairs that count; live bool [n] as waves change it; confirm_by: `delivery` or
    `agents` (spec 5.3).
    """

    state: SwarmState
    nodes: Nodes
    images: I8
    lengths: F64
    members: dict[int, I32]
    pairs: AccessPairs
    live: Flags
    confirm_by: str
    backend: Backend

    stems: Stems = field(default_factory=Stems)
    fired: int = 0

    def __post_init__(self) -> None:
        self._done: dict[int, set[int]] = {layer: set() for layer in PROMOTED_TYPES}
        known = self.state.promoted
        self._known = set(zip(known.diffs.tolist(), known.layers.tolist(), strict=True))
        self._records: list[tuple[int, int, int, int, int, I32, I32, I32]] = []
        table = self.state.nodes
        #: the place of each node's scene among the scenes, and which nodes count: cells and agents (spec 5.1)
        self._places = np.where(
            self.state.node_scenes >= 0,
            np.searchsorted(self.state.scenes.numbers, self.state.node_scenes),
            -1,
        ).astype(np.int32)
        self._counting = (self._places >= 0) & np.isin(table.types, (NodeType.CELL, NodeType.AGENT))
        self._scenes = table.types == NodeType.SCENE

    def hold(self, diffs: Diffs, state: WaveState, found: Deliveries) -> tuple[Held | None, torch.Tensor]:
        """Return what a rule would promote of a batch that is quiet, and which of its diffs that are, bool [b]."""
        rows = diffs.rows_of(found.diffs).numpy()
        confirmed = {1: self._to_scene_layer(diffs, found, rows), 2: self._to_top_layer(diffs, found, rows)}
        chosen = np.zeros(len(diffs), np.bool_)
        for one in confirmed.values():
            chosen[one.rows] = True
        mask = as_tensor(chosen)
        if not chosen.any():
            return None, mask
        places = np.cumsum(chosen) - 1
        for one in confirmed.values():
            one.rows = places[one.rows]
        which = torch.nonzero(mask).flatten()
        kept = found.take(as_tensor(np.flatnonzero(chosen[rows])))
        return Held(diffs=diffs.take(which), state=state.take(which), found=kept, confirmed=confirmed), mask

    def _asked(self, layer: int, diffs: Diffs, rows: I64) -> Flags:
        """Return which deliveries are of diffs that may be promoted to a layer and were not yet in this epoch."""
        may = promotable(layer, diffs.types.numpy(), diffs.knowledge_types.numpy(), diffs.saliences.numpy())
        may &= ~np.isin(diffs.numbers.numpy(), list(self._done[layer]))
        asked: Flags = may[rows]
        return asked

    def _counted(self, found: Deliveries, rows: I64, which: Flags) -> Counted:
        chosen = np.flatnonzero(which)
        nodes = found.nodes.numpy()[chosen]
        return Counted(
            rows=rows[chosen],
            scenes=self._places[nodes].astype(np.int64),
            nodes=nodes,
            energies=found.energies.numpy()[chosen],
        )

    def _to_scene_layer(self, diffs: Diffs, found: Deliveries, rows: I64) -> Confirmed:
        asked, nodes = self._asked(1, diffs, rows), found.nodes.numpy()
        numbers = self.state.scenes.numbers
        if self.confirm_by != AGENTS:
            return confirmed_by_scene(self._counted(found, rows, asked & self._counting[nodes]), numbers)
        makers = self.state.nodes.makers[diffs.origins.numpy()][rows]
        agents = asked & (self.state.nodes.types[nodes] == NodeType.AGENT) & (nodes != makers)
        counted = confirming(
            self._counted(found, rows, agents),
            self.pairs,
            self._places,
            self.live,
            self.images,
            self.lengths,
            diffs.images.numpy(),
            diffs.lengths.numpy(),
            self.backend,
        )
        return confirmed_by_scene(counted, numbers)

    def _to_top_layer(self, diffs: Diffs, found: Deliveries, rows: I64) -> Confirmed:
        asked = self._asked(2, diffs, rows) & self._scenes[found.nodes.numpy()]
        return confirmed_by_scenes(self._counted(found, rows, asked))

    def fire(self, held: Held, ended: I64) -> tuple[WaveState, torch.Tensor]:
        """Promote what no contradiction blocks and let it go on from its entries; return its state and which do go on.

        ended int64: numbers of diffs that ended in this epoch.
        """
        diffs, numbers = held.diffs, held.diffs.numbers.numpy()
        blocked = in_open_contradiction(self.state.contradictions, len(self.state.nodes))[diffs.origins.numpy()]
        blocked |= np.isin(numbers, ended)
        offers: list[Entries] = []
        for layer, confirmed in held.confirmed.items():
            which = np.flatnonzero(~blocked[confirmed.rows])
            entries = self._entries(layer, confirmed.carriers[which])
            for i, entry in zip(which.tolist(), entries.tolist(), strict=True):
                row = int(confirmed.rows[i])
                self._record(int(numbers[row]), layer, int(diffs.origins[row]), confirmed, i, entry)
            some = entries >= 0
            offers.append(
                Entries(
                    rows=as_tensor(confirmed.rows[which[some]]),
                    sources=as_tensor(confirmed.carriers[which[some]]),
                    targets=as_tensor(entries[some]),
                    energies=as_tensor(confirmed.energies[which[some]] + np.int32(_BONUS)),
                )
            )
        asked = Entries.concat(offers)
        state, rises = entered(self.backend, self.nodes, diffs, held.state, asked)
        self._remember(held, asked.take(rises))
        going_on = torch.zeros(len(diffs), dtype=torch.bool)
        going_on[asked.rows[rises]] = True
        return state, going_on

    def _entries(self, layer: int, carriers: I32) -> I32:
        """Return the node of the layer above that is nearest to each carrier, -1 where there is none.

        Those that were superseded since the epoch began are none (spec 6.6).
        """
        members = self.members[layer]
        members = members[self.live[members] | self._scenes[members]]
        if not len(members):
            return np.full(len(carriers), -1, np.int32)
        distinct, which = np.unique(carriers, return_inverse=True)
        nearest = nearest_rows(
            self.images[distinct], self.lengths[distinct], self.images[members], self.lengths[members]
        )
        entries: I32 = members[nearest][which]
        return entries

    def _record(self, number: int, layer: int, cell: int, confirmed: Confirmed, i: int, entry: int) -> None:
        """Note that a diff was promoted; it is recorded the first time in its life only."""
        self.fired += 1
        self._done[layer].add(number)
        if (number, layer) not in self._known:
            self._known.add((number, layer))
            carrier = int(confirmed.carriers[i])
            why = (confirmed.scenes[i], confirmed.counts[i], confirmed.carried[i])
            self._records.append((number, layer, cell, carrier, entry, *why))

    def _remember(self, held: Held, entries: Entries) -> None:
        """Keep the ways up to the entries, which what comes down from them may hide."""
        count = len(self.nodes)
        keys = held.diffs.rows_of(held.found.diffs) * count + held.found.nodes
        rows = torch.searchsorted(keys, entries.rows * count + entries.sources)
        offsets, ways = paths(held.diffs, held.found, rows, self.stems)
        more = Stems(diffs=held.diffs.numbers[entries.rows], entries=entries.targets, offsets=offsets, nodes=ways)
        self.stems = Stems.concat([self.stems, more])

    def recorded(self, following: int) -> PromotionTable:
        """Return what was promoted for the first time; its nodes are numbered from `following` on."""
        rows = sorted(self._records, key=lambda row: row[:2])
        numbers, layers, cells, carriers, entries, scenes, counts, carried = list(zip(*rows, strict=True)) or [()] * 8
        return PromotionTable(
            diffs=np.array(numbers, np.int64),
            layers=np.array(layers, np.int8),
            cells=np.array(cells, np.int32),
            nodes=following + np.arange(len(numbers), dtype=np.int32),
            carriers=np.array(carriers, np.int32),
            entries=np.array(entries, np.int32),
            scenes=list(scenes),
            counts=list(counts),
            carried=list(carried),
        )
