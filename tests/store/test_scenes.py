"""Scenes in the store: listed for people, gone ones left out."""

from __future__ import annotations

from tests.store import sample


def test_no_epoch_no_scenes(opened):
    store = opened()
    store.write_rows(sample.swarm(), diffs=True)
    assert store.scenes() == []
    assert store.status()["scenes"] == 0


def test_scenes_are_listed_the_largest_first_with_their_cells_and_agents(opened):
    store = opened()
    store.write_rows(sample.swarm(), diffs=True)
    for seed in range(3):
        store.checkpoint(sample.epoch(store.load(), seed))
    state = store.load()
    found = store.scenes(shown=2)
    assert store.status()["scenes"] == len(found) == len(state.scenes) > 1
    sizes = dict(zip(state.scenes.numbers.tolist(), state.scenes.sizes.tolist(), strict=True))
    assert [scene["num"] for scene in found] == sorted(sizes, key=lambda number: (-sizes[number], number))
    assert store.scenes(limit=1, shown=2) == found[:1]
    with store._database.connect() as connection:
        nodes = connection.execute(
            "select id, type, scene, salience, text from knowledge_nodes order by num"
        ).fetchall()
    for scene in found:
        assert scene["id"] == f"scene-{scene['num']}"
        cells = [row for row in nodes if row[1:3] == ("cell", scene["num"])]
        cells = sorted(cells, key=lambda row: -row[3])[:2]
        assert [(cell["id"], cell["text"]) for cell in scene["cells"]] == [(row[0], row[4]) for row in cells]
        assert scene["agents"] == [row[0] for row in nodes if row[1:3] == ("agent", scene["num"])][:2]


def test_a_scenes_number_is_that_of_its_own_node_and_stays_so_when_it_has_ended(opened):
    store = opened()
    store.write_rows(sample.swarm(), diffs=True)
    born = []
    for seed in range(4):
        done = sample.epoch(store.load(), seed)
        fresh = done.scenes.written.numbers[done.scenes.written.epochs == done.epoch].tolist()
        assert fresh == [done.first_new_node, done.first_new_node + 1]
        born += fresh
        store.checkpoint(done)
    with store._database.connect() as connection:
        ended = connection.execute(
            "select num, ended, size from scenes where ended is not null order by num"
        ).fetchall()
        nodes = connection.execute(
            "select s.num, s.id = n.id, n.type, n.layer, n.embedding is null from scenes s "
            "join knowledge_nodes n using (num) order by s.num"
        ).fetchall()
    assert ended == [(born[0], 2, 0), (born[1], 3, 0), (born[2], 4, 0)]
    assert [row[:4] for row in nodes] == [(number, True, "scene", 1) for number in born]
    assert [place for *_, place in nodes[:3]] == [True] * 3
    assert store.load().scenes.numbers.tolist() == born[3:]
