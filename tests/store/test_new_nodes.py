"""Nodes that epochs make, and what was promoted: their ids, what they take over, and what is refused."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hyphae_gpu.errors import DatabaseError
from hyphae_gpu.store import Store
from tests.store import sample

Opened = Callable[..., Store]
#: A `sample.swarm` has so many nodes.
GIVEN = 17


def filled(opened: Opened, *, epochs: int = 1, **more: list[dict[str, object]]) -> Store:
    """A store of a swarm, maybe of more rows, after some epochs."""
    store = opened()
    store.write_rows(sample.swarm(), diffs=True)
    if more:
        store.write_rows(sample.rows(**more), diffs=True)
    for seed in range(epochs):
        store.checkpoint(sample.epoch(store.load(), seed))
    return store


def select(store: Store, query: str) -> list[tuple]:
    with store._database.connect() as connection:
        return connection.execute(query.encode()).fetchall()


def test_ids_say_what_a_node_is_and_its_number(opened):
    store = filled(opened)
    assert select(store, f"select id from knowledge_nodes where num >= {GIVEN} order by num") == [
        ("scene-17",), ("scene-18",), ("promoted-19",), ("promoted-20",), ("promoted-21",), ("pattern-22",),
    ]  # fmt: skip


def test_an_id_that_a_row_has_taken_gets_marks_behind_until_it_is_free(opened):
    taken = ("scene-21", "scene-21~", "promoted-24", "pattern-26")
    store = filled(opened, cells=[{"id": name, "text": name} for name in taken])
    ids = [name for (name,) in select(store, f"select id from knowledge_nodes where num >= {GIVEN + 4} order by num")]
    assert ids == ["scene-21~~", "scene-22", "promoted-23", "promoted-24~", "promoted-25", "pattern-26~"]
    assert {scene["id"] for scene in store.scenes()} == {"scene-21~~", "scene-22"}
    assert {row["node"] for row in store.promotions()} == {"promoted-23", "promoted-24~", "promoted-25"}


def test_a_node_says_what_the_cell_says_that_it_was_made_of(opened):
    store = filled(opened, epochs=2)
    made = select(
        store,
        "select n.text, n.confidence, n.payload, c.text, c.confidence, c.payload from knowledge_nodes n "
        "join knowledge_nodes c on c.num = n.made_of where n.layer > 0",
    )
    assert len(made) == 6
    assert all(row[:3] == row[3:] for row in made)
    assert None not in {row[0] for row in made}
    assert {row[2] is None for row in made} == {True, False}


def test_what_is_left_out_by_a_cell_is_left_out_by_what_it_becomes(opened):
    store = opened()
    store.write_rows(
        sample.rows(cells=[{"id": f"c{i}", "confidence": 0.25} for i in range(6)], agents=[{"id": "a"}]), diffs=True
    )
    store.checkpoint(sample.epoch(store.load()))
    made = select(
        store, "select text, confidence, payload, agent from knowledge_nodes where layer > 0 and type = 'cell'"
    )
    assert made == [(None, 0.25, None, None)] * 3


def test_a_pattern_has_its_own_text_or_its_leaders_and_names_its_members(opened):
    store = filled(opened, epochs=2)
    first, second = select(
        store,
        "select n.text, c.text, n.confidence, c.confidence, n.payload from knowledge_nodes n "
        "join knowledge_nodes c on c.num = n.made_of where n.layer = 0 order by n.num",
    )
    assert first[0] == first[1] == store.texts(store.load().nodes.made_of[GIVEN + 5 : GIVEN + 6])[0]
    assert second[0] == "a pattern, gr\u00f6\u00dfer 1" != second[1]
    members = {"members": [f"cell-{number} \u00e9\u4e16" for number in (1, 4, 0)]}
    for pattern in (first, second):
        assert pattern[2] == pattern[3]
        assert pattern[4] == members


def test_a_scene_has_nothing_to_say_of_its_own(opened):
    store = filled(opened)
    told = "text, confidence, payload, knowledge_type, salience, agent, made_of, pending"
    assert select(store, f"select {told} from knowledge_nodes where type = 'scene'") == [(None,) * 8] * 2


def test_edges_stand_in_their_sources_layer(opened):
    store = filled(opened, epochs=2)
    found = select(
        store, "select e.layer, n.layer from topology_edges e join knowledge_nodes n on n.num = e.src where not e.given"
    )
    assert {layer for _, layer in found} == {0, 1, 2}
    assert all(own == of_source for own, of_source in found)


@pytest.mark.parametrize("first", [GIVEN - 1, GIVEN + 1])
def test_nodes_that_do_not_follow_the_stores_are_refused(opened, first):
    store = filled(opened, epochs=0)
    before = store.load()
    done = sample.epoch(before)
    done.first_new_node = first
    with pytest.raises(DatabaseError, match=f"numbers its nodes from {first} on, but the store from {GIVEN}"):
        store.checkpoint(done)
    assert sample.differences(before, store.load()) == []


def test_what_was_promoted_is_kept_as_it_was(opened):
    store = opened()
    store.write_rows(sample.swarm(), diffs=True)
    done = sample.epoch(store.load())
    store.checkpoint(done)
    table = done.promotions
    rows = select(
        store,
        "select diff, layer, epoch, scenes, node, counts, carrier, entry, carried from promotions order by diff, layer",
    )
    assert rows == [
        (
            int(table.diffs[i]),
            int(table.layers[i]),
            1,
            table.scenes[i].tolist(),
            int(table.nodes[i]),
            table.counts[i].tolist(),
            int(table.carriers[i]),
            None if table.entries[i] < 0 else int(table.entries[i]),
            table.carried[i].tolist(),
        )
        for i in range(3)
    ]
    assert rows[2][7] is None


def test_a_promotion_is_never_recorded_twice(opened):
    store = opened()
    store.write_rows(sample.swarm(), diffs=True)
    first = sample.epoch(store.load())
    store.checkpoint(first)
    before = store.load()
    again = sample.epoch(before, seed=1)
    again.promotions = first.promotions
    with pytest.raises(DatabaseError, match="promotions_pkey"):
        store.checkpoint(again)
    assert sample.differences(before, store.load()) == []
