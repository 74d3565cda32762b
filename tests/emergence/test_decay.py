import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyphae_gpu.emergence.decay import decayed_saliences, live_cells
from hyphae_gpu.vocabulary import NodeType
from tests.oracles import drift as oracle
from tests.topology.tables import node_table

DAY = 86_400_000_000
NOW = 20_000 * DAY


def cells(saliences, ages, **columns):
    """Cells with these saliences, last accessed so many microseconds before NOW."""
    return node_table(
        np.ones((len(saliences), 2)),
        saliences=np.array(saliences, np.float32),
        last_access=NOW - np.array(ages, np.int64),
        **columns,
    )


@given(
    st.lists(st.tuples(st.floats(0, 1, width=32), st.integers(-DAY, 3_000 * DAY)), max_size=40),
    st.sampled_from([0.99, 0.5, 1.0, 1e-300]),
)
def test_salience_decays_as_the_oracle(rows, decay_per_day):
    saliences, ages = zip(*rows, strict=True) if rows else ((), ())
    nodes = cells(saliences, ages)
    expected = [oracle.salience(s, NOW - age, NOW, decay_per_day) for s, age in zip(saliences, ages, strict=True)]
    found = decayed_saliences(nodes, NOW, decay_per_day=decay_per_day)
    assert found.dtype == np.float32
    assert found.tolist() == [float(value) for value in expected]


def test_a_day_of_fractions_counts():
    quarter, whole = decayed_saliences(cells([1, 1], [DAY // 4, DAY]), NOW, decay_per_day=0.99).tolist()
    assert (quarter, whole) == (round(0.99**0.25 * 4096) / 4096, round(0.99 * 4096) / 4096)


def test_a_cell_accessed_later_than_now_has_what_it_was_given():
    assert decayed_saliences(cells([0.7], [-5 * DAY]), NOW, decay_per_day=0.99).tolist() == [float(np.float32(0.7))]


def test_nodes_that_are_no_cells_do_not_decay():
    nodes = cells([1, 1], [100 * DAY, 100 * DAY])
    nodes.types[1] = NodeType.AGENT
    assert decayed_saliences(nodes, NOW, decay_per_day=0.99)[1] == 1


def test_what_was_given_stays_as_it_was():
    nodes = cells([1], [100 * DAY])
    decayed_saliences(nodes, NOW, decay_per_day=0.99)
    assert nodes.saliences.tolist() == [1.0]


@pytest.mark.parametrize(
    ("change", "live"),
    [
        ({}, True),
        ({"superseded_by": np.array([0], np.int32)}, False),
        ({"quarantined": np.array([True])}, False),
        ({"types": np.array([NodeType.SCENE], np.int8)}, False),
    ],
)
def test_a_live_cell_is_neither_superseded_nor_quarantined(change, live):
    nodes = cells([0.5], [0])
    for name, column in change.items():
        setattr(nodes, name, column)
    assert live_cells(nodes, nodes.saliences, threshold=0.05).tolist() == [live]


def test_the_threshold_is_compared_in_float64():
    # float32(0.05) is a little above 0.05, its neighbour below.
    saliences = np.array([np.float32(0.05), np.nextafter(np.float32(0.05), np.float32(0)), 0], np.float32)
    nodes = cells(saliences, [0, 0, 0])
    assert live_cells(nodes, saliences, threshold=0.05).tolist() == [True, False, False]
    assert live_cells(nodes, saliences, threshold=float(np.float32(0.05)) + 1e-12).tolist() == [False] * 3
    assert live_cells(nodes, saliences, threshold=0.0).tolist() == [True] * 3
