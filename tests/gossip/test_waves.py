"""Propagation against its oracles, with == (spec 3)."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from hyphae_gpu.backends.cpu.backend import CpuBackend
from hyphae_gpu.gossip.waves import origins, propagate
from hyphae_gpu.swarm import Deliveries, GossipCounts, GossipRules
from hyphae_gpu.vocabulary import EdgeType
from tests.graphs import Swarm, limited_swarms, small_swarms, swarm, swarms
from tests.oracles import gossip as oracle

rules_of = st.builds(
    GossipRules,
    sigma_min=st.sampled_from([0.0, 0.3, 0.6]),
    cos_min=st.sampled_from([-1.0, 0.25, 0.8]),
    fanout=st.sampled_from([0, 0, 1, 2, 3, 10]),
)
lossy_rules = st.builds(
    GossipRules,
    sigma_min=st.just(0.2),
    cos_min=st.just(0.0),
    fanout=st.sampled_from([0, 2]),
    loss=st.sampled_from([0.1, 0.5, 0.99]),
    seed=st.integers(0, 2**64 - 1),
    epoch=st.integers(0, 2**21),
)


def run(made: Swarm, rules: GossipRules, threads: int = 1) -> tuple[Deliveries, GossipCounts]:
    return propagate(CpuBackend(threads), made.nodes, made.adjacency, made.diffs, rules)


def dense_swarm(seed: int) -> Swarm:
    """Make few nodes with many edges each, some with none; nodes share six images, so most scores tie."""
    made = swarm(seed, nodes=100, degree=40, diffs=5, spread=0.7)
    drawn = torch.from_numpy(np.random.default_rng(seed).integers(0, 6, 100))
    nodes = replace(made.nodes, images=made.nodes.images[drawn], lengths=made.nodes.lengths[drawn])
    energies, hops = torch.full_like(made.diffs.energies, 6000), torch.full_like(made.diffs.max_hops, 64)
    diffs = replace(made.diffs, energies=energies, max_hops=hops)
    return replace(made, nodes=nodes, diffs=diffs)


def assert_equals_closure(made: Swarm, rules: GossipRules, *, sweep: bool = False) -> None:
    found, counts = propagate(CpuBackend(), made.nodes, made.adjacency, made.diffs, rules, sweep=sweep)
    graph, diffs = oracle.Graph(made.nodes, made.edges), oracle.diffs_of(made.diffs)
    expected, tally = oracle.closure(graph, diffs, rules, sweep=sweep)
    by_number = {diff.number: diff for diff in diffs}
    order = {diff.number: row for row, diff in enumerate(diffs)}
    rows = [
        (number, node, it.hop, it.energy, oracle.score(graph, by_number[number], node), it.parent)
        for (number, node), it in sorted(expected.items(), key=lambda item: (order[item[0][0]], item[0][1]))
    ]
    columns = (found.diffs, found.nodes, found.hops, found.energies, found.scores, found.parents)
    assert list(zip(*(column.tolist() for column in columns), strict=True)) == rows
    assert counts.rounds == tally.rounds
    if not sweep:
        assert counts.relaxations == tally.relaxations
    assert (counts.throttled, counts.lost, counts.sweeps) == (tally.throttled, tally.lost, tally.sweeps)
    assert (counts.diffs, counts.deliveries) == (len(diffs), len(rows))


@settings(max_examples=2000, deadline=None)
@given(small_swarms, rules_of)
def test_delivers_what_the_recursion_of_algorithm_1_delivers(made: Swarm, rules: GossipRules) -> None:
    """spec 3.2, 3.5: same nodes, same energies, with and without fanout."""
    found, _ = run(made, rules)
    graph, (diff,) = oracle.Graph(made.nodes, made.edges), oracle.diffs_of(made.diffs)
    reached = oracle.algorithm_1(graph, diff, rules)
    assert dict(zip(found.nodes.tolist(), found.energies.tolist(), strict=True)) == reached


@settings(max_examples=150, deadline=None)
@given(swarms, rules_of)
def test_equals_the_closure_in_every_column(made: Swarm, rules: GossipRules) -> None:
    """spec 3.3-3.7: every edge type, agents, beacons, interests; ties of energy and score are common."""
    assert_equals_closure(made, rules)


@pytest.mark.parametrize("fanout", [1, 2, 10, 24, 1000])
@pytest.mark.parametrize("seed", range(4))
def test_a_fanout_chooses_among_many_edges_and_ties(seed: int, fanout: int) -> None:
    """spec 3.4: rows longer than the fanout, more edges than are gone over at once, closed gates among the best."""
    made = dense_swarm(seed)
    rules = GossipRules(sigma_min=0.2, cos_min=0.5, fanout=fanout)
    assert_equals_closure(made, rules)
    assert_equals_closure(made, replace(rules, loss=0.3, seed=seed), sweep=True)


@pytest.mark.parametrize("fanout", [1, 2, 3, 10, 24, 1000])
@pytest.mark.parametrize("dense", [True, False])
def test_gates_are_the_nodes_whose_score_was_needed(dense: bool, fanout: int) -> None:
    """spec 3.4: all semantic targets where one has to be chosen, else those that were offered something; each once."""
    made = dense_swarm(9) if dense else swarm(4, nodes=300, degree=4, diffs=20, spread=0.5)
    made.diffs = replace(made.diffs, max_hops=torch.full_like(made.diffs.max_hops, 64))
    rules = GossipRules(sigma_min=0.2, cos_min=0.5, fanout=fanout)
    _, counts = run(made, rules)
    graph, diffs = oracle.Graph(made.nodes, made.edges), oracle.diffs_of(made.diffs)
    delivered, _ = oracle.closure(graph, diffs, rules, sweep=False)
    expected = 0
    for diff in diffs:
        looked_at: set[int] = set()
        for (number, node), it in delivered.items():
            if number != diff.number:
                continue
            semantic = [edge.target for edge in graph.out[node] if edge.type == EdgeType.SEMANTIC]
            if len(semantic) > fanout:
                looked_at.update(semantic)
            edges = oracle.fanout_edges(graph, diff, node, rules)
            looked_at.update(edge.target for edge in edges if it.energy > oracle.cost(edge.weight))
        expected += len(looked_at - {diff.origin})
    assert counts.gates == expected


@settings(max_examples=100, deadline=None)
@given(swarms, lossy_rules)
def test_loses_the_same_transmissions_as_the_closure(made: Swarm, rules: GossipRules) -> None:
    """spec 3.10"""
    assert_equals_closure(made, rules)


@settings(max_examples=150, deadline=None)
@given(limited_swarms, st.one_of(rules_of, lossy_rules))
def test_bandwidth_lets_the_fittest_cross_in_lock_step(made: Swarm, rules: GossipRules) -> None:
    """spec 2.8"""
    assert_equals_closure(made, rules)


@settings(max_examples=150, deadline=None)
@given(st.one_of(swarms, limited_swarms), st.one_of(rules_of, lossy_rules))
def test_sweeps_equal_the_closure_that_goes_on(made: Swarm, rules: GossipRules) -> None:
    """spec 7.2: a sweep's offers obey losses and limits, its first arrivals are one hop behind their parents."""
    assert_equals_closure(made, rules, sweep=True)


