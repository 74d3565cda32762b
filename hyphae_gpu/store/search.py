"""Vector search in the store (spec 8.2), and the pgvector indexes that make it fast."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt
from psycopg import sql
from psycopg.rows import dict_row

from hyphae_gpu.errors import DatabaseError, UsageError
from hyphae_gpu.store.postgres import Connection, Database
from hyphae_gpu.vocabulary import KnowledgeType, NodeType, names

#: The largest dimension that pgvector indexes as float32, and as float16 (spec 8.2); beyond, search is exact.
VECTOR_LIMIT, HALF_LIMIT = 2000, 4000
#: M and efConstruction of each layer (spec 2.2).
_BUILD = ((24, 128), (16, 100), (8, 64))
_EF_SEARCH = 100
_FOUND = "n.num, n.id, n.type, n.layer, n.knowledge_type, coalesce(n.text, own.name) as text, n.salience, n.created_at"
_PROGRESS_SECONDS = 0.5

#: Told an index's name and the share of it that is done, 0 to 1.
Progress = Callable[[str, float], None]


def dimension_of(connection: Connection) -> int:
    """Return the dimension of the store's vectors; raises DatabaseError while it holds none."""
    row = connection.execute("select value from meta where key = 'dimension'").fetchone()
    if row is None:
        raise DatabaseError("the store holds no vectors yet: ingest some rows first (hyphae-gpu ingest FILES)")
    return int(row[0])


def _stored_as(dimension: int) -> tuple[sql.Composable, str]:
    """Return the expression that is indexed and searched, and the operator class of its index."""
    if VECTOR_LIMIT < dimension <= HALF_LIMIT:
        return sql.SQL("(embedding::halfvec({}))").format(sql.Literal(dimension)), "halfvec_cosine_ops"
    return sql.SQL("embedding"), "vector_cosine_ops"


def search(
    connection: Connection,
    vector: npt.NDArray[np.float32],
    *,
    limit: int,
    layer: int | None,
    type: str | None,
    scene: str | None,
    since: int | None,
) -> list[dict[str, Any]]:
    """Return the nodes nearest to a vector, best first, decayed ones too; within the caller's transaction.

    vector: float32 [d]. layer 0 to 2 (default: any, but for promoted nodes, whose cells stand for them); type: a node
    type or a knowledge type (default: cells and scenes); scene: a scene's id; since: int64 microseconds, the earliest
    created_at; None for any. Each hit is a dict: num, id, type, layer, knowledge_type, text (of a scene its name),
    salience, created_at, scene and agent (ids), cosine (of the float32 vectors). Raises UsageError for what cannot be.
    """
    dimension = dimension_of(connection)
    if vector.shape != (dimension,):
        raise UsageError(f"a search vector of shape {list(vector.shape)}; the store's vectors have {dimension} numbers")
    if not np.isfinite(vector).all() or not vector.any():
        raise UsageError("a search vector needs finite numbers, not all of them zero")
    if limit < 1:
        raise UsageError(f"limit {limit}: expected 1 or more")
    filters, values = _filters(connection, layer, type, scene, since)
    connection.execute(f"set local hnsw.ef_search = {_EF_SEARCH}")
    connection.execute("set local hnsw.iterative_scan = relaxed_order")
    expression, _ = _stored_as(dimension)
    kind = sql.SQL("halfvec" if VECTOR_LIMIT < dimension <= HALF_LIMIT else "vector")
    # One search a layer, since each has its own index; the order is settled over all of them.
    layers = range(3) if layer is None else [layer]
    nearest = sql.SQL(" union all ").join(
        sql.SQL(
            "(select num from knowledge_nodes n where layer = {} and embedding is not null and {} "
            "order by {} <=> {}::{} limit {})"
        ).format(sql.Literal(one), filters, expression, sql.Placeholder("vector"), kind, sql.Literal(limit))
        for one in layers
    )
    query = sql.SQL(
        "with near as ({}) select {}, s.id as scene, a.id as agent, 1 - (n.embedding <=> {}::vector) as cosine "
        "from near join knowledge_nodes n using (num) left join scenes s on s.num = n.scene "
        "left join scenes own on own.num = n.num left join knowledge_nodes a on a.num = n.agent "
        "order by cosine desc, n.num limit {}"
    ).format(nearest, sql.SQL(_FOUND), sql.Placeholder("vector"), sql.Literal(limit))
    # The text form keeps every float32: nine digits.
    values["vector"] = "[" + ",".join(f"{x:.9g}" for x in vector.tolist()) + "]"
    with connection.cursor(row_factory=dict_row) as cursor:
        cursor.execute(query, values)
        return cursor.fetchall()


