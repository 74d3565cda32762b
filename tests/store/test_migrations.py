"""A store made by an older version is brought up to what a new one is, with all that it holds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import psycopg

from hyphae_gpu.store import migrations
from tests.store import sample

FIRST = Path(__file__).with_name("version_1.sql")
_SHAPE = (
    "select table_name, column_name, data_type, is_nullable, column_default from information_schema.columns "
    "where table_schema = 'hyphae_default'",
    "select viewname, definition from pg_views where schemaname = 'hyphae_default'",
    "select indexname, indexdef from pg_indexes where schemaname = 'hyphae_default'",
    "select conrelid::regclass::text, conname, pg_get_constraintdef(oid) from pg_constraint "
    "where connamespace = 'hyphae_default'::regnamespace",
)


def shape(url: str) -> list[set[Any]]:
    """Columns in no order, views, indexes, constraints of the default project."""
    with psycopg.connect(url) as connection:
        return [set(connection.execute(query.encode())) for query in _SHAPE]


def downgrade(url: str) -> None:
    """Make the default project's schema anew, as version 1 made it, without anything in it but its notes."""
    with psycopg.connect(url) as connection:
        connection.execute("drop schema hyphae_default cascade")
        connection.execute("create schema hyphae_default")
        connection.execute("set search_path = hyphae_default, public")
        connection.execute(FIRST.read_bytes())
        connection.execute("""insert into meta values ('fence', '{"token": 0}'), ('schema_version', '1')""")


def test_the_first_version_becomes_what_a_new_store_is(opened, database_url):
    opened().close()
    wanted = shape(database_url)
    downgrade(database_url)
    assert shape(database_url) != wanted
    store = opened()
    assert migrations.version_of(store._connection, "hyphae_default") == migrations.VERSION
    assert shape(database_url) == wanted


def test_what_was_superseded_before_is_told_by_no_later_epoch(opened, database_url):
    opened().close()
    downgrade(database_url)
    with psycopg.connect(database_url) as connection:
        connection.execute("set search_path = hyphae_default, public")
        connection.execute(
            "insert into knowledge_nodes (num, id, type, supersedes, superseded_by, created_at, last_access) values "
            "(0, 'old', 'cell', null, 1, now(), now()), (1, 'new', 'cell', 0, null, now(), now())"
        )
        connection.execute("insert into meta values ('dimension', '4'), ('embedding_space', '\"given\"')")
        for table in ("knowledge_nodes", "memory_diffs"):
            connection.execute(f"alter table {table} add column embedding vector(4)".encode())
    store = opened()
    nodes = store.load().nodes
    assert np.array_equal(nodes.told_superseded, [1, -1])
    store.write_rows(sample.rows(cells=[{"id": "newer", "supersedes": "new"}]), diffs=True)
    nodes = store.load().nodes
    assert np.array_equal(nodes.superseded_by, [1, 2, -1])
    assert np.array_equal(nodes.told_superseded, [1, -1, -1])
