"""The versions of a project's schema: `schema.sql` makes the newest, steps bring an older one up to it."""

from __future__ import annotations

from importlib import resources
from typing import Any

import psycopg
from psycopg.types.json import Jsonb

from hyphae_gpu.errors import DatabaseError

#: The version that `schema.sql` makes.
VERSION = 4
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
    # scenes become nodes: their numbers are the next free ones
    3: """
        alter table knowledge_nodes add column made_of bigint;
        alter table knowledge_nodes drop constraint knowledge_nodes_pending_check;
        alter table knowledge_nodes add constraint knowledge_nodes_pending_check
            check (pending in ('created', 'updated', 'silent', 'pattern'));
        drop table promotions;
        create table promotions (
            diff bigint not null,
            layer smallint not null check (layer in (1, 2)),
            epoch integer not null,
            scenes bigint[] not null,
            node bigint not null,
            counts bigint[] not null,
            carrier bigint not null,
            entry bigint,
            carried bigint[] not null,
            primary key (diff, layer)
        );
        create temp table renumbered on commit drop as
            select s.num as old, s.id as old_id, s.ended,
                (select coalesce(max(num), -1) from knowledge_nodes) + row_number() over (order by s.num) as num
            from scenes s;
        insert into knowledge_nodes (num, id, type, layer, created_at, last_access)
            select r.num, 'scene-' || r.num || repeat('~', coalesce((
                select max(length(n.id)) - length('scene-' || r.num) + 1
                from knowledge_nodes n where n.id ~ ('^scene-' || r.num || '~*$')
            ), 0)), 'scene', 1, now(), now() from renumbered r;
        update knowledge_nodes n set scene = r.num from renumbered r where n.scene = r.old and n.type <> 'scene';
        create temp table kept on commit drop as
            select n.num, n.id, s.name, s.size, s.epoch, s.ended
            from scenes s join renumbered r on r.old = s.num join knowledge_nodes n on n.num = r.num;
        delete from scenes;
        insert into scenes select * from kept;
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
