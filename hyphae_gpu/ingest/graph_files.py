"""The files of `propagate`: a graph and its diffs in, deliveries out (interfaces.md, "`propagate` files")."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import torch

from hyphae_gpu import energies, swarm
from hyphae_gpu.columns import as_tensor
from hyphae_gpu.ingest.checks import nulls_of
from hyphae_gpu.ingest.deliveries import write_deliveries
from hyphae_gpu.ingest.graph_tables import DIFF_FIELDS, EDGE_FIELDS, NODE_FIELDS, GraphTable, read_table
from hyphae_gpu.ingest.intake import Dimension, Intake
from hyphae_gpu.ingest.problems import I64, Problems, quote
from hyphae_gpu.ingest.references import check_unique_edges, first_of_code
from hyphae_gpu.vectors import lengths
from hyphae_gpu.vocabulary import KINDS_OF_TYPE, EdgeKind, EdgeType, NodeType, names

__all__ = ["Graph", "read_graph", "write_deliveries"]

#: Which (type, kind) pairs an edge may have (spec 2.1), and the kind of edges that name none.
_PAIRS: Final = np.array([[kind in KINDS_OF_TYPE[of] for kind in EdgeKind] for of in EdgeType])
_DEFAULT_KINDS: Final = np.array([KINDS_OF_TYPE[of][0] for of in EdgeType], np.int8)


@dataclass(frozen=True, kw_only=True, eq=False)
class Graph:
    """A graph as read: node number = row of the nodes file, diff number = row of the diffs file (spec 0.3).

    node_ids, diff_ids: the ids in that order, large_string or int64; node_id_type, diff_id_type: the Arrow types that
    they had in their files.
    """

    nodes: swarm.Nodes
    edges: swarm.Edges
    diffs: swarm.Diffs
    node_ids: pa.Array
    diff_ids: pa.Array
    node_id_type: pa.DataType
    diff_id_type: pa.DataType


def read_graph(nodes: Path, edges: Path, diffs: Path, *, max_hops: int) -> Graph:
    """Read and check the three Parquet files of `propagate`; `max_hops` is that of diffs which give none.

    Edges stand as given: nothing is added, nothing relabelled. Raises BadInputError with every bad row, by file, row
    number from 1, and reason.
    """
    problems = Problems([nodes, edges, diffs])
    intake = Intake(problems=problems, dimension=Dimension(), embedder=None, kind=None, now=0)
    node_table = read_table(nodes, 0, "nodes", NODE_FIELDS, intake)
    edge_table = read_table(edges, 1, "edges", EDGE_FIELDS, intake)
    diff_table = read_table(diffs, 2, "diffs", DIFF_FIELDS, intake)
    if node_table is None or edge_table is None or diff_table is None:
        problems.raise_if_any()
        raise AssertionError("a file that gave no table was reported")
    _check_id_types(node_table, edge_table, diff_table, problems)
    problems.raise_if_file_lost()
    ids = node_table.ids("id")
    _check_unique("id", ids, node_table.keys, problems)
    _check_unique("id", diff_table.ids("id"), diff_table.keys, problems)
    types = node_table.filled("type", NodeType.CELL)
    _check_interests(node_table, types, problems)
    ends = {name: _numbers_of(name, edge_table, ids, problems) for name in ("src", "tgt")}
    kinds = _check_edges(edge_table, ends["src"], ends["tgt"], types, problems)
    origins = _numbers_of("origin", diff_table, ids, problems)
    _check_origins(diff_table, origins, types, problems)
    problems.raise_if_any()
    return Graph(
        nodes=_nodes(node_table, types),
        edges=swarm.Edges(
            **_tensors(
                sources=ends["src"],
                targets=ends["tgt"],
                types=edge_table.filled("type", 0),
                kinds=kinds,
                weights=edge_table.filled("weight", 0),
                bandwidths=edge_table.filled("bandwidth", -1),
            )
        ),
        diffs=_diffs(diff_table, origins, node_table, max_hops),
        node_ids=ids,
        diff_ids=diff_table.ids("id"),
        node_id_type=node_table.id_types["id"],
        diff_id_type=diff_table.id_types["id"],
    )


def _check_id_types(nodes: GraphTable, edges: GraphTable, diffs: GraphTable, problems: Problems) -> None:
    """Node ids are all texts or all integers; a column of the other sort could never match."""
    wanted = nodes.columns["id"].type
    for file, table, names_of in ((1, edges, ("src", "tgt")), (2, diffs, ("origin",))):
        for name in names_of:
            if table.columns[name].type != wanted:
                problems.add_file(
                    file,
                    f"column {name} has type {table.id_types[name]}, but the nodes' ids are {nodes.id_types['id']}",
                )


def _check_unique(name: str, ids: pa.Array, keys: I64, problems: Problems) -> None:
    coded = ids.dictionary_encode()
    codes = coded.indices.fill_null(-1).to_numpy()
    if len(coded.dictionary) + ids.null_count == len(ids):
        return
    rows = np.flatnonzero(codes >= 0)
    first = rows[first_of_code(codes[rows], len(coded.dictionary))]
    problems.add_where(
        keys,
        (codes >= 0) & (first[codes] != np.arange(len(codes))),
        lambda row: f"{name} {quote(ids[row].as_py())} is taken by {problems.place(int(keys[first[codes[row]]]))}",
    )


def _check_interests(table: GraphTable, types: npt.NDArray[np.int8], problems: Problems) -> None:
    if len(table.interests):
        words = names(NodeType)
        barred = (types != NodeType.AGENT) & (types != NodeType.BEACON) & table.interests.any(axis=1)
        problems.add_where(
            table.keys,
            barred & ~table.absent("type"),
            lambda row: f"interests on a {words[types[row]]}: only agents and beacons declare interests",
        )


def _numbers_of(name: str, table: GraphTable, ids: pa.Array, problems: Problems) -> npt.NDArray[np.int32]:
    """Return the node number of each reference, -1 where it is null or unknown; the latter are refused."""
    column = table.columns[name]
    found = np.asarray(pc.index_in(column, value_set=ids, skip_nulls=True).fill_null(-1).to_numpy(), np.int32)
    unknown = (found < 0) & ~nulls_of(column)
    problems.add_where(
        table.keys, unknown, lambda row: f"{name} {quote(column[row].as_py())} is no id of the nodes file"
    )
    return found


def _check_edges(
    table: GraphTable,
    sources: npt.NDArray[np.int32],
    targets: npt.NDArray[np.int32],
    node_types: npt.NDArray[np.int8],
    problems: Problems,
) -> npt.NDArray[np.int8]:
    """Check edges by spec 1.5 and 2.1 and return their kinds, defaults filled in."""
    types = table.filled("type", -1)
    unset = table.absent("kind")
    kinds = table.filled("kind", EdgeKind.NONE)
    typed = types >= 0
    kinds = np.where(unset & typed, _DEFAULT_KINDS[types], kinds)
    known = (sources >= 0) & (targets >= 0)
    problems.add_where(table.keys, known & (sources == targets), "src and tgt are the same node")
    if len(node_types):
        problems.add_where(
            table.keys,
            (sources >= 0) & (node_types[sources] == NodeType.BEACON),
            lambda row: f"src {quote(table.columns['src'][row].as_py())} is a beacon, which has no edges out",
        )
    edge_names, kind_names = names(EdgeType), names(EdgeKind)

    def reason(row: int) -> str:
        allowed = ", ".join(kind_names[kind] for kind in KINDS_OF_TYPE[EdgeType(types[row])])
        return f"kind {kind_names[kinds[row]]} of a {edge_names[types[row]]} edge, allowed: {allowed}"

    problems.add_where(table.keys, typed & ~_PAIRS[types, kinds], reason)
    rows = np.flatnonzero(known & typed)
    check_unique_edges(sources[rows], targets[rows], types[rows], table.keys[rows], problems)
    return kinds


def _check_origins(
    table: GraphTable, origins: npt.NDArray[np.int32], node_types: npt.NDArray[np.int8], problems: Problems
) -> None:
    if len(node_types):
        problems.add_where(
            table.keys,
            (origins >= 0) & (node_types[origins] == NodeType.BEACON),
            lambda row: f"origin {quote(table.columns['origin'][row].as_py())} is a beacon, which never sends",
        )


def _nodes(table: GraphTable, types: npt.NDArray[np.int8]) -> swarm.Nodes:
    declared = np.flatnonzero(table.interests.any(axis=1))
    rows = np.full(len(types), -1, np.int32)
    rows[declared] = np.arange(len(declared))
    return swarm.Nodes(
        **_tensors(
            types=types,
            layers=table.filled("layer", 0).astype(np.int8),
            images=table.images,
            lengths=lengths(table.images),
            interest_rows=rows,
            interests=table.interests[declared],
        )
    )


def _diffs(table: GraphTable, origins: npt.NDArray[np.int32], nodes: GraphTable, max_hops: int) -> swarm.Diffs:
    images = table.images
    if not table.placed.all():
        images = np.where(table.placed[:, None], images, nodes.images[origins])
    saliences, knowledge_types = table.filled("salience", 0), table.filled("knowledge_type", 0)
    paper: npt.NDArray[Any] = energies.initial_energy(saliences, knowledge_types)
    given = table.filled("energy", 0).astype(np.float64)
    return swarm.Diffs(
        **_tensors(
            numbers=np.arange(len(origins)),
            origins=origins,
            types=table.filled("diff_type", 0),
            knowledge_types=knowledge_types,
            images=images,
            lengths=lengths(images),
            saliences=saliences,
            energies=energies.units(np.where(table.absent("energy"), paper, given)),
            max_hops=table.filled("max_hops", max_hops),
        )
    )


def _tensors(**columns: npt.NDArray[Any]) -> dict[str, torch.Tensor]:
    return {name: as_tensor(column) for name, column in columns.items()}
