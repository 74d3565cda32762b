"""The store's tables as Parquet files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from hyphae_gpu.errors import UsageError
from hyphae_gpu.store import copy_out
from hyphae_gpu.store.postgres import Connection

#: What is exported; the index's and the embedder's arrays are no tables for people.
TABLES = (
    "knowledge_nodes",
    "topology_edges",
    "memory_diffs",
    "accesses",
    "inbox",
    "contradictions",
    "promotions",
    "scenes",
    "epochs",
    "meta",
)
_ORDER = {
    "knowledge_nodes": "num",
    "topology_edges": "src, tgt, type, given",
    "memory_diffs": "num",
    "accesses": "agent, cell, at",
    "inbox": "agent, diff, via",
    "contradictions": "a, b",
    "promotions": "diff, layer",
    "scenes": "num",
    "epochs": "epoch",
    "meta": "key",
}
_NUMBERS = {
    "bigint": (">i8", pa.int64()),
    "integer": (">i4", pa.int32()),
    "smallint": (">i2", pa.int16()),
    "real": (">f4", pa.float32()),
    "double precision": (">f8", pa.float64()),
    "timestamp with time zone": (">i8", pa.timestamp("us", tz="UTC")),
    "boolean": ("u1", pa.bool_()),
}


def export(connection: Connection, directory: Path) -> list[Path]:
    """Write ``TABLE.parquet`` for each table, rows in key order, within the caller's transaction; return the files.

    Lists and jsonb become their text; vectors fixed-size lists of float32. A file appears whole or not at all; older
    ones are replaced. Raises UsageError when the directory cannot be written.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
        return [_export(connection, table, directory / f"{table}.parquet") for table in TABLES]
    except OSError as problem:
        raise UsageError(f"cannot write to {directory}: {problem.strerror or problem}") from problem


def _export(connection: Connection, table: str, target: Path) -> Path:
    columns = connection.execute(
        "select a.attname, format_type(a.atttypid, null), a.atttypmod, a.attnotnull from pg_attribute a "
        "where a.attrelid = to_regclass(%s) and a.attnum > 0 and not a.attisdropped order by a.attnum",
        [table],
    ).fetchall()
    selected, readers, fields = [], [], []
    for name, kind, modifier, needed in columns:
        expression, reader, made = _column(str(name), str(kind), int(modifier))
        selected.append(expression)
        readers.append(reader)
        fields.append(pa.field(name, made, nullable=not needed))
    schema = pa.schema(fields)
    query = f"select {', '.join(selected)} from {table} order by {_ORDER[table]}"
    partial = target.with_suffix(".partial")
    try:
        with pq.ParquetWriter(partial, schema, compression="zstd") as writer:

            def write(block: list[Any]) -> None:
                writer.write_table(pa.Table.from_arrays(block, schema=schema))

            copy_out.for_each_block(connection, query, readers, write)
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)
    return target


def _column(name: str, kind: str, modifier: int) -> tuple[str, copy_out.Reader, pa.DataType]:
    """Return what to select for a column, how to read it, and its Arrow type."""
    quoted = f'"{name}"'
    if kind == "vector":
        made = pa.list_(pa.float32(), modifier)
        vectors = copy_out.vector_rows(modifier)

        def read(block: Any, starts: Any, lengths: Any) -> pa.Array:
            rows = vectors(block, starts, lengths)
            return pa.FixedSizeListArray.from_arrays(pa.array(rows.ravel()), type=made, mask=pa.array(lengths < 0))

        return quoted, read, made
    if kind in _NUMBERS:
        wire, made = _NUMBERS[kind]
        plain = copy_out.times() if kind.startswith("timestamp") else copy_out.numbers(wire, 0)

        def read_numbers(block: Any, starts: Any, lengths: Any) -> pa.Array:
            column = plain(block, starts, lengths)
            whole = column.astype(np.bool_) if kind == "boolean" else column
            return pa.array(whole, mask=lengths < 0).cast(made)

        return quoted, read_numbers, made
    return f"{quoted}::text", copy_out.strings(), pa.large_string()
