"""What a checkpoint writes of the edges turns the old table into the new one, and nothing more (spec 8.3)."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hyphae_gpu.topology.changes import edge_changes, no_edges
from hyphae_gpu.vocabulary import EdgeKind
from tests.engine.project import edge_rows, edge_table

nodes = st.sampled_from([0, 1, 2, 31, 2**31 - 2])
keys = st.tuples(nodes, nodes, st.integers(0, 3))
values = st.tuples(
    st.sampled_from([int(EdgeKind.NEAR), int(EdgeKind.FAR)]),
    st.sampled_from([1.0, float(np.float32(0.3))]),
    st.sampled_from([-1, 1, 2]),
)
tables = st.dictionaries(keys, values, max_size=12)


@given(tables, tables)
def test_removed_and_written_edges_lead_from_the_old_table_to_the_new(old, new):
    removed, written = (edge_rows(table) for table in edge_changes(edge_table(old), edge_table(new)))
    assert set(removed) == set(old) - set(new)
    assert written == {key: row for key, row in new.items() if old.get(key) != row}
    assert {key: row for key, row in old.items() if key not in removed} | written == new


def test_no_edges_is_a_table_like_any_other():
    assert edge_rows(no_edges()) == {}
    one = edge_table({(1, 2, 0): (1, 0.5, -1)})
    removed, written = edge_changes(no_edges(), one)
    assert (len(removed), edge_rows(written)) == (0, edge_rows(one))
    removed, written = edge_changes(one, no_edges())
    assert (edge_rows(removed), len(written)) == (edge_rows(one), 0)
    for made, expected in zip(vars(removed).values(), vars(no_edges()).values(), strict=True):
        assert made.dtype == expected.dtype
