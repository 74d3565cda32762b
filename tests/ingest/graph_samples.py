"""A small good graph as Parquet files, to be broken one value at a time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from hyphae_gpu.errors import BadInputError
from hyphae_gpu.ingest.graph_files import Graph, read_graph

TYPES: dict[str, pa.DataType] = {
    "id": pa.string(),
    "type": pa.string(),
    "layer": pa.int8(),
    "embedding": pa.list_(pa.float32()),
    "interests": pa.map_(pa.string(), pa.float32()),
    "src": pa.string(),
    "tgt": pa.string(),
    "weight": pa.float32(),
    "bandwidth": pa.int32(),
    "kind": pa.string(),
    "origin": pa.string(),
    "diff_type": pa.string(),
    "knowledge_type": pa.string(),
    "salience": pa.float32(),
    "energy": pa.float32(),
    "max_hops": pa.int32(),
}

Columns = dict[str, list[Any]]


def good() -> dict[str, Columns]:
    """Return the columns of the three files of a graph that is accepted."""
    return {
        "nodes": {
            "id": ["c", "a", "s", "b"],
            "type": ["cell", "agent", "scene", "beacon"],
            "layer": [0, 0, 1, 0],
            "embedding": [[1.0, 2.0], [0.5, -0.5], [3.0, 0.0], [0.0, 1.0]],
            "interests": [None, [("fact", 0.5)], None, [("risk", 1.0)]],
        },
        "edges": {
            "src": ["c", "a", "c", "s", "c"],
            "tgt": ["a", "c", "b", "c", "s"],
            "type": ["semantic", "causal", "subscription", "promoted", "semantic"],
            "weight": [0.5, 1.0, 1.0, 0.25, 0.125],
            "bandwidth": [3, None, None, 1, None],
            "kind": [None, None, None, None, "far"],
        },
        "diffs": {
            "id": ["d1", "d2", "d3"],
            "origin": ["c", "a", "s"],
            "diff_type": ["created", "updated", "pattern"],
            "knowledge_type": ["fact", "decision", "task"],
            "salience": [0.5, 1.0, 0.25],
            "embedding": [None, [2.0, 2.0], None],
            "energy": [None, None, 3.5],
            "max_hops": [None, 2, None],
        },
    }


def write_graph(folder: Path, files: dict[str, Columns], types: dict[str, pa.DataType] | None = None) -> list[Path]:
    """Write the three files; `types` replace the usual Arrow types, by column or by file.column."""
    paths = []
    chosen = {**TYPES, **(types or {})}
    for name, columns in files.items():
        table = pa.table(
            {
                column: pa.array(values, chosen.get(f"{name}.{column}", chosen.get(column)))
                for column, values in columns.items()
            }
        )
        paths.append(folder / f"{name}.parquet")
        pq.write_table(table, paths[-1])
    return paths


def read(folder: Path, files: dict[str, Columns], types: dict[str, pa.DataType] | None = None) -> Graph:
    nodes, edges, diffs = write_graph(folder, files, types)
    return read_graph(nodes, edges, diffs, max_hops=64)


def refused(folder: Path, files: dict[str, Columns], types: dict[str, pa.DataType] | None = None) -> BadInputError:
    """Return the refusal of a graph that must be refused."""
    try:
        read(folder, files, types)
    except BadInputError as error:
        return error
    raise AssertionError("the graph was accepted")
