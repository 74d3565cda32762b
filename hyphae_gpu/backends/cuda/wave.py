"""Gossip rounds on the device: kernels over the frontier, one look of the host at the counters a round (spec 3.5)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import torch

from hyphae_gpu.backends.cpu.relax import ROUND_LIMIT
from hyphae_gpu.backends.cuda.launcher import WARP, Argument, Launcher, grid_of
from hyphae_gpu.backends.cuda.mirrors import DiffColumns, GraphColumns, NodeColumns, chunks_of, lanes_of
from hyphae_gpu.backends.cuda.slots import grown, loaded, stored
from hyphae_gpu.swarm import GossipCounts, GossipRules
from hyphae_gpu.wave_state import Offers, WaveState


class Counter(IntEnum):
    """Places in the counters that kernels and host share; kernels/wave.cuh has the same, and says why so far apart."""

    SLOTS = 0
    OVERFLOW = 16
    TOO_LONG = 32
    RELAXATIONS = 48
    LOST = 64
    OFFERS = 80
    PENDING = 96
    LIMITED = 112
    RISEN = 128


Arguments = tuple[Argument, ...]
#: Bits of the overflow counter: which room did not suffice.
_SLOT_ROOM, _PENDING_ROOM, _OFFER_ROOM = 1, 2, 4


@dataclass(frozen=True, kw_only=True)
class Room:
    """What a wave starts with: (diff, node) pairs, edges of a frontier, offers. It grows where that is not enough."""

    slots: int = 1 << 16
    pending: int = 1 << 18
    offers: int = 1 << 16


class WaveRun:
    """One call of `Backend.advance`: made with what does not change, `run` does the rounds."""

    def __init__(
        self,
        launcher: Launcher,
        nodes: NodeColumns,
        graph: GraphColumns,
        diffs: DiffColumns,
        rules: GossipRules,
        *,
        sweep: bool,
        room: Room,
        dots: torch.Tensor | None = None,
    ) -> None:
        """Make room. dots: all dot products of the diffs and nodes (`dense.dots_of`), where that was cheaper."""
        self.launcher, self.nodes, self.graph, self.diffs, self.rules = launcher, nodes, graph, diffs, rules
        self.sweep, self.room, self.dots = sweep, room, dots
        self.node_count = len(nodes.lengths)
        self.pending = _Pending(launcher.device, room.pending, with_keys=rules.fanout > 0)
        self.offers = _offers(launcher.device, room.offers if graph.limited else 0)
        self.counters = torch.zeros(Counter.RISEN + 1, dtype=torch.int64, device=launcher.device)

    def run(self, state: WaveState, rounds: int) -> tuple[WaveState, Offers, GossipCounts]:
        """Run up to `rounds` rounds from a state on the device; see `Backend.advance`."""
        rules = self.rules
        records = len(state.nodes)
        #: How many (diff, node) pairs the diffs have looked at, records of the state they began with included.
        self.pairs = records
        self.slots = loaded(self.launcher, state, self.node_count, self.room.slots)
        self.steps = torch.zeros(len(self.diffs.numbers), dtype=torch.int32, device=self.launcher.device)
        self.rounds_before, self.ran_before = state.rounds, state.rounds + state.sweeps
        self.counters[Counter.SLOTS] = records
        # Diffs that start side by side look at the same nodes, so their senders stand side by side.
        fresh = torch.nonzero(state.fresh).flatten()
        fresh = fresh[torch.argsort(state.nodes[fresh], stable=True)]
        self.slots.frontier[: len(fresh)] = fresh
        frontier, gated, done = len(fresh), records, 0
        seen = self.counters.tolist()
        while frontier and done < rounds:
            self._round(done, frontier, gated)
            seen = self.counters.tolist()
            if seen[Counter.TOO_LONG]:
                raise RuntimeError(f"a diff reached {ROUND_LIMIT} rounds in one epoch (spec 3.10)")
            if seen[Counter.OVERFLOW]:
                self._grow(seen)
                continue
            self.slots = self.slots.swapped()
            frontier, gated, done = seen[Counter.RISEN], seen[Counter.SLOTS], done + 1
        self.pairs = gated
        after = stored(
            self.slots,
            gated,
            self.steps,
            state,
            # a state that rounds or sweeps go on from keeps its closed gates too
            all_records=self.graph.limited or rules.loss > 0,
            sweep=self.sweep,
        )
        made = Offers(**{name: column[: seen[Counter.OFFERS]] for name, column in self.offers.items()})
        counts = GossipCounts(relaxations=seen[Counter.RELAXATIONS], gates=gated - records, lost=seen[Counter.LOST])
        return after, made, counts

    def _round(self, done: int, frontier: int, gated: int) -> None:
        """Start one round's kernels; each after `expand` does nothing where room was short."""
        self.counters[Counter.PENDING :] = 0
        self.pending.hold(frontier)
        self._expand(done, frontier)
        self._gate(gated)
        self._relax(done, frontier)
        self._settle(done)

    def _expand(self, done: int, frontier: int) -> None:
        graph, slots, pending = self.graph, self.slots, self.pending
        edges: Arguments = (graph.offsets, graph.targets, graph.costs, graph.types, graph.bandwidths)
        senders: Arguments = (slots.rows, slots.nodes, slots.energies, slots.hops, slots.capacity)
        table: Arguments = (slots.table, slots.mask)
        limits: Arguments = (self.diffs.max_hops, self.rounds_before, self.ran_before, self.steps, done, ROUND_LIMIT)
        rules: Arguments = (int(self.sweep), self.rules.fanout)
        out: Arguments = (pending.places, len(pending.places), pending.starts, pending.spans)
        walked: Arguments = (int(graph.limited), self.node_count, slots.frontier, frontier)
        counted: Arguments = (len(self.offers["rows"]), self.counters)
        self._launch("expand", frontier, (*edges, *walked, *senders, *table, *limits, *rules, *out, *counted))

    def _gate(self, gated: int) -> None:
        slots, chunks, dots = self.slots, chunks_of(self.nodes.images), self.dots
        lanes = lanes_of(chunks) if dots is None else 1
        pairs: Arguments = (*self.nodes.arguments(), *self.diffs.arguments(), chunks, lanes)
        known: Arguments = (0, slots.rows, 0) if dots is None else (1, dots, dots.shape[1])
        rules: Arguments = (float(self.rules.sigma_min), float(self.rules.cos_min))
        asked: Arguments = (slots.rows, slots.nodes, gated)
        out: Arguments = (slots.energies, slots.best, slots.hops, slots.scores, slots.rose, slots.unmet, self.counters)
        self._launch("gate", None, (*pairs, *known, *rules, *asked, *out))

    def _relax(self, done: int, frontier: int) -> None:
        graph, slots, pending = self.graph, self.slots, self.pending
        edges: Arguments = (graph.offsets, graph.targets, graph.costs, graph.types, graph.bandwidths)
        walked: Arguments = (int(graph.limited), slots.frontier, frontier)
        columns: Arguments = (slots.rows, slots.nodes, slots.energies, slots.best, slots.scores, slots.unmet)
        looked_at: Arguments = (slots.table, pending.places, pending.starts, pending.spans, pending.keys)
        draws: Arguments = (self.diffs.numbers, self.ran_before, done, *loss_arguments(self.rules))
        out: Arguments = (slots.risen, *self.offers.values(), self.counters)
        fanout = self.rules.fanout
        self._launch("relax", frontier, (*edges, *walked, *columns, *looked_at, fanout, *draws, *out))

    def _settle(self, done: int) -> None:
        slots = self.slots
        columns: Arguments = (slots.risen, slots.rows, slots.energies, slots.best, slots.hops, slots.rose)
        table: Arguments = (slots.table, slots.mask, self.node_count)
        step: Arguments = (self.rounds_before, done, int(self.sweep), self.counters)
        self._launch("relax.settle", None, (*columns, *table, *step))

    def _launch(self, kernel: str, warps: int | None, arguments: Arguments) -> None:
        """Start a kernel over so many warps' work, or over what only the device knows the size of."""
        whole = self.launcher.blocks
        grid = whole if warps is None else grid_of(self.launcher, warps, lanes=WARP)
        self.launcher.launch(kernel, arguments, grid=grid)

    def _grow(self, seen: list[int]) -> None:
        """Make room for what did not fit; the round is then run again. What it listed before is as good as new."""
        if seen[Counter.OVERFLOW] & _SLOT_ROOM:
            used = min(seen[Counter.SLOTS], self.slots.capacity)
            self.slots = grown(self.launcher, self.slots, self.node_count, used, 2 * self.slots.capacity)
            self.counters[Counter.SLOTS] = used
        if seen[Counter.OVERFLOW] & _PENDING_ROOM:
            room = 2 * seen[Counter.PENDING]
            self.pending = _Pending(self.launcher.device, room, with_keys=self.rules.fanout > 0)
        if seen[Counter.OVERFLOW] & _OFFER_ROOM:
            larger = _offers(self.launcher.device, 2 * (seen[Counter.OFFERS] + seen[Counter.LIMITED]))
            for name, column in self.offers.items():
                larger[name][: len(column)] = column
            self.offers = larger
        self.counters[Counter.OVERFLOW] = 0


