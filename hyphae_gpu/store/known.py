"""What the store knows, asked by id (`rows.Known`)."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hyphae_gpu.store import copy, copy_out
from hyphae_gpu.store.arrays import load_embedder
from hyphae_gpu.store.copy_in import copy_in
from hyphae_gpu.store.postgres import Connection, database_errors
from hyphae_gpu.vocabulary import NodeType, names

_ANALYSED_ROWS = 1000


class StoreKnown:
    """The store's answers while rows are checked, over one connection."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    @property
    def dimension(self) -> int | None:
        """The store's vector dimension; None while it holds no vector."""
        dimension: int | None = _meta(self._connection, "dimension")
        return dimension

    @property
    def embedding_space(self) -> str | None:
        """The name of the store's embedding space; None while it holds no vector."""
        space: str | None = _meta(self._connection, "embedding_space")
        return space

    def types_of(self, ids: pa.Array) -> npt.NDArray[np.int8]:
        """Return each id's node type code, -1 where the store has no such node; int8 [len(ids)]."""
        with database_errors(), self._connection.transaction():
            return find_nodes(self._connection, ids)[1]

    def accessed(self, ids: pa.Array) -> npt.NDArray[np.bool_]:
        """Return for each agent id whether the store has an access of it or a position for it; bool [len(ids)]."""
        placed = "false" if self.dimension is None else "n.embedding is not null"
        with database_errors(), self._connection.transaction():
            _send_ids(self._connection, ids)
            query = (
                "select w.pos from wanted w join knowledge_nodes n using (id) "
                f"where {placed} or exists (select from accesses a where a.agent = n.num)"
            )
            [positions] = copy_out.copy_out(self._connection, query, [copy_out.numbers(">i8")])
            self._connection.execute("drop table wanted")
        found = np.zeros(len(ids), np.bool_)
        found[positions] = True
        return found

    def embedder_arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return the arrays of the store's fitted embedder; empty when there is none."""
        with database_errors():
            return load_embedder(self._connection)


def find_nodes(connection: Connection, ids: pa.Array) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int8]]:
    """Return each id's number and type code, -1 for unknown ones; within the caller's transaction."""
    numbers = np.full(len(ids), -1, np.int64)
    types = np.full(len(ids), -1, np.int8)
    if len(ids):
        _send_ids(connection, ids)
        readers = [copy_out.numbers(">i8"), copy_out.numbers(">i8"), copy_out.codes(names(NodeType))]
        query = "select w.pos, n.num, n.type from wanted w join knowledge_nodes n using (id)"
        positions, found, found_types = copy_out.copy_out(connection, query, readers)
        connection.execute("drop table wanted")
        numbers[positions] = found
        types[positions] = found_types
    return numbers, types


def _send_ids(connection: Connection, ids: pa.Array) -> None:
    connection.execute("create temp table wanted (pos bigint, id text) on commit drop")
    fields = [copy.int64(np.arange(len(ids))), copy.text(ids)]
    copy_in(connection, "wanted", ["pos", "id"], [fields], "ingest.ids")
    if len(ids) > _ANALYSED_ROWS:
        connection.execute("analyze wanted")


def _meta(connection: Connection, key: str) -> Any:
    with database_errors():
        row = connection.execute("select value from meta where key = %s", [key]).fetchone()
    return row[0] if row else None
