"""All dot products of nodes and diffs at once, by a matrix product, and when that is cheaper than pair by pair.

A gate costs a row of d bytes from anywhere in memory; a matrix product reads each row once for all diffs. So it wins
where a diff looks at more than a small share of the nodes. What it costs is measured on the device, not guessed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

from hyphae_gpu.backends.cuda.launcher import Argument, Launcher, grid_of
from hyphae_gpu.backends.cuda.mirrors import DiffColumns, NodeColumns, chunks_of, lanes_of

#: Rows and columns of products are multiples of that: more than 16 and a multiple of 8 is what int8 ones ask for.
_MULTIPLE = 32
#: Products of more values than 32 bits can number are made in pieces.
_MOST_CELLS = 2**31 - 1
#: Nodes, diffs and pairs that a measurement takes, whatever the first batch has.
_MEASURED_NODES, _MEASURED_DIFFS, _MEASURED_PAIRS = 1 << 15, 1 << 10, 1 << 18
#: Nodes whose products are compared with exact ones first.
_CHECKED = 1 << 11
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
    left, right = _whole(queries), _whole(images)
    out = torch.empty((len(left), len(right)), dtype=torch.int32, device=left.device)
    at_once = max(_MULTIPLE, _MOST_CELLS // len(right) // _MULTIPLE * _MULTIPLE)
    for first in range(0, len(left), at_once):
        some = slice(first, first + at_once)
        torch._int_mm(left[some], right.T, out=out[some])
    return out


def measured(launcher: Launcher, nodes: NodeColumns, diffs: DiffColumns) -> GateCosts:
    """Measure both ways on some of these nodes and diffs; there must be one of each at least.

    A device without such a matrix product, or with a wrong one, computes gates one by one: a cell costs more than any
    pair.
    """
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
    pair = launcher.seconds(lambda: launcher.launch("scores", asked, grid=grid)) / len(pairs)
    try:
        if _are_exact(some[:_CHECKED], queries):
            cell = launcher.seconds(lambda: dots_of(some, queries)) / (len(some) * len(queries))
            return GateCosts(pair=pair, cell=cell)
    except torch.OutOfMemoryError:
        raise
    except RuntimeError:
        # the library has no such product for this device
        pass
    return GateCosts(pair=pair, cell=math.inf)


def dense_is_cheaper(
    costs: GateCosts, *, nodes: int, diffs: int, row_bytes: int, pairs: float, free_bytes: int
) -> bool:
    """Return whether a matrix product over all nodes costs less than `pairs` gates one by one, and has room."""
    whole = nodes * max(diffs, _MULTIPLE) * costs.cell
    return whole < pairs * costs.pair and bytes_of_dots(nodes, diffs, row_bytes) <= free_bytes


def bytes_of_dots(nodes: int, diffs: int, row_bytes: int) -> int:
    """Return the bytes that the dot products of so many nodes and diffs take, with the copies of rows made whole."""
    left, right = diffs + _MULTIPLE, nodes + _MULTIPLE
    return left * right * _BYTES + (left + right) * row_bytes


def _whole(rows: torch.Tensor) -> torch.Tensor:
    """Return rows with zeros below, so many that a matrix product takes them."""
    more = -len(rows) % _MULTIPLE if len(rows) else _MULTIPLE
    if not more:
        return rows
    return torch.cat([rows, rows.new_zeros((more, rows.shape[1]))])


def _are_exact(images: torch.Tensor, queries: torch.Tensor) -> bool:
    """Return whether the device's product of these rows is what it should be: some libraries' were not (in float64)."""
    exact = queries.double() @ images.double().T
    return torch.equal(dots_of(images, queries)[: len(queries), : len(images)].double(), exact)
