"""Files to checked rows: the whole input is read and judged before anything is handed on."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hyphae_gpu import rows
from hyphae_gpu.errors import BadInputError, UsageError
from hyphae_gpu.ingest.embed import GIVEN, check_name, embed_texts, fit
from hyphae_gpu.ingest.fields import FIELDS
from hyphae_gpu.ingest.intake import Chunk, Dimension, Intake, check_vectors, vector_column
from hyphae_gpu.ingest.jsonl import read_jsonl
from hyphae_gpu.ingest.parquet import read_parquet
from hyphae_gpu.ingest.problems import Problems
from hyphae_gpu.ingest.references import KindRows, check_references

_PARQUET_MAGIC = b"PAR1"
_PARQUET_SUFFIXES = (".parquet", ".pq")
#: d of the paper (spec 1.1), for an input without any vector into an empty store.
_DEFAULT_DIMENSION = 1536
_EMBED_BATCH = 16_384


def read_rows(files: Sequence[Path], *, known: rows.Known, embed: str | None, kind: str | None, now: int) -> rows.Rows:
    """Read JSONL and Parquet files and return their rows, checked as a whole.

    `known` answers for the store. `embed` names the embedder that makes every vector (`lsa`,
    `sentence-transformers:NAME`); None means that they come with the rows, or, where the store already has an
    embedder, that one. `kind` is that of Parquet files and lines which name none. `now` is int64 microseconds since
    1970 UTC: the default of created_at.

    Raises BadInputError with every bad row (file, row or line number from 1, reason), UsageError for a name of `embed`
    or `kind` that does not exist.
    """
    if embed is not None:
        check_name(embed)
    if kind is not None and kind not in FIELDS:
        raise UsageError(f"--kind {kind}: expected one of {', '.join(FIELDS)}")
    problems = Problems(files)
    intake = Intake(
        problems=problems,
        dimension=Dimension(known.dimension),
        embedder=_embedder(embed, known.embedding_space),
        kind=kind,
        now=now,
    )
    for file, path in enumerate(files):
        _read_file(path, file, intake)
    if not intake.rows and not problems.file_lost:
        raise BadInputError([(", ".join(map(str, files)) or "input", "no rows at all, expected at least one")])
    return _assemble(intake, known)


def _embedder(embed: str | None, stored: str | None) -> str | None:
    """Return the embedder to use; a store holds one space and refuses another."""
    if stored is None:
        return embed
    if embed is not None and embed != stored:
        has = "vectors that came with the rows" if stored == GIVEN else f"the space of {stored}"
        raise BadInputError([(f"--embed {embed}", f"the store holds {has}, another space than {embed}")])
    return None if stored == GIVEN else stored


def _read_file(path: Path, file: int, intake: Intake) -> None:
    try:
        with path.open("rb") as handle:
            head = handle.peek(len(_PARQUET_MAGIC))[: len(_PARQUET_MAGIC)]
            if head == _PARQUET_MAGIC or path.suffix.lower() in _PARQUET_SUFFIXES:
                read_parquet(path, file, intake)
            else:
                read_jsonl(cast(BinaryIO, handle), file, intake)
    except OSError as error:
        intake.problems.add_file(file, f"cannot be read: {error.strerror or error}")


def _assemble(intake: Intake, known: rows.Known) -> rows.Rows:
    """Join the chunks, check what holds between rows, make vectors, and raise when any row was bad."""
    dimension = intake.dimension.expected or _DEFAULT_DIMENSION
    kinds = {kind: _kind_rows(kind, schema, intake) for kind, schema in rows.schemas(dimension).items()}
    check_references(kinds, known, intake.problems)
    intake.problems.raise_if_any()
    arrays: dict[str, npt.NDArray[Any]] = {}
    if intake.embedder is not None:
        kinds, arrays, dimension = _embedded(kinds, intake, known, dimension)
        intake.problems.raise_if_any()
    schemas = rows.schemas(dimension)
    tables = {kind: _fitted(found.table, schemas[kind]) for kind, found in kinds.items()}
    return rows.Rows(
        dimension=dimension,
        embedding_space=intake.embedder or GIVEN,
        cells=tables["cell"],
        agents=tables["agent"],
        beacons=tables["beacon"],
        accesses=tables["access"],
        edges=tables["edge"],
        embedder_arrays=arrays,
    )


def _fitted(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return a table in its final schema; the dimension of vectors that nobody gave is only known now."""
    at = table.schema.get_field_index("embedding")
    if at >= 0 and table.schema.field(at).type != schema.field(at).type:
        table = table.set_column(at, schema.field(at), pa.nulls(len(table), schema.field(at).type))
    return table.cast(schema)


def _kind_rows(kind: str, schema: pa.Schema, intake: Intake) -> KindRows:
    """Return the rows of one kind as a table with every column of its schema; defaults are filled in."""
    chunks = [chunk for chunk in intake.chunks if chunk.kind == kind]
    nullable = pa.schema([part.with_nullable(True) for part in schema])
    batches = [_batch(chunk, nullable, intake.now) for chunk in chunks]
    keys = [chunk.keys for chunk in chunks]
    return KindRows(
        keys=np.concatenate(keys) if keys else np.zeros(0, np.int64),
        table=pa.Table.from_batches(batches, nullable),
    )


def _batch(chunk: Chunk, schema: pa.Schema, now: int) -> pa.RecordBatch:
    defaults = {"salience": 0.5, "confidence": 1.0, "created_at": now}
    columns = []
    for part in schema:
        if part.name == "row":
            columns.append(pa.array(chunk.rows))
            continue
        column = chunk.columns.get(part.name)
        if column is None:
            column = pa.nulls(len(chunk.keys), part.type)
        if part.name in defaults:
            column = column.fill_null(pa.scalar(defaults[part.name], part.type))
        columns.append(column)
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _embedded(
    kinds: dict[str, KindRows], intake: Intake, known: rows.Known, dimension: int
) -> tuple[dict[str, KindRows], dict[str, npt.NDArray[Any]], int]:
    """Return the rows with vectors made from their texts, the arrays that the store must keep, and the dimension."""
    space = str(intake.embedder)
    texts = {kind: kinds[kind].table["text"].to_pylist() for kind in ("cell", "beacon")}
    made: dict[str, npt.NDArray[Any]] = {}
    arrays = known.embedder_arrays()
    if not any(texts.values()):
        return kinds, made, dimension
    if known.embedding_space is None:
        arrays = made = fit([*texts["cell"], *texts["beacon"]], space=space)
    found = dict(kinds)
    for kind, wanted in texts.items():
        pieces = []
        for start in range(0, len(wanted), _EMBED_BATCH):
            vectors = embed_texts(wanted[start : start + _EMBED_BATCH], space=space, arrays=arrays)
            dimension = vectors.shape[1]
            keys = kinds[kind].keys[start : start + len(vectors)]
            reason = intake.dimension.refuse(dimension, space)
            if reason is not None:
                raise BadInputError([(f"--embed {space}", reason)])
            present = np.ones(len(vectors), np.bool_)
            pieces.append(vector_column(check_vectors(vectors, keys, intake.problems), present))
        table = kinds[kind].table
        column = pa.chunked_array(pieces, rows.schemas(dimension)[kind].field("embedding").type)
        table = table.set_column(table.schema.get_field_index("embedding"), "embedding", column)
        found[kind] = KindRows(keys=kinds[kind].keys, table=table)
    return found, made, dimension
