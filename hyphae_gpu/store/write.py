"""Rows into the store, in one transaction: numbers for new nodes, updates for known ones, accesses, declared edges."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from psycopg import sql
from psycopg.types.json import Jsonb

from hyphae_gpu.errors import BadInputError
from hyphae_gpu.rows import Rows
from hyphae_gpu.store import copy
from hyphae_gpu.store.arrays import save_embedder
from hyphae_gpu.store.copy_in import copy_in, slices
from hyphae_gpu.store.numbering import Numbering, Numbers
from hyphae_gpu.store.postgres import Connection
from hyphae_gpu.vocabulary import KINDS_OF_TYPE, EdgeKind, EdgeType, KnowledgeType, NodeType, names

_CellPart = tuple[pa.Table, list[copy.Field], copy.Field]
_DIMENSIONS = range(2, 16001)
_CELL_COLUMNS = [
    "num",
    "knowledge_type",
    "salience",
    "confidence",
    "agent",
    "claim_subject",
    "claim_value",
    "stance",
    "text",
    "supersedes",
    "created_at",
    "payload",
]
#: What makes a cell another one when it is given again (spec 6.6): all but its number and created_at.
_CONTENT = [*(name for name in _CELL_COLUMNS if name not in ("num", "created_at")), "embedding"]


def write_rows(connection: Connection, rows: Rows, *, diffs: bool) -> dict[str, int]:
    """Write checked rows within the caller's transaction; return what came of them.

    Counts: cells_created, cells_updated, cells_unchanged, agents, beacons (rows), accesses (new entries of the log),
    edges (rows). With `diffs` False new and changed cells wait silently. Raises BadInputError where rows and store do
    not fit: another dimension or embedding space, an id of another type or of a promoted node, a reference to nothing.
    """
    _settle_space(connection, rows)
    found = Numbering(connection, rows)
    counts = {"cells_created": _insert_cells(connection, rows, found, diffs)}
    counts |= _update_cells(connection, rows, found, diffs)
    _write_listeners(connection, rows, found)
    counts |= {"agents": rows.agents.num_rows, "beacons": rows.beacons.num_rows}
    _link_superseded(connection)
    counts["accesses"] = _write_accesses(connection, rows, found)
    counts["edges"] = _write_edges(connection, rows, found)
    if rows.embedder_arrays:
        save_embedder(connection, rows.embedder_arrays)
    return counts


def _settle_space(connection: Connection, rows: Rows) -> None:
    """Fix the dimension and the embedding space at the first vectors; hold later rows to them."""
    vectors = rows.cells.num_rows + rows.beacons.num_rows + rows.agents.num_rows
    vectors -= rows.agents["embedding"].null_count
    if not vectors:
        return
    stored = dict(connection.execute("select key, value from meta where key in ('dimension', 'embedding_space')"))
    given = {"dimension": rows.dimension, "embedding_space": rows.embedding_space}
    if stored and stored != given:
        raise BadInputError(
            [
                (
                    "all rows",
                    f"vectors of {rows.embedding_space!r} with dimension {rows.dimension}; the store holds "
                    f"{stored['embedding_space']!r} with dimension {stored['dimension']}, and only that",
                )
            ]
        )
    if stored:
        return
    if rows.dimension not in _DIMENSIONS:
        raise BadInputError([("all rows", f"vectors of dimension {rows.dimension}, expected 2 to 16000")])
    for table in ("knowledge_nodes", "memory_diffs"):
        wide = sql.SQL("alter table {} add column embedding vector({})").format(
            sql.Identifier(table), sql.Literal(rows.dimension)
        )
        connection.execute(wide)
        connection.execute(
            sql.SQL("alter table {} alter column embedding set storage external").format(sql.Identifier(table))
        )
    # What is copied into a table emptied in the same transaction needs no write-ahead log (wal_level minimal).
    if not connection.execute("select 1 from knowledge_nodes limit 1").fetchone():
        connection.execute("truncate knowledge_nodes")
    for key, value in given.items():
        connection.execute("insert into meta values (%s, %s)", [key, Jsonb(value)])


def _array(table: pa.Table, name: str) -> pa.Array:
    """Return a column as one array."""
    column = table[name]
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks or [pa.array([], column.type)])


def _numpy(table: pa.Table, name: str, fill: float = 0) -> npt.NDArray[Any]:
    column = _array(table, name)
    filled: npt.NDArray[Any] = pc.fill_null(column, pa.scalar(fill, column.type)).to_numpy(zero_copy_only=False)
    return filled


def _valid(table: pa.Table, name: str) -> npt.NDArray[np.bool_]:
    valid: npt.NDArray[np.bool_] = _array(table, name).is_valid().to_numpy(zero_copy_only=False)
    return valid


def _embeddings(table: pa.Table, dimension: int) -> copy.Field:
    """Return the vectors of a table's rows, null where a row has none."""
    valid = _valid(table, "embedding")
    given = _array(table, "embedding").flatten().to_numpy(zero_copy_only=False).reshape(-1, dimension)
    if valid.all():
        return copy.vectors(given)
    whole = np.zeros((len(valid), dimension), np.float32)
    whole[valid] = given
    return copy.vectors(whole, valid)


