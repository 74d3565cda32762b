"""A report's sums and lists are those of the tables, counted again in plain Python."""

from __future__ import annotations

import json
from collections import Counter

import pytest

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
    assert (first.sent.subject, first.sent.title, first.way, first.own) == ("thing 0", "title 0", ["c3"], True)
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


def way_of(store, path, *, agent="ana", origin="c0"):
    """Return the entry of an agent for a diff after the diff's way was put in its place, receiver first."""
    with store._writing("test") as connection:
        nodes = dict(connection.execute("select id, num from knowledge_nodes"))
        connection.execute(
            "update inbox set path = %s where agent = %s and diff = %s and via = 'gossip'",
            [[nodes[name] for name in path], nodes[agent], int(origin[1:])],
        )
    (inbox,) = record_of(store, featured=[agent]).inboxes
    return next(entry for entry in inbox.shown if entry.sent.title == f"title {origin[1:]}")


def made(store, name, *, kind="cell", layer=1, of=None, payload=None, text=None):
    """Put a node that an epoch makes into a store."""
    with store._writing("test") as connection:
        connection.execute(
            "insert into knowledge_nodes (num, id, type, layer, knowledge_type, salience, made_of, text, payload, "
            "created_at, last_access) select max(num) + 1, %(id)s, %(kind)s, %(layer)s, "
            "case when %(kind)s = 'cell' then 'pattern' end, 0.9, "
            "(select num from knowledge_nodes where id = %(of)s), %(text)s, %(payload)s, now(), now() "
            "from knowledge_nodes",
            {"id": name, "kind": kind, "layer": layer, "of": of, "text": text, "payload": payload},
        )
        if kind == "scene":
            connection.execute(
                "insert into scenes (num, id, name, size, epoch) select num, id, %s, 9, 1 from knowledge_nodes "
                "where id = %s",
                [text, name],
            )


def test_a_way_through_loops_is_told_straight_and_without_the_maker_who_is_named_anyway(opened):
    entry = way_of(fill(opened()), ["ana", "c3", "bo", "c2", "c3", "c2", "c0"])
    assert (entry.way, entry.steps) == (["thing 2", "bo", "c3"], 4)
    entry = way_of(fill(opened(project="other")), ["ana", "c3", "bo", "ana", "c2", "cy", "c0"])
    assert (entry.way, entry.steps, entry.own) == (["thing 2"], 3, False)


def test_a_way_without_anything_between_is_straight(opened):
    entry = way_of(fill(opened()), ["ana", "c0"])
    assert (entry.way, entry.steps, entry.own, entry.down) == ([], 1, False, False)


def test_scenes_and_promoted_nodes_on_a_way_are_called_by_their_words(opened):
    store = fill(opened())
    made(store, "scene-9", kind="scene", text="queue, worker, retry")
    made(store, "scene-10", kind="scene", text="")
    made(store, "promoted-11", of="c1", payload='{"of": "thing 1"}')
    assert store.history(shown=5)["nodes"] == {"agent": 3, "beacon": 1, "cell": 4, "scene": 2}
    entry = way_of(store, ["ana", "scene-9", "promoted-11", "scene-10", "c0"])
    assert entry.way == ["a topic without words", "thing 1", "topic “queue, worker”"]
    assert (entry.down, entry.own) == (True, False)


@pytest.mark.parametrize(
    ("resolution", "decision"),
    [
        ({"policy": "salience", "winner": "c1", "loser": "c0", "reason": "salience 0.9, the other 0.1"},
         "salience: “443” stands; salience 0.9, the other 0.1"),
        ({"cells": ["c0"], "reason": "superseded"}, "“c3” superseded “80”"),
        ({"cells": ["c0", "c1"], "reason": "superseded"}, "“c3” superseded “80”; “another cell” superseded “443”"),
        ({"cells": ["c1"], "reason": "updated: they no longer oppose each other"},
         "“443”; updated: they no longer oppose each other"),
        ({}, "no reason was kept"),
        (None, "no reason was kept"),
    ],
)  # fmt: skip
def test_a_resolution_is_told_in_words(opened, resolution, decision):
    store = fill(opened())
    with store._writing("test") as connection:
        nodes = dict(connection.execute("select id, num from knowledge_nodes"))
        numbered = resolution and {
            key: nodes[value]
            if key in ("winner", "loser")
            else [nodes[one] for one in value]
            if key == "cells"
            else value
            for key, value in resolution.items()
        }
        for name, value in (("c0", "80"), ("c1", "443")):
            connection.execute(
                "update knowledge_nodes set claim_subject = 'port', claim_value = %s where id = %s", [value, name]
            )
        connection.execute("update knowledge_nodes set superseded_by = %s where id = 'c0'", [nodes["c3"]])
        connection.execute(
            "insert into contradictions values (%s, %s, 0.9, 'claim', 1, 'resolved', %s)",
            [nodes["c0"], nodes["c1"], None if numbered is None else json.dumps(numbered)],
        )
    (found,) = record_of(store).emerged.contradictions
    assert (found.decision, found.open, found.about) == (decision, False, "port")