def _filters(
    connection: Connection, layer: int | None, kind: str | None, scene: str | None, since: int | None
) -> tuple[sql.Composable, dict[str, Any]]:
    """Return the conditions on a node, and their values."""
    conditions: list[sql.Composable] = []
    values: dict[str, Any] = {}
    if layer is None:
        # The cell that a promoted node was made of says the same.
        conditions.append(sql.SQL("(n.layer = 0 or n.made_of is null)"))
    if kind is None:
        conditions.append(sql.SQL("n.type in ('cell', 'scene')"))
    elif kind in names(NodeType) or kind in names(KnowledgeType):
        column = "type" if kind in names(NodeType) else "knowledge_type"
        conditions.append(sql.SQL("n.{} = {}").format(sql.Identifier(column), sql.Literal(kind)))
    else:
        allowed = ", ".join((*names(KnowledgeType), *names(NodeType)))
        raise UsageError(f"type {kind!r}: expected one of {allowed}")
    if scene is not None:
        row = connection.execute("select num from scenes where id = %s and ended is null", [scene]).fetchone()
        if row is None:
            raise UsageError(f"no scene {scene!r} in the store; `hyphae-gpu scenes` lists them")
        conditions.append(sql.SQL("n.scene = {}").format(sql.Literal(row[0])))
    if since is not None:
        conditions.append(sql.SQL("n.created_at >= to_timestamp(0) + %(since)s * interval '1 microsecond'"))
        values["since"] = since
    return sql.SQL(" and ").join(conditions), values


def build_indexes(database: Database, connection: Connection, progress: Progress | None) -> list[str]:
    """Make each layer's HNSW index where it is missing; return the names of those that are there afterwards.

    Empty from d = 4001 on, which pgvector does not index: search is exact there.
    """
    dimension = dimension_of(connection)
    if dimension > HALF_LIMIT:
        return []
    expression, operators = _stored_as(dimension)
    made = []
    for layer, (links, effort) in enumerate(_BUILD):
        name = f"knowledge_nodes_hnsw_{layer}"
        command = sql.SQL(
            "create index if not exists {} on knowledge_nodes using hnsw ({} {}) with (m = {}, ef_construction = {}) "
            "where layer = {}"
        ).format(
            sql.Identifier(name),
            expression,
            sql.SQL(operators),
            sql.Literal(links),
            sql.Literal(effort),
            sql.Literal(layer),
        )
        with _watched(database, name, progress):
            connection.execute(command)
        made.append(name)
    return made


@contextmanager
def _watched(database: Database, name: str, progress: Progress | None) -> Iterator[None]:
    """Report, from another connection, how far an index build has come."""
    if progress is None:
        yield
        return
    over = threading.Event()
    query = (
        "select blocks_done, blocks_total, tuples_done, tuples_total from pg_stat_progress_create_index p "
        "where p.relid = to_regclass('knowledge_nodes')"
    )

    def report() -> None:
        with database.connect() as other:
            while not over.wait(_PROGRESS_SECONDS):
                row = other.execute(query).fetchone()
                if row is not None:
                    progress(name, max(row[0] / max(1, row[1]), row[2] / max(1, row[3])))

    progress(name, 0.0)
    watcher = threading.Thread(target=report, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()
    progress(name, 1.0)
