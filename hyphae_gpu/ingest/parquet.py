"""Parquet: files of one kind, read in batches without Python lists (interfaces.md, "Rows that `ingest` takes")."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from hyphae_gpu.errors import first_line
from hyphae_gpu.ingest.arrow_columns import column_of, type_problem
from hyphae_gpu.ingest.checks import check_ids, check_needed, nulls_of
from hyphae_gpu.ingest.fields import FIELDS, Field, Sort, unknown_field
from hyphae_gpu.ingest.intake import Chunk, Intake, check_embedding_given
from hyphae_gpu.ingest.problems import I64, place_keys, quote

_BATCH_ROWS: Final = 8_192
#: What pyarrow raises for a file that is broken or that it does not support.
READ_ERRORS: Final = (pa.ArrowException, OSError, ValueError, NotImplementedError)


def read_parquet(path: Path, file: int, intake: Intake) -> None:
    """Read a file's rows into `intake.chunks`; `file` is its place in the input.

    The kind is the file's `kind` metadata, or the one given for files that name none. Row numbers count from 1.
    """
    try:
        with pq.ParquetFile(path) as source:
            kind = _kind_of(source.schema_arrow, file, intake)
            if kind is None or not columns_fine(source.schema_arrow, _fields_of(kind), kind, file, intake):
                intake.rows += source.metadata.num_rows
                return
            start = 1
            for batch in source.iter_batches(_BATCH_ROWS):
                _settle(batch, kind, place_keys(file, np.arange(start, start + len(batch))), intake)
                start += len(batch)
    except READ_ERRORS as error:
        intake.problems.add_file(file, f"cannot be read as Parquet: {first_line(error)}")


def _kind_of(schema: pa.Schema, file: int, intake: Intake) -> str | None:
    stated = (schema.metadata or {}).get(b"kind")
    kind = intake.kind if stated is None else stated.decode("utf-8", "replace")
    reason = None
    if kind is None:
        reason = "kind missing: put it into the file's metadata or give --kind"
    elif kind not in FIELDS:
        reason = f"unknown kind {quote(kind)}"
    elif intake.kind not in (None, kind):
        reason = f"the file's kind is {kind}, but --kind is {intake.kind}"
    if reason is None:
        return kind
    intake.problems.add_file(file, f"{reason}; kinds are {', '.join(FIELDS)}")
    return None


def _fields_of(kind: str) -> dict[str, Field]:
    """Return the columns that a file of this kind may have; one that repeats the kind in every row is no fault."""
    return {"kind": Field(sort=Sort.WORD, words=(kind,)), **FIELDS[kind]}


def columns_fine(schema: pa.Schema, fields: dict[str, Field], kind: str, file: int, intake: Intake) -> bool:
    """Return whether a file's columns have names and types that rows of `kind` may have; report what is wrong."""
    found = schema.names
    reasons = [unknown_field(kind, name, fields) for name in found if name not in fields]
    reasons += [f"column {name} stands twice" for name in fields if found.count(name) > 1]
    reasons += [f"column {name} missing" for name, field in fields.items() if field.needed and name not in found]
    for part in schema:
        if part.name in fields:
            reason = type_problem(part.type, fields[part.name].sort)
            if reason is not None:
                reasons.append(f"column {part.name} {reason}")
    for reason in reasons:
        intake.problems.add_file(file, reason)
    return not reasons


def _settle(batch: pa.RecordBatch, kind: str, keys: I64, intake: Intake) -> None:
    columns: dict[str, pa.Array] = {}
    for name, field in _fields_of(kind).items():
        at = batch.schema.get_field_index(name)
        column = pa.nulls(len(keys)) if at < 0 else batch.column(at)
        absent = nulls_of(column)
        if field.needed:
            check_needed(name, absent, keys, intake.problems)
        if field.sort is Sort.VECTOR:
            check_embedding_given(kind, ~absent, columns.get("text"), keys, intake)
            if intake.embedder is not None:
                continue
        if at < 0:
            continue
        columns.update(column_of(name, field, column, keys, intake))
        if field.sort is Sort.TEXT and field.needed and name in columns:
            check_ids(name, columns[name], keys, intake.problems)
    intake.chunks.append(Chunk(kind=kind, keys=keys, rows=intake.number(len(keys)), columns=columns))
