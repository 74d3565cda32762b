"""Deliveries to a Parquet file (interfaces.md, "`propagate` files", out)."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from hyphae_gpu import swarm
from hyphae_gpu.columns import Column, as_tensor
from hyphae_gpu.errors import UsageError
from hyphae_gpu.vocabulary import ENERGY_UNITS

_GROUP_ROWS: Final = 1 << 18


class _Ids(Protocol):
    """What of a graph turns numbers back into the ids of its files."""

    node_ids: pa.Array
    diff_ids: pa.Array
    node_id_type: pa.DataType
    diff_id_type: pa.DataType


def write_deliveries(path: Path, graph: Any, deliveries: swarm.Deliveries, resonance: Column | None = None) -> None:
    """Write what reached whom, one row a delivery, in the order of `deliveries`: by diff, then node, as in the input.

    `graph` is the `Graph` that the numbers mean; `resonance` int64, one a delivery, adds that column. The file appears
    whole or not at all. Raises UsageError where it cannot be written.
    """
    columns = {
        "diff": deliveries.diffs,
        "node": deliveries.nodes,
        "hop": deliveries.hops,
        "energy": deliveries.energies,
        "score": deliveries.scores,
        "parent": deliveries.parents,
    }
    if resonance is not None:
        columns["resonance"] = as_tensor(resonance)
    host = {name: np.asarray(column.cpu().numpy()) for name, column in columns.items()}
    schema = _schema(graph, resonance is not None)
    try:
        with _appearing_whole(path) as sink, pq.ParquetWriter(sink, schema) as writer:
            for start in range(0, max(1, len(deliveries)), _GROUP_ROWS):
                piece = {name: column[start : start + _GROUP_ROWS] for name, column in host.items()}
                writer.write_batch(_batch(piece, graph, schema))
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror or error}") from error


def _schema(graph: _Ids, with_resonance: bool) -> pa.Schema:
    node, diff = _plain(graph.node_id_type), _plain(graph.diff_id_type)
    fields = [
        pa.field("diff", diff, nullable=False),
        pa.field("node", node, nullable=False),
        pa.field("hop", pa.int32(), nullable=False),
        pa.field("energy", pa.float32(), nullable=False),
        pa.field("score", pa.float64(), nullable=False),
        pa.field("parent", node),
    ]
    if with_resonance:
        fields.append(pa.field("resonance", pa.int64(), nullable=False))
    return pa.schema(fields)


def _plain(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _batch(piece: dict[str, npt.NDArray[Any]], graph: _Ids, schema: pa.Schema) -> pa.RecordBatch:
    parents = piece["parent"]
    made = {
        "diff": graph.diff_ids.take(pa.array(piece["diff"])),
        "node": graph.node_ids.take(pa.array(piece["node"])),
        "hop": pa.array(piece["hop"]),
        "energy": pa.array((piece["energy"] / ENERGY_UNITS).astype(np.float32)),
        "score": pa.array(piece["score"]),
        "parent": graph.node_ids.take(pa.array(parents, mask=parents < 0)),
    }
    if "resonance" in piece:
        made["resonance"] = pa.array(piece["resonance"])
    return pa.RecordBatch.from_arrays([pc.cast(made[part.name], part.type) for part in schema], schema=schema)


@contextmanager
def _appearing_whole(path: Path) -> Iterator[Any]:
    """Yield a file to write; it takes the place of `path` when the block ends well, and leaves nothing when not."""
    if path.exists() and not path.is_file():
        # A pipe or device: nothing to put in its place.
        with path.open("wb") as sink:
            yield sink
        return
    target = path.resolve()
    descriptor, name = tempfile.mkstemp(prefix=".deliveries-", suffix=".tmp", dir=target.parent)
    try:
        with os.fdopen(descriptor, "wb") as sink:
            yield sink
            sink.flush()
            os.fsync(sink.fileno())
        # mkstemp gives a private file; a result is as readable as any other new file.
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(name, 0o666 & ~mask)
        os.replace(name, target)
    except BaseException:
        os.unlink(name)
        raise