def _cell_parts(cells: pa.Table, numbers: npt.NDArray[np.int64], rows: Rows, found: Numbering) -> Iterator[_CellPart]:
    """Return cells piece by piece, each with the fields of `_CELL_COLUMNS` and its vectors'."""
    references = np.column_stack([numbers, found.of(_array(cells, "agent")), found.of(_array(cells, "supersedes"))])
    for part in slices(cells.num_rows, rows.dimension):
        piece = cells.slice(part.start, part.stop - part.start)
        yield piece, _cell_fields(piece, *references[part].T), _embeddings(piece, rows.dimension)


def _cell_fields(table: pa.Table, numbers: Numbers, agents: Numbers, supersedes: Numbers) -> list[copy.Field]:
    return [
        copy.int64(numbers),
        copy.words(_numpy(table, "knowledge_type"), names(KnowledgeType)),
        copy.float32(_numpy(table, "salience")),
        copy.float32(_numpy(table, "confidence")),
        copy.reference(agents),
        copy.text(_array(table, "claim_subject")),
        copy.text(_array(table, "claim_value")),
        copy.float32(_numpy(table, "stance"), _valid(table, "stance")),
        copy.text(_array(table, "text")),
        copy.reference(supersedes),
        copy.timestamps(_numpy(table, "created_at")),
        copy.jsonb(_array(table, "payload")),
    ]


def _constant(word: str, count: int) -> copy.Field:
    return copy.words(np.zeros(count, np.int8), [word])


def _insert_cells(connection: Connection, rows: Rows, found: Numbering, diffs: bool) -> int:
    """Copy the cells that are new into the nodes."""
    cells, numbers = found.only(rows.cells, found.cells, new=True)
    pending = "created" if diffs else "silent"

    if not cells.num_rows:
        return 0
    parts = (
        [
            *fields,
            copy.text(_array(piece, "id")),
            _constant("cell", piece.num_rows),
            _constant(pending, piece.num_rows),
            copy.timestamps(_numpy(piece, "created_at")),
            vectors,
        ]
        for piece, fields, vectors in _cell_parts(cells, numbers, rows, found)
    )
    columns = [*_CELL_COLUMNS, "id", "type", "pending", "last_access", "embedding"]
    return copy_in(connection, "knowledge_nodes", columns, parts, "ingest.nodes")


