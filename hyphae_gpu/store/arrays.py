"""Plain arrays in the store, cut into chunks: the HNSW index (spec 2.2) and the fitted embedder; no pickle."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hyphae_gpu.errors import DatabaseError
from hyphae_gpu.state import IndexArrays
from hyphae_gpu.store import copy
from hyphae_gpu.store.copy_in import copy_in
from hyphae_gpu.store.postgres import Connection

#: Bytes of one chunk; an epoch that adds points rewrites the chunks it changed, no others.
CHUNK_BYTES = 1 << 20
_EMBEDDER_BYTES = 64 << 20
#: Arrays with these kinds of dtype are plain bytes: bool, integers, floats, fixed-width bytes and text.
_PLAIN_KINDS = "biufSU"
#: part, chunk number, digest, bytes
_Chunk = tuple[str, int, bytes, npt.NDArray[np.uint8]]
_PARTS: dict[str, str] = {"founders": "<i4", "vectors": "<f4", "levels": "<i4", "links": "<i4"}


def save_index(connection: Connection, layer: int, index: IndexArrays) -> int:
    """Write a layer's index whole, leaving out chunks that are stored alike; return how many were written."""
    stored = {
        (part, chunk): digest
        for part, chunk, digest in connection.execute(
            "select part, chunk, digest from index_chunks where layer = %s", [layer]
        )
    }
    changed: list[_Chunk] = []
    for part, dtype in _PARTS.items():
        data = np.ascontiguousarray(getattr(index, part), dtype).reshape(-1).view(np.uint8)
        for chunk in range(-(-len(data) // CHUNK_BYTES)):
            piece = data[chunk * CHUNK_BYTES : (chunk + 1) * CHUNK_BYTES]
            digest = hashlib.blake2b(piece.data, digest_size=16).digest()
            if stored.pop((part, chunk), None) != digest:
                changed.append((part, chunk, digest, piece))
    gone = [*stored, *((part, chunk) for part, chunk, _, _ in changed)]
    connection.cursor().executemany(
        "delete from index_chunks where layer = %s and part = %s and chunk = %s",
        [(layer, part, chunk) for part, chunk in gone],
    )
    columns = ["layer", "part", "chunk", "digest", "data"]
    copy_in(connection, "index_chunks", columns, (_chunk_fields(layer, piece) for piece in changed), "checkpoint.index")
    connection.execute(
        "insert into index_heads values (%s, %s, %s, %s, %s, %s) on conflict (layer) do update set "
        "points = excluded.points, dimension = excluded.dimension, links = excluded.links, "
        "entry_point = excluded.entry_point, max_level = excluded.max_level",
        [layer, len(index), index.vectors.shape[1], len(index.links), index.entry_point, index.max_level],
    )
    return len(changed)


def _chunk_fields(layer: int, piece: _Chunk) -> list[copy.Field]:
    part, chunk, digest, data = piece
    return [
        copy.int16(np.array([layer])),
        copy.text(pa.array([part])),
        copy.int32(np.array([chunk])),
        copy.text(pa.array([digest], pa.binary())),
        copy.Field(data.reshape(1, -1), None, np.ones(1, np.bool_)),
    ]


def load_index(connection: Connection, layer: int, dimension: int) -> IndexArrays:
    """Return a layer's index; one without points where none was stored."""
    head = connection.execute(
        "select points, dimension, links, entry_point, max_level from index_heads where layer = %s", [layer]
    ).fetchone()
    points, wide, links, entry_point, max_level = head or (0, dimension, 0, -1, -1)
    sizes = {"founders": points, "vectors": points * wide, "levels": points, "links": links}
    arrays = {part: _load_part(connection, layer, part, sizes[part], dtype) for part, dtype in _PARTS.items()}
    arrays["vectors"] = arrays["vectors"].reshape(points, wide)
    return IndexArrays(**arrays, entry_point=entry_point, max_level=max_level)


def _load_part(connection: Connection, layer: int, part: str, size: int, dtype: str) -> npt.NDArray[Any]:
    out = np.empty(size, dtype)
    raw = out.view(np.uint8)
    at = 0
    with connection.cursor(binary=True) as cursor:
        cursor.execute("select chunk from index_chunks where layer = %s and part = %s order by chunk", [layer, part])
        for (chunk,) in cursor.fetchall():
            row = cursor.execute(
                "select data from index_chunks where layer = %s and part = %s and chunk = %s", [layer, part, chunk]
            ).fetchone()
            data = row[0] if row else b""
            if at + len(data) > len(raw):
                raise DatabaseError(
                    f"the stored index of layer {layer} is damaged: {part} is longer than its head says"
                )
            raw[at : at + len(data)] = np.frombuffer(data, np.uint8)
            at += len(data)
    if at != len(raw):
        raise DatabaseError(f"the stored index of layer {layer} is damaged: {part} has {at} bytes, expected {len(raw)}")
    return out


def save_embedder(connection: Connection, arrays: dict[str, npt.NDArray[Any]]) -> None:
    """Replace the fitted embedder's arrays."""
    connection.execute("delete from embedder_arrays")
    columns = ["name", "part", "dtype", "shape", "data"]
    copy_in(connection, "embedder_arrays", columns, _embedder_fields(arrays), "ingest.embedder")


def _embedder_fields(arrays: dict[str, npt.NDArray[Any]]) -> Any:
    for name, array in arrays.items():
        if array.dtype.kind not in _PLAIN_KINDS:
            raise ValueError(f"embedder array {name!r} has dtype {array.dtype}, which is no plain bytes")
        plain = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
        data = np.frombuffer(plain.tobytes(), np.uint8)
        for part in range(max(1, -(-len(data) // _EMBEDDER_BYTES))):
            piece = data[part * _EMBEDDER_BYTES : (part + 1) * _EMBEDDER_BYTES]
            shape = _bigint_array(array.shape)
            yield [
                copy.text(pa.array([name])),
                copy.int32(np.array([part])),
                copy.text(pa.array([plain.dtype.str])),
                copy.Field(shape.reshape(1, -1), None, np.ones(1, np.bool_)),
                copy.Field(piece.reshape(1, -1), None, np.ones(1, np.bool_)),
            ]


def _bigint_array(values: tuple[int, ...]) -> npt.NDArray[np.uint8]:
    """Return a bigint[] as PostgreSQL sends it: dimensions, null flag, element type, then length and start of each."""
    head = np.array([1, 0, 20, len(values), 1] if values else [0, 0, 20], ">i4").tobytes()
    items = b"".join(np.array(8, ">i4").tobytes() + np.array(value, ">i8").tobytes() for value in values)
    return np.frombuffer(head + items, np.uint8)


def load_embedder(connection: Connection) -> dict[str, npt.NDArray[Any]]:
    """Return the fitted embedder's arrays by name; empty when there is none."""
    whole: dict[str, tuple[str, list[int], list[bytes]]] = {}
    with connection.cursor(binary=True) as cursor:
        cursor.execute("select name, dtype, shape, data from embedder_arrays order by name, part")
        for name, dtype, shape, data in cursor:
            whole.setdefault(name, (dtype, shape, []))[2].append(data)
    arrays = {}
    for name, (dtype, shape, pieces) in whole.items():
        if np.dtype(dtype).kind not in _PLAIN_KINDS:
            raise DatabaseError(f"the stored embedder array {name!r} has dtype {dtype}, which is no plain bytes")
        arrays[name] = np.frombuffer(bytearray(b"".join(pieces)), dtype).reshape(shape)
    return arrays
