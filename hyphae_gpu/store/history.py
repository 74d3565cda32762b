"""What a report tells of a project, summed where the rows are: plain values, no row per edge, diff or inbox entry."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, LiteralString

from psycopg.rows import dict_row

from hyphae_gpu.store.findings import CALLED, NODE, NODE_JOINS, findings
from hyphae_gpu.store.postgres import Connection

#: A diff with its origin's words: every query that shows diffs selects these, from these joined to `memory_diffs d`.
_DIFF: LiteralString = f"{CALLED}, d.diff_type, d.knowledge_type, d.energy, m.id as maker"
_DIFF_JOINS: LiteralString = """
    join knowledge_nodes o on o.num = d.origin
    left join knowledge_nodes l on l.num = o.made_of
    left join knowledge_nodes m on m.num = o.agent
"""


def history(connection: Connection, *, agents: Sequence[str], shown: int) -> dict[str, Any]:
    """Return all that a report needs, within the caller's transaction; `shown` rows of each list at most.

    nodes: count by type, promoted copies of cells aside. sizes: (agent, gossip, beacons) of every agent. hops: (hop,
    entries). types: dicts of knowledge_type, diffs, energy (greatest), arrived, agents (mean). told: diffs by diff
    type. farthest: dicts of what `findings.CALLED` selects, diff_type, knowledge_type, energy, maker, agents, hops.
    inboxes: (name, entries, dicts as in farthest with agent, epoch, via, hop, left_energy, score, path: from origin to
    receiver dicts of `findings.NODE` and own) of `agents`, or of the fullest; caught: the same by beacon. emerged:
    `findings.findings`. epochs: dicts of a row each. open_shares: (agent, share) of the last epoch. edges: (kind,
    count). degrees: (degree, nodes).
    """
    sizes = connection.execute(
        "select a.id, count(*) filter (where i.via = 'gossip'), count(*) filter (where i.via <> 'gossip') "
        "from knowledge_nodes a left join inbox i on i.agent = a.num where a.type = 'agent' group by a.num, a.id"
    ).fetchall()
    fullest = sorted(sizes, key=lambda size: (-size[1] - size[2], size[0]))
    chosen = [agent for agent in agents if any(size[0] == agent and size[1] for size in sizes)]
    chosen = chosen or [agent for agent, gossip, _ in fullest[:shown] if gossip]
    return {
        "nodes": dict(connection.execute(_NODES)),
        "sizes": sizes,
        "hops": dict(connection.execute("select hop, count(*) from inbox group by hop")),
        "types": _dicts(connection, _TYPES),
        "told": dict(connection.execute("select diff_type, count(*) from memory_diffs group by 1 order by 1")),
        "farthest": _dicts(connection, _FARTHEST, {"limit": shown}),
        "inboxes": [_inbox(connection, agent, shown) for agent in chosen],
        "caught": [_caught(connection, beacon, count, shown) for beacon, count in connection.execute(_BEACONS)],
        "emerged": findings(connection, shown=shown),
        "epochs": _dicts(connection, "select epoch, as_of, seconds, counts, state_hash from epochs order by epoch"),
        "open_shares": dict(connection.execute(_OPEN_SHARES)),
        "edges": dict(connection.execute(_EDGES)),
        "degrees": dict(connection.execute(_DEGREES)),
    }


_NODES: LiteralString = """
    select type, count(*) from knowledge_nodes where layer = 0 or type <> 'cell' group by type order by type
"""
_OPEN_SHARES: LiteralString = """
    select a.id, told.share::float8 from epochs e
    cross join jsonb_each_text(e.counts -> 'open_shares') told (num, share)
    join knowledge_nodes a on a.num = told.num::bigint
    where e.epoch = (select max(epoch) from epochs)
"""

_TYPES: LiteralString = """
    select d.knowledge_type, count(*) as diffs, max(d.energy) as energy, count(r.diff) as arrived,
        avg(coalesce(r.agents, 0))::float8 as agents
    from memory_diffs d
    left join (select diff, count(distinct agent) as agents from inbox group by diff) r on r.diff = d.num
    group by d.knowledge_type order by d.knowledge_type
"""
_FARTHEST: LiteralString = f"""
    select {_DIFF}, r.agents, r.hops
    from (
        select diff, count(distinct agent) as agents, max(hop) as hops from inbox
        group by diff order by 2 desc, 3 desc, 1 limit %(limit)s
    ) r
    join memory_diffs d on d.num = r.diff {_DIFF_JOINS}
    order by r.agents desc, r.hops desc, d.num
"""
_ENTRIES: LiteralString = f"""
    select {_DIFF}, a.id as agent, i.epoch, i.via, i.hop, i.energy as left_energy, i.score,
        array(
            select {NODE} || jsonb_build_object(
                'own', exists (select from accesses x where x.agent = i.agent and x.cell = w.num)
            )
            from unnest(i.path) with ordinality t (num, step)
            join knowledge_nodes w on w.num = t.num {NODE_JOINS} order by t.step desc
        ) as path
    from inbox i
    join knowledge_nodes a on a.num = i.agent
    join memory_diffs d on d.num = i.diff {_DIFF_JOINS}
"""
_BEACONS: LiteralString = "select via, count(*) from inbox where via <> 'gossip' group by via order by 2 desc, 1"
_EDGES: LiteralString = """
    select coalesce(kind, type), count(*) from topology_edges group by 1 order by 2 desc, 1
"""
_DEGREES: LiteralString = """
    select degree, count(*) from (select count(*) as degree from topology_edges group by src) as outgoing
    group by degree
"""


def _inbox(connection: Connection, agent: str, shown: int) -> tuple[str, int, list[dict[str, Any]]]:
    """Return what gossip brought an agent, the best of each epoch in turn."""
    where: LiteralString = " where a.id = %(agent)s and i.via = 'gossip' order by i.place, i.epoch desc limit %(limit)s"
    row = connection.execute(
        "select count(*) from inbox i join knowledge_nodes a on a.num = i.agent where a.id = %s and i.via = 'gossip'",
        [agent],
    ).fetchone()
    return agent, row[0] if row else 0, _dicts(connection, _ENTRIES + where, {"agent": agent, "limit": shown})


def _caught(connection: Connection, beacon: str, count: int, shown: int) -> tuple[str, int, list[dict[str, Any]]]:
    """Return what a beacon caught, the highest score first."""
    where: LiteralString = " where i.via = %(via)s order by i.score desc, i.diff limit %(limit)s"
    return beacon, count, _dicts(connection, _ENTRIES + where, {"via": beacon, "limit": shown})


def _dicts(connection: Connection, query: LiteralString, values: dict[str, Any] | None = None) -> list[dict[str, Any]]:
    with connection.cursor(row_factory=dict_row) as cursor:
        cursor.execute(query, values)
        return cursor.fetchall()
