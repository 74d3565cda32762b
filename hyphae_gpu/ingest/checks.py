"""Checks of one column of one kind: ranges, words, ids. All vectorised; bad values become null and are reported."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hyphae_gpu.ingest.fields import Field
from hyphae_gpu.ingest.problems import I64, Mask, Problems, quote

#: A B-tree entry of PostgreSQL holds no longer key.
ID_BYTES = 2_000


def nulls_of(column: pa.Array | pa.ChunkedArray) -> Mask:
    """Return where a column is null."""
    if column.null_count == 0:
        return np.zeros(len(column), np.bool_)
    return np.asarray(column.is_null().to_numpy(zero_copy_only=False))


def check_needed(name: str, absent: Mask, keys: I64, problems: Problems) -> None:
    """Refuse rows that lack a needed field."""
    problems.add_where(keys, absent, f"{name} missing")


def codes_of(
    name: str, column: pa.Array, words: Sequence[str], keys: I64, problems: Problems, prefix: str = ""
) -> pa.Array:
    """Return the int8 code of each word of a string column; unknown ones are refused and become null."""
    codes = pc.index_in(column, value_set=pa.array(words, column.type), skip_nulls=True).cast(pa.int8())
    unknown = nulls_of(codes) & ~nulls_of(column)
    known = ", ".join(words)
    problems.add_where(
        keys, unknown, lambda row: f"unknown {prefix}{name} {quote(column[row].as_py())}, known are {known}"
    )
    return codes


def numbers_of(
    name: str, values: npt.NDArray[np.float64], absent: Mask, field: Field, keys: I64, problems: Problems
) -> pa.Array:
    """Return reals rounded once to float32 (or kept, where the field is wide); null where absent.

    Refused: NaN, and what lies outside the field's range before or after the rounding (spec 0.1).
    """
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        rounded = values if field.wide else values.astype(np.float32)
    inside = np.ones(len(values), np.bool_)
    for column in (values, rounded):
        inside &= (column > field.low) if field.above_low else (column >= field.low)
        inside &= (column < field.high) if field.below_high else (column <= field.high)
    problems.add_where(keys, ~inside & ~absent, lambda row: f"{name} is {float(values[row])!r}, expected {field.range}")
    # -0.0 + 0.0 is 0.0: equal numbers are stored alike.
    return pa.array(rounded + rounded.dtype.type(0), mask=absent | ~inside)


def wholes_of(
    name: str, values: npt.NDArray[np.int64], absent: Mask, field: Field, keys: I64, problems: Problems
) -> pa.Array:
    """Return integers as int32, null where absent; refused outside the field's range."""
    inside = (values >= int(field.low)) & (values <= int(field.high))
    problems.add_where(
        keys, ~inside & ~absent, lambda row: f"{name} is {values[row]}, expected a whole number in {field.range}"
    )
    return pa.array(np.where(inside, values, 0).astype(np.int32), mask=absent | ~inside)


def check_ids(name: str, column: pa.Array, keys: I64, problems: Problems) -> None:
    """Refuse ids that are empty or too long for the store's index."""
    sizes = pc.binary_length(column).fill_null(1).to_numpy(zero_copy_only=False)
    problems.add_where(keys, sizes == 0, f"{name} is empty")
    problems.add_where(
        keys, sizes > ID_BYTES, lambda row: f"{name} has {sizes[row]} bytes, expected at most {ID_BYTES}"
    )
