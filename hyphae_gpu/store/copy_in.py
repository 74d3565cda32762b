"""Columns into a table by COPY, with the fail points around it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import psycopg
from psycopg import sql

from hyphae_gpu.store import copy
from hyphae_gpu.store.failpoints import fail_point

#: Rows of about so many bytes of vectors are laid out as fields at once.
_SLICE_BYTES = 32 << 20


def copy_in(
    connection: psycopg.Connection[Any],
    table: str,
    names: Sequence[str],
    parts: Iterable[Sequence[copy.Field]],
    point: str,
) -> int:
    """Copy rows into `table`, part after part, each a Field for every name; return how many.

    `point` names the fail points before and after it.
    """
    fail_point(f"{point}.before")
    command = sql.SQL("copy {} ({}) from stdin (format binary)").format(
        sql.Identifier(table), sql.SQL(", ").join(map(sql.Identifier, names))
    )
    count = 0
    with connection.cursor() as cursor, cursor.copy(command) as stream:
        stream.write(copy.HEADER)
        for fields in parts:
            count += len(fields[0])
            for block in copy.encode(fields):
                stream.write(block.data)
        stream.write(copy.TRAILER)
    fail_point(f"{point}.after")
    return count


def slices(count: int, dimension: int) -> Iterable[slice]:
    """Cut `count` rows with vectors of this dimension into pieces of bounded memory."""
    step = max(1, _SLICE_BYTES // (4 * max(1, dimension)))
    return [slice(start, min(count, start + step)) for start in range(0, count, step)]


def sorted_unique(numbers: Iterable[np.ndarray[Any, Any]]) -> np.ndarray[Any, Any]:
    """Return the distinct non-negative numbers of several columns, ascending; int64."""
    joined = np.unique(np.concatenate([np.asarray(column, np.int64) for column in numbers]))
    return joined[joined >= 0]
