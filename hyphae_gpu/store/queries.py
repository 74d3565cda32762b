"""What people ask the store: its state, an inbox, what contradicts, what was promoted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, LiteralString

from psycopg.rows import dict_row

from hyphae_gpu.errors import UsageError
from hyphae_gpu.store.postgres import Connection
from hyphae_gpu.vocabulary import NodeType, names


def status(connection: Connection, project: str) -> dict[str, Any]:
    """Return the object of ``status --json`` (interfaces.md), within the caller's transaction.

    Sums over epochs (deliveries, cut, throttled, lost, repaired) and live_cells come from the epochs' counts.
    """
    one = _One(connection)
    nodes = dict(connection.execute("select type, count(*) from knowledge_nodes group by type"))
    layers = dict(connection.execute("select layer, count(*) from knowledge_nodes group by layer"))
    edges: dict[str, dict[str, int]] = {}
    for kind_of, kind, count in connection.execute(
        "select type, coalesce(kind, 'none'), count(*) from topology_edges group by 1, 2 order by 1, 2"
    ):
        edges.setdefault(kind_of, {})[kind] = count
    last = connection.execute("select epoch, counts, state_hash from epochs order by epoch desc limit 1").fetchone()
    live_cells = last[1].get("live_cells") if last else None
    if live_cells is None:
        live_cells = one(
            "select count(*) from knowledge_nodes where type = 'cell' and superseded_by is null and not quarantined"
        )
    contradictions = dict(connection.execute("select status, count(*) from contradictions group by status"))
    promotions = dict(connection.execute("select layer::text, count(*) from promotions group by layer"))
    live = one("select count(*) from memory_diffs where ttl > 0")
    return {
        "project": project,
        "epoch": last[0] if last else 0,
        "nodes": {word: nodes.get(word, 0) for word in names(NodeType)},
        "live_cells": live_cells,
        "edges": edges,
        "layers": [layers.get(layer, 0) for layer in range(3)],
        "diffs": {"live": live, "expired": one("select count(*) from memory_diffs") - live},
        "deliveries": _summed(connection, "deliveries"),
        "inbox": one("select count(*) from inbox"),
        "cut": _summed(connection, "cut"),
        "contradictions": {word: contradictions.get(word, 0) for word in ("open", "resolved")},
        "scenes": one("select count(*) from scenes where ended is null"),
        "patterns": one("select count(*) from knowledge_nodes where layer = 0 and made_of is not null"),
        "promotions": {word: promotions.get(word, 0) for word in ("1", "2")},
        "throttled": _summed(connection, "throttled"),
        "lost": _summed(connection, "lost"),
        "repaired": _summed(connection, "repaired"),
        "state_hash": last[2] if last else None,
    }


class _One:
    """Ask for a single number."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def __call__(self, query: str) -> int:
        row = self._connection.execute(query.encode()).fetchone()
        return int(row[0]) if row and row[0] is not None else 0


def _summed(connection: Connection, count: str) -> int:
    row = connection.execute("select sum((counts->>%s)::bigint) from epochs", [count]).fetchone()
    return int(row[0]) if row and row[0] is not None else 0


def inbox(connection: Connection, agent_id: str, since: int | None, limit: int | None) -> list[dict[str, Any]]:
    """Return an agent's entries of the epochs from `since` on: newest epoch first, gossip before beacons, by place.

    Each is a dict: diff (id), diff_num, origin (id), its text and payload, diff_type, knowledge_type, via, epoch,
    place, hop, energy, score, resonance, relevance, parent (id or None), through (id or None): from whom most of the
    resonance came, and path: ids from the origin to the receiver. Raises UsageError when there is no such agent.
    """
    agent = connection.execute("select num, type from knowledge_nodes where id = %s", [agent_id]).fetchone()
    if agent is None or agent[1] != "agent":
        what = f"{agent_id!r} is a {agent[1]}, not an agent" if agent else f"no agent {agent_id!r} in the store"
        raise UsageError(what)
    with connection.cursor(row_factory=dict_row) as cursor:
        cursor.execute(
            "select d.id as diff, d.num as diff_num, o.id as origin, o.text, o.payload, d.diff_type, "
            "d.knowledge_type, i.via, i.epoch, i.place, i.hop, i.energy, i.score, i.resonance, i.relevance, "
            "p.id as parent, t.id as through, "
            "array(select w.id from unnest(i.path) with ordinality s (num, step) "
            "join knowledge_nodes w using (num) order by s.step desc) as path "
            "from inbox i join memory_diffs d on d.num = i.diff join knowledge_nodes o on o.num = d.origin "
            "left join knowledge_nodes p on p.num = i.parent left join knowledge_nodes t on t.num = i.through "
            "where i.agent = %s and i.epoch >= %s order by i.epoch desc, i.via <> 'gossip', i.via, i.place limit %s",
            [agent[0], since or 0, limit],
        )
        return cursor.fetchall()


