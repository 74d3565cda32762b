"""A store made by an older version is brought up to what a new one is, with all that it holds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import psycopg
import pytest

from hyphae_gpu.config import Settings
from hyphae_gpu.engine import run_epochs
from hyphae_gpu.store import migrations
from tests.store import sample

#: Versions of which a schema is kept here.
KEPT = (1, 3)
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


def downgrade(url: str, version: int) -> None:
    """Make the default project's schema anew, as this version made it, without anything in it but its notes."""
    with psycopg.connect(url) as connection:
        connection.execute("drop schema hyphae_default cascade")
        connection.execute("create schema hyphae_default")
        connection.execute("set search_path = hyphae_default, public")
        connection.execute(Path(__file__).with_name(f"version_{version}.sql").read_bytes())
        connection.execute(
            "insert into meta values ('fence', '{\"token\": 0}'), ('schema_version', %s)", [str(version)]
        )


@pytest.mark.parametrize("version", KEPT)
def test_an_older_version_becomes_what_a_new_store_is(opened, database_url, version):
    opened().close()
    wanted = shape(database_url)
    downgrade(database_url, version)
    assert shape(database_url) != wanted
    store = opened()
    assert migrations.version_of(store._connection, "hyphae_default") == migrations.VERSION
    assert shape(database_url) == wanted


def test_what_was_superseded_before_is_told_by_no_later_epoch(opened, database_url):
    opened().close()
    downgrade(database_url, 1)
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


#: Two topics of six cells, an agent at each, and a cell that belongs to none, as version 3 had them: numbers, ids,
#: scenes. Two ids are what the node of scene 1 would be called.
TOPICS = (
    *((i, f"left {i}", "cell", 0) for i in range(6)),
    *((i, f"right {i}", "cell", 2) for i in range(6, 12)),
    (12, "scene-16", "cell", None),
    (13, "ana", "agent", 0),
    (14, "scene-16~", "agent", 2),
)
SCENES = (
    (0, "scene-0", "left, west", 6, 1, None),
    (1, "scene-1", "gone", 0, 1, 2),
    (2, "scene-2", "right", 6, 2, None),
)


def fill_version_3(url: str) -> None:
    """Put `TOPICS` and `SCENES` into a project of version 3, after two epochs."""
    axes = {0: [1.0, 0.0, 0.0, 0.0], 2: [0.0, 1.0, 0.0, 0.0], None: [-1.0, -1.0, 0.0, 1.0]}
    with psycopg.connect(url) as connection:
        connection.execute("set search_path = hyphae_default, public")
        connection.execute("insert into meta values ('dimension', '4'), ('embedding_space', '\"given\"')")
        for table in ("knowledge_nodes", "memory_diffs"):
            connection.execute(f"alter table {table} add column embedding vector(4)".encode())
        for number, name, kind, scene in TOPICS:
            axis = list(axes[scene])
            axis[2] = 0.01 * number
            cell = kind == "cell"
            connection.execute(
                "insert into knowledge_nodes (num, id, type, knowledge_type, salience, scene, created_at, last_access, "
                "embedding) values (%s, %s, %s, %s, %s, %s, '2026-01-01Z', '2026-01-01Z', %s::vector)",
                [number, name, kind, "fact" if cell else None, 0.5 if cell else None, scene, str(axis)],
            )
        for row in SCENES:
            connection.execute("insert into scenes values (%s, %s, %s, %s, %s, %s)", row)
        for epoch in (1, 2):
            connection.execute("insert into epochs values (%s, now(), now(), '{}', '{}', 'hash')", [epoch])


@pytest.fixture
def migrated(opened, database_url):
    """That project, brought up to the present version."""
    opened().close()
    downgrade(database_url, 3)
    fill_version_3(database_url)
    return opened()


def test_scenes_become_nodes_and_keep_names_members_and_ends(migrated):
    with migrated._database.connect() as connection:
        found = connection.execute("select num, id, name, size, epoch, ended from scenes order by num").fetchall()
        nodes = connection.execute(
            "select num, id, type, layer, embedding is null, made_of, pending from knowledge_nodes where num > 14 "
            "order by num"
        ).fetchall()
    assert found == [
        (15, "scene-15", "left, west", 6, 1, None),
        (16, "scene-16~~", "gone", 0, 1, 2),
        (17, "scene-17", "right", 6, 2, None),
    ]
    assert nodes == [(row[0], row[1], "scene", 1, True, None, None) for row in found]
    state = migrated.load()
    homes = {0: 15, 2: 17, None: -1}
    assert state.node_scenes.tolist() == [*(homes[scene] for *_, scene in TOPICS), -1, -1, -1]
    assert (state.scenes.numbers.tolist(), state.scenes.names) == ([15, 17], ["left, west", "right"])
    assert state.nodes.placed.tolist() == [True] * 15 + [False] * 3
    assert [(scene["id"], scene["agents"]) for scene in migrated.scenes()] == [
        ("scene-15", ["ana"]),
        ("scene-17", ["scene-16~"]),
    ]


def test_the_next_epoch_finds_the_scenes_again_and_gives_their_nodes_places(migrated):
    run_epochs(migrated, Settings(threads=1, device="cpu"), as_of=1_767_312_000_000_000)
    state = migrated.load()
    assert (state.scenes.numbers.tolist(), state.scenes.names) == ([15, 17], ["left, west", "right"])
    assert state.scenes.epochs.tolist() == [1, 2]
    assert state.node_scenes[:13].tolist() == [15] * 6 + [17] * 6 + [-1]
    assert state.nodes.placed[15:18].tolist() == [True, False, True]
    assert state.nodes.vectors[[15, 17], :2].argmax(axis=1).tolist() == [0, 1]
    assert len(state.nodes) == 18
