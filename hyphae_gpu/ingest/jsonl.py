"""JSONL: one object a line, kinds mixed (interfaces.md, "Rows that `ingest` takes")."""

from __future__ import annotations

from collections import defaultdict
from typing import Any, BinaryIO, Final

import numpy as np
import pyarrow as pa

from hyphae_gpu.ingest.checks import check_ids, check_needed
from hyphae_gpu.ingest.fields import FIELDS, Sort, unknown_field
from hyphae_gpu.ingest.intake import Chunk, Intake, check_embedding_given
from hyphae_gpu.ingest.json_columns import column_of
from hyphae_gpu.ingest.json_text import RefusedError, parse_object
from hyphae_gpu.ingest.problems import place_key, place_keys, quote

#: Parsed rows wait in memory until one of these is reached; vectors take some 30 bytes a number while they do.
_CHUNK_ROWS: Final = 8_192
_CHUNK_BYTES: Final = 8 << 20
#: So many unknown fields of a row are named.
_FIELDS_NAMED: Final = 5

_BOM: Final = b"\xef\xbb\xbf"


def read_jsonl(handle: BinaryIO, file: int, intake: Intake) -> None:
    """Read a file's lines into `intake.chunks`; blank lines are skipped, every other must be an object.

    `file` is the file's place in the input. Row numbers are line numbers, from 1.
    """
    waiting: dict[str, _Waiting] = defaultdict(_Waiting)
    rows = size = 0
    problems = intake.problems
    for number, raw in enumerate(handle, start=1):
        line = raw.removeprefix(_BOM) if number == 1 else raw
        if not line.strip():
            continue
        place = intake.rows
        intake.rows += 1
        try:
            row = parse_object(line)
            kind = _kind_of(row, intake.kind)
        except RefusedError as error:
            problems.add_one(place_key(file, number), str(error))
            continue
        if not row.keys() <= FIELDS[kind].keys():
            # The row is checked further: others may refer to it, and its other faults are reported too.
            for name in sorted(row.keys() - FIELDS[kind].keys())[:_FIELDS_NAMED]:
                problems.add_one(place_key(file, number), unknown_field(kind, name, FIELDS[kind]))
        waiting[kind].add(row, number, place)
        rows += 1
        size += len(line)
        if rows >= _CHUNK_ROWS or size >= _CHUNK_BYTES:
            _settle(waiting, file, intake)
            rows = size = 0
    _settle(waiting, file, intake)


class _Waiting:
    """Parsed rows of one kind that are not checked yet."""

    def __init__(self) -> None:
        self.objects: list[dict[str, Any]] = []
        self.numbers: list[int] = []
        self.places: list[int] = []

    def add(self, row: dict[str, Any], number: int, place: int) -> None:
        self.objects.append(row)
        self.numbers.append(number)
        self.places.append(place)


def _kind_of(row: dict[str, Any], default: str | None) -> str:
    """Take the kind out of a row."""
    kind = row.pop("kind", None)
    kind = default if kind is None else kind
    if type(kind) is not str or kind not in FIELDS:
        found = "kind missing" if kind is None else f"unknown kind {quote(kind)}"
        raise RefusedError(f"{found}, expected one of {', '.join(FIELDS)}")
    return kind


def _settle(waiting: dict[str, _Waiting], file: int, intake: Intake) -> None:
    """Check the waiting rows of every kind and move them into chunks."""
    for kind, held in waiting.items():
        keys = place_keys(file, held.numbers)
        columns: dict[str, pa.Array] = {}
        for name, field in FIELDS[kind].items():
            values = [row.get(name) for row in held.objects]
            given = np.fromiter((value is not None for value in values), np.bool_, len(values))
            if field.needed:
                check_needed(name, ~given, keys, intake.problems)
            if field.sort is Sort.VECTOR:
                texts = columns.get("text")
                check_embedding_given(kind, given, texts, keys, intake)
                if intake.embedder is not None:
                    continue
            columns.update(column_of(name, field, values, keys, intake))
            if field.sort is Sort.TEXT and field.needed:
                check_ids(name, columns[name], keys, intake.problems)
        rows = np.array(held.places, np.int64)
        intake.chunks.append(Chunk(kind=kind, keys=keys, rows=rows, columns=columns))
    waiting.clear()
