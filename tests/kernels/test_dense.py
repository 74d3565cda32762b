"""Gates from one matrix product equal gates one by one, and the cheaper of the two is taken."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from hyphae_gpu.backends.cpu.backend import CpuBackend
from hyphae_gpu.backends.cuda import backend as backend_module
from hyphae_gpu.backends.cuda import dense
from hyphae_gpu.backends.cuda.dense import GateCosts, bytes_of_dots, dense_is_cheaper, dots_of
from hyphae_gpu.swarm import GossipRules
from tests.gossip.test_waves import lossy_rules, rules_of
from tests.graphs import limited_swarms, swarm, swarms
from tests.kernels.conftest import DENSE, SPARSE
from tests.kernels.test_rounds import assert_equal

seeds = st.integers(0, 2**32 - 1)


@settings(max_examples=15, deadline=None)
@given(st.one_of(swarms, limited_swarms), st.one_of(rules_of, lossy_rules), st.booleans(), seeds)
def test_rounds_over_whole_products_equal_the_cpu_backends(on_cuda, made, rules, sweep, seed):
    assert_equal(made, rules, on_cuda(seed, costs=DENSE), sweep=sweep)


@settings(max_examples=20, deadline=None)
@given(seed=seeds, dimension=st.sampled_from([2, 33, 384]), diffs=st.sampled_from([0, 1, 31, 32, 33, 70]))
def test_open_counts_from_whole_products_equal_the_cpu_backends(on_cuda, seed, dimension, diffs):
    made = swarm(seed, nodes=40, degree=0, diffs=diffs, dimension=dimension, spread=0.7)
    rows = torch.from_numpy(np.random.default_rng(seed).integers(0, 40, 11).astype(np.int32))
    rules = GossipRules(sigma_min=0.3, cos_min=0.2)
    expected = CpuBackend().open_counts(made.nodes, made.diffs, rules, rows)
    assert torch.equal(on_cuda(seed, costs=DENSE).open_counts(made.nodes, made.diffs, rules, rows), expected)


@pytest.mark.parametrize("dimension", [16, 784, 16_000])
@pytest.mark.parametrize(("nodes", "diffs"), [(1, 1), (7, 17), (33, 31), (64, 40)])
def test_products_are_exact_at_any_size(dimension, nodes, diffs):
    rng = np.random.default_rng(3)
    images = torch.from_numpy(rng.integers(-127, 128, (nodes, dimension)).astype(np.int8))
    queries = torch.from_numpy(rng.integers(-127, 128, (diffs, dimension)).astype(np.int8))
    images[0] = queries[0] = 127
    found = dots_of(images, queries)[:diffs, :nodes]
    assert torch.equal(found.long(), queries.long() @ images.long().T)


def test_a_product_of_too_many_values_is_made_in_pieces(monkeypatch):
    rng = np.random.default_rng(4)
    images = torch.from_numpy(rng.integers(-127, 128, (64, 48)).astype(np.int8))
    queries = torch.from_numpy(rng.integers(-127, 128, (161, 48)).astype(np.int8))
    whole, real, rows = dots_of(images, queries), torch._int_mm, []

    def counting(left, right, *, out):
        rows.append(len(left))
        return real(left, right, out=out)

    monkeypatch.setattr(torch, "_int_mm", counting)
    monkeypatch.setattr(dense, "_MOST_CELLS", 64 * 70)
    assert torch.equal(dots_of(images, queries), whole)
    assert rows == [64, 64, 64]


def refusing(left, right, *, out):
    raise RuntimeError("CUBLAS_STATUS_NOT_SUPPORTED")


def wrong(left, right, *, out):
    out.copy_(left.int() @ right.int())
    out[3, 5] += 1


@pytest.mark.parametrize("product", [refusing, wrong])
def test_a_device_without_a_right_product_computes_gates_one_by_one(on_shim, monkeypatch, product):
    monkeypatch.setattr(torch, "_int_mm", product)
    for what, count in (("PAIRS", 64), ("NODES", 90), ("DIFFS", 16)):
        monkeypatch.setattr(dense, f"_MEASURED_{what}", count)
    made, backend = swarm(2, nodes=50, degree=4, diffs=5, spread=0.3), on_shim(0, costs=None)
    assert_equal(made, GossipRules(), backend)
    assert [costs.cell for costs in backend._costs.values()] == [float("inf")]


@pytest.mark.parametrize(("costs", "products"), [(DENSE, 1), (SPARSE, 0)])
def test_the_cheaper_way_is_taken(on_shim, monkeypatch, costs, products):
    made = swarm(2, nodes=50, degree=4, diffs=5, spread=0.3)
    calls = []

    def counting(*columns):
        calls.append(columns)
        return dots_of(*columns)

    monkeypatch.setattr(backend_module, "dots_of", counting)
    assert_equal(made, GossipRules(), on_shim(0, costs=costs))
    assert len(calls) == products


def test_few_gates_are_computed_one_by_one_where_many_are_not():
    costs, much = GateCosts(pair=200.0, cell=1.0), 1 << 30
    job = {"nodes": 1000, "diffs": 40, "row_bytes": 64}
    assert dense_is_cheaper(costs, **job, pairs=201, free_bytes=much)
    assert not dense_is_cheaper(costs, **job, pairs=200, free_bytes=much)
    assert not dense_is_cheaper(costs, **job, pairs=201, free_bytes=bytes_of_dots(*job.values()) - 1)
    # a product has at least 32 rows
    assert not dense_is_cheaper(costs, **job | {"diffs": 1}, pairs=160, free_bytes=much)


@pytest.mark.parametrize(("nodes", "diffs"), [(1, 1), (33, 31), (64, 40), (1001, 3)])
def test_the_room_for_a_product_holds_the_rows_that_are_made_whole_for_it(monkeypatch, nodes, diffs):
    made, whole = [], dense._whole
    monkeypatch.setattr(dense, "_whole", lambda rows: made.append(whole(rows)) or made[-1])
    out = dots_of(torch.ones((nodes, 64), dtype=torch.int8), torch.ones((diffs, 64), dtype=torch.int8))
    assert out.nbytes + sum(rows.nbytes for rows in made) <= bytes_of_dots(nodes, diffs, 64)


def test_where_a_product_has_no_room_gates_are_computed_one_by_one(on_shim, monkeypatch):
    made, rules, asked = swarm(2, nodes=50, degree=4, diffs=5, spread=0.3), GossipRules(), []

    def too_large(*columns):
        asked.append(columns)
        raise torch.OutOfMemoryError("out of memory")

    monkeypatch.setattr(backend_module, "dots_of", too_large)
    backend, rows = on_shim(0, costs=DENSE), torch.arange(50, dtype=torch.int32)
    assert_equal(made, rules, backend)
    expected = CpuBackend().open_counts(made.nodes, made.diffs, rules, rows)
    assert torch.equal(backend.open_counts(made.nodes, made.diffs, rules, rows), expected)
    # nor is one measured that has none
    monkeypatch.setattr(dense, "_are_exact", too_large)
    assert_equal(made, rules, on_shim(0, costs=None))
    assert len(asked) == 3


def test_costs_are_measured_once_where_none_are_given(on_shim, monkeypatch):
    made = swarm(2, nodes=50, degree=4, diffs=5, spread=0.3)
    for what, count in (("PAIRS", 64), ("NODES", 90), ("DIFFS", 16)):
        monkeypatch.setattr(f"hyphae_gpu.backends.cuda.dense._MEASURED_{what}", count)
    asked = []
    backend = on_shim(0, costs=None)
    monkeypatch.setattr(backend.launcher, "seconds", lambda work: asked.append(work()) or len(asked) * 64.0)
    for _ in range(2):
        assert_equal(made, GossipRules(), backend)
    assert len(asked) == 2
    assert list(backend._costs.values()) == [GateCosts(pair=1.0, cell=128.0 / (90 * 16))]
    # what rows of four times the width cost is another thing
    wide = swarm(2, nodes=50, degree=4, diffs=5, dimension=200, spread=0.3)
    for graph in (wide, made, wide):
        assert_equal(graph, GossipRules(), backend)
    assert len(asked) == 4
