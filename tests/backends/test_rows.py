import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hyphae_gpu.backends.cpu.rows import order_rows


@given(st.integers(1, 5), st.sampled_from([0, 1, 2, 63, 64, 65, 66, 300]), st.integers(0, 2**32), st.integers(1, 9))
def test_edges_stand_by_source_then_key_and_keep_their_order_in_ties(count, edges, seed, keys):
    random = np.random.default_rng(seed)
    sources = random.integers(0, count, edges).astype(np.int32)
    values = random.integers(0, keys, edges) << 50
    offsets, order = order_rows(count, sources, values)
    expected = sorted(range(edges), key=lambda edge: (sources[edge], values[edge], edge))
    assert order.tolist() == expected
    assert offsets.tolist() == [int((sources < row).sum()) for row in range(count + 1)]


def test_threads_do_not_change_the_order():
    random = np.random.default_rng(0)
    sources, values = random.integers(0, 1_000, 20_000).astype(np.int32), random.integers(0, 50, 20_000)
    one, four = (order_rows(1_000, sources, values, threads=threads) for threads in (1, 4))
    assert [part.tolist() for part in one] == [part.tolist() for part in four]


def test_the_callers_keys_are_left_alone():
    keys = np.array([3, 1, 2])
    order_rows(1, np.zeros(3, np.int32), keys)
    assert keys.tolist() == [3, 1, 2]
