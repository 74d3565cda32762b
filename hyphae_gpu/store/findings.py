"""What emerged in a project, as a report tells it: scenes, contradictions, promotions, patterns (spec 5, 6).

Plain values; of every list the first rows only, those that are most worth showing, and how many there are in all.
"""

from __future__ import annotations

from typing import Any, LiteralString

from psycopg.rows import dict_row

from hyphae_gpu.store.postgres import Connection

#: Scenes of which a report gets the centroid, the largest; links of each, the nearest; agents that are named, of many.
SCENES_MAPPED, LINKS_A_SCENE, NAMED = 300, 3, 4
#: A text's characters that are read, at most: titles are cut far shorter.
TEXT_READ = 2000

#: The ids of a pattern's cells; a row may have put another payload in their place since.
_MEMBERS: LiteralString = """
    case when jsonb_typeof(o.payload -> 'members') = 'array' then o.payload -> 'members' else '[]'::jsonb end
"""
#: The words by which a node `o` is known: those of cell `l` that it was made of stand in for a pattern's or a promoted
#: node's own; alike: of a pattern, by how many agents its cells are.
CALLED: LiteralString = f"""
    o.id as origin, left(o.text, {TEXT_READ}) as text, o.payload, l.id as leader, l.payload as leader_payload,
    o.text is not distinct from l.text as verbatim,
    case when o.layer = 0 and o.made_of is not null then (
        select count(distinct g.agent) from jsonb_array_elements_text({_MEMBERS}) t (id)
        join knowledge_nodes g using (id)
    ) else 0 end as alike
"""
#: The words by which any node `w` is known, as one JSON object; scenes have a name, a promoted node has its cell's.
NODE: LiteralString = """
    jsonb_build_object(
        'id', w.id, 'type', w.type, 'layer', w.layer, 'payload', coalesce(c.payload, w.payload), 'leader', c.id,
        'name', s.name
    )
"""
NODE_JOINS: LiteralString = (
    "left join scenes s on s.num = w.num left join knowledge_nodes c on c.num = w.made_of and w.type = 'cell'"
)

_SCENES: LiteralString = """
    with largest as (
        select num, id, name, size, epoch from scenes where ended is null order by size desc, num limit %(limit)s
    ), near as (
        select scene, count(*) as agents, (array_agg(id order by num))[:%(named)s] as named
        from knowledge_nodes where type = 'agent' and scene in (select num from largest) group by scene
    )
    select l.num, l.id, l.name, l.size, l.epoch, coalesce(n.agents, 0) as agents,
        coalesce(n.named, array[]::text[]) as named, o.embedding::real[] as vector
    from largest l join knowledge_nodes o using (num) left join near n on n.scene = l.num
    order by l.size desc, l.num
"""
#: Each pair once, by the scene from which it is among the nearest.
_SCENE_LINKS: LiteralString = """
    select least(src, tgt), greatest(src, tgt), max(weight) from (
        select src, tgt, weight, row_number() over (partition by src order by weight desc, tgt) as place
        from topology_edges
        where layer = 1 and type = 'semantic' and not given and src = any(%(scenes)s) and tgt = any(%(scenes)s)
    ) e where place <= %(links)s group by 1, 2 order by 1, 2
"""
_CONTRADICTIONS: LiteralString = f"""
    with shown as (
        select * from contradictions
        order by status <> 'open', epoch desc, similarity desc, a, b limit %(limit)s
    ), diffs as (
        select s.a, s.b, d.num from shown s join memory_diffs d on d.epoch_created >= s.epoch and (
            (d.diff_type = 'contradiction' and d.epoch_created = s.epoch and d.origin in (s.a, s.b))
            or (d.diff_type = 'superseded' and d.origin in (
                select superseded_by from knowledge_nodes where num in (s.a, s.b) and superseded_by is not null
            ))
        )
    ), informed as (
        select a, b, agent, min(i.epoch) as epoch, min(i.hop) as hop
        from diffs d join inbox i on i.diff = d.num group by a, b, agent
    ), told as (
        select i.a, i.b, count(*) as told, (array_agg(n.id order by i.epoch, i.hop, n.num))[:%(named)s] as informed
        from informed i join knowledge_nodes n on n.num = i.agent group by i.a, i.b
    )
    select s.reason, s.similarity, s.epoch, s.status, s.resolution, s.a as a_num, s.b as b_num,
        a.id as a, left(a.text, {TEXT_READ}) as a_text, a.payload as a_payload, p.id as a_maker,
        a.claim_subject as about, a.claim_value as a_value, a.stance as a_stance,
        b.id as b, left(b.text, {TEXT_READ}) as b_text, b.payload as b_payload, q.id as b_maker,
        b.claim_value as b_value, b.stance as b_stance,
        u.id as a_by, v.id as b_by, coalesce(t.told, 0) as told, coalesce(t.informed, array[]::text[]) as informed
    from shown s
    join knowledge_nodes a on a.num = s.a left join knowledge_nodes p on p.num = a.agent
    join knowledge_nodes b on b.num = s.b left join knowledge_nodes q on q.num = b.agent
    left join knowledge_nodes u on u.num = a.superseded_by left join knowledge_nodes v on v.num = b.superseded_by
    left join told t on t.a = s.a and t.b = s.b
    order by s.status <> 'open', s.epoch desc, s.similarity desc, s.a, s.b
"""
#: Of each layer those that most scenes confirmed, then most nodes; a maker's second after every maker's first.
_PROMOTIONS: LiteralString = f"""
    select {CALLED}, d.diff_type, d.knowledge_type, d.energy, d.salience, m.id as maker, p.layer, p.epoch,
        cardinality(p.scenes) as scene_count,
        (
            select jsonb_agg(jsonb_build_array(s.name, s.id, x.count) order by x.step)
            from unnest(p.scenes[:%(named)s], p.counts[:%(named)s]) with ordinality x (num, count, step)
            join scenes s using (num)
        ) as scenes,
        (select {NODE} from knowledge_nodes w {NODE_JOINS} where w.num = p.carrier) as carrier,
        (select {NODE} from knowledge_nodes w {NODE_JOINS} where w.num = p.entry) as entry
    from (
        select *, row_number() over (
            partition by layer order by turn, cardinality(scenes) desc, nodes desc, diff
        ) as place
        from (
            select *, row_number() over (
                partition by layer, maker order by cardinality(scenes) desc, nodes desc, diff
            ) as turn
            from (
                select r.*, w.agent as maker, (select sum(count) from unnest(r.counts) c (count)) as nodes
                from promotions r join memory_diffs f on f.num = r.diff join knowledge_nodes w on w.num = f.origin
            ) counted
        ) turned
    ) p
    join memory_diffs d on d.num = p.diff
    join knowledge_nodes o on o.num = d.origin
    left join knowledge_nodes l on l.num = o.made_of
    left join knowledge_nodes m on m.num = o.agent
    where p.place <= %(limit)s order by p.layer desc, p.place
"""
_PATTERN: LiteralString = "layer = 0 and type = 'cell' and made_of is not null"
#: A pattern's diff goes out in the epoch after the one that made it.
_PATTERNS: LiteralString = f"""
    select {CALLED}, o.salience, jsonb_array_length({_MEMBERS}) as members,
        coalesce(
            (select min(d.epoch_created) - 1 from memory_diffs d where d.origin = o.num),
            (select max(epoch) from epochs)
        ) as epoch,
        array(
            select a.id from (
                select distinct g.agent from jsonb_array_elements_text({_MEMBERS}) t (id)
                join knowledge_nodes g using (id)
            ) x join knowledge_nodes a on a.num = x.agent order by a.num limit %(named)s
        ) as named
    from knowledge_nodes o join knowledge_nodes l on l.num = o.made_of
    where o.layer = 0 and o.type = 'cell'
    order by alike desc, members desc, o.num limit %(limit)s
"""