def test_only_a_contradictions_own_diffs_tell_of_it(opened):
    store = fill(opened())
    with store._writing("test") as connection:
        nodes = dict(connection.execute("select id, num from knowledge_nodes"))
        connection.execute(
            "insert into contradictions values (%s, %s, 0.9, 'stance', 2, 'open', null)", [nodes["c0"], nodes["c1"]]
        )
        # Both diffs of c0 and c1 are in inboxes, in epoch 1; then c1's alone is of the epoch in which the two met.
        for epochs in ((1, 1), (1, 2), (3, 2)):
            for number, epoch in enumerate(epochs):
                connection.execute(
                    "update memory_diffs set diff_type = 'contradiction', epoch_created = %s where num = %s",
                    [epoch, number],
                )
    (found,) = record_of(store).emerged.contradictions
    assert (found.told, list(found.informed)) == (1, ["ana"])


def test_a_scene_that_ended_is_no_topic_any_more(opened):
    store = fill(opened())
    for number in range(3):
        made(store, f"scene-{number}", kind="scene", text=f"words {number}")
    with store._writing("test") as connection:
        connection.execute("update scenes set ended = 2 where id = 'scene-1'")
    emerged = record_of(store).emerged
    assert ([scene.name for scene in emerged.scenes], emerged.scene_count) == (["words 0", "words 2"], 2)


def test_promotions_by_most_topics_come_first_but_every_maker_before_anyones_second(opened):
    store = fill(opened())
    for number in range(4):
        made(store, f"scene-{number}", kind="scene", text=f"words {number}")
    with store._writing("test") as connection:
        nodes = dict(connection.execute("select id, num from knowledge_nodes"))
        connection.execute("update knowledge_nodes set agent = %s where id = 'c3'", [nodes["bo"]])
        # diffs 0, 1, 2 are cy's and 3 is bo's; of two by as many topics the one with more nodes comes first
        for diff, counts in ((0, [5, 5]), (1, [9, 5]), (2, [9, 8, 7]), (3, [6])):
            scenes = [nodes[f"scene-{place}"] for place in range(len(counts))]
            connection.execute(
                "insert into promotions values (%(diff)s, 1, 1, %(scenes)s, %(node)s, %(counts)s, %(node)s, null, "
                "%(scenes)s)",
                {"diff": diff, "scenes": scenes, "node": nodes["c3"], "counts": counts},
            )
    emerged = record_of(store).emerged
    told = [(one.sent.subject, one.scene_count) for one in emerged.promotions]
    assert told == [("thing 2", 3), ("c3", 1), ("thing 1", 2), ("thing 0", 2)]
    assert list(emerged.promotions[0].scenes) == [("words 0", 9), ("words 1", 8), ("words 2", 7)]
    assert [one.carrier for one in emerged.promotions] == ["c3", "", "c3", "c3"]
    assert emerged.promoted == {(1, 1): 4}


def pattern(store, name, leader, members, text=None):
    made(store, name, layer=0, of=leader, payload=json.dumps({"members": members}), text=text)


def test_a_pattern_speaks_in_its_leaders_words_unless_it_has_its_own(opened):
    store = fill(opened())
    pattern(store, "pattern-9", "c1", ["c1", "c2"], "c1 says: something. And more.")
    pattern(store, "pattern-10", "c2", ["c2", "c1", "c0"], "what all of them mean")
    first, second = record_of(store).emerged.patterns
    assert (first.subject, first.title, first.members, first.agents) == ("thing 2", "what all of them mean", 3, 1)
    assert (second.subject, second.title, list(second.named)) == ("thing 1", "title 1", ["cy"])
    assert record_of(store).emerged.pattern_count == 2


def test_a_pattern_whose_row_was_written_over_has_no_members(opened):
    store = fill(opened())
    for name, payload in (("pattern-9", "[1]"), ("pattern-10", None), ("pattern-11", '{"members": 7}')):
        made(store, name, layer=0, of="c1", payload=payload)
    assert [(one.members, one.agents) for one in record_of(store).emerged.patterns] == [(0, 0)] * 3


def test_lists_are_cut_and_counted(opened):
    store = fill(opened())
    for number in range(7):
        pattern(store, f"pattern-{number}", "c1", ["c1"])
    emerged = record_of(store, shown=2).emerged
    assert (len(emerged.patterns), emerged.pattern_count) == (2, 7)


def test_an_empty_project_has_nothing_emerged(opened):
    emerged = record_of(opened(hold=None)).emerged
    assert (emerged.scenes, emerged.scene_count, emerged.patterns, emerged.promotions) == ([], 0, [], [])
    assert (emerged.contradictions, dict(emerged.contradiction_counts), dict(emerged.promoted)) == ([], {}, {})
