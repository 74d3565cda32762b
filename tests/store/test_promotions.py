"""What was promoted, listed for people: newest first, with names instead of numbers."""

from __future__ import annotations

from tests.store import sample


def filled(opened, epochs=2):
    """A store after some epochs, and these epochs."""
    store = opened()
    store.write_rows(sample.swarm(), diffs=True)
    done = []
    for seed in range(epochs):
        done.append(sample.epoch(store.load(), seed))
        store.checkpoint(done[-1])
    return store, done


def test_nothing_promoted_is_listed_as_nothing(opened):
    assert filled(opened, epochs=0)[0].promotions() == []


def test_each_promotion_tells_what_it_was_who_carried_it_and_what_it_became(opened):
    store, epochs = filled(opened)
    with store._database.connect() as connection:
        columns = "num, id, text, payload, agent"
        nodes = {row[0]: row for row in connection.execute(f"select {columns} from knowledge_nodes".encode())}
        diffs = dict(connection.execute("select num, id from memory_diffs"))
        types = {
            row[0]: row[1:] for row in connection.execute("select num, knowledge_type, diff_type from memory_diffs")
        }
        names = dict(connection.execute("select num, name from scenes"))
    name_of = {number: row[1] for number, row in nodes.items()} | {-1: None}
    expected = []
    for done in reversed(epochs):
        table = done.promotions
        for i in range(len(table)):
            diff, cell = int(table.diffs[i]), nodes[int(table.cells[i])]
            carried = [name_of[number] for number in table.carried[i].tolist()]
            expected.append(
                {
                    "diff": diffs[diff],
                    "origin": cell[1],
                    "text": cell[2],
                    "payload": cell[3],
                    "knowledge_type": types[diff][0],
                    "diff_type": types[diff][1],
                    "agent": None if cell[4] is None else name_of[cell[4]],
                    "layer": int(table.layers[i]),
                    "epoch": done.epoch,
                    "node": name_of[int(table.nodes[i])],
                    "scenes": [
                        {"id": name_of[scene], "name": names[scene], "count": count}
                        for scene, count in zip(table.scenes[i].tolist(), table.counts[i].tolist(), strict=True)
                    ],
                    "carrier": name_of[int(table.carriers[i])],
                    "entry": name_of[int(table.entries[i])],
                    "carried": carried[:5],
                    "carried_count": len(carried),
                }
            )
    assert store.promotions() == expected
    assert [len(row["carried"]) for row in expected] == [5] * 6
    assert [row["carried_count"] for row in expected] == [7, 6, 5] * 2
    assert [row["entry"] is None for row in expected] == [False, False, True] * 2


def test_one_layer_only_so_many_and_so_many_carriers_can_be_asked_for(opened):
    store, _ = filled(opened)
    whole = store.promotions(shown=100)
    assert [row["layer"] for row in whole] == [1, 2, 1] * 2
    assert store.promotions(layer=2, shown=100) == [whole[1], whole[4]]
    assert store.promotions(layer=1, limit=3, shown=100) == [whole[0], whole[2], whole[3]]
    assert store.promotions(limit=1, shown=100) == whole[:1]
    assert [len(row["carried"]) for row in whole] == [7, 6, 5] * 2
    assert [row["carried"] for row in store.promotions(shown=0)] == [[]] * 6
    assert [row["carried"] for row in store.promotions(shown=2)] == [row["carried"][:2] for row in whole]
