"""The CUDA backend behind the seam: it brings columns to the device and runs the kernels over them."""

from __future__ import annotations

from dataclasses import fields
from typing import TypeVar

import torch

from hyphae_gpu.backends.cuda.graph import CudaGraphOperations
from hyphae_gpu.backends.cuda.launcher import Argument, Launcher, grid_of
from hyphae_gpu.backends.cuda.memory import plan
from hyphae_gpu.backends.cuda.mirrors import DiffColumns, Mirrors, NodeColumns, chunks_of, lanes_of
from hyphae_gpu.backends.cuda.resonance import Resonances
from hyphae_gpu.backends.cuda.slices import Advanced, joined, state_of
from hyphae_gpu.backends.cuda.slots import NoRoomError
from hyphae_gpu.backends.cuda.wave import Room, WaveRun, loss_arguments
from hyphae_gpu.errors import DeviceError
from hyphae_gpu.swarm import FLOW_LAW, Adjacency, Diffs, Flow, FlowLaw, GossipCounts, GossipRules, Nodes
from hyphae_gpu.wave_state import Offers, WaveState

#: How many nodes a diff is expected to look at until one was seen to look at more.
_FIRST_PAIRS_A_DIFF = 2048

_C = TypeVar("_C", WaveState, Offers)
#: Diffs that one group of lanes takes in `open_counts`; kernels/scores.cu has the same number.
_SLICE = 32


class CudaBackend(CudaGraphOperations):
    """A CUDA device as a `Backend`.

    Columns may lie on the host or on the device: what is elsewhere is brought there (nodes and adjacencies once, as
    long as they live), and results go back to where the diffs came from. `threads` are the host's, for what of the
    graph's own operations stays there (`CudaGraphOperations`).
    """

    name = "cuda"

    def __init__(self, launcher: Launcher, *, threads: int = 1, room: Room | None = None) -> None:
        self.launcher, self.threads, self.room = launcher, threads, room or Room()
        self._mirrors = Mirrors(launcher.device)
        self._resonances = Resonances(launcher)
        self._pairs_a_diff = _FIRST_PAIRS_A_DIFF

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
        begun = _on(state, self.launcher.device)
        parts: list[Advanced] = []
        first, most = 0, self._batch(nodes, adjacency, len(diffs))
        while first < len(diffs) or not parts:
            last = min(first + most, len(diffs))
            some = self._mirrors.diffs(diffs.take(torch.arange(first, last, device=here)))
            try:
                part = self._run(nodes, adjacency, some, rules, state_of(begun, first, last), rounds, sweep)
            except NoRoomError as error:
                # Diffs do not know of each other, so fewer at a time do the same.
                if last - first <= 1:
                    raise DeviceError(f"device cuda: {error} for a single diff; use --device cpu") from error
                most = (last - first) // 2
                continue
            parts.append(part)
            first = last
        after, offers, counts = joined(parts)
        return _on(after, here), _on(offers, here), counts

    def _batch(self, nodes: Nodes, adjacency: Adjacency, diffs: int) -> int:
        """Return how many diffs to run at once: as many as the device has memory for, by what they took before."""
        held = self._mirrors.bytes_of(nodes, adjacency)
        self._plan = plan(
            nodes=len(nodes),
            edges=len(adjacency.targets),
            dimension=nodes.dimension,
            diffs=diffs,
            free_bytes=self.launcher.free_bytes() + held,
            pairs_a_diff=self._pairs_a_diff,
        )
        return self._plan.batch

    def _run(
        self,
        nodes: Nodes,
        adjacency: Adjacency,
        diffs: DiffColumns,
        rules: GossipRules,
        state: WaveState,
        rounds: int,
        sweep: bool,
    ) -> Advanced:
        """Advance a slice of the diffs. Raises NoRoomError where the device's memory does not suffice for it."""
        room = self.room or self._plan.room
        try:
            columns = (self._mirrors.nodes(nodes), self._mirrors.graph(adjacency))
            run = WaveRun(self.launcher, *columns, diffs, rules, sweep=sweep, room=room)
            part = run.run(state, rounds)
        except torch.OutOfMemoryError as error:
            raise NoRoomError("the memory does not suffice") from error
        self._pairs_a_diff = max(self._pairs_a_diff, -(-run.pairs // max(1, len(state.rounds))))
        return part

    def scores(self, nodes: Nodes, diffs: Diffs, diff_rows: torch.Tensor, node_rows: torch.Tensor) -> torch.Tensor:
        """See `Backend.scores`."""
        theirs, ours = self._mirrors.nodes(nodes), self._mirrors.diffs(diffs)
        out = torch.empty(len(diff_rows), dtype=torch.float64, device=self.launcher.device)
        rows = (self._mirrors.moved(diff_rows), self._mirrors.moved(node_rows))
        self._launch("scores", len(out), theirs, ours, *rows, len(out), out)
        return out.to(diffs.numbers.device)

    def open_counts(self, nodes: Nodes, diffs: Diffs, rules: GossipRules, node_rows: torch.Tensor) -> torch.Tensor:
        """See `Backend.open_counts`."""
        theirs, ours = self._mirrors.nodes(nodes), self._mirrors.diffs(diffs)
        out = torch.zeros(len(node_rows), dtype=torch.int64, device=self.launcher.device)
        tasks = len(out) * -(-len(diffs) // _SLICE)
        asked = self._mirrors.moved(node_rows)
        gate = (float(rules.sigma_min), float(rules.cos_min))
        self._launch("scores.open_counts", tasks, theirs, ours, *gate, asked, len(out), len(diffs), out)
        return out.to(diffs.numbers.device)

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


def _on(columns: _C, device: torch.device) -> _C:
    """Return columns on a device; themselves where they are there."""
    names = [spec.name for spec in fields(columns)]
    if all(getattr(columns, name).device == device for name in names):
        return columns
    return type(columns)(**{name: getattr(columns, name).to(device) for name in names})