def _update_cells(connection: Connection, rows: Rows, found: Numbering, diffs: bool) -> dict[str, int]:
    """Give known cells their new content (spec 6.6); those given again alike are left alone.

    Raises BadInputError for other content of a promoted node.
    """
    cells, numbers = found.only(rows.cells, found.cells, new=False)
    if not cells.num_rows:
        return {"cells_updated": 0, "cells_unchanged": 0}
    names_of = sql.SQL(", ").join(map(sql.Identifier, [*_CELL_COLUMNS, "embedding"]))
    connection.execute(
        sql.SQL("create temp table incoming on commit drop as select {} from knowledge_nodes with no data").format(
            names_of
        )
    )
    parts = ([*fields, vectors] for _, fields, vectors in _cell_parts(cells, numbers, rows, found))
    copy_in(connection, "incoming", [*_CELL_COLUMNS, "embedding"], parts, "ingest.updates")
    new, old = (sql.SQL(", ").join(sql.Identifier(t, name) for name in _CONTENT) for t in ("i", "n"))
    alike = connection.execute(
        sql.SQL(
            "delete from incoming i using knowledge_nodes n where n.num = i.num and ({}) is not distinct from ({})"
        ).format(new, old)
    ).rowcount
    _refuse_promoted(connection, cells, numbers)
    connection.execute(
        "update knowledge_nodes l set superseded_by = null from incoming i join knowledge_nodes n using (num) "
        "where l.num = n.supersedes and l.superseded_by = i.num and i.supersedes is distinct from n.supersedes"
    )
    changes = sql.SQL(", ").join(sql.SQL("{0} = i.{0}").format(sql.Identifier(name)) for name in _CONTENT)
    # A diff that waits for the next epoch already is neither lost nor doubled.
    pending = "'updated'" if diffs else "coalesce(n.pending, 'silent')"
    changed = connection.execute(
        sql.SQL(
            "update knowledge_nodes n set {}, pending = case when n.pending = 'created' then 'created' else {} end "
            "from incoming i where n.num = i.num"
        ).format(changes, sql.SQL(pending))
    ).rowcount
    connection.execute(
        "insert into accesses select agent, num, created_at from incoming where agent is not null "
        "on conflict do nothing"
    )
    return {"cells_updated": changed, "cells_unchanged": alike}


def _refuse_promoted(connection: Connection, cells: pa.Table, numbers: npt.NDArray[np.int64]) -> None:
    """Refuse rows that would change what was promoted: it says what its cell said then (spec 5.2)."""
    raised = connection.execute(
        "select n.num, n.id, n.layer, c.id from incoming i join knowledge_nodes n using (num) "
        "left join knowledge_nodes c on c.num = n.made_of where n.layer > 0"
    ).fetchall()
    if not raised:
        return
    rows = dict(zip(numbers.tolist(), cells["row"].to_pylist(), strict=True))
    problems = [
        (
            f"row {rows[num]}",
            f"id {name!r} is a node promoted to layer {layer}; give {cell!r} anew, of which it was made",
        )
        for num, name, layer, cell in sorted(raised, key=lambda row: rows[row[0]])
    ]
    raise BadInputError(problems)


def _interests(table: pa.Table) -> copy.Field:
    """Return declared interests as jsonb {type: interest}, undeclared types left out."""
    column = _array(table, "interests").to_pylist()
    words = names(KnowledgeType)
    made = [
        None if row is None else json.dumps({word: value for word, value in zip(words, row, strict=True) if value})
        for row in column
    ]
    return copy.jsonb(pa.array(made, pa.string()))


def _write_listeners(connection: Connection, rows: Rows, found: Numbering) -> None:
    """Write agents and beacons: new ones with the next numbers, known ones as given now."""
    now = np.int64(time.time() * 1e6)
    kinds = ((NodeType.AGENT, rows.agents, found.agents), (NodeType.BEACON, rows.beacons, found.beacons))
    for kind, table, numbers in kinds:
        if not table.num_rows:
            continue
        count = table.num_rows
        columns = ["num", "id", "type", "created_at", "last_access", "interests", "pending"]
        made = copy.timestamps(np.full(count, now))
        fields = [copy.int64(numbers), copy.text(_array(table, "id")), _constant(kind.name.lower(), count), made, made]
        fields += [_interests(table), _constant("silent", count)]
        if kind is NodeType.AGENT:
            own = {
                "trust": copy.float32(_numpy(table, "trust"), _valid(table, "trust")),
                "sponsor": copy.reference(found.of(_array(table, "sponsor"))),
            }
        else:
            own = {
                "agent": copy.reference(found.of(_array(table, "agent"))),
                "text": copy.text(_array(table, "text")),
                "radius": copy.float64(_numpy(table, "radius"), _valid(table, "radius")),
            }
        if rows.dimension and _valid(table, "embedding").any():
            own["embedding"] = _embeddings(table, rows.dimension)
        _upsert(connection, [*columns, *own], [*fields, *own.values()], ["interests", *own])


