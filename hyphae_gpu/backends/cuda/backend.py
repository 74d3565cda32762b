"""The CUDA backend behind the seam: it brings columns to the device and runs the kernels over them."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

import torch

from hyphae_gpu.backends.cuda.dense import GateCosts, dense_is_cheaper, dots_of, measured
from hyphae_gpu.backends.cuda.graph import CudaGraphOperations
from hyphae_gpu.backends.cuda.launcher import Argument, Launcher, grid_of
from hyphae_gpu.backends.cuda.memory import REMEDY, Plan, plan
from hyphae_gpu.backends.cuda.mirrors import DiffColumns, GraphColumns, Mirrors, NodeColumns, chunks_of, lanes_of
from hyphae_gpu.backends.cuda.resonance import Resonances
from hyphae_gpu.backends.cuda.slices import Advanced, joined, state_of
from hyphae_gpu.backends.cuda.slots import NoRoomError
from hyphae_gpu.backends.cuda.wave import Room, WaveRun, loss_arguments
from hyphae_gpu.errors import DeviceError, first_line
from hyphae_gpu.swarm import FLOW_LAW, Adjacency, Diffs, Flow, FlowLaw, GossipCounts, GossipRules, Nodes
from hyphae_gpu.wave_state import Offers, WaveState

#: The share of what is free that dot products may take, as one in so many.
_DOTS_SHARE = 4
#: How many nodes a diff is expected to look at until one was seen to look at more.
_FIRST_PAIRS_A_DIFF = 2048

#: Diffs that one group of lanes takes in `open_counts`; kernels/scores.cu has the same number.
_SLICE = 32

_P = ParamSpec("_P")
_R = TypeVar("_R")


def _told(operation: Callable[_P, _R]) -> Callable[_P, _R]:
    """Say in one line what the device has no memory for: nothing smaller can be tried."""

    @wraps(operation)
    def telling(*arguments: _P.args, **named: _P.kwargs) -> _R:
        try:
            return operation(*arguments, **named)
        except torch.OutOfMemoryError as error:
            raise DeviceError(
                f"device cuda: no room for {operation.__name__} ({first_line(error)}); {REMEDY}"
            ) from error

    return telling


class CudaBackend(CudaGraphOperations):
    """A CUDA device as a `Backend`.

    Columns may lie on the host or on the device: what is elsewhere is brought there (nodes and adjacencies once, as
    long as they live), and results go back to where the diffs came from. `threads` are the host's, for what of the
    graph's own operations stays there (`CudaGraphOperations`).
    """

    name = "cuda"

    @property
    def device(self) -> torch.device:
        """See `Backend.device`."""
        return self.launcher.device

    def __init__(
        self, launcher: Launcher, *, threads: int = 1, room: Room | None = None, costs: GateCosts | None = None
    ) -> None:
        """Make a backend; `room` and `costs` stand in for what is planned and measured."""
        self.launcher, self.threads, self.room = launcher, threads, room
        self._given_costs = costs
        #: What gates cost, by the chunks a row of what that was measured on.
        self._costs: dict[int, GateCosts] = {}
        self._mirrors = Mirrors(launcher.device)
        self._resonances = Resonances(launcher)
        self._pairs_a_diff = _FIRST_PAIRS_A_DIFF
        #: Gates that a diff needed in the last call, by whether it ran one round or many.
        self._gates_a_diff: dict[bool, float] = {}

    @_told
    def advance(
        self,
        nodes: Nodes,
        adjacency: Adjacency,
        diffs: Diffs,
        rules: GossipRules,
        state: WaveState,
        *,
        rounds: int,
        sweep: bool = False,
    ) -> tuple[WaveState, Offers, GossipCounts]:
        """See `Backend.advance`."""
        here = diffs.numbers.device
        begun = state.to(self.launcher.device)
        parts: list[Advanced] = []
        planned = self._planned(nodes, adjacency, len(diffs))
        first, most = 0, planned.batch
        while first < len(diffs) or not parts:
            last = min(first + most, len(diffs))
            whole = last - first == len(diffs)
            # columns that are made anew are checked anew, and each check waits for the device
            some = self._mirrors.diffs(diffs if whole else diffs.take(torch.arange(first, last, device=here)))
            try:
                columns = (self._mirrors.nodes(nodes), self._mirrors.graph(adjacency), some)
                room, its = self.room or planned.room, begun if whole else state_of(begun, first, last)
                part = self._advance_slice(*columns, rules, its, rounds=rounds, sweep=sweep, room=room)
            except (NoRoomError, torch.OutOfMemoryError) as error:
                # Diffs do not know of each other, so fewer at a time do the same.
                if last - first <= 1:
                    what = f"no room for a single diff ({first_line(error)})"
                    raise DeviceError(f"device cuda: {what}; {REMEDY}") from error
                most = (last - first) // 2
                continue
            parts.append(part)
            first = last
        after, offers, counts = joined(parts)
        return after.to(here), offers.to(here), counts

    def _planned(self, nodes: Nodes, adjacency: Adjacency, diffs: int) -> Plan:
        """Return how many diffs to run at once: as many as the device has memory for, by what they took before."""
        held = self._mirrors.bytes_of(nodes, adjacency)
        return plan(
            nodes=len(nodes),
            edges=len(adjacency.targets),
            dimension=nodes.dimension,
            diffs=diffs,
            free_bytes=self.launcher.free_bytes() + held,
            pairs_a_diff=self._pairs_a_diff,
        )

    def _advance_slice(
        self,
        nodes: NodeColumns,
        graph: GraphColumns,
        diffs: DiffColumns,
        rules: GossipRules,
        state: WaveState,
        *,
        rounds: int,
        sweep: bool,
        room: Room,
    ) -> Advanced:
        """Advance some of the diffs. Raises NoRoomError or torch.OutOfMemoryError where they are too many."""
        gates = min(len(nodes.lengths), self._gates_a_diff.get(rounds == 1, _FIRST_PAIRS_A_DIFF))
        dots = self._dots(nodes, diffs, gates=gates * len(diffs.lengths))
        run = WaveRun(self.launcher, nodes, graph, diffs, rules, sweep=sweep, room=room, dots=dots)
        part = run.run(state, rounds)
        count = max(1, len(state.rounds))
        # One wide call does not make all later ones fill and walk a table that is mostly empty.
        self._pairs_a_diff = max(-(-run.pairs // count), self._pairs_a_diff // 2, _FIRST_PAIRS_A_DIFF)
        self._gates_a_diff[rounds == 1] = part[2].gates / count
        return part

    def _dots(
        self, nodes: NodeColumns, diffs: DiffColumns, *, gates: float, rows: torch.Tensor | None = None
    ) -> torch.Tensor | None:
        """Return the dot products of all diffs and all nodes, or those at `rows`, where they cost less than `gates`."""
        count, width = len(nodes.lengths) if rows is None else len(rows), len(diffs.lengths)
        if count == 0 or width == 0:
            return None
        sizes = {"nodes": count, "diffs": width, "row_bytes": nodes.images.shape[1]}
        free = self.launcher.free_bytes() // _DOTS_SHARE
        try:
            if dense_is_cheaper(self._gate_costs(nodes, diffs), pairs=gates, free_bytes=free, **sizes):
                return dots_of(nodes.images if rows is None else nodes.images[rows.long()], diffs.images)
        except torch.OutOfMemoryError:
            # one by one they need no room
            pass
        return None

    def _gate_costs(self, nodes: NodeColumns, diffs: DiffColumns) -> GateCosts:
        """Return what gates cost on this device, measured once a width of rows."""
        if self._given_costs is not None:
            return self._given_costs
        chunks = chunks_of(nodes.images)
        if chunks not in self._costs:
            self._costs[chunks] = measured(self.launcher, nodes, diffs)
        return self._costs[chunks]

    @_told
    def scores(self, nodes: Nodes, diffs: Diffs, diff_rows: torch.Tensor, node_rows: torch.Tensor) -> torch.Tensor:
        """See `Backend.scores`."""
        theirs, ours = self._mirrors.nodes(nodes), self._mirrors.diffs(diffs)
        out = torch.empty(len(diff_rows), dtype=torch.float64, device=self.launcher.device)
        rows = (self._mirrors.moved(diff_rows), self._mirrors.moved(node_rows))
        self._launch("scores", len(out), theirs, ours, *rows, len(out), out)
        return out.to(diffs.numbers.device)

    @_told
    def open_counts(self, nodes: Nodes, diffs: Diffs, rules: GossipRules, node_rows: torch.Tensor) -> torch.Tensor:
        """See `Backend.open_counts`."""
        theirs, ours = self._mirrors.nodes(nodes), self._mirrors.diffs(diffs)
        out = torch.zeros(len(node_rows), dtype=torch.int64, device=self.launcher.device)
        asked = self._mirrors.moved(node_rows)
        rule: tuple[Argument, ...] = (float(rules.sigma_min), float(rules.cos_min), asked, len(out), len(diffs))
        tasks = len(out) * -(-len(diffs) // _SLICE)
        dots = self._dots(theirs, ours, gates=len(out) * len(diffs), rows=asked)
        if dots is not None:
            columns = (*theirs.arguments()[1:], *ours.arguments()[1:])
            grid = grid_of(self.launcher, tasks)
            self.launcher.launch("scores.open_counts_of_dots", (*columns, *rule, dots, dots.shape[1], out), grid=grid)
        else:
            self._launch("scores.open_counts", tasks, theirs, ours, *rule, out)
        return out.to(diffs.numbers.device)

    @_told
    def losses(
        self,
        rules: GossipRules,
        rounds: torch.Tensor,
        sources: torch.Tensor,
        targets: torch.Tensor,
        diffs: torch.Tensor,
    ) -> torch.Tensor:
        """See `Backend.losses`."""
        out = torch.empty(len(sources), dtype=torch.bool, device=self.launcher.device)
        columns = [self._mirrors.moved(column) for column in (rounds, sources, targets, diffs)]
        if len(out):
            arguments: tuple[Argument, ...] = (*loss_arguments(rules), *columns, len(out), out)
            self.launcher.launch("losses", arguments, grid=grid_of(self.launcher, len(out)))
        return out.to(diffs.device)

    @_told
    def resonance(
        self,
        flow: Flow,
        origins: torch.Tensor,
        offsets: torch.Tensor,
        nodes: torch.Tensor,
        *,
        law: FlowLaw = FLOW_LAW,
        with_throughs: bool = False,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """See `Backend.resonance`."""
        asked = (origins, offsets, nodes)
        values, throughs = self._resonances.compute(flow, *asked, law, with_throughs=with_throughs)
        return values.to(origins.device), throughs.to(origins.device)

    def _launch(self, kernel: str, pairs: int, nodes: NodeColumns, diffs: DiffColumns, *rest: Argument) -> None:
        """Launch a kernel whose groups of lanes take one of `pairs` each; none where there are none."""
        if pairs == 0:
            return
        chunks = chunks_of(nodes.images)
        lanes = lanes_of(chunks)
        arguments = (*nodes.arguments(), *diffs.arguments(), chunks, lanes, *rest)
        self.launcher.launch(kernel, arguments, grid=grid_of(self.launcher, pairs, lanes=lanes))