class _Pending:
    """Room for a frontier's edges: where in the table each one's target is, and its score's key for the fanout.

    places int32 and keys int64 by edge; starts and spans int64 by node of the frontier.
    """

    def __init__(self, device: torch.device, edges: int, *, with_keys: bool) -> None:
        self.places = torch.empty(edges, dtype=torch.int32, device=device)
        self.keys = torch.empty(edges if with_keys else 0, dtype=torch.int64, device=device)
        self.starts = self.spans = torch.empty(0, dtype=torch.int64, device=device)

    def hold(self, frontier: int) -> None:
        """Have room for a frontier of so many nodes."""
        if len(self.starts) < frontier:
            room, device = 2 * frontier, self.places.device
            self.starts, self.spans = (torch.empty(room, dtype=torch.int64, device=device) for _ in range(2))


def _offers(device: torch.device, count: int) -> dict[str, torch.Tensor]:
    """Return room for offers: the columns of `Offers`, in the order of the kernel's parameters."""
    kinds = {
        "rows": torch.int64,
        "edges": torch.int64,
        "sources": torch.int32,
        "targets": torch.int32,
        "energies": torch.int32,
    }
    return {name: torch.empty(count, dtype=kind, device=device) for name, kind in kinds.items()}


def loss_arguments(rules: GossipRules) -> tuple[int, int, int]:
    """Return threshold, seed and the epoch's counter as kernels/philox.cuh takes them."""
    seed = rules.seed & (2**64 - 1)
    return int(rules.loss * 2**32), seed - (seed >> 63 << 64), rules.epoch * ROUND_LIMIT
