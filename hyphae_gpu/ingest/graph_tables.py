"""One Parquet file of a graph, checked column by column (interfaces.md, "`propagate` files")."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from hyphae_gpu.errors import first_line
from hyphae_gpu.ingest.arrow_columns import column_of, interest_matrix
from hyphae_gpu.ingest.checks import check_needed, nulls_of
from hyphae_gpu.ingest.fields import BANDWIDTH, WEIGHT, Field, Sort
from hyphae_gpu.ingest.intake import Intake
from hyphae_gpu.ingest.parquet import READ_ERRORS, columns_fine
from hyphae_gpu.ingest.problems import I64, Mask, place_keys
from hyphae_gpu.vectors import quantise
from hyphae_gpu.vocabulary import ENERGY_LIMIT, DiffType, EdgeKind, EdgeType, KnowledgeType, NodeType, names

_BATCH_ROWS: Final = 65_536
_APART: Final = (Sort.VECTOR, Sort.INTERESTS)
_ID: Final = Field(sort=Sort.ID, needed=True)

NODE_FIELDS: Final = {
    "id": _ID,
    "type": Field(sort=Sort.WORD, needed=True, words=names(NodeType)),
    "layer": Field(sort=Sort.WHOLE, needed=True, high=2.0),
    "embedding": Field(sort=Sort.VECTOR, needed=True),
    "interests": Field(sort=Sort.INTERESTS),
}
EDGE_FIELDS: Final = {
    "src": _ID,
    "tgt": _ID,
    "type": Field(sort=Sort.WORD, needed=True, words=names(EdgeType)),
    "weight": WEIGHT,
    "bandwidth": BANDWIDTH,
    "kind": Field(sort=Sort.WORD, words=names(EdgeKind)),
}
DIFF_FIELDS: Final = {
    "id": _ID,
    "origin": _ID,
    "diff_type": Field(sort=Sort.WORD, needed=True, words=names(DiffType)),
    "knowledge_type": Field(sort=Sort.WORD, needed=True, words=names(KnowledgeType)),
    "salience": Field(sort=Sort.NUMBER, needed=True),
    "embedding": Field(sort=Sort.VECTOR),
    "energy": Field(sort=Sort.NUMBER, high=ENERGY_LIMIT, below_high=True),
    "max_hops": Field(sort=Sort.WHOLE, low=-(2.0**31), high=2.0**31 - 1),
}


@dataclass(frozen=True, kw_only=True)
class GraphTable:
    """The checked columns of one file of n rows.

    keys int64 [n]: places for messages; columns: by field name, vectors and interests apart, null where nothing was
    given or it was refused; id_types: the Arrow types of the id columns as they came; images int8 [n, d] (spec 0.4),
    unset where `placed` is False; interests float32 [n, 9], or [0, 9] where the file has no such column.
    """

    keys: I64
    columns: dict[str, pa.ChunkedArray]
    id_types: dict[str, pa.DataType]
    images: npt.NDArray[np.int8]
    placed: Mask
    interests: npt.NDArray[np.float32]

    def ids(self, name: str) -> pa.Array:
        """Return an id column in one piece: large_string or int64."""
        return self.columns[name].combine_chunks()

    def absent(self, name: str) -> Mask:
        """Return where a column is null."""
        return nulls_of(self.columns[name])

    def filled(self, name: str, default: float) -> npt.NDArray[Any]:
        """Return a column of numbers or codes as numpy, `default` where it is null."""
        column = self.columns[name]
        return np.asarray(column.fill_null(pa.scalar(default, column.type)).to_numpy())


def read_table(path: Path, file: int, noun: str, fields: dict[str, Field], intake: Intake) -> GraphTable | None:
    """Return a file's columns; None where the file as a whole cannot be used, which is reported.

    `file` is the file's place in the input, `noun` what its rows are. Vectors become images batch by batch: never more
    than a few batches of float vectors are in memory.
    """
    try:
        with pq.ParquetFile(path) as source:
            if columns_fine(source.schema_arrow, fields, noun, file, intake):
                return _columns_of(source, file, fields, intake)
    except READ_ERRORS as error:
        intake.problems.add_file(file, f"cannot be read as Parquet: {first_line(error)}")
    return None


def _columns_of(source: pq.ParquetFile, file: int, fields: dict[str, Field], intake: Intake) -> GraphTable:
    rows, schema = source.metadata.num_rows, source.schema_arrow
    keys = place_keys(file, np.arange(1, rows + 1))
    images = _Images(rows)
    interests = np.zeros((rows if "interests" in schema.names else 0, len(KnowledgeType)), np.float32)
    types = {name: _type_of(field, schema, name) for name, field in fields.items() if field.sort not in _APART}
    pieces: dict[str, list[pa.Array]] = {name: [] for name in types}
    start = 0
    for batch in source.iter_batches(_BATCH_ROWS):
        rows_here = slice(start, start + len(batch))
        start += len(batch)
        for name, field in fields.items():
            at = batch.schema.get_field_index(name)
            column = batch.column(at) if at >= 0 else pa.nulls(len(batch))
            if field.needed:
                check_needed(name, nulls_of(column), keys[rows_here], intake.problems)
            if field.sort is Sort.INTERESTS:
                if at >= 0:
                    interests[rows_here] = interest_matrix(name, column, keys[rows_here], intake.problems)
                continue
            made = column_of(name, field, column, keys[rows_here], intake).get(name)
            if field.sort is Sort.VECTOR:
                images.put(rows_here, made, intake)
            else:
                pieces[name].append(pa.nulls(len(batch), types[name]) if made is None else made)
    if start != rows:
        raise ValueError(f"{start} rows found, the file's footer says {rows}")
    return GraphTable(
        keys=keys,
        columns={name: pa.chunked_array(pieces[name], kind) for name, kind in types.items()},
        id_types={name: schema.field(name).type for name, field in fields.items() if field.sort is Sort.ID},
        images=images.held if images.held is not None else np.zeros((rows, intake.dimension.expected or 2), np.int8),
        placed=images.placed,
        interests=interests,
    )


def _type_of(field: Field, schema: pa.Schema, name: str) -> pa.DataType:
    if field.sort is Sort.ID:
        return pa.int64() if pa.types.is_integer(schema.field(name).type) else pa.large_string()
    return {Sort.WORD: pa.int8(), Sort.WHOLE: pa.int32(), Sort.NUMBER: pa.float32()}[field.sort]


class _Images:
    """The int8 images of a file's vectors, filled batch by batch."""

    def __init__(self, rows: int) -> None:
        self.held: npt.NDArray[np.int8] | None = None
        self.placed = np.zeros(rows, np.bool_)

    def put(self, rows: slice, column: pa.Array | None, intake: Intake) -> None:
        """Take in one batch's vectors, None where it has none."""
        # A refused vector may have no image; its input is refused as a whole.
        if column is None or intake.problems.any:
            return
        given = ~nulls_of(column)
        made = quantise(column.flatten().to_numpy().reshape(-1, column.type.list_size))
        if self.held is None:
            self.held = np.zeros((len(self.placed), made.shape[1]), np.int8)
        self.held[rows][given] = made
        self.placed[rows] = given
