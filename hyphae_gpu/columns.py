"""The base of all columns: tensors of one dtype and rank a field, checked once at construction."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, field, fields
from typing import Any, Self

import numpy as np
import torch

#: What a column may be given as; numpy arrays are taken over without a copy.
Column = torch.Tensor | np.ndarray[Any, Any]


def as_tensor(column: Column) -> torch.Tensor:
    """Return a column as a tensor, without a copy unless a numpy array is read-only (torch would write to it)."""
    if isinstance(column, np.ndarray) and not column.flags.writeable:
        column = column.copy()
    return torch.as_tensor(column)


@dataclass(frozen=True, kw_only=True, eq=False)
class Columns:
    """Shared construction: every field becomes a tensor of its declared dtype and rank, rows agree."""

    def __post_init__(self) -> None:
        rows: tuple[str, int] | None = None
        for spec in fields(self):
            if "dtype" not in spec.metadata:
                continue
            value = as_tensor(getattr(self, spec.name))
            wanted, rank = spec.metadata["dtype"], spec.metadata["rank"]
            if value.dtype != wanted or value.dim() != rank:
                raise ValueError(
                    f"{type(self).__name__}.{spec.name}: got {value.dtype} of rank {value.dim()}, "
                    f"expected {wanted} of rank {rank}"
                )
            if not spec.metadata["free"]:
                rows = rows or (spec.name, len(value))
                if len(value) != rows[1]:
                    raise ValueError(
                        f"{type(self).__name__}.{spec.name} has {len(value)} rows, {rows[0]} has {rows[1]}"
                    )
            object.__setattr__(self, spec.name, value.contiguous())
        self._check()

    def take(self, rows: torch.Tensor) -> Self:
        """Return some rows, by number, in that order, or by mask."""
        return type(self)(**{spec.name: getattr(self, spec.name)[rows] for spec in fields(self)})

    def to(self, device: torch.device | str) -> Self:
        """Return the same rows on another device; themselves where they are there."""
        columns = {spec.name: getattr(self, spec.name) for spec in fields(self)}
        there = {name: value.to(device) for name, value in columns.items()}
        # torch knows which device a name without a number means
        if all(there[name] is value for name, value in columns.items()):
            return self
        moved = copy(self)
        for name, value in there.items():
            # they were checked where they were made
            object.__setattr__(moved, name, value)
        return moved

    @classmethod
    def concat(cls, parts: Sequence[Self]) -> Self:
        """Return the rows of all parts, one part after the other; of no parts none, where columns have rank 1."""
        return cls(
            **{
                spec.name: torch.cat([getattr(part, spec.name) for part in parts])
                if parts
                else torch.zeros(0, dtype=spec.metadata["dtype"])
                for spec in fields(cls)
            }
        )

    def _check(self) -> None:
        """Check what this kind of columns needs beyond dtype, rank and row counts."""

    def _within(self, name: str, low: int, high: int) -> None:
        """Raise ValueError unless every value of a column lies in [low, high)."""
        value = getattr(self, name)
        if value.numel() and not bool(((value >= low) & (value < high)).all()):
            row = int(torch.nonzero((value < low) | (value >= high))[0, 0])
            raise ValueError(f"{type(self).__name__}.{name}[{row}] is {value[row].tolist()}, expected [{low}, {high})")


def column(dtype: torch.dtype, rank: int = 1, *, free: bool = False) -> Any:
    """Declare a column; `free` ones need not have one row a record."""
    return field(metadata={"dtype": dtype, "rank": rank, "free": free})


def offsets_of(sizes: torch.Tensor) -> torch.Tensor:
    """Return where each of rows of these sizes begins, and where the last ends; int64 [m] -> int64 [m + 1]."""
    offsets = torch.zeros(len(sizes) + 1, dtype=torch.int64, device=sizes.device)
    torch.cumsum(sizes, 0, out=offsets[1:])
    return offsets


def ranges(starts: torch.Tensor, sizes: torch.Tensor) -> torch.Tensor:
    """Return start, start + 1, ... of each range, `size` of them, one range after the other; int64 [m] each."""
    shifts = torch.repeat_interleave(starts - offsets_of(sizes)[:-1], sizes)
    return torch.arange(len(shifts), device=shifts.device) + shifts
