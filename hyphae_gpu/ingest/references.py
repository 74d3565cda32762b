"""Checks between rows: unique ids, and references by id to rows of this input or of the store."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hyphae_gpu.ingest.checks import nulls_of
from hyphae_gpu.ingest.problems import I64, Mask, Problems, quote
from hyphae_gpu.rows import Known
from hyphae_gpu.vocabulary import EdgeType, NodeType, names

_NODE_KINDS = {"cell": NodeType.CELL, "agent": NodeType.AGENT, "beacon": NodeType.BEACON}
_TYPE_NAMES = names(NodeType)
_UNKNOWN = -1


@dataclass(frozen=True, kw_only=True)
class KindRows:
    """All rows of one kind, as far as they were read: a table of the schema's columns (`row` included) and the keys."""

    keys: I64
    table: pa.Table

    def texts(self, name: str) -> pa.Array:
        """Return a text column in one piece, with 64-bit offsets."""
        return pa.chunked_array(self.table[name].chunks, pa.string()).cast(pa.large_string()).combine_chunks()


class Ids:
    """Every node id that a row may refer to."""

    def __init__(self, kinds: Mapping[str, KindRows], known: Known, problems: Problems) -> None:
        """Take the input's ids; refuse repeated ones and those that are another type of node in the store."""
        self._known = known
        parts = [(kinds[kind], code) for kind, code in _NODE_KINDS.items()]
        ids = pa.concat_arrays([part.texts("id") for part, _ in parts])
        keys = np.concatenate([part.keys for part, _ in parts])
        types = np.concatenate([np.full(len(part.keys), code, np.int8) for part, code in parts])
        order = np.argsort(keys, kind="stable")
        order = order[~nulls_of(ids)[order]]
        ids, keys, types = ids.take(pa.array(order)), keys[order], types[order]
        coded = ids.dictionary_encode()
        codes = coded.indices.to_numpy()
        first = first_of_code(codes, len(coded.dictionary))
        repeated = first[codes] != np.arange(len(codes))
        problems.add_where(
            keys,
            repeated,
            lambda row: f"id {quote(ids[row].as_py())} is taken by {problems.place(int(keys[first[codes[row]]]))}",
        )
        self._ids, self._types = coded.dictionary, types[first]
        stored = _types_in(known, self._ids)[codes]
        problems.add_where(
            keys,
            (stored != _UNKNOWN) & (stored != types),
            lambda row: (
                f"id {quote(ids[row].as_py())} is of type {_TYPE_NAMES[stored[row]]} in the store, "
                f"{_TYPE_NAMES[types[row]]} here"
            ),
        )

    def types_of(self, ids: pa.Array) -> npt.NDArray[np.int8]:
        """Return the node type that each id has in this input, else in the store, -1 for none (also of nulls)."""
        coded = ids.dictionary_encode()
        distinct = coded.dictionary
        at = pc.index_in(distinct, value_set=self._ids).fill_null(-1).to_numpy()
        types = np.full(len(distinct), _UNKNOWN, np.int8)
        here = at >= 0
        types[here] = self._types[at[here]]
        away = np.flatnonzero(~here)
        types[away] = _types_in(self._known, distinct.take(pa.array(away)))
        codes = coded.indices.fill_null(-1).to_numpy()
        return np.where(codes >= 0, types[codes] if len(types) else np.int8(_UNKNOWN), np.int8(_UNKNOWN))


def first_of_code(codes: npt.NDArray[np.int32], distinct: int) -> I64:
    """Return the position at which each code comes first."""
    first = np.empty(distinct, np.int64)
    first[codes[::-1]] = np.arange(len(codes) - 1, -1, -1)
    return first


def _types_in(known: Known, ids: pa.Array) -> npt.NDArray[np.int8]:
    if not len(ids):
        return np.zeros(0, np.int8)
    return np.asarray(known.types_of(ids.cast(pa.string())), np.int8)


def check_references(kinds: Mapping[str, KindRows], known: Known, problems: Problems) -> None:
    """Refuse repeated ids, references to unknown nodes or of a wrong type, and edges that spec 1.5 and 2.1 bar."""
    ids = Ids(kinds, known, problems)
    cells, agents, beacons, accesses = (kinds[kind] for kind in ("cell", "agent", "beacon", "access"))
    for rows, name, wanted in (
        (cells, "agent", NodeType.AGENT),
        (cells, "supersedes", NodeType.CELL),
        (agents, "sponsor", NodeType.AGENT),
        (beacons, "agent", NodeType.AGENT),
        (accesses, "agent", NodeType.AGENT),
        (accesses, "cell", NodeType.CELL),
    ):
        _check_reference(rows, name, wanted, ids, problems)
    itself = pc.equal(cells.texts("id"), cells.texts("supersedes")).fill_null(False).to_numpy(zero_copy_only=False)
    problems.add_where(cells.keys, itself, "supersedes itself")
    _check_agents_placed(agents, cells, accesses, known, problems)
    _check_edges(kinds["edge"], ids, problems)


