"""Scenes in the store: written with the epoch, listed for people (spec 6.4)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from psycopg.rows import dict_row

from hyphae_gpu.emerged import SceneChanges
from hyphae_gpu.store import copy
from hyphae_gpu.store.copy_in import copy_in
from hyphae_gpu.store.postgres import Connection

_LARGEST = """
    select s.num, s.id, s.name, s.size, s.epoch,
        array(
            select a.id from knowledge_nodes a where a.scene = s.num and a.type = 'agent' order by a.num limit %(shown)s
        ) as agents,
        (
            select coalesce(jsonb_agg(jsonb_build_object('id', c.id, 'text', c.text, 'payload', c.payload)), '[]')
            from (
                select n.id, left(n.text, 500) as text, n.payload from knowledge_nodes n
                where n.scene = s.num and n.type = 'cell' order by n.salience desc, n.num limit %(shown)s
            ) c
        ) as cells
    from scenes s where s.ended is null order by s.size desc, s.num limit %(limit)s
"""


def write_scenes(connection: Connection, changes: SceneChanges, epoch: int) -> None:
    """Write what an epoch changed of scenes, within the caller's transaction."""
    connection.execute("create temp table rehomed (num bigint, scene bigint) on commit drop")
    fields = [copy.int64(changes.nodes), copy.reference(changes.scenes)]
    copy_in(connection, "rehomed", ["num", "scene"], [fields], "checkpoint.scene")
    connection.execute("update knowledge_nodes n set scene = r.scene from rehomed r where n.num = r.num")
    written = changes.written
    connection.execute("create temp table told (num bigint, name text, size integer, epoch integer) on commit drop")
    fields = [
        copy.int64(written.numbers),
        copy.text(pa.array(written.names, pa.large_string())),
        copy.int32(written.sizes),
        copy.int32(written.epochs),
    ]
    copy_in(connection, "told", ["num", "name", "size", "epoch"], [fields], "checkpoint.scenes")
    connection.execute(
        "insert into scenes (num, id, name, size, epoch) "
        "select t.num, n.id, t.name, t.size, t.epoch from told t join knowledge_nodes n using (num) "
        "on conflict (num) do update set name = excluded.name, size = excluded.size"
    )
    if len(changes.ended):
        connection.execute(
            "update scenes set ended = %s, size = 0 where num = any(%s)", [epoch, np.sort(changes.ended).tolist()]
        )


def scenes(connection: Connection, *, limit: int | None, shown: int) -> list[dict[str, Any]]:
    """Return the scenes there are, the largest first, within the caller's transaction.

    Each is a dict: num, id, name, size (cells), epoch (the first that had it), agents (ids of those whose nearest scene
    it is, `shown` at most), cells: `shown` at most, the most salient first, as dicts of id, text, payload.
    """
    with connection.cursor(row_factory=dict_row) as cursor:
        cursor.execute(
            _LARGEST,
            {"limit": limit, "shown": shown},
        )
        return cursor.fetchall()
