"""Binary COPY into PostgreSQL, assembled column by column: no Python loop a row.

The format (PostgreSQL manual, COPY, "Binary Format"): a header, then for each row an int16 count of fields and for each
field an int32 length (-1 for null) and its bytes, big-endian; a count of -1 ends it. A `Field` holds one column's bytes
for all rows; `encode` lays the fields of a block of rows out in one pass a column.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Bytes = npt.NDArray[np.uint8]
Flags = npt.NDArray[np.bool_]

HEADER = b"PGCOPY\n\xff\r\n\0" + bytes(8)
TRAILER = b"\xff\xff"
#: Microseconds from 1970 to PostgreSQL's year 2000.
EPOCH_MICROSECONDS = 946_684_800_000_000
#: About how many bytes are laid out and sent at once.
BLOCK_BYTES = 8 << 20
_JSONB_VERSION = 1
_NO_PREFIX = -1
#: PostgreSQL's number of the type bigint.
_BIGINT_TYPE = 20


@dataclass(frozen=True, eq=False)
class Field:
    """One column's values, each a run of bytes: row i is data[offsets[i]:offsets[i + 1]], after a prefix if set.

    data uint8; offsets int64 [n + 1]; valid bool [n], False for null; prefix: a byte before each value, -1 for none.
    A field of fixed width has no offsets: data is uint8 [n, width], or uint32 [n, d], the bits of vectors.
    """

    data: npt.NDArray[Any]
    offsets: npt.NDArray[np.int64] | None
    valid: Flags
    prefix: int = _NO_PREFIX

    def __len__(self) -> int:
        return len(self.valid)

    def sizes(self, rows: slice) -> npt.NDArray[np.int64]:
        """Return each row's bytes in the stream, its length word included; int64."""
        valid = self.valid[rows]
        if self.offsets is None:
            wide = self.data.shape[1]
            return 4 + valid * np.int64(4 + 4 * wide if self.data.dtype == np.uint32 else wide)
        spans: npt.NDArray[np.int64] = np.diff(self.offsets[rows.start : rows.stop + 1])
        sizes: npt.NDArray[np.int64] = 4 + valid * (spans + (self.prefix != _NO_PREFIX))
        return sizes


def _valid(count: int, valid: Flags | None) -> Flags:
    return np.ones(count, np.bool_) if valid is None else valid


def fixed(values: npt.NDArray[Any], kind: str, valid: Flags | None = None) -> Field:
    """Return a column of numbers as `kind`, a big-endian numpy type: ``>i2 >i4 >i8 >f4 >f8`` or ``?``."""
    wide = np.ascontiguousarray(values.astype(kind))
    return Field(wide.view(np.uint8).reshape(len(wide), wide.dtype.itemsize), None, _valid(len(wide), valid))


def int16(values: npt.NDArray[Any], valid: Flags | None = None) -> Field:
    """Return a smallint column."""
    return fixed(values, ">i2", valid)


def int32(values: npt.NDArray[Any], valid: Flags | None = None) -> Field:
    """Return an integer column."""
    return fixed(values, ">i4", valid)


def int64(values: npt.NDArray[Any], valid: Flags | None = None) -> Field:
    """Return a bigint column."""
    return fixed(values, ">i8", valid)


def reference(numbers: npt.NDArray[Any]) -> Field:
    """Return a bigint column in which -1 stands for null."""
    return fixed(numbers, ">i8", numbers >= 0)


def float32(values: npt.NDArray[Any], valid: Flags | None = None) -> Field:
    """Return a real column."""
    return fixed(values, ">f4", valid)


def float64(values: npt.NDArray[Any], valid: Flags | None = None) -> Field:
    """Return a double precision column."""
    return fixed(values, ">f8", valid)


def boolean(values: npt.NDArray[Any], valid: Flags | None = None) -> Field:
    """Return a boolean column."""
    return fixed(values, "?", valid)


def timestamps(microseconds: npt.NDArray[Any], valid: Flags | None = None) -> Field:
    """Return a timestamptz column from int64 microseconds since 1970."""
    return fixed(microseconds.astype(np.int64) - EPOCH_MICROSECONDS, ">i8", valid)


def vectors(values: npt.NDArray[np.float32], valid: Flags | None = None) -> Field:
    """Return a pgvector column from float32 [n, d]: int16 d, int16 0, d big-endian float32s."""
    plain = np.ascontiguousarray(values, np.float32)
    return Field(plain.view(np.uint32), None, _valid(len(plain), valid))


def text(values: pa.Array | pa.ChunkedArray) -> Field:
    """Return a text or bytea column from an Arrow string or binary column, nulls kept."""
    return _variable(values, _NO_PREFIX)


def jsonb(values: pa.Array | pa.ChunkedArray) -> Field:
    """Return a jsonb column from an Arrow column of JSON text, nulls kept."""
    return _variable(values, _JSONB_VERSION)


def bigints(offsets: npt.NDArray[np.int64], values: npt.NDArray[Any]) -> Field:
    """Return a bigint[] column: row i is values[offsets[i]:offsets[i + 1]], in one dimension, without nulls.

    An array is int32 dimensions, int32 0, int32 element type, int32 length and int32 lower bound of the dimension; then
    an int32 length and the bytes of each element. An empty one has no dimension.
    """
    counts = np.diff(offsets)
    starts = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(np.where(counts > 0, 20 + 12 * counts, 12), out=starts[1:])
    data = np.zeros(int(starts[-1]), np.uint8)
    heads = starts[:-1]
    filled = counts > 0
    _scatter(data, heads, filled.astype(">i4"))
    _scatter(data, heads + 8, np.full(len(counts), _BIGINT_TYPE, ">i4"))
    _scatter(data, heads[filled] + 12, counts[filled].astype(">i4"))
    _scatter(data, heads[filled] + 16, np.ones(int(filled.sum()), ">i4"))
    at = np.repeat(heads + 20 - 12 * offsets[:-1], counts) + 12 * np.arange(len(values))
    _scatter(data, at, np.full(len(values), 8, ">i4"))
    _scatter(data, at + 4, values.astype(">i8"))
    return Field(data, starts, _valid(len(counts), None))


