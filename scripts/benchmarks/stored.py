"""Made swarms as rows for a store: what `ingest` would hand over, without the files."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from benchmarks.swarms import NOW
from hyphae_gpu.rows import Rows, schemas
from hyphae_gpu.state import AccessPairs, NodeTable
from hyphae_gpu.vocabulary import NodeType

_TEXT = "A made text of the length that a title with a sentence of explanation has, number {}."


def rows_of(nodes: NodeTable, numbers: npt.NDArray[np.int64], pairs: AccessPairs | None = None) -> Rows:
    """Return these nodes, and the accesses of `pairs`, as checked rows; ids are ``node-NUMBER``."""
    dimension = nodes.vectors.shape[1]
    kinds = nodes.types[numbers]
    tables = {
        "cell": _cells(nodes, numbers[kinds == NodeType.CELL]),
        "agent": _agents(nodes, numbers[kinds == NodeType.AGENT]),
        "access": _accesses(pairs),
    }
    made = {}
    row = 0
    for kind, schema in schemas(dimension).items():
        columns = tables.get(kind, {})
        count = len(columns["id" if "id" in columns else "agent"]) if columns else 0
        held = {"row": pa.array(np.arange(row, row + count))} | columns
        row += count
        made[kind] = pa.table(
            [held[field.name] if field.name in held else pa.nulls(count, field.type) for field in schema], schema=schema
        )
    return Rows(
        dimension=dimension,
        embedding_space="given",
        cells=made["cell"],
        agents=made["agent"],
        beacons=made["beacon"],
        accesses=made["access"],
        edges=made["edge"],
        embedder_arrays={},
    )


def _ids(numbers: npt.NDArray[Any]) -> pa.Array:
    return pa.array([f"node-{number}" for number in numbers.tolist()])


def _vectors(vectors: npt.NDArray[np.float32]) -> pa.Array:
    return pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), vectors.shape[1])


def _cells(nodes: NodeTable, numbers: npt.NDArray[np.int64]) -> dict[str, pa.Array]:
    return {
        "id": _ids(numbers),
        "text": pa.array([_TEXT.format(number) for number in numbers.tolist()]),
        "embedding": _vectors(nodes.vectors[numbers]),
        "knowledge_type": pa.array(nodes.knowledge_types[numbers]),
        "salience": pa.array(nodes.saliences[numbers]),
        "confidence": pa.array(np.ones(len(numbers), np.float32)),
        "created_at": pa.array(nodes.created_at[numbers]),
        "payload": pa.array([json.dumps({"source": "made", "line": number}) for number in numbers.tolist()]),
    }


def _agents(nodes: NodeTable, numbers: npt.NDArray[np.int64]) -> dict[str, pa.Array]:
    return {
        "id": _ids(numbers),
        "embedding": _vectors(nodes.vectors[numbers]),
        "interests": _vectors(nodes.interests[numbers]),
    }


def _accesses(pairs: AccessPairs | None) -> dict[str, pa.Array]:
    if pairs is None:
        return {}
    return {
        "agent": _ids(pairs.agents),
        "cell": _ids(pairs.cells),
        "at": pa.array(NOW - np.arange(len(pairs), dtype=np.int64)),
    }
