"""The way back: rows of a query by binary COPY, parsed to columns without a Python loop a value."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numba
import numpy as np
import numpy.typing as npt
import psycopg
import pyarrow as pa

from hyphae_gpu.store.copy import EPOCH_MICROSECONDS, HEADER

Bytes = npt.NDArray[np.uint8]
Spans = npt.NDArray[np.int64]
#: Turns the field at starts (int64 [n]) with lengths (int64 [n], -1 for null) of a block into a column.
Reader = Callable[[Bytes, Spans, Spans], Any]

#: Bytes that are parsed at once.
BLOCK_BYTES = 32 << 20
_LENGTH_BYTES = 4


def copy_out(connection: psycopg.Connection[Any], query: str, readers: Sequence[Reader]) -> list[Any]:
    """Run `query` and return one column a reader: arrays joined over the blocks.

    numpy columns come back as one array, Arrow columns as a ChunkedArray.
    """
    blocks: list[list[Any]] = []
    for_each_block(connection, query, readers, blocks.append)
    return [_join([block[i] for block in blocks]) for i in range(len(readers))]


def for_each_block(
    connection: psycopg.Connection[Any], query: str, readers: Sequence[Reader], take: Callable[[list[Any]], None]
) -> None:
    """Run `query` and hand its columns on in blocks of bounded size; at least one block, so that types are known."""
    pending: list[bytes] = []
    size = 0
    first = True
    rest = b""

    def flush() -> bytes:
        nonlocal first
        block = np.frombuffer(b"".join([rest, *pending]), np.uint8)
        begin = len(HEADER) if first else 0
        starts, lengths, end = split(block, begin, len(readers))
        take([read(block, starts[:, i].copy(), lengths[:, i].copy()) for i, read in enumerate(readers)])
        first = False
        pending.clear()
        return block[end:].tobytes()

    with connection.cursor() as cursor, cursor.copy(f"copy ({query}) to stdout (format binary)") as stream:
        for message in stream:
            pending.append(bytes(message))
            size += len(message)
            if size >= BLOCK_BYTES:
                rest = flush()
                size = 0
    if size or first:
        flush()


def split(block: Bytes, begin: int, fields: int) -> tuple[Spans, Spans, int]:
    """Return where each whole row's fields lie from `begin` on: starts, lengths int64 [n, fields], and the end."""
    # A row is at least its count and its lengths, so this bounds the rows.
    room = max(0, len(block) - begin) // (2 + _LENGTH_BYTES * fields) + 1
    starts = np.empty((room, fields), np.int64)
    lengths = np.empty((room, fields), np.int64)
    rows, end = _walk(block, begin, starts, lengths)
    return starts[:rows], lengths[:rows], int(end)


def numbers(kind: str, null: float = -1, to: npt.DTypeLike | None = None) -> Reader:
    """Return a reader of numbers sent as `kind` (``>i8`` ...) as dtype `to` (default: the native one)."""
    wire = np.dtype(kind)
    native = np.dtype(to) if to is not None else wire.newbyteorder("=")

    def read(block: Bytes, starts: Spans, lengths: Spans) -> npt.NDArray[Any]:
        out = np.zeros((len(starts), wire.itemsize), np.uint8)
        _gather(block, starts, lengths, out)
        column = out.view(wire).reshape(len(starts)).astype(native)
        column[lengths < 0] = null
        return column

    return read


def times(null: int = -1) -> Reader:
    """Return a reader of timestamptz as int64 microseconds since 1970."""
    plain = numbers(">i8")

    def read(block: Bytes, starts: Spans, lengths: Spans) -> npt.NDArray[np.int64]:
        column: npt.NDArray[np.int64] = plain(block, starts, lengths) + EPOCH_MICROSECONDS
        column[lengths < 0] = null
        return column

    return read


def codes(names: Sequence[str], null: int = -1) -> Reader:
    """Return a reader of text that is one of `names` as int8, the name's place; `null` for null."""
    coded = [name.encode() for name in names]
    data = np.frombuffer(b"".join(coded), np.uint8)
    offsets = np.cumsum([0, *(len(name) for name in coded)], dtype=np.int64)

    def read(block: Bytes, starts: Spans, lengths: Spans) -> npt.NDArray[np.int8]:
        column = np.full(len(starts), null, np.int8)
        unknown = _match(block, starts, lengths, data, offsets, column)
        if unknown >= 0:
            word = block[starts[unknown] : starts[unknown] + lengths[unknown]].tobytes().decode()
            raise ValueError(f"the store holds {word!r} where one of {', '.join(names)} was expected")
        return column

    return read