def _upsert(connection: Connection, columns: list[str], fields: list[copy.Field], settable: list[str]) -> None:
    """Insert nodes; where the number is taken set what the row says.

    A position that the row does not give, or gives as it did before, leaves the node where it has drifted to.
    """
    listed = sql.SQL(", ").join(map(sql.Identifier, columns))
    connection.execute(
        sql.SQL(
            "create temp table listeners on commit drop as select {}, given from knowledge_nodes with no data"
        ).format(listed)
    )
    copy_in(connection, "listeners", columns, [fields], "ingest.nodes")
    changes: list[sql.Composable] = [
        sql.SQL("{0} = excluded.{0}").format(sql.Identifier(name)) for name in settable if name != "embedding"
    ]
    if "embedding" in settable:
        connection.execute("update listeners set given = sha256(vector_send(embedding)) where embedding is not null")
        changes.append(sql.SQL("given = coalesce(excluded.given, n.given)"))
        changes.append(
            sql.SQL(
                "embedding = case when excluded.given is null or excluded.given = n.given then n.embedding "
                "else excluded.embedding end"
            )
        )
    connection.execute(
        sql.SQL(
            "insert into knowledge_nodes as n ({0}, given) select {0}, given from listeners order by num "
            "on conflict (num) do update set {1}"
        ).format(listed, sql.SQL(", ").join(changes))
    )
    connection.execute("drop table listeners")


def _link_superseded(connection: Connection) -> None:
    """Tell every superseded cell by whom: the first that said so."""
    connection.execute(
        "update knowledge_nodes l set superseded_by = w.num from "
        "(select supersedes, min(num) as num from knowledge_nodes where supersedes is not null group by supersedes) w "
        "where l.num = w.supersedes and l.superseded_by is null"
    )


def _write_accesses(connection: Connection, rows: Rows, found: Numbering) -> int:
    """Log the accesses given, and one by its maker for each new cell (spec 1.3); return how many are new."""
    cells, numbers = found.only(rows.cells, found.cells, new=True)
    makers = found.of(_array(cells, "agent"))
    made = makers >= 0
    agents = np.concatenate([found.of(_array(rows.accesses, "agent")), makers[made]])
    touched = np.concatenate([found.of(_array(rows.accesses, "cell")), numbers[made]])
    at = np.concatenate([_numpy(rows.accesses, "at"), _numpy(cells, "created_at")[made]])
    if not len(agents):
        return 0
    connection.execute("create temp table touches (agent bigint, cell bigint, at timestamptz) on commit drop")
    fields = [copy.int64(agents), copy.int64(touched), copy.timestamps(at)]
    copy_in(connection, "touches", ["agent", "cell", "at"], [fields], "ingest.accesses")
    return connection.execute("insert into accesses select * from touches on conflict do nothing").rowcount


def _write_edges(connection: Connection, rows: Rows, found: Numbering) -> int:
    """Write declared edges; one that is given again takes the new weight and bandwidth."""
    table = rows.edges
    if not table.num_rows:
        return 0
    types = _numpy(table, "type")
    kinds = np.array([KINDS_OF_TYPE[EdgeType(code)][0] for code in range(len(EdgeType))], np.int8)[types]
    connection.execute(
        "create temp table declared (src bigint, tgt bigint, type text, kind text, weight real, bandwidth integer) "
        "on commit drop"
    )
    fields = [
        copy.int64(found.of(_array(table, "src"))),
        copy.int64(found.of(_array(table, "tgt"))),
        copy.words(types, names(EdgeType)),
        copy.words(np.where(kinds == EdgeKind.NONE, -1, kinds), names(EdgeKind)),
        copy.float32(_numpy(table, "weight")),
        copy.int32(_numpy(table, "bandwidth"), _valid(table, "bandwidth")),
    ]
    columns = ["src", "tgt", "type", "kind", "weight", "bandwidth"]
    copy_in(connection, "declared", columns, [fields], "ingest.edges")
    return connection.execute(
        "insert into topology_edges (src, tgt, type, kind, layer, weight, bandwidth, given) "
        "select d.src, d.tgt, d.type, d.kind, n.layer, d.weight, d.bandwidth, true "
        "from declared d join knowledge_nodes n on n.num = d.src "
        "on conflict (src, tgt, type, given) do update set "
        "kind = excluded.kind, weight = excluded.weight, bandwidth = excluded.bandwidth"
    ).rowcount