@settings(max_examples=150, deadline=None)
@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from([0.1, 0.5, 0.9]),
    st.sampled_from([1, 2, 8, -1]),
    st.sampled_from([0, 2, 10]),
)
def test_with_sweeps_nothing_that_was_lost_stays_lost(seed: int, loss: float, bandwidth: int, fanout: int) -> None:
    """spec 7.3: same nodes, same energies as without losses and limits."""
    made = swarm(seed, nodes=60, degree=5, diffs=9, spread=0.5)
    made.diffs = replace(made.diffs, max_hops=torch.full_like(made.diffs.max_hops, 64))
    rules = GossipRules(sigma_min=0.2, cos_min=0.0, fanout=fanout, loss=loss, seed=seed)
    narrow = replace(made.adjacency, bandwidths=torch.full_like(made.adjacency.bandwidths, bandwidth))
    unharmed, _ = run(made, replace(rules, loss=0.0))
    found, counts = propagate(CpuBackend(), made.nodes, narrow, made.diffs, rules, sweep=True)
    for name in ("diffs", "nodes", "energies", "scores"):
        assert torch.equal(getattr(found, name), getattr(unharmed, name))
    if counts.throttled == counts.lost == 0:
        assert counts.sweeps <= 1


@pytest.mark.parametrize("limited", [0.0, 0.3])
@pytest.mark.parametrize("fanout", [0, 3])
@pytest.mark.parametrize("sweep", [False, True])
def test_is_the_same_on_any_number_of_threads_and_for_any_split(limited: float, fanout: int, sweep: bool) -> None:
    """spec 0.5; with bandwidths the diffs of an epoch belong in one call."""
    made = swarm(7, nodes=3000, degree=12, diffs=200, dimension=16, limited=limited, spread=0.6)
    rules = GossipRules(sigma_min=0.2, cos_min=0.1, fanout=fanout, loss=0.2, seed=3)
    whole, counts = propagate(CpuBackend(1), made.nodes, made.adjacency, made.diffs, rules, sweep=sweep)
    threaded, threaded_counts = propagate(CpuBackend(2), made.nodes, made.adjacency, made.diffs, rules, sweep=sweep)
    assert len(whole) > 20_000
    assert threaded_counts == counts
    for name in ("diffs", "nodes", "hops", "energies", "scores", "parents"):
        assert torch.equal(getattr(whole, name), getattr(threaded, name))
    if not limited:
        parts = [
            propagate(CpuBackend(), made.nodes, made.adjacency, made.diffs.take(rows), rules, sweep=sweep)[0]
            for rows in torch.arange(200).split(7)
        ]
        for name in ("diffs", "nodes", "hops", "energies", "scores", "parents"):
            assert torch.equal(getattr(whole, name), torch.cat([getattr(part, name) for part in parts]))


def test_stops_a_diff_that_runs_4096_rounds() -> None:
    """spec 3.10: the counter of rounds must not run into the next epoch's."""
    backend, rules = CpuBackend(), GossipRules()
    made = swarm(1, nodes=40, degree=6, diffs=9, spread=0.1, max_hops=10_000)
    start = origins(backend, made.nodes, made.diffs)
    for ran in (4095, 4096):
        late = replace(start, rounds=torch.full_like(start.rounds, ran))
        with pytest.raises(RuntimeError, match="4096 rounds") if ran == 4096 else nullcontext():
            backend.advance(made.nodes, made.adjacency, made.diffs, rules, late, rounds=1)