def vector_rows(dimension: int) -> Reader:
    """Return a reader of pgvector values as float32 [n, dimension]; zeros for null."""

    def read(block: Bytes, starts: Spans, lengths: Spans) -> npt.NDArray[np.float32]:
        out = np.zeros((len(starts), dimension), np.uint32)
        _gather_vectors(block, starts, lengths, out)
        return out.view(np.float32)

    return read


def strings(skip: int = 0, binary: bool = False) -> Reader:
    """Return a reader of text (jsonb: skip its version byte) or bytea as an Arrow column with nulls."""

    def read(block: Bytes, starts: Spans, lengths: Spans) -> pa.Array:
        valid = lengths >= 0
        spans = np.where(valid, lengths - skip, 0)
        offsets = np.concatenate(([0], np.cumsum(spans))).astype(np.int64)
        out = np.empty(int(offsets[-1]), np.uint8)
        _gather_variable(block, starts, spans, skip, offsets, out)
        mask = pa.py_buffer(np.packbits(valid, bitorder="little").tobytes())
        kind = pa.large_binary() if binary else pa.large_string()
        buffers = [mask, pa.py_buffer(offsets), pa.py_buffer(out)]
        return pa.Array.from_buffers(kind, len(starts), buffers)

    return read


def _join(parts: list[Any]) -> Any:
    if isinstance(parts[0], pa.Array):
        return pa.chunked_array(parts)
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


@numba.njit(nogil=True, cache=True)
def _number(block: Bytes, at: int) -> int:
    value = np.int64(block[at]) << 24 | np.int64(block[at + 1]) << 16 | np.int64(block[at + 2]) << 8 | block[at + 3]
    signed: int = value - (np.int64(1) << 32) if value >= np.int64(1) << 31 else value
    return signed


@numba.njit(nogil=True, cache=True)
def _walk(block: Bytes, begin: int, starts: Spans, lengths: Spans) -> tuple[int, int]:
    fields = starts.shape[1]
    row = 0
    end = begin
    while row < len(starts):
        at = end + 2
        if at > len(block) or (block[end] == 255 and block[end + 1] == 255):
            break
        whole = True
        for field in range(fields):
            if at + 4 > len(block):
                whole = False
                break
            length = _number(block, at)
            starts[row, field] = at + 4
            lengths[row, field] = length
            at += 4 + max(length, 0)
        if not whole or at > len(block):
            break
        end = at
        row += 1
    return row, end


@numba.njit(nogil=True, cache=True)
def _gather(block: Bytes, starts: Spans, lengths: Spans, out: Bytes) -> None:
    for row in range(len(starts)):
        if lengths[row] >= 0:
            for byte in range(out.shape[1]):
                out[row, byte] = block[starts[row] + byte]


@numba.njit(nogil=True, cache=True)
def _gather_vectors(block: Bytes, starts: Spans, lengths: Spans, out: npt.NDArray[np.uint32]) -> None:
    for row in range(len(starts)):
        if lengths[row] >= 0:
            for i in range(out.shape[1]):
                at = starts[row] + 4 + 4 * i
                high = np.uint32(block[at]) << np.uint32(24) | np.uint32(block[at + 1]) << np.uint32(16)
                out[row, i] = high | np.uint32(block[at + 2]) << np.uint32(8) | np.uint32(block[at + 3])


@numba.njit(nogil=True, cache=True)
def _gather_variable(block: Bytes, starts: Spans, spans: Spans, skip: int, offsets: Spans, out: Bytes) -> None:
    for row in range(len(starts)):
        for byte in range(spans[row]):
            out[offsets[row] + byte] = block[starts[row] + skip + byte]


@numba.njit(nogil=True, cache=True)
def _match(block: Bytes, starts: Spans, lengths: Spans, data: Bytes, offsets: Spans, out: npt.NDArray[np.int8]) -> int:
    for row in range(len(starts)):
        if lengths[row] < 0:
            continue
        found = -1
        for name in range(len(offsets) - 1):
            if offsets[name + 1] - offsets[name] != lengths[row]:
                continue
            same = True
            for byte in range(lengths[row]):
                if block[starts[row] + byte] != data[offsets[name] + byte]:
                    same = False
                    break
            if same:
                found = name
                break
        if found < 0:
            return row
        out[row] = found
    return -1
