"""All edges in one adjacency, and the epoch's own edges as a sorted table (spec 2.7)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields

import numpy as np
import numpy.typing as npt
import torch

from hyphae_gpu.backends.protocol import Backend
from hyphae_gpu.state import EdgeTable
from hyphae_gpu.swarm import Adjacency, Edges, costs_of
from hyphae_gpu.vocabulary import EdgeKind, EdgeType

_TYPE_BITS, _NODE_BITS = 2, 31


def edges_one_way(
    sources: npt.NDArray[np.int32],
    targets: npt.NDArray[np.int32],
    weights: npt.NDArray[np.float32],
    edge_type: EdgeType,
    kind: EdgeKind,
) -> EdgeTable:
    """Return edges of one type and kind, without a bandwidth limit."""
    count = len(sources)
    return EdgeTable(
        sources=sources,
        targets=targets,
        types=np.full(count, edge_type, np.int8),
        kinds=np.full(count, kind, np.int8),
        weights=weights,
        bandwidths=np.full(count, -1, np.int32),
    )


def edges_both_ways(
    left: npt.NDArray[np.int32],
    right: npt.NDArray[np.int32],
    weights: npt.NDArray[np.float32],
    edge_type: EdgeType,
    kind: EdgeKind,
) -> EdgeTable:
    """Return an edge each way for every pair."""
    return edges_one_way(
        np.concatenate([left, right]), np.concatenate([right, left]), np.tile(weights, 2), edge_type, kind
    )


def concatenated(tables: Sequence[EdgeTable]) -> EdgeTable:
    """Return the tables' rows, one table after the other."""
    columns = {spec.name: np.concatenate([getattr(table, spec.name) for table in tables]) for spec in fields(EdgeTable)}
    return EdgeTable(**columns)


def taken(table: EdgeTable, rows: npt.NDArray[np.int64] | npt.NDArray[np.bool_]) -> EdgeTable:
    """Return some rows of a table, by number or by mask."""
    return EdgeTable(**{spec.name: getattr(table, spec.name)[rows] for spec in fields(EdgeTable)})


def in_table_order(table: EdgeTable, count: int, backend: Backend) -> EdgeTable:
    """Return the table sorted by (source, target, type); `count` is the number of nodes."""
    _, order = backend.order_rows(count, table.sources, _target_and_type(table))
    return taken(table, order)


def without(table: EdgeTable, declared: EdgeTable, count: int, backend: Backend) -> EdgeTable:
    """Return the rows of a table whose (source, target, type) was not declared: a declared edge wins."""
    if not len(declared) or not len(table):
        return table
    both = concatenated([declared, table])
    keys = _target_and_type(both)
    _, order = backend.order_rows(count, both.sources, keys)
    sources, keys = both.sources[order], keys[order]
    repeated = np.zeros(len(order), np.bool_)
    repeated[1:] = (sources[1:] == sources[:-1]) & (keys[1:] == keys[:-1])
    kept = np.ones(len(both), np.bool_)
    kept[order[repeated]] = False
    return taken(table, kept[len(declared) :])


def adjacency_of(edges: Edges, count: int, backend: Backend) -> Adjacency:
    """Return the edges by source, each row in order of (cost, target, type); `count` is the number of nodes."""
    costs = costs_of(edges.weights)
    keys = costs.numpy().astype(np.int64) << (_NODE_BITS + _TYPE_BITS)
    keys |= edges.targets.numpy().astype(np.int64) << _TYPE_BITS
    keys |= edges.types.numpy()
    offsets, order = backend.order_rows(count, edges.sources.numpy(), keys)
    del keys
    rows = torch.from_numpy(order)
    return Adjacency(
        offsets=torch.from_numpy(offsets),
        targets=edges.targets[rows],
        costs=costs[rows],
        types=edges.types[rows],
        kinds=edges.kinds[rows],
        weights=edges.weights[rows],
        bandwidths=edges.bandwidths[rows],
    )


def as_edges(table: EdgeTable) -> Edges:
    """Return a table's columns as `swarm.Edges`."""
    return Edges(**{spec.name: getattr(table, spec.name) for spec in fields(EdgeTable)})


def _target_and_type(table: EdgeTable) -> npt.NDArray[np.int64]:
    return table.targets.astype(np.int64) << _TYPE_BITS | table.types
