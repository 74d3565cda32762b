"""A store's whole content apart from the wall clock, table by table, to be compared with `==`."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import psycopg

from hyphae_gpu.store import open_store

#: Columns that tell when something was done, not what.
_WALL_CLOCK = {"epochs": {"started_at", "seconds"}}
#: Agents and beacons are dated by the clock; nothing is decided by it. What an epoch makes is dated by the epoch.
_DATED = ("created_at", "last_access")

Row = dict[str, Any]
Snapshot = dict[str, list[Row]]


def snapshot(conninfo: str) -> Snapshot:
    """Read every table of the default project at one instant; makes the schema where there is none."""
    open_store(database_url=conninfo, data_dir=Path("not used")).close()
    with psycopg.connect(conninfo) as connection:
        connection.execute("set transaction isolation level repeatable read read only")
        names = connection.execute("select tablename from pg_tables where schemaname = 'hyphae_default'").fetchall()
        return {name: _rows(connection, name) for (name,) in sorted(names)}


def _rows(connection: psycopg.Connection[Any], table: str) -> list[Row]:
    cursor = connection.execute(f"select * from hyphae_default.{table}".encode())
    columns = [column.name for column in cursor.description or ()]
    rows = [dict(zip(columns, map(_comparable, row), strict=True)) for row in cursor]
    if table == "meta":
        rows = [row for row in rows if row["key"] != "fence"]
    if table == "knowledge_nodes":
        rows = [row | dict.fromkeys(_DATED) if row["type"] in ("agent", "beacon") else row for row in rows]
    left_out = _WALL_CLOCK.get(table, set())
    return sorted(({name: row[name] for name in columns if name not in left_out} for row in rows), key=repr)


def _comparable(value: Any) -> Any:
    """Return the value, None for NaN, which is unequal to itself."""
    return None if isinstance(value, float) and math.isnan(value) else value


def differences(one: Snapshot, other: Snapshot) -> list[str]:
    """The tables that differ, each with the first row that only one of the two has; empty for equal stores."""
    found = []
    for name in sorted(one.keys() | other.keys()):
        mine, its = one.get(name, []), other.get(name, [])
        if mine != its:
            only = [[row for row in rows if row not in others][:1] for rows, others in ((mine, its), (its, mine))]
            found.append(f"{name}: {len(mine)} rows against {len(its)}; only here {only[0]}; only there {only[1]}")
    return found


def check_whole(found: Snapshot) -> None:
    """Check what holds in every whole store, whatever it holds: the tables fit one another and the last epoch."""
    last = max((row["epoch"] for row in found["epochs"]), default=0)
    assert [row["epoch"] for row in sorted(found["epochs"], key=lambda row: row["epoch"])] == [*range(1, last + 1)]
    numbers = {row["num"] for row in found["knowledge_nodes"]}
    assert numbers == set(range(len(numbers)))

    keys = [(row["agent"], row["diff"], row["via"]) for row in found["inbox"]]
    assert len(keys) == len(set(keys)), "an inbox entry is there twice"
    for epoch in found["epochs"]:
        assert epoch["counts"]["inbox"] == sum(row["epoch"] == epoch["epoch"] for row in found["inbox"])
    diffs = {row["num"]: row for row in found["memory_diffs"]}
    assert set(diffs) == set(range(len(diffs)))
    assert {row["diff"] for row in found["inbox"]} <= set(diffs)
    assert all(1 <= row["epoch_created"] <= last for row in diffs.values())

    assert {row[end] for row in found["topology_edges"] for end in ("src", "tgt")} <= numbers
    made = [row for row in found["topology_edges"] if not row["given"]]
    assert bool(made) == bool(found["index_chunks"]) == bool(found["index_heads"]) == (last > 0)
    assert {row["agent"] for row in found["inbox"]} | {row["agent"] for row in found["accesses"]} <= numbers

    nodes = {row["num"]: row for row in found["knowledge_nodes"]}
    scenes = {row["num"]: row["id"] for row in found["scenes"]}
    assert scenes == {number: row["id"] for number, row in nodes.items() if row["type"] == "scene"}
    alive = {row["num"] for row in found["scenes"] if row["ended"] is None}
    assert {row["scene"] for row in nodes.values()} - {None} <= alive
    raised = {number: row["layer"] for number, row in nodes.items() if row["type"] == "cell" and row["layer"]}
    assert raised == {row["node"]: row["layer"] for row in found["promotions"]}
    for row in found["promotions"]:
        assert nodes[row["node"]]["made_of"] == diffs[row["diff"]]["origin"]
        assert set(row["scenes"]) <= scenes.keys()
