"""What goes into the store comes out of it, bit by bit."""

from __future__ import annotations

from tests.store import sample


def test_every_column_of_ingested_rows_comes_back(opened):
    given = sample.swarm()
    store = opened()
    counts = store.write_rows(given, diffs=True)
    assert counts == {
        "cells_created": 12, "cells_updated": 0, "cells_unchanged": 0, "agents": 3, "beacons": 2,
        "accesses": 13, "edges": 11,
    }  # fmt: skip
    state = store.load()
    nodes = state.nodes
    cells = given.cells.to_pylist()
    assert nodes.types.tolist() == [0] * 12 + [1] * 3 + [3] * 2
    assert nodes.vectors[:12].tolist() == [cell["embedding"] for cell in cells]
    assert nodes.placed.tolist() == [True] * 12 + [False, True, False] + [True] * 2
