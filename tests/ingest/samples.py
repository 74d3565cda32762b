"""Small inputs that ingest accepts, to be broken one field at a time, and a store to check them against."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from hyphae_gpu.errors import BadInputError
from hyphae_gpu.ingest import read_rows
from hyphae_gpu.rows import NothingKnown, Rows

NOW = 1_700_000_000_000_000

CELL = {"kind": "cell", "id": "c1", "text": "water boils", "embedding": [1.0, 2.0], "knowledge_type": "fact"}
OTHER = {**CELL, "id": "c2"}
AGENT = {"kind": "agent", "id": "ada", "embedding": [0.5, 0.5]}
BEACON = {"kind": "beacon", "id": "b1", "agent": "ada", "embedding": [0.0, 1.0]}
ACCESS = {"kind": "access", "agent": "ada", "cell": "c1", "at": 1_600_000_000}
EDGE = {"kind": "edge", "src": "c1", "tgt": "c2", "type": "causal", "weight": 0.5}

GOOD = [AGENT, CELL, OTHER, BEACON, ACCESS, EDGE]


@dataclass
class Store:
    """A store that answers from plain dictionaries."""

    dimension: int | None = 2
    embedding_space: str | None = "given"
    types: dict[str, int] = field(default_factory=dict)
    placed: set[str] = field(default_factory=set)
    arrays: dict[str, Any] = field(default_factory=dict)

    def types_of(self, ids: pa.Array) -> np.ndarray:
        return np.array([self.types.get(name, -1) for name in ids.to_pylist()], np.int8)

    def accessed(self, ids: pa.Array) -> np.ndarray:
        return np.array([name in self.placed for name in ids.to_pylist()], np.bool_)

    def embedder_arrays(self) -> dict[str, Any]:
        return self.arrays


def with_field(row: Mapping[str, Any], **changes: Any) -> dict[str, Any]:
    """Return a row with fields changed; `...` takes one away."""
    return {name: value for name, value in {**row, **changes}.items() if value is not ...}


def write_lines(path: Path, rows: Iterable[Any]) -> Path:
    """Write rows a line; bytes and texts stand as they are, the rest as JSON."""
    parts = [
        row if isinstance(row, bytes) else (row if isinstance(row, str) else json.dumps(row)).encode() for row in rows
    ]
    path.write_bytes(b"\n".join(parts) + b"\n")
    return path


def read(*files: Path, known: Any = None, embed: str | None = None, kind: str | None = None) -> Rows:
    return read_rows(list(files), known=known or NothingKnown(), embed=embed, kind=kind, now=NOW)


def refused(*files: Path, **options: Any) -> BadInputError:
    """Return the refusal of an input that must be refused."""
    try:
        read(*files, **options)
    except BadInputError as error:
        return error
    raise AssertionError("the input was accepted")


CELL_TYPES = {
    "id": pa.string(),
    "text": pa.string(),
    "embedding": pa.list_(pa.float32()),
    "knowledge_type": pa.string(),
    "salience": pa.float64(),
    "confidence": pa.float64(),
    "agent": pa.string(),
    "created_at": pa.timestamp("us", "UTC"),
    "supersedes": pa.string(),
    "claim": pa.struct({"subject": pa.string(), "value": pa.string()}),
    "stance": pa.float64(),
    "payload": pa.string(),
    "interests": pa.map_(pa.string(), pa.float32()),
    "trust": pa.float32(),
    "sponsor": pa.string(),
    "radius": pa.float64(),
    "cell": pa.string(),
    "at": pa.int64(),
    "src": pa.string(),
    "tgt": pa.string(),
    "type": pa.string(),
    "weight": pa.float64(),
    "bandwidth": pa.int64(),
}


def write_parquet(path: Path, rows: list[dict[str, Any]], *, kind: str | None = None, **types: pa.DataType) -> Path:
    """Write rows of one kind, that of the first unless given; `types` replace the usual Arrow types."""
    kind = kind or rows[0]["kind"]
    found = sorted({name for row in rows for name in row} - {"kind"})
    columns = {name: pa.array([row.get(name) for row in rows], types.get(name) or CELL_TYPES[name]) for name in found}
    pq.write_table(pa.table(columns).replace_schema_metadata({"kind": kind}), path)
    return path