def _check_reference(rows: KindRows, name: str, wanted: NodeType, ids: Ids, problems: Problems) -> None:
    column = rows.texts(name)
    if column.null_count == len(column):
        return
    types = ids.types_of(column)
    given = ~nulls_of(column)
    _check_known(name, column, given, types, rows.keys, problems)
    expected = _TYPE_NAMES[wanted]
    problems.add_where(
        rows.keys,
        given & (types != _UNKNOWN) & (types != wanted),
        lambda row: f"{name} {quote(column[row].as_py())} is of type {_TYPE_NAMES[types[row]]}, expected {expected}",
    )


def _check_known(
    name: str, column: pa.Array, given: Mask, types: npt.NDArray[np.int8], keys: I64, problems: Problems
) -> None:
    # Rows of a file that could not be read are known to nobody; say only that the file is bad.
    if not problems.file_lost:

        def reason(row: int) -> str:
            return f"{name} {quote(column[row].as_py())} is unknown, neither in this input nor in the store"

        problems.add_where(keys, given & (types == _UNKNOWN), reason)


def _check_agents_placed(
    agents: KindRows, cells: KindRows, accesses: KindRows, known: Known, problems: Problems
) -> None:
    """Refuse agents that nothing places: no embedding and no access; a cell of their own counts as one (spec 1.3)."""
    lacking = nulls_of(agents.table["embedding"])
    ids = agents.texts("id")
    at = np.flatnonzero(lacking & ~nulls_of(ids))
    if not len(at) or problems.file_lost:
        return
    ids = ids.take(pa.array(at))
    active = pa.concat_arrays([accesses.texts("agent"), cells.texts("agent")]).unique()
    placed = pc.is_in(ids, value_set=active).to_numpy(zero_copy_only=False)
    rest = np.flatnonzero(~placed)
    if len(rest):
        placed = placed.copy()
        placed[rest] = known.accessed(ids.take(pa.array(rest)).cast(pa.string()))
    problems.add_where(
        agents.keys[at],
        ~placed,
        lambda row: f"embedding missing: agent {quote(ids[row].as_py())} has no access either, which would place it",
    )


def _check_edges(edges: KindRows, ids: Ids, problems: Problems) -> None:
    if not len(edges.keys):
        return
    ends = {name: edges.texts(name) for name in ("src", "tgt")}
    types = {name: ids.types_of(column) for name, column in ends.items()}
    given = {name: ~nulls_of(column) for name, column in ends.items()}
    for name, column in ends.items():
        _check_known(name, column, given[name], types[name], edges.keys, problems)
    problems.add_where(
        edges.keys,
        types["src"] == NodeType.BEACON,
        lambda row: f"src {quote(ends['src'][row].as_py())} is a beacon, which has no edges out",
    )
    codes = pa.concat_arrays(list(ends.values())).dictionary_encode().indices.fill_null(-1).to_numpy()
    sources, targets = codes[: len(edges.keys)], codes[len(edges.keys) :]
    both = given["src"] & given["tgt"]
    problems.add_where(edges.keys, both & (sources == targets), "src and tgt are the same node")
    kinds = np.asarray(edges.table["type"].fill_null(-1).to_numpy(), np.int8)
    problems.add_where(
        edges.keys,
        kinds == EdgeType.SEMANTIC,
        "type semantic is made by the engine from vectors; rows declare causal, subscription or promoted",
    )
    whole = np.flatnonzero(both & (kinds >= 0))
    check_unique_edges(sources[whole], targets[whole], kinds[whole], edges.keys[whole], problems)


def check_unique_edges(
    sources: npt.NDArray[np.int32],
    targets: npt.NDArray[np.int32],
    types: npt.NDArray[np.int8],
    keys: I64,
    problems: Problems,
) -> None:
    """Refuse edges whose (source, target, type) came before (spec 2.1); nodes are numbers from 0 to below 2^31."""
    packed = (sources.astype(np.uint64) << np.uint64(33)) | (targets.astype(np.uint64) << np.uint64(2))
    packed |= types.astype(np.uint64)
    ordered = np.sort(packed)
    if not (ordered[1:] == ordered[:-1]).any():
        return
    _, first, codes = np.unique(packed, return_index=True, return_inverse=True)
    problems.add_where(
        keys,
        first[codes] != np.arange(len(keys)),
        lambda row: f"the edge (src, tgt, type) is already {problems.place(int(keys[first[codes[row]]]))}",
    )
