"""A project begun anew: for what can be made again, as a demo."""

from __future__ import annotations

from psycopg import sql
from psycopg.types.json import Jsonb

from hyphae_gpu.errors import UsageError
from hyphae_gpu.store.postgres import Connection

#: Rows of `meta` that outlive the project's content.
_KEPT = ["fence", "schema_version"]


def begin_anew(connection: Connection, purpose: str) -> None:
    """Empty the project, within the caller's transaction, and note what it is for from now on.

    Only a project that is empty or was begun for the same purpose is touched; raises UsageError for any other.
    """
    noted = connection.execute("select value from meta where key = 'purpose'").fetchone()
    holds = connection.execute("select exists (select from knowledge_nodes)").fetchone()
    if holds and holds[0] and (noted is None or noted[0] != purpose):
        raise UsageError(
            f"the project holds knowledge that is not from the {purpose}, and would lose it: "
            "choose another folder with --data-dir"
        )
    tables = [
        name
        for (name,) in connection.execute("select tablename from pg_tables where schemaname = current_schema()")
        if name != "meta"
    ]
    connection.execute(sql.SQL("truncate {}").format(sql.SQL(", ").join(map(sql.Identifier, sorted(tables)))))
    for table in ("knowledge_nodes", "memory_diffs"):
        connection.execute(sql.SQL("alter table {} drop column if exists embedding").format(sql.Identifier(table)))
    connection.execute("delete from meta where key <> all(%s)", [_KEPT])
    connection.execute("insert into meta values ('purpose', %s)", [Jsonb(purpose)])
