"""The CUDA backend behind the seam: it brings columns to the device and runs the kernels over them."""

from __future__ import annotations

from dataclasses import fields
from typing import TypeVar

import torch

from hyphae_gpu.backends.cpu.backend import CpuBackend
from hyphae_gpu.backends.cpu.graph import GraphOperations
from hyphae_gpu.backends.cuda.launcher import Argument, Launcher, grid_of
from hyphae_gpu.backends.cuda.mirrors import DiffColumns, Mirrors, NodeColumns, chunks_of, lanes_of
from hyphae_gpu.backends.cuda.wave import Room, WaveRun, loss_arguments
from hyphae_gpu.swarm import FLOW_LAW, Adjacency, Diffs, Flow, FlowLaw, GossipCounts, GossipRules, Nodes
from hyphae_gpu.wave_state import Offers, WaveState

_C = TypeVar("_C", WaveState, Offers)
#: Diffs that one group of lanes takes in `open_counts`; kernels/scores.cu has the same number.
_SLICE = 32


class CudaBackend(GraphOperations):
    """A CUDA device as a `Backend`.

    Columns may lie on the host or on the device: what is elsewhere is brought there (nodes and adjacencies once, as
    long as they live), and results go back to where the diffs came from. The graph's own operations (`GraphOperations`)
    and resonance run on the host, on `threads` threads.
    """

    name = "cuda"

    def __init__(self, launcher: Launcher, *, threads: int = 1, room: Room | None = None) -> None:
        self.launcher, self.threads, self.room = launcher, threads, room or Room()
        self._host = CpuBackend(threads=threads)
        self._mirrors = Mirrors(launcher.device)

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
        run = WaveRun(
            self.launcher,
            self._mirrors.nodes(nodes),
            self._mirrors.graph(adjacency),
            self._mirrors.diffs(diffs),
            rules,
            sweep=sweep,
            room=self.room,
        )
        after, offers, counts = run.run(_on(state, self.launcher.device), rounds)
        return _on(after, here), _on(offers, here), counts

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
        """See `Backend.resonance`; computed on the host."""
        columns = (flow.offsets, flow.targets, flow.weights, flow.totals)
        there = Flow(**dict(zip(("offsets", "targets", "weights", "totals"), (c.cpu() for c in columns), strict=True)))
        asked = (origins.cpu(), offsets.cpu(), nodes.cpu())
        values, throughs = self._host.resonance(there, *asked, law=law, with_throughs=with_throughs)
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
