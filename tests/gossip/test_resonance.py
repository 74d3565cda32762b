"""Resonance against its oracle, with ==, and its bound on hostile graphs (spec 3.12)."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from hyphae_gpu.backends.cpu.backend import CpuBackend
from hyphae_gpu.gossip.resonance import flow_of, resonances
from hyphae_gpu.gossip.waves import propagate
from hyphae_gpu.swarm import FLOW_LAW, Flow, FlowLaw, GossipRules
from tests.graphs import Swarm, swarm, swarms
from tests.oracles import resonance as oracle

START = 2**52


def everywhere(flow: Flow, origins: list[int], *, law: FlowLaw = FLOW_LAW, threads: int = 1) -> torch.Tensor:
    """Ask every node's resonance with each origin."""
    count = len(flow.totals)
    offsets = torch.arange(len(origins) + 1) * count
    nodes = torch.arange(count, dtype=torch.int32).repeat(len(origins))
    asked = torch.tensor(origins, dtype=torch.int32)
    values, _ = CpuBackend(threads).resonance(flow, asked, offsets, nodes, law=law)
    return values.reshape(len(origins), count)


def flow_from(pairs: dict[tuple[int, int], int], count: int) -> Flow:
    rows = sorted(pairs.items())
    sources = torch.tensor([source for (source, _), _ in rows], dtype=torch.int64)
    weights = torch.tensor([weight for _, weight in rows], dtype=torch.int32)
    offsets = torch.zeros(count + 1, dtype=torch.int64)
    offsets[1:] = torch.bincount(sources, minlength=count).cumsum(0)
    totals = torch.zeros(count, dtype=torch.int64).index_add_(0, sources, weights.long())
    targets = torch.tensor([target for (_, target), _ in rows], dtype=torch.int32)
    return Flow(offsets=offsets, targets=targets, weights=weights, totals=totals)


@settings(max_examples=100, deadline=None)
@given(swarms)
def test_flow_edges_and_weights_are_those_of_the_rule(made: Swarm) -> None:
    flow = flow_of(CpuBackend(), made.nodes, made.adjacency)
    found: dict[tuple[int, int], int] = {}
    for v in range(len(made.nodes)):
        for k in range(int(flow.offsets[v]), int(flow.offsets[v + 1])):
            key = (v, int(flow.targets[k]))
            found[key] = found.get(key, 0) + int(flow.weights[k])
    weights = oracle.flow_weights(made.nodes, made.edges)
    assert found == weights
    sums = [sum(w for (source, _), w in weights.items() if source == v) for v in range(len(made.nodes))]
    assert flow.totals.tolist() == sums


@settings(max_examples=60, deadline=None)
@given(swarms, st.sampled_from([FlowLaw(), FlowLaw(cut=2**39), FlowLaw(cut=0), FlowLaw(rounds=3)]))
def test_equals_the_oracle_at_every_node(made: Swarm, law: FlowLaw) -> None:
    flow = flow_of(CpuBackend(), made.nodes, made.adjacency)
    weights = oracle.flow_weights(made.nodes, made.edges)
    origins = sorted({0, len(made.nodes) - 1, len(made.nodes) // 2})
    values = everywhere(flow, origins, law=law)
    for row, origin in enumerate(origins):
        expected, _ = oracle.resonance(weights, len(made.nodes), origin, rounds=law.rounds, cut=law.cut)
        assert values[row].tolist() == expected


@pytest.mark.parametrize("batch", [1, 7, 60])
def test_is_the_same_for_any_batch_and_threads(batch: int) -> None:
    made = swarm(11, nodes=2000, degree=10, diffs=60, dimension=16, spread=0.6)
    backend, rules = CpuBackend(2), GossipRules(sigma_min=0.1, cos_min=0.0)
    flow = flow_of(backend, made.nodes, made.adjacency)
    found, _ = propagate(backend, made.nodes, made.adjacency, made.diffs, rules)
    whole = resonances(CpuBackend(1), flow, made.diffs, found)
    parts = []
    for rows in torch.arange(60).split(batch):
        diffs = made.diffs.take(rows)
        part, _ = propagate(backend, made.nodes, made.adjacency, diffs, rules)
        parts.append(resonances(backend, flow, diffs, part))
    assert torch.equal(whole, torch.cat(parts))
    weights = oracle.flow_weights(made.nodes, made.edges)
    expected, _ = oracle.resonance(weights, 2000, int(made.diffs.origins[0]))
    mine = found.diffs == made.diffs.numbers[0]
    assert whole[mine].tolist() == [expected[node] for node in found.nodes[mine].tolist()]
    assert int((whole > 0).sum()) > 100


def star(leaves: int, weight: int) -> dict[tuple[int, int], int]:
    return {(0, leaf): weight for leaf in range(1, leaves + 1)} | {(leaf, 0): weight for leaf in range(1, leaves + 1)}


def clique(count: int, weight: int) -> dict[tuple[int, int], int]:
    return {(a, b): weight for a in range(count) for b in range(count) if a != b}


def chain(count: int, weight: int) -> dict[tuple[int, int], int]:
    return {(a, a + 1): weight for a in range(count - 1)} | {(a + 1, a): weight for a in range(count - 1)}


HOSTILE = {
    "no edges": ({}, 3),
    "a star of 100,000": (star(100_000, 1), 100_001),
    "a star of 1,000 strong edges": (star(1000, 4096), 1001),
    "a clique": (clique(60, 4096), 60),
    "a clique of weak edges": (clique(60, 1), 60),
    "a chain": (chain(50, 4096), 50),
    "a chain that ends": ({(a, a + 1): 1 for a in range(20)}, 21),
    "weights at 0.05 and 1": (chain(30, 1) | star(40, 4096), 41),
}


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("origin", [0, 1])
def test_what_is_received_is_bounded_on_hostile_graphs(name: str, origin: int) -> None:
    """At most 2^52 * sum of 0.7^t is received in all, whatever the graph."""
    pairs, count = HOSTILE[name]
    values = everywhere(flow_from(pairs, count), [origin])[0]
    assert 0 <= int(values.sum()) <= sum(START * 7**t // 10**t for t in range(1, 9))
    assert bool((values >= 0).all())
    if pairs:
        assert int(values.sum()) > 0


@settings(max_examples=60, deadline=None)
@given(swarms)
def test_fewer_than_1024_nodes_send_in_a_round(made: Swarm) -> None:
    weights = oracle.flow_weights(made.nodes, made.edges)
    _, senders = oracle.resonance(weights, len(made.nodes), 0)
    assert max(senders) < 1024
    assert len(senders) == 8


def test_names_the_neighbour_that_sent_most() -> None:
    flow = flow_from({(0, 1): 3000, (1, 0): 3000, (0, 2): 1000, (2, 0): 1000, (1, 3): 10, (3, 1): 10}, 5)
    nodes = torch.arange(5, dtype=torch.int32)
    values, throughs = CpuBackend().resonance(
        flow, torch.tensor([0], dtype=torch.int32), torch.tensor([0, 5]), nodes, with_throughs=True
    )
    assert throughs.tolist() == [1, 0, 0, 1, -1]
    assert int(values[4]) == 0
    assert np.all(values[:4].numpy() > 0)
