"""Rows between ingest and the store: Arrow tables with one fixed schema a kind.

`ingest` makes them from files, checked; `store` writes them. Neither imports the other. Times are int64 microseconds
since 1970 UTC. `row` is the row's place in the whole input, from 0 on over all files: nodes get their numbers in that
order (spec 0.3). References between rows are ids, resolved by the store in the same transaction.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hyphae_gpu.vocabulary import KnowledgeType


def _embedding(dimension: int) -> pa.DataType:
    return pa.list_(pa.float32(), dimension)


_INTERESTS = pa.list_(pa.float32(), len(KnowledgeType))


def schemas(dimension: int) -> dict[str, pa.Schema]:
    """Return the schema of each kind's table for vectors of this dimension.

    Nullable columns are the optional ones. knowledge_type, type: codes of `vocabulary`. `interests`: nine float32 by
    knowledge type, null when none are declared. `payload`: JSON text.
    """
    embedding = _embedding(dimension)
    return {
        "cell": pa.schema(
            [
                pa.field("row", pa.int64(), nullable=False),
                pa.field("id", pa.string(), nullable=False),
                pa.field("text", pa.string()),
                pa.field("embedding", embedding, nullable=False),
                pa.field("knowledge_type", pa.int8(), nullable=False),
                pa.field("salience", pa.float32(), nullable=False),
                pa.field("confidence", pa.float32(), nullable=False),
                pa.field("agent", pa.string()),
                pa.field("created_at", pa.int64(), nullable=False),
                pa.field("supersedes", pa.string()),
                pa.field("claim_subject", pa.string()),
                pa.field("claim_value", pa.string()),
                pa.field("stance", pa.float32()),
                pa.field("payload", pa.string()),
            ]
        ),
        "agent": pa.schema(
            [
                pa.field("row", pa.int64(), nullable=False),
                pa.field("id", pa.string(), nullable=False),
                pa.field("embedding", embedding),
                pa.field("interests", _INTERESTS),
                pa.field("trust", pa.float32()),
                pa.field("sponsor", pa.string()),
            ]
        ),
        "beacon": pa.schema(
            [
                pa.field("row", pa.int64(), nullable=False),
                pa.field("id", pa.string(), nullable=False),
                pa.field("agent", pa.string(), nullable=False),
                pa.field("text", pa.string()),
                pa.field("embedding", embedding, nullable=False),
                pa.field("interests", _INTERESTS),
                pa.field("radius", pa.float64()),
            ]
        ),
        "access": pa.schema(
            [
                pa.field("row", pa.int64(), nullable=False),
                pa.field("agent", pa.string(), nullable=False),
                pa.field("cell", pa.string(), nullable=False),
                pa.field("at", pa.int64(), nullable=False),
            ]
        ),
        "edge": pa.schema(
            [
                pa.field("row", pa.int64(), nullable=False),
                pa.field("src", pa.string(), nullable=False),
                pa.field("tgt", pa.string(), nullable=False),
                pa.field("type", pa.int8(), nullable=False),
                pa.field("weight", pa.float32(), nullable=False),
                pa.field("bandwidth", pa.int32()),
            ]
        ),
    }


@dataclass(frozen=True, kw_only=True)
class Rows:
    """One checked input, ready to be written: a table a kind, possibly empty, and the space its vectors live in."""

    dimension: int
    embedding_space: str
    cells: pa.Table
    agents: pa.Table
    beacons: pa.Table
    accesses: pa.Table
    edges: pa.Table
    #: Arrays of an embedder fitted on this input, to be kept in the store (empty when none was fitted).
    embedder_arrays: dict[str, npt.NDArray[Any]]

    def __len__(self) -> int:
        tables = (self.cells, self.agents, self.beacons, self.accesses, self.edges)
        return sum(table.num_rows for table in tables)


class Known(Protocol):
    """What ingest has to ask the store while it checks rows."""

    @property
    def dimension(self) -> int | None:
        """The store's vector dimension; None while it holds no vector."""

    @property
    def embedding_space(self) -> str | None:
        """The name of the store's embedding space; None while it holds no vector.

        `given` for vectors that came with the rows, else the embedder's name, as `lsa`.
        """

    def types_of(self, ids: pa.Array) -> npt.NDArray[np.int8]:
        """Return each id's node type code, -1 where the store has no such node; int8 [len(ids)]."""

    def accessed(self, ids: pa.Array) -> npt.NDArray[np.bool_]:
        """Return for each agent id whether the store has an access of it or a position for it; bool [len(ids)]."""

    def embedder_arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return the arrays of the store's fitted embedder; empty when there is none."""


class NothingKnown:
    """An empty store, as `Known`."""

    dimension: int | None = None
    embedding_space: str | None = None

    def types_of(self, ids: pa.Array) -> npt.NDArray[np.int8]:
        """Return -1 for every id."""
        return np.full(len(ids), -1, np.int8)

    def accessed(self, ids: pa.Array) -> npt.NDArray[np.bool_]:
        """Return False for every id."""
        return np.zeros(len(ids), np.bool_)

    def embedder_arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return no arrays."""
        return {}
