"""The versions of a project's schema: `schema.sql` makes the newest, steps bring an older one up to it."""

from __future__ import annotations

from importlib import resources
from typing import Any

import psycopg
from psycopg.types.json import Jsonb

from hyphae_gpu.errors import DatabaseError

#: The version that `schema.sql` makes.
VERSION = 3
#: STEPS[v] is the SQL that turns version v into v + 1.
STEPS: dict[int, str] = {
    1: """
        alter table knowledge_nodes add column told_superseded bigint;
        update knowledge_nodes set told_superseded = superseded_by where superseded_by is not null;
        drop view contradictions_view;
        create view contradictions_view as
            select a.id as a, b.id as b, c.similarity, c.reason, c.epoch, c.status, c.resolution, a.text as a_text,
                b.text as b_text, a.claim_subject as a_subject, a.claim_value as a_value,
                b.claim_subject as b_subject, b.claim_value as b_value, a.stance as a_stance, b.stance as b_stance
            from contradictions c
            join knowledge_nodes a on a.num = c.a
            join knowledge_nodes b on b.num = c.b;
    """,
    2: """
        create table scenes (
            num bigint primary key,
            id text not null unique,
            name text not null,
            size integer not null,
            epoch integer not null,
            ended integer
        );
    """,
}


def version_of(connection: psycopg.Connection[Any], schema: str) -> int | None:
    """Return the version of the schema in the database, None where there is none."""
    present = connection.execute(
        "select 1 from pg_tables where schemaname = %s and tablename = 'meta'", [schema]
    ).fetchone()
    if present is None:
        return None
    row = connection.execute("select value from meta where key = 'schema_version'").fetchone()
    if row is None:
        raise DatabaseError(f"schema {schema} has a table meta but no schema_version in it: it is not a store of ours")
    return int(row[0])


def bring_up(connection: psycopg.Connection[Any], schema: str, version: int | None) -> None:
    """Make the project's tables, or migrate older ones, within the caller's transaction.

    Raises DatabaseError when the store is newer than this code.
    """
    if version is not None and version > VERSION:
        raise DatabaseError(
            f"schema {schema} has version {version}, written by a newer hyphae-gpu; this one knows up to {VERSION}: "
            "upgrade it (pip install --upgrade hyphae-gpu)"
        )
    if version is None:
        connection.execute(resources.files("hyphae_gpu.store").joinpath("schema.sql").read_bytes())
        connection.execute("insert into meta values ('fence', %s)", [Jsonb({"token": 0})])
    for step in range(version or VERSION, VERSION):
        connection.execute(STEPS[step].encode())
    connection.execute(
        "insert into meta values ('schema_version', %s) on conflict (key) do update set value = excluded.value",
        [Jsonb(VERSION)],
    )
