import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hyphae_gpu.backends.cpu.components import components
from tests.oracles import topology as oracle


@given(st.sampled_from([1, 2, 31, 32, 33]), st.integers(0, 40), st.integers(0, 2**32))
def test_every_node_gets_the_lowest_member_of_its_component(count, edges, seed):
    left, right = np.random.default_rng(seed).integers(0, count, (2, edges)).astype(np.int32)
    labels = components(count, left, right).tolist()
    expected = oracle.components(range(count), set(zip(left.tolist(), right.tolist(), strict=True)))
    assert labels == [min(found) for node in range(count) for found in expected if node in found]


def test_a_long_chain_is_one_component_in_either_direction():
    chain = np.arange(10_000, dtype=np.int32)
    for left, right in ((chain[:-1], chain[1:]), (chain[:0:-1], chain[-2::-1])):
        assert not components(10_000, left, right).any()


def test_no_nodes_have_no_components():
    assert components(0, np.zeros(0, np.int32), np.zeros(0, np.int32)).tolist() == []