def contradictions(connection: Connection, *, only_open: bool, limit: int | None) -> list[dict[str, Any]]:
    """Return contradictions, those of the newest epoch first, the most alike first.

    Each is a dict: a, b (ids of the cells), a_text, b_text, a_agent, b_agent (ids of their makers or None), a_subject,
    a_value, b_subject, b_value, a_stance, b_stance, similarity, reason, epoch, status, resolution and winner (id of the
    cell that a policy chose, or None).
    """
    with connection.cursor(row_factory=dict_row) as cursor:
        cursor.execute(
            "select v.*, p.id as a_agent, q.id as b_agent, w.id as winner from contradictions_view v "
            "join knowledge_nodes a on a.id = v.a join knowledge_nodes b on b.id = v.b "
            "left join knowledge_nodes p on p.num = a.agent left join knowledge_nodes q on q.num = b.agent "
            "left join knowledge_nodes w on w.num = (v.resolution ->> 'winner')::bigint "
            "where not %s or v.status = 'open' order by v.epoch desc, v.similarity desc, a.num, b.num limit %s",
            [only_open, limit],
        )
        return cursor.fetchall()


_PROMOTIONS: LiteralString = """
    select d.id as diff, o.id as origin, o.text, o.payload, d.knowledge_type, d.diff_type, m.id as agent,
        p.layer, p.epoch, n.id as node,
        (
            select jsonb_agg(jsonb_build_object('id', s.id, 'name', s.name, 'count', l.count) order by l.step)
            from unnest(p.scenes, p.counts) with ordinality l (num, count, step) join scenes s using (num)
        ) as scenes,
        c.id as carrier, e.id as entry,
        array(
            select w.id from unnest(p.carried[:%(shown)s]) with ordinality l (num, step)
            join knowledge_nodes w using (num) order by l.step
        ) as carried,
        cardinality(p.carried) as carried_count
    from promotions p
    join memory_diffs d on d.num = p.diff
    join knowledge_nodes o on o.num = d.origin
    join knowledge_nodes n on n.num = p.node
    join knowledge_nodes c on c.num = p.carrier
    left join knowledge_nodes m on m.num = o.agent
    left join knowledge_nodes e on e.num = p.entry
    where p.layer = coalesce(%(layer)s, p.layer)
    order by p.epoch desc, p.diff, p.layer limit %(limit)s
"""


def promotions(connection: Connection, *, layer: int | None, limit: int | None, shown: int = 5) -> list[dict[str, Any]]:
    """Return what was promoted (spec 5.2), to `layer` or to any: the newest epoch first, then by diff, then by layer.

    Each is a dict: diff (id), origin (id), its text and payload, knowledge_type, diff_type, agent (id of the origin's
    maker or None), layer, epoch, node (id of the one made), scenes: those that counted as dicts of id, name, count
    (counted nodes), most first; carrier (id of the node whose energy went up), entry (id of the node where it went on,
    or None), carried: ids of the counted nodes, `shown` at most, greatest energy first, and carried_count.
    """
    with connection.cursor(row_factory=dict_row) as cursor:
        cursor.execute(_PROMOTIONS, {"layer": layer, "limit": limit, "shown": shown})
        return cursor.fetchall()


def texts(connection: Connection, numbers: Sequence[int]) -> list[str | None]:
    """Return the texts of nodes, in the order asked; None where a node has none."""
    asked = list(numbers)
    found = dict(connection.execute("select num, text from knowledge_nodes where num = any(%s)", [asked]))
    return [found.get(number) for number in asked]