def findings(connection: Connection, *, shown: int) -> dict[str, Any]:
    """Return what emerged, within the caller's transaction; `shown` rows of each list at most, scenes aside.

    scenes: the largest first, dicts of num, id, name, size, epoch, agents (count), named (ids of some), vector (list of
    floats or None); scene_count; scene_links: (num, num, weight) of links in layer 1 between these scenes, each pair
    once. contradictions: open ones first, then the newest, dicts of reason, similarity, epoch, status, resolution,
    about, told (agents that have a diff about it), informed (ids of some), and of each side a, b: its id, and with
    _num, _text, _payload, _maker, _value, _stance, _by (what supersedes it, or None) behind; contradiction_counts: by
    status. promotions: of each layer those that most scenes confirmed, dicts of what `CALLED` selects, diff_type,
    knowledge_type, energy, salience, maker, layer, epoch, scene_count, scenes ([name, id, nodes] of some), carrier and
    entry (`NODE`, or None); promoted: (epoch, layer, count). patterns: by most agents, dicts of what `CALLED` selects,
    salience, members, epoch, named; pattern_count.
    """
    scenes = _dicts(connection, _SCENES, limit=SCENES_MAPPED, named=NAMED) if _any(connection, "scenes") else []
    numbers = [scene["num"] for scene in scenes]
    links = connection.execute(_SCENE_LINKS, {"scenes": numbers, "links": LINKS_A_SCENE}).fetchall()
    return {
        "scenes": scenes,
        "scene_count": _count(connection, "scenes where ended is null"),
        "scene_links": links,
        "contradictions": _dicts(connection, _CONTRADICTIONS, limit=shown, named=NAMED),
        "contradiction_counts": dict(
            connection.execute("select status, count(*) from contradictions group by status order by status")
        ),
        "promotions": _dicts(connection, _PROMOTIONS, limit=shown, named=NAMED),
        "promoted": connection.execute(
            "select epoch, layer, count(*) from promotions group by epoch, layer order by epoch, layer"
        ).fetchall(),
        "patterns": _dicts(connection, _PATTERNS, limit=shown, named=NAMED),
        "pattern_count": _count(connection, f"knowledge_nodes where {_PATTERN}"),
    }


def _any(connection: Connection, table: LiteralString) -> bool:
    """Say whether a table has rows; before the first vector, there is no column of vectors to ask for."""
    return connection.execute(f"select from {table} limit 1").fetchone() is not None


def _count(connection: Connection, of: LiteralString) -> int:
    row = connection.execute(f"select count(*) from {of}").fetchone()
    return row[0] if row else 0


def _dicts(connection: Connection, query: LiteralString, **values: Any) -> list[dict[str, Any]]:
    with connection.cursor(row_factory=dict_row) as cursor:
        cursor.execute(query, values)
        return cursor.fetchall()
