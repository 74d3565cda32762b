"""All dot products of nodes and diffs at once, by a matrix product, and when that is cheaper than pair by pair.

A gate costs a row of d bytes from anywhere in memory; a matrix product reads each row once for all diffs. So it wins
where a diff looks at more than a small share of the nodes. What it costs is measured on the device, not guessed.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from hyphae_gpu.backends.cuda.launcher import Argument, Launcher, grid_of
from hyphae_gpu.backends.cuda.mirrors import DiffColumns, NodeColumns, chunks_of, lanes_of

#: Rows and columns that the device's int8 matrix product asks for: more than 16, and multiples of 8.
_LEAST_ROWS, _MULTIPLE = 32, 8
#: Nodes, diffs and pairs that a measurement takes, whatever the first batch has.
_MEASURED_NODES, _MEASURED_DIFFS, _MEASURED_PAIRS = 1 << 15, 1 << 10, 1 << 18
_BYTES = 4


@dataclass(frozen=True, kw_only=True)
class GateCosts:
    """Seconds a gate: of a pair that is looked up, and of each (node, diff) of a whole matrix product."""

    pair: float
    cell: float


def dots_of(images: torch.Tensor, queries: torch.Tensor) -> torch.Tensor:
    """Return queries . images^T, exact; int8 rows of equal, padded width -> int32 [at least b, at least n].

    Sums of at most 16,000 products of 127 * 127 stay below 2^31.
    """
    left, right = _whole(queries, _LEAST_ROWS), _whole(images, _MULTIPLE)
    return torch._int_mm(left, right.T)


def measured(launcher: Launcher, nodes: NodeColumns, diffs: DiffColumns) -> GateCosts:
    """Measure both ways on some of these nodes and diffs; there must be one of each at least."""
    device, count, width = launcher.device, len(nodes.lengths), len(diffs.lengths)
    some = nodes.images[torch.arange(_MEASURED_NODES, device=device) % count]
    queries = diffs.images[torch.arange(_MEASURED_DIFFS, device=device) % width]
    pairs = torch.arange(_MEASURED_PAIRS, dtype=torch.int64, device=device)
    out = torch.empty(len(pairs), dtype=torch.float64, device=device)
    # a stride that shares no factor with most counts: rows from anywhere
    rows = (pairs % width, pairs * 1_000_003 % count)
    chunks = chunks_of(nodes.images)
    lanes = lanes_of(chunks)
    asked: tuple[Argument, ...] = (*nodes.arguments(), *diffs.arguments(), chunks, lanes, *rows, len(pairs), out)
    grid = grid_of(launcher, len(pairs), lanes=lanes)
    return GateCosts(
        pair=launcher.seconds(lambda: launcher.launch("scores", asked, grid=grid)) / len(pairs),
        cell=launcher.seconds(lambda: dots_of(some, queries)) / (len(some) * len(queries)),
    )


def dense_is_cheaper(costs: GateCosts, *, nodes: int, diffs: int, pairs: float, free_bytes: int) -> bool:
    """Return whether a matrix product over all nodes costs less than `pairs` gates one by one, and has room."""
    whole = nodes * max(diffs, _LEAST_ROWS) * costs.cell
    return whole < pairs * costs.pair and bytes_of_dots(nodes, diffs) <= free_bytes


def bytes_of_dots(nodes: int, diffs: int) -> int:
    """Return the bytes that the dot products of so many nodes and diffs take."""
    return (nodes + _MULTIPLE) * max(diffs + _MULTIPLE, _LEAST_ROWS) * _BYTES


def _whole(rows: torch.Tensor, least: int) -> torch.Tensor:
    """Return rows with zeros below: `least` at least, and a multiple of what the matrix product asks for."""
    count = max(least, -(-len(rows) // _MULTIPLE) * _MULTIPLE)
    if count == len(rows):
        return rows
    more = torch.zeros((count - len(rows), rows.shape[1]), dtype=rows.dtype, device=rows.device)
    return torch.cat([rows, more])