def _scatter(data: Bytes, at: npt.NDArray[np.int64], values: npt.NDArray[Any]) -> None:
    """Write each value's bytes at its place."""
    width = values.dtype.itemsize
    data[at[:, None] + np.arange(width)] = values.view(np.uint8).reshape(len(values), width)


def words(codes: npt.NDArray[Any], names: Sequence[str]) -> Field:
    """Return a text column that says names[code]; null where the code is negative."""
    valid = codes >= 0
    chosen = pa.array(np.where(valid, codes, 0).astype(np.int32), mask=~valid)
    return text(pc.take(pa.array(names, pa.string()), chosen))


def _variable(values: pa.Array | pa.ChunkedArray, prefix: int) -> Field:
    if isinstance(values, pa.ChunkedArray):
        values = pa.concat_arrays(values.chunks) if values.num_chunks else pa.array([], values.type)
    large = pa.large_binary() if pa.types.is_binary(values.type) or pa.types.is_large_binary(values.type) else None
    values = values.cast(large or pa.large_string())
    _, where, content = values.buffers()
    count = len(values)
    offsets = np.zeros(1, np.int64)
    if count:
        offsets = np.frombuffer(where, np.int64, count + 1, 8 * values.offset)
    data = np.zeros(0, np.uint8) if content is None else np.frombuffer(content, np.uint8)
    valid = np.asarray(values.is_valid().to_numpy(zero_copy_only=False), np.bool_)
    return Field(data, offsets, valid, prefix)


def encode(fields: Sequence[Field]) -> Iterator[Bytes]:
    """Lay rows out in blocks, header and trailer apart; each block is valid until the next one is asked for."""
    count = len(fields[0])
    if any(len(column) != count for column in fields):
        raise ValueError(f"columns of one table differ in length: {[len(column) for column in fields]}")
    every = slice(0, count)
    ends = np.cumsum(2 + np.sum([column.sizes(every) for column in fields], axis=0)) if count else np.zeros(0, np.int64)
    start = 0
    while start < count:
        base = int(ends[start - 1]) if start else 0
        stop = max(start + 1, int(np.searchsorted(ends, base + BLOCK_BYTES, side="right")))
        at = np.empty(stop - start, np.int64)
        at[0] = 0
        at[1:] = ends[start : stop - 1] - base
        block = np.empty(int(ends[stop - 1]) - base, np.uint8)
        _put_counts(block, at, len(fields))
        for column in fields:
            valid = column.valid[start:stop]
            if column.data.dtype == np.uint32:
                _put_vectors(block, at, column.data[start:stop], valid)
            elif column.offsets is None:
                _put_fixed(block, at, column.data[start:stop], valid)
            else:
                _put_variable(block, at, column.offsets[start : stop + 1], column.data, valid, column.prefix)
        yield block
        start = stop


@numba.njit(nogil=True, cache=True)
def _put_length(out: Bytes, at: int, length: int) -> None:
    out[at] = (length >> 24) & 255
    out[at + 1] = (length >> 16) & 255
    out[at + 2] = (length >> 8) & 255
    out[at + 3] = length & 255


@numba.njit(nogil=True, cache=True)
def _put_counts(out: Bytes, at: npt.NDArray[np.int64], count: int) -> None:
    for row in range(len(at)):
        out[at[row]] = count >> 8
        out[at[row] + 1] = count & 255
        at[row] += 2


@numba.njit(nogil=True, cache=True)
def _put_fixed(out: Bytes, at: npt.NDArray[np.int64], data: Bytes, valid: Flags) -> None:
    width = data.shape[1]
    for row in range(len(at)):
        place = at[row]
        if not valid[row]:
            _put_length(out, place, -1)
            at[row] = place + 4
            continue
        _put_length(out, place, width)
        for byte in range(width):
            out[place + 4 + byte] = data[row, byte]
        at[row] = place + 4 + width


@numba.njit(nogil=True, cache=True)
def _put_vectors(out: Bytes, at: npt.NDArray[np.int64], bits: npt.NDArray[np.uint32], valid: Flags) -> None:
    dimension = bits.shape[1]
    width = 4 + 4 * dimension
    for row in range(len(at)):
        place = at[row]
        if not valid[row]:
            _put_length(out, place, -1)
            at[row] = place + 4
            continue
        _put_length(out, place, width)
        _put_length(out, place + 4, dimension << 16)
        for i in range(dimension):
            _put_length(out, place + 8 + 4 * i, bits[row, i])
        at[row] = place + 4 + width


@numba.njit(nogil=True, cache=True)
def _put_variable(
    out: Bytes, at: npt.NDArray[np.int64], offsets: npt.NDArray[np.int64], data: Bytes, valid: Flags, prefix: int
) -> None:
    for row in range(len(at)):
        place = at[row]
        if not valid[row]:
            _put_length(out, place, -1)
            at[row] = place + 4
            continue
        start = offsets[row]
        width = offsets[row + 1] - start
        extra = 0
        if prefix >= 0:
            out[place + 4] = prefix
            extra = 1
        _put_length(out, place, width + extra)
        for byte in range(width):
            out[place + 4 + extra + byte] = data[start + byte]
        at[row] = place + 4 + extra + width
