import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyphae_gpu.backends.cpu.backend import CpuBackend
from hyphae_gpu.emergence.drift import counting_pairs, drift
from hyphae_gpu.state import AccessLog
from hyphae_gpu.vocabulary import NodeType
from tests.oracles import drift as oracle
from tests.topology.tables import images_of, node_table

DAY = 86_400_000_000
NOW = 20_000 * DAY
BACKEND = CpuBackend()


def log_of(rows):
    agents, cells, at = zip(*rows, strict=True) if rows else ((), (), ())
    return AccessLog(agents=np.array(agents, np.int32), cells=np.array(cells, np.int32), at=np.array(at, np.int64))


def as_dict(pairs):
    keys = list(zip(pairs.agents.tolist(), pairs.cells.tolist(), strict=True))
    assert keys == sorted(set(keys))
    return dict(zip(keys, pairs.recencies.tolist(), strict=True))


@st.composite
def logs(draw):
    """A log of few agents and cells, so that pairs repeat and times tie; some rows later than NOW."""
    rows = draw(st.sampled_from([0, 1, 2, 11, 33, 200]))
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    ages = random.integers(-2, 40, rows) * (DAY // draw(st.sampled_from([1, 7])))
    return [
        (int(a), int(c), int(NOW - age))
        for a, c, age in zip(random.integers(0, 3, rows), random.integers(3, 12, rows), ages, strict=True)
    ]


@given(logs(), st.integers(0, 2**12 - 1), st.sampled_from([1.0, 30.0, 0.3]))
def test_the_pairs_that_count_equal_the_oracle(rows, mask, unit):
    live = np.array([bool(mask >> node & 1) for node in range(12)])
    found = counting_pairs(log_of(rows), NOW, live, access_unit_days=unit)
    assert as_dict(found) == oracle.counting_pairs(rows, NOW, live, unit)


@pytest.mark.parametrize("count", [255, 256, 257, 300])
def test_the_newest_256_pairs_of_an_agent_count_and_ties_go_to_the_lowest_cell(count):
    rows = [(0, 1 + cell, NOW - (0 if cell % 2 else DAY)) for cell in range(count)]
    rows += [(count + 1, 5, NOW)]
    live = np.ones(count + 2, np.bool_)
    found = as_dict(counting_pairs(log_of(rows), NOW, live, access_unit_days=30.0))
    assert found == oracle.counting_pairs(rows, NOW, live, 30.0)
    assert sum(agent == 0 for agent, _ in found) == min(count, 256)


def test_a_dead_cell_takes_none_of_the_256_places():
    rows = [(0, cell, NOW - cell) for cell in range(1, 400)]
    live = np.arange(400) % 2 == 0
    assert len(counting_pairs(log_of(rows), NOW, live, access_unit_days=1.0)) == 199


def test_a_row_later_than_now_waits_though_its_pair_has_an_older_one():
    rows = [(0, 1, NOW + 1), (0, 1, NOW - 10 * DAY), (0, 2, NOW)]
    found = as_dict(counting_pairs(log_of(rows), NOW, np.ones(3, np.bool_), access_unit_days=1.0))
    assert found == {(0, 1): oracle.on_grid(np.exp(-1.0)), (0, 2): 1.0}


def test_pairs_below_the_least_recency_do_not_count():
    # exp(-0.1 * dt) on the grid passes 0.05 between 204 and 205 of 4,096.
    rows = [(0, 1, NOW - int(29.94 * DAY)), (0, 2, NOW - int(30.0 * DAY))]
    found = as_dict(counting_pairs(log_of(rows), NOW, np.ones(3, np.bool_), access_unit_days=1.0))
    assert found == {(0, 1): 205 / 4096}


@given(logs(), st.integers(0, 2**32), st.sampled_from([2, 3, 33]))
def test_positions_equal_the_oracle(rows, seed, dimension):
    random = np.random.default_rng(seed)
    vectors = random.integers(-3, 4, (12, dimension)).astype(np.float32)
    vectors[~vectors.any(axis=1)] = 1
    types = np.array([NodeType.AGENT] * 3 + [NodeType.CELL] * 9, np.int8)
    placed = np.array([random.random() < 0.5 for _ in range(3)] + [True] * 9)
    nodes = node_table(vectors, types, placed=placed, saliences=random.random(12).astype(np.float32))
    images = images_of(nodes)
    pairs = counting_pairs(log_of(rows), NOW, types == NodeType.CELL, access_unit_days=3.0)
    moved, positions = drift(nodes, images, nodes.saliences, pairs, BACKEND)
    expected = {agent: oracle.position(agent, as_dict(pairs), nodes.saliences, images) for agent in range(3)}
    expected = {agent: vector.tolist() for agent, vector in expected.items() if vector is not None}
    assert dict(zip(moved.tolist(), positions.tolist(), strict=True)) == expected


def drifted(cell_vectors, rows, agent_vector=(0, 0), placed=False):
    """One agent, node 0, and cells from node 1 on; all of salience 1."""
    vectors = np.array([agent_vector, *cell_vectors], np.float32)
    types = np.array([NodeType.AGENT] + [NodeType.CELL] * len(cell_vectors), np.int8)
    nodes = node_table(vectors, types, placed=(types == NodeType.CELL) | placed)
    pairs = counting_pairs(log_of(rows), NOW, types == NodeType.CELL, access_unit_days=1.0)
    moved, positions = drift(nodes, images_of(nodes), np.ones(len(types), np.float32), pairs, BACKEND)
    return moved.tolist(), positions.tolist()


def test_an_agent_whose_cells_cancel_out_stays():
    assert drifted([(1, 0), (-1, 0)], [(0, 1, NOW), (0, 2, NOW)]) == ([], [])


def test_an_agent_without_accesses_stays():
    assert drifted([(1, 0)], []) == ([], [])


def test_an_agent_that_would_stand_where_it_stands_is_not_listed():
    assert drifted([(5, 0)], [(0, 1, NOW)], agent_vector=(1, 0), placed=True) == ([], [])
    assert drifted([(5, 0)], [(0, 1, NOW)], agent_vector=(2, 0), placed=True) == ([0], [[1.0, 0.0]])
