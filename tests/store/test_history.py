"""A report's sums and lists are those of the tables, counted again in plain Python."""

from __future__ import annotations

import json
from collections import Counter

from hyphae_gpu.chronicle import record_of
from hyphae_gpu.report import render
from hyphae_gpu.report.metrics import totals
from tests.store import sample

#: (agent, diff's origin, via, hop, place)
ENTRIES = (
    ("ana", "c0", "gossip", 2, 0),
    ("ana", "c1", "gossip", 3, 1),
    ("bo", "c0", "gossip", 5, 0),
    ("bo", "c0", "lamp", 1, 0),
    ("bo", "c2", "lamp", 1, 1),
)


def fill(store):
    """Put a swarm, its diffs and `ENTRIES` into a store, by plain SQL."""
    cells = [
        {
            "id": f"c{number}",
            "text": f"c{number} says: something. And more.",
            "agent": "cy",
            "payload": json.dumps({"of": f"thing {number}", "title": f"title {number}"}) if number < 3 else None,
        }
        for number in range(4)
    ]
    store.write_rows(
        sample.rows(
            cells=cells,
            agents=[{"id": name} for name in ("ana", "bo", "cy")],
            beacons=[{"id": "lamp", "agent": "bo", "embedding": [1.0] * 4}],
            accesses=[{"agent": "ana", "cell": "c3", "at": sample.NOW}],
            edges=[{"src": "c0", "tgt": f"c{number}", "type": 1, "weight": 0.5} for number in (1, 2, 3)],
        ),
        diffs=False,
    )
    with store._writing("test") as connection:
        nodes = dict(connection.execute("select id, num from knowledge_nodes"))
        for number in range(4):
            connection.execute(
                "insert into memory_diffs (num, id, origin, seq, diff_type, knowledge_type, salience, energy, units, "
                "max_hops, ttl, epoch_created) values (%s, %s, %s, 0, 'created', %s, 0.5, %s, 1, 64, 3, 1)",
                [number, f"d{number}", nodes[f"c{number}"], "fact" if number < 2 else "risk", 10.0 + number],
            )
        for agent, origin, via, hop, place in ENTRIES:
            connection.execute(
                "insert into inbox (agent, diff, via, epoch, hop, energy, score, resonance, relevance, parent, "
                "place, path) "
                "values (%s, %s, %s, 1, %s, 5, 0.5, 0, 0.5, %s, %s, %s)",
                [
                    *(nodes[agent], int(origin[1:]), via, hop, nodes["c3"], place),
                    [nodes[name] for name in (agent, "c3", "cy", origin)],
                ],
            )
    return store


def test_sums_are_those_of_the_inbox(opened):
    told = fill(opened()).history(shown=5)
    assert told["hops"] == Counter(entry[3] for entry in ENTRIES)
    assert sorted(told["sizes"]) == [("ana", 2, 0), ("bo", 1, 2), ("cy", 0, 0)]
    assert told["nodes"] == {"agent": 3, "beacon": 1, "cell": 4}
    assert told["degrees"] == {3: 1}


def test_types_count_what_never_arrived_too(opened):
    fact, risk = fill(opened()).history(shown=5)["types"]
    assert fact == {"knowledge_type": "fact", "diffs": 2, "energy": 11.0, "arrived": 2, "agents": 1.5}
    assert risk == {"knowledge_type": "risk", "diffs": 2, "energy": 13.0, "arrived": 1, "agents": 0.5}


def test_the_farthest_diff_is_in_most_inboxes_each_agent_counted_once(opened):
    farthest = fill(opened()).history(shown=2)["farthest"]
    assert [(row["origin"], row["agents"], row["hops"], row["maker"]) for row in farthest] == [
        ("c0", 2, 5, "cy"),
        ("c1", 1, 3, "cy"),
    ]


def test_inboxes_hold_gossip_and_beacons_apart(opened):
    told = fill(opened()).history(agents=["bo", "nobody", "cy"], shown=5)
    ((name, count, rows),) = told["inboxes"]
    assert (name, count, [row["origin"] for row in rows]) == ("bo", 1, ["c0"])
    ((name, count, rows),) = told["caught"]
    assert (name, count, [row["origin"] for row in rows]) == ("lamp", 2, ["c0", "c2"])


def test_without_wishes_the_fullest_inboxes_are_told(opened):
    assert [name for name, _, _ in fill(opened()).history(shown=5)["inboxes"]] == ["bo", "ana"]


def test_a_record_calls_things_by_their_payloads_names_or_else_by_their_ids(opened):
    record = record_of(fill(opened()), featured=["ana"])
    first = record.inboxes[0].shown[0]
    assert (first.sent.subject, first.sent.title, first.way, first.own) == ("thing 0", "title 0", ["cy", "c3"], True)
    assert record.caught[0].shown[0].own is False
    assert totals(record).entries == len(ENTRIES)
    assert "title 1" in render(record)


def test_sections_of_one_thing_are_one_station_of_a_way(opened):
    store = fill(opened())
    with store._writing("test") as connection:
        connection.execute("update knowledge_nodes set payload = '{\"of\": \"one\"}' where id in ('c0', 'c3', 'cy')")
    assert record_of(store, featured=["ana"]).inboxes[0].shown[0].way == []


def test_entries_that_say_the_same_are_shown_once(opened):
    store = fill(opened())
    with store._writing("test") as connection:
        connection.execute("update knowledge_nodes set payload = '{\"title\": \"same\"}' where id in ('c0', 'c1')")
    (inbox,) = record_of(store, featured=["ana"]).inboxes
    assert (inbox.entries, [entry.sent.subject for entry in inbox.shown]) == (2, ["c0"])


def test_payloads_of_any_shape_are_no_names(opened):
    store = fill(opened())
    for payload in ("[1]", "7", "null", '{"of": 3, "title": ""}', '{"title": ["x"]}'):
        with store._writing("test") as connection:
            connection.execute("update knowledge_nodes set payload = %s where id = 'c0'", [payload])
        sent = record_of(store, featured=["ana"]).inboxes[0].shown[0].sent
        assert (sent.subject, sent.title) == ("c0", "c0 says: something. And more.")


def test_an_empty_project_has_a_record(opened):
    record = record_of(opened(hold=None))
    assert totals(record).entries == 0
    assert "No epoch has run" in render(record)
