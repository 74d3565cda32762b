"""Where the diffs of a wave stand between rounds: what a backend takes and gives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

import torch

from hyphae_gpu.columns import Columns, column, offsets_of, ranges


@dataclass(frozen=True, kw_only=True, eq=False)
class WaveState(Columns):
    """Where the diffs of a wave stand after some rounds: one record a (diff, node) looked at, diff by diff, by node.

    offsets int64 [b + 1] by row of the `Diffs` it belongs to; rounds, sweeps int64 [b]: how many of both each diff has
    run in this epoch (spec 3.5, 7.2), together the counter of spec 3.10; nodes int32; energies int32, or one of
    `CLOSED`, `OPEN` for a node that was not reached; hops, parents int32; scores float64; fresh bool: the node is in
    the frontier.
    """

    CLOSED: ClassVar = -1
    OPEN: ClassVar = -2
    #: The columns that have a row a record.
    RECORDS: ClassVar = ("nodes", "energies", "hops", "parents", "scores", "fresh")

    offsets: torch.Tensor = column(torch.int64, free=True)
    rounds: torch.Tensor = column(torch.int64, free=True)
    sweeps: torch.Tensor = column(torch.int64, free=True)
    nodes: torch.Tensor = column(torch.int32)
    energies: torch.Tensor = column(torch.int32)
    hops: torch.Tensor = column(torch.int32)
    parents: torch.Tensor = column(torch.int32)
    scores: torch.Tensor = column(torch.float64)
    fresh: torch.Tensor = column(torch.bool)

    def rows(self) -> torch.Tensor:
        """Return each record's diff row, int64."""
        sizes = self.offsets.diff()
        return torch.repeat_interleave(torch.arange(len(sizes), device=sizes.device), sizes)

    def take(self, rows: torch.Tensor) -> Self:
        """Return the state of the diffs at these rows, int64, in that order."""
        sizes = self.offsets.diff()[rows]
        records = ranges(self.offsets[rows], sizes)
        columns = {name: getattr(self, name)[records] for name in self.RECORDS}
        return type(self)(offsets=offsets_of(sizes), rounds=self.rounds[rows], sweeps=self.sweeps[rows], **columns)

    @classmethod
    def concat(cls, parts: Sequence[Self]) -> Self:
        """Return the diffs of all parts (one at least), one part after the other."""
        names = ("rounds", "sweeps", *WaveState.RECORDS)
        columns = {name: torch.cat([getattr(part, name) for part in parts]) for name in names}
        return cls(offsets=offsets_of(torch.cat([part.offsets.diff() for part in parts])), **columns)


@dataclass(frozen=True, kw_only=True, eq=False)
class Offers(Columns):
    """Offers of one round over edges with a bandwidth that would raise their receivers, in no order (spec 2.8).

    rows int64, diff rows; edges int64, places in the adjacency; sources, targets, energies int32.
    """

    rows: torch.Tensor = column(torch.int64)
    edges: torch.Tensor = column(torch.int64)
    sources: torch.Tensor = column(torch.int32)
    targets: torch.Tensor = column(torch.int32)
    energies: torch.Tensor = column(torch.int32)

    def __len__(self) -> int:
        return len(self.rows)
