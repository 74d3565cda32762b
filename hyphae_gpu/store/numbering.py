"""Numbers for the ids of an input: known nodes keep theirs, new ones get the next in the order of rows (spec 0.3)."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hyphae_gpu.errors import BadInputError
from hyphae_gpu.rows import Rows
from hyphae_gpu.store.known import find_nodes
from hyphae_gpu.store.postgres import Connection
from hyphae_gpu.vocabulary import NodeType, names

Numbers = npt.NDArray[np.int64]
#: An inbox entry says how it came: by gossip, or the beacon's id. So no beacon may be called that.
RESERVED_BEACON = "gossip"
_REFERENCES = (
    ("cells", "agent"),
    ("cells", "supersedes"),
    ("agents", "sponsor"),
    ("beacons", "agent"),
    ("accesses", "agent"),
    ("accesses", "cell"),
    ("edges", "src"),
    ("edges", "tgt"),
)


def next_number(connection: Connection) -> int:
    """Return the number that the next new node gets."""
    [(number,)] = connection.execute("select coalesce(max(num), -1) + 1 from knowledge_nodes")
    return int(number)


class Numbering:
    """The node number of every id that the rows hold or name; within the caller's transaction.

    cells, agents, beacons: int64, one number a row of that table. Raises BadInputError for an id given twice, one that
    the store knows as another type, and a reference to a node that is neither stored nor given.
    """

    cells: Numbers
    agents: Numbers
    beacons: Numbers

    def __init__(self, connection: Connection, rows: Rows) -> None:
        tables = {"cells": rows.cells, "agents": rows.agents, "beacons": rows.beacons}
        types = dict(zip(tables, (NodeType.CELL, NodeType.AGENT, NodeType.BEACON), strict=True))
        given = pa.concat_arrays([_strings(table["id"]) for table in tables.values()])
        given_types = np.repeat([types[kind] for kind in tables], [table.num_rows for table in tables.values()])
        given_rows = np.concatenate([table["row"].to_numpy() for table in tables.values()]).astype(np.int64)
        named = [_strings(getattr(rows, kind)[column]) for kind, column in _REFERENCES]
        self._ids = pc.unique(pa.concat_arrays([given, *named]).drop_null())
        self._numbers, stored_types = find_nodes(connection, self._ids)
        places = _places(given, self._ids)
        _refuse_twice(places, given, given_rows)
        _refuse_types(stored_types[places], given_types, given, given_rows)
        self.base = next_number(connection)
        new = self._numbers[places] < 0
        order = np.argsort(given_rows[new], kind="stable")
        self._numbers[places[new][order]] = self.base + np.arange(len(order))
        ends = np.cumsum([table.num_rows for table in tables.values()])
        self.cells, self.agents, self.beacons = np.split(self._numbers[places], ends[:-1])
        self._refuse_unresolved(rows)

    def of(self, ids: pa.Array) -> Numbers:
        """Return the numbers of ids, -1 for null."""
        known = np.append(self._numbers, -1)
        return known[_places(_strings(ids), self._ids)]

    def only(self, table: pa.Table, numbers: Numbers, *, new: bool) -> tuple[pa.Table, Numbers]:
        """Return the rows of a table, and their numbers, that are new to the store, or those that are not."""
        chosen = (numbers >= self.base) == new
        if chosen.all():
            return table, numbers
        return table.filter(pa.array(chosen)), numbers[chosen]

    def _refuse_unresolved(self, rows: Rows) -> None:
        problems = []
        for kind, name in _REFERENCES:
            table = getattr(rows, kind)
            column = _strings(table[name])
            for i in np.flatnonzero(column.is_valid().to_numpy(zero_copy_only=False) & (self.of(column) < 0)):
                place = f"row {table['row'][int(i)].as_py()}"
                problems.append((place, f"{name} {column[int(i)].as_py()!r} is neither in the store nor in the input"))
        if problems:
            raise BadInputError(problems)


def _strings(column: Any) -> pa.Array:
    if isinstance(column, pa.ChunkedArray):
        column = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
    return column.cast(pa.large_string())


def _places(ids: pa.Array, among: pa.Array) -> Numbers:
    """Return where each id stands among unique ones; -1 for null."""
    found = pc.fill_null(pc.index_in(ids, among, skip_nulls=True), -1)
    places: Numbers = found.to_numpy(zero_copy_only=False).astype(np.int64)
    return places


def _refuse_twice(places: Numbers, ids: pa.Array, rows: Numbers) -> None:
    _, first, counts = np.unique(places, return_index=True, return_counts=True)
    if (counts > 1).any():
        later = np.setdiff1d(np.arange(len(places)), first)
        raise BadInputError(
            [(f"row {rows[i]}", f"id {ids[int(i)].as_py()!r} was given before") for i in later[: BadInputError.shown]],
            len(later),
        )


def _refuse_types(stored: npt.NDArray[np.int8], types: Any, ids: pa.Array, rows: Numbers) -> None:
    wrong = np.flatnonzero((stored >= 0) & (stored != types))
    words = names(NodeType)
    problems = [
        (f"row {rows[i]}", f"id {ids[int(i)].as_py()!r} is {words[stored[i]]} in the store, {words[types[i]]} here")
        for i in wrong
    ]
    problems += [
        (f"row {rows[i]}", f"a beacon may not have the id {RESERVED_BEACON!r}: inbox entries use that word")
        for i in np.flatnonzero(types == NodeType.BEACON)
        if ids[int(i)].as_py() == RESERVED_BEACON
    ]
    if problems:
        raise BadInputError(problems)
