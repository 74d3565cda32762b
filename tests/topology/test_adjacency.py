import numpy as np
import pytest

from hyphae_gpu.backends.cpu.backend import CpuBackend
from hyphae_gpu.topology.adjacency import adjacency_of, as_edges, without
from tests.topology.tables import edge_table, rows_of

KIND_OF_TYPE = (1, 6, 0, 0)


@pytest.mark.parametrize("edges", [0, 1, 2, 31, 32, 33, 300])
@pytest.mark.parametrize("threads", [1, 3])
def test_rows_stand_by_cost_then_target_then_type_whatever_order_edges_came_in(edges, threads):
    random = np.random.default_rng(edges)
    keys = [(s, t, y) for s in range(9) for t in range(9) for y in range(4) if s != t]
    rows = []
    for place in random.permutation(len(keys))[:edges]:
        source, target, edge_type = keys[place]
        weight = np.float32(random.choice([1e-38, 0.3, 1.0]))
        rows.append((source, target, edge_type, KIND_OF_TYPE[edge_type], weight, int(random.choice([-1, 1, 7]))))
    adjacency = adjacency_of(as_edges(edge_table(rows)), 10, CpuBackend(threads=threads))
    costs = {np.float32(1e-38): 2**24, np.float32(0.3): 3_414, np.float32(1.0): 1_024}
    expected = sorted((s, costs[w], t, y, k, float(w), b) for s, t, y, k, w, b in rows)
    columns = ("costs", "targets", "types", "kinds", "weights", "bandwidths")
    sources = np.repeat(np.arange(10), np.diff(adjacency.offsets.numpy()))
    found = zip(sources.tolist(), *(getattr(adjacency, name).tolist() for name in columns), strict=True)
    assert list(found) == expected


def test_the_greatest_node_numbers_keep_their_place():
    count = 2**31 - 1
    rows = [(1, count - 1, 3, 0, 1.0, -1), (1, count - 2, 0, 1, 1.0, -1), (1, 0, 2, 0, 1e-38, -1)]
    ours = without(edge_table(rows), edge_table(rows[1:2]), 2, CpuBackend())
    assert list(rows_of(ours)) == [(1, count - 1, 3), (1, 0, 2)]
    # Only the sources' rows are laid out, so that the offsets stay small.
    adjacency = adjacency_of(as_edges(edge_table(rows)), 2, CpuBackend())
    assert adjacency.targets.tolist() == [count - 2, count - 1, 0]
