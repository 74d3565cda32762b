"""Resonance on the device: a launch for all origins, another with more room for those that need it (spec 3.12)."""

from __future__ import annotations

from dataclasses import dataclass
from weakref import WeakKeyDictionary

import torch

from hyphae_gpu.backends.cuda.launcher import Launcher
from hyphae_gpu.swarm import Flow, FlowLaw

#: Bytes of a cell and its places in a block's lists, and the share of free memory that they may take, one in so many.
_CELL_BYTES = 52
_MEMORY_SHARE = 4

_FlowColumns = tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]


@dataclass(frozen=True, kw_only=True)
class Scope:
    """How many nodes' cells a block starts with (half of them may be in use), and all blocks have together at most.

    An origin whose diffs concern more nodes is run again with four times as many.
    """

    cells: int = 1 << 14
    all_cells: int = 1 << 24


class Resonances:
    """`Backend.resonance` on a launcher's device; flows are kept there as long as they live."""

    def __init__(self, launcher: Launcher, scope: Scope | None = None) -> None:
        self.launcher, self.scope = launcher, scope or Scope()
        #: What most origins of a batch that filled the device needed.
        self._cells = self.scope.cells
        self._flows: WeakKeyDictionary[Flow, _FlowColumns] = WeakKeyDictionary()

    def compute(
        self,
        flow: Flow,
        origins: torch.Tensor,
        offsets: torch.Tensor,
        nodes: torch.Tensor,
        law: FlowLaw,
        *,
        with_throughs: bool,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return values and throughs on the device; see `Backend.resonance`."""
        device = self.launcher.device
        origins, offsets, nodes = (column.to(device).contiguous() for column in (origins, offsets, nodes))
        values = torch.zeros(len(nodes), dtype=torch.int64, device=device)
        throughs = torch.empty(len(nodes) if with_throughs else 0, dtype=torch.int32, device=device)
        columns = self._columns(flow)
        numbers = (law.start, law.numerator, law.denominator, law.cut, law.rounds)
        # Half of so many cells hold every node, so that this much always suffices.
        most = _power_of_two(2 * max(len(flow.totals), self.launcher.block))
        capacity = min(most, _power_of_two(max(self._cells, 2 * self.launcher.block)))
        groups = torch.nonzero(offsets.diff() > 0).flatten()
        while len(groups):
            cells = min(self.scope.all_cells, self.launcher.free_bytes() // _MEMORY_SHARE // _CELL_BYTES)
            grid = max(1, min(len(groups), self.launcher.blocks, cells // capacity))
            failed = torch.zeros(len(groups), dtype=torch.bool, device=device)
            arguments = (
                *columns,
                *(origins, offsets, nodes, groups, len(groups)),
                *numbers,
                *(torch.zeros(grid * capacity, 4, dtype=torch.int64, device=device), capacity),
                torch.empty(grid * capacity * 3, dtype=torch.int32, device=device),
                torch.empty(grid * capacity, dtype=torch.int64, device=device),
                torch.zeros(1, dtype=torch.int64, device=device),
                *(int(with_throughs), values, throughs, failed),
            )
            self.launcher.launch("resonance", arguments, grid=grid)
            left = groups[failed]
            capacity = min(most, 4 * capacity)
            if 2 * len(left) > max(len(groups), self.launcher.blocks):
                self._cells = capacity
            groups = left
        return values, throughs

    def _columns(self, flow: Flow) -> _FlowColumns:
        if flow not in self._flows:
            columns = (flow.offsets, flow.targets, flow.weights, flow.totals)
            offsets, targets, weights, totals = (column.to(self.launcher.device).contiguous() for column in columns)
            self._flows[flow] = (offsets, targets, weights, totals)
        return self._flows[flow]


def _power_of_two(least: int) -> int:
    """Return the lowest power of two that is `least` or more."""
    return 1 << max(0, least - 1).bit_length()
