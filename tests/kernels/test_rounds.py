"""Gossip rounds as kernels equal the numba backend and the oracle, with == (spec 3), in any order of threads."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import fields, replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from hyphae_gpu.backends.cpu.backend import CpuBackend
from hyphae_gpu.backends.cuda.memory import graph_bytes
from hyphae_gpu.backends.cuda.wave import Room, WaveRun
from hyphae_gpu.backends.protocol import Backend
from hyphae_gpu.errors import DeviceError
from hyphae_gpu.gossip.waves import origins, propagate
from hyphae_gpu.swarm import Deliveries, Diffs, Edges, GossipRules, Nodes
from hyphae_gpu.vectors import lengths, quantise
from hyphae_gpu.wave_state import Offers, WaveState
from tests.gossip.test_waves import lossy_rules, rules_of
from tests.graphs import Swarm, adjacency_of, limited_swarms, small_swarms, swarm, swarms
from tests.kernels.conftest import DENSE, SPARSE
from tests.oracles import gossip as oracle

seeds = st.integers(0, 2**32 - 1)
QUICK = settings(max_examples=30, deadline=None)


def assert_equal(made: Swarm, rules: GossipRules, backend: Backend, *, sweep: bool = False) -> Deliveries:
    """Check deliveries and all counts of a whole propagation against the CPU's."""
    given_, counts = propagate(backend, made.nodes, made.adjacency, made.diffs, rules, sweep=sweep)
    expected, expected_counts = propagate(CpuBackend(), made.nodes, made.adjacency, made.diffs, rules, sweep=sweep)
    for spec in fields(Deliveries):
        assert torch.equal(getattr(given_, spec.name), getattr(expected, spec.name)), spec.name
    assert counts == expected_counts
    return given_


@QUICK
@given(swarms, rules_of, seeds)
def test_rounds_equal_the_cpu_backends(on_cuda, made: Swarm, rules: GossipRules, seed: int):
    assert_equal(made, rules, on_cuda(seed))


@QUICK
@given(swarms, lossy_rules, seeds)
def test_losses_hit_the_same_transmissions(on_cuda, made: Swarm, rules: GossipRules, seed: int):
    assert_equal(made, rules, on_cuda(seed))


@QUICK
@given(limited_swarms, st.one_of(rules_of, lossy_rules), seeds)
def test_bandwidths_make_the_same_offers(on_cuda, made: Swarm, rules: GossipRules, seed: int):
    assert_equal(made, rules, on_cuda(seed))


@QUICK
@given(st.one_of(swarms, limited_swarms), st.one_of(rules_of, lossy_rules), seeds)
def test_sweeps_equal_the_cpu_backends(on_cuda, made: Swarm, rules: GossipRules, seed: int):
    assert_equal(made, rules, on_cuda(seed), sweep=True)


@settings(max_examples=60, deadline=None)
@given(small_swarms, rules_of, seeds)
def test_delivers_what_the_recursion_of_algorithm_1_delivers(on_cuda, made: Swarm, rules: GossipRules, seed: int):
    found, _ = propagate(on_cuda(seed), made.nodes, made.adjacency, made.diffs, rules)
    graph, (diff,) = oracle.Graph(made.nodes, made.edges), oracle.diffs_of(made.diffs)
    reached = oracle.algorithm_1(graph, diff, rules)
    assert dict(zip(found.nodes.tolist(), found.energies.tolist(), strict=True)) == reached


@settings(max_examples=15, deadline=None)
@given(
    st.builds(
        swarm,
        seeds,
        nodes=st.sampled_from([1, 2, 33, 65]),
        degree=st.sampled_from([0.5, 3, 40]),
        diffs=st.integers(1, 5),
        dimension=st.sampled_from([2, 3, 4, 31, 32, 33, 384]),
        limited=st.sampled_from([0.0, 0.0, 0.3]),
        spread=st.sampled_from([0.1, 0.6]),
    ),
    st.sampled_from([0, 1, 10, 31, 32, 33]),
    seeds,
)
def test_rows_and_vectors_of_any_length(on_cuda, made: Swarm, fanout: int, seed: int):
    """Degrees, fanouts and dimensions around a warp's 32 lanes and a chunk's 16 bytes."""
    assert_equal(made, GossipRules(sigma_min=0.2, cos_min=0.0, fanout=fanout), on_cuda(seed))


@QUICK
@given(st.one_of(swarms, limited_swarms), st.one_of(rules_of, lossy_rules), st.booleans(), seeds)
def test_state_and_offers_equal_the_cpu_backends_after_every_round(on_cuda, made, rules, sweep, seed):
    """Not only what is delivered: closed gates that are kept, the frontier, what is offered over limited edges."""
    cpu, cuda = CpuBackend(), on_cuda(seed)
    state = origins(cpu, made.nodes, made.diffs)
    for rounds in (1, 2, 1):
        expected, offers, counts = cpu.advance(
            made.nodes, made.adjacency, made.diffs, rules, state, rounds=rounds, sweep=sweep
        )
        found, its, its_counts = cuda.advance(
            made.nodes, made.adjacency, made.diffs, rules, state, rounds=rounds, sweep=sweep
        )
        assert_same_state(found, expected)
        assert in_order(its) == in_order(offers)
        assert its_counts == counts
        state = expected


def assert_same_state(found: WaveState, expected: WaveState) -> None:
    reached = expected.energies > 0
    for spec in fields(WaveState):
        ours, theirs = getattr(found, spec.name), getattr(expected, spec.name)
        if spec.name in ("hops", "parents"):  # of what was not reached they mean nothing
            ours, theirs = ours[reached], theirs[reached]
        assert torch.equal(ours, theirs), spec.name


def in_order(offers: Offers) -> list[tuple[int, ...]]:
    return sorted(zip(*(getattr(offers, spec.name).tolist() for spec in fields(Offers)), strict=True))


@QUICK
@given(st.one_of(swarms, limited_swarms), st.one_of(rules_of, lossy_rules), st.booleans(), seeds)
def test_too_little_room_grows_and_changes_nothing(on_cuda, made, rules, sweep, seed):
    assert_equal(made, rules, on_cuda(seed, room=Room(slots=1, pending=1, offers=1)), sweep=sweep)


@pytest.mark.parametrize("fanout", [0, 3])
@pytest.mark.parametrize("limited", [0.0, 0.3])
@pytest.mark.parametrize("sweep", [False, True])
def test_a_crowd_in_clusters_equals_the_cpu_backends(on_cuda, fanout, limited, sweep):
    """Many diffs that meet at the same nodes, with losses: every lane has company."""
    made = swarm(11, nodes=400, degree=12, diffs=25, dimension=16, limited=limited, spread=0.5)
    rules = GossipRules(sigma_min=0.2, cos_min=0.1, fanout=fanout, loss=0.2, seed=3)
    assert len(assert_equal(made, rules, on_cuda(fanout), sweep=sweep)) > 1000


def test_stops_a_diff_that_runs_4096_rounds(on_cuda):
    """spec 3.10: the counter of rounds and sweeps must not run into the next epoch's."""
    made = swarm(1, nodes=40, degree=6, diffs=9, spread=0.1, max_hops=10_000)
    start = origins(CpuBackend(), made.nodes, made.diffs)
    for ran in (4095, 4096):
        late = replace(start, sweeps=torch.full_like(start.sweeps, ran))
        with pytest.raises(RuntimeError, match="4096 rounds") if ran == 4096 else nullcontext():
            on_cuda(0).advance(made.nodes, made.adjacency, made.diffs, GossipRules(), late, rounds=1)


def test_a_hub_whose_row_is_longer_than_a_warp_is_cut_like_any_other(on_cuda):
    """200 semantic edges, many of equal score, a fanout of 70: the cut falls among equals."""
    count = 201
    vectors = np.tile(np.array([[1.0, 0.2], [0.9, 0.4], [1.0, 0.0]], np.float32), (67, 1))
    targets = np.random.default_rng(5).permutation(np.arange(1, count))
    edges = Edges.build(np.zeros(200, np.int32), targets.astype(np.int32), np.full(200, 0.5, np.float32))
    nodes = Nodes.build(vectors)
    diffs = Diffs.build(nodes, np.array([0], np.int32), knowledge_types=np.zeros(1, np.int8), saliences=np.array([0.9]))
    made = Swarm(nodes=nodes, edges=edges, adjacency=adjacency_of(edges, count), diffs=diffs)
    for fanout in (1, 66, 70, 134, 199, 200):
        found = assert_equal(made, GossipRules(fanout=fanout), on_cuda(fanout))
        assert len(found) == 1 + fanout


@QUICK
@given(st.one_of(swarms, limited_swarms), st.one_of(rules_of, lossy_rules), st.booleans(), seeds)
def test_a_small_memory_cuts_the_diffs_and_changes_nothing(on_shim, made, rules, sweep, seed):
    """Room for one or two diffs at a time: their states, offers and counts are put together again."""
    backend = on_shim(seed)
    graph = graph_bytes(nodes=len(made.nodes), edges=len(made.edges), dimension=made.nodes.dimension)
    backend.launcher.memory_bytes = 2 * graph + 150_000
    assert_equal(made, rules, backend, sweep=sweep)


@pytest.mark.parametrize("limited", [0.0, 0.3])
def test_a_memory_that_runs_out_halves_the_diffs(on_shim, monkeypatch, limited):
    made = swarm(11, nodes=200, degree=8, diffs=25, dimension=16, limited=limited, spread=0.5)
    whole, tried = WaveRun.run, []

    def short_of_memory(self, state, rounds):
        tried.append(len(state.rounds))
        if len(state.rounds) > 7:
            raise torch.OutOfMemoryError("as CUDA says it")
        return whole(self, state, rounds)

    monkeypatch.setattr(WaveRun, "run", short_of_memory)
    assert_equal(made, GossipRules(sigma_min=0.2), on_shim(0))
    assert tried[:7] == [25, 12, 6, 6, 6, 6, 1]


def test_a_single_diff_that_does_not_fit_is_refused(on_shim, monkeypatch):
    made = swarm(11, nodes=20, degree=3, diffs=2)

    def short_of_memory(self, state, rounds):
        raise torch.OutOfMemoryError("as CUDA says it")

    monkeypatch.setattr(WaveRun, "run", short_of_memory)
    with pytest.raises(DeviceError, match=r"no room for a single diff \(as CUDA says it\); use .*--device cpu"):
        propagate(on_shim(0), made.nodes, made.adjacency, made.diffs, GossipRules())


def clustered(seed: int, *, limited: float = 0.0) -> Swarm:
    """Make a swarm of six clusters, most edges within one; a third of each are copies of one another."""
    made = swarm(seed, nodes=180, degree=50, diffs=12, dimension=24, limited=limited)
    rng = np.random.default_rng(seed)
    cluster = np.arange(180) % 6
    noise = np.where(rng.random((180, 1)) < 0.33, 0.0, 0.4) * rng.normal(size=(180, 24))
    vectors = (rng.normal(size=(6, 24))[cluster] + noise).astype(np.float32)
    images = torch.from_numpy(quantise(vectors))
    nodes = replace(made.nodes, images=images, lengths=torch.from_numpy(lengths(images.numpy())))
    ends = cluster[made.edges.sources.numpy()], cluster[made.edges.targets.numpy()]
    kept = torch.from_numpy((ends[0] == ends[1]) | (rng.random(len(ends[0])) < 0.1))
    edges = replace(made.edges, **{spec.name: getattr(made.edges, spec.name)[kept] for spec in fields(Edges)})
    origins_ = made.diffs.origins.long()
    diffs = replace(
        made.diffs,
        images=images[origins_],
        lengths=nodes.lengths[origins_],
        energies=torch.full_like(made.diffs.energies, 9000),
        max_hops=torch.full_like(made.diffs.max_hops, 64),
    )
    return Swarm(nodes=nodes, edges=edges, adjacency=adjacency_of(edges, 180), diffs=diffs)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("limited", [0.0, 0.2])
def test_clusters_with_copies_equal_the_cpu_backends(on_cuda, seed, limited):
    """Copies have equal scores and costs: the fanout's and the parents' ties are everywhere."""
    made = clustered(seed, limited=limited)
    rules = GossipRules(fanout=(0, 2, 4, 10)[seed % 4], sigma_min=0.2, loss=(0.0, 0.2)[seed % 2], seed=seed)
    assert len(assert_equal(made, rules, on_cuda(seed), sweep=seed % 3 == 0)) > 100


@pytest.mark.parametrize(("block", "blocks"), [(32, 1), (96, 2), (256, 7), (1024, 3)])
def test_any_shape_of_the_launch_gives_the_same(on_shim, block, blocks):
    backend = on_shim(block)
    backend.launcher.block, backend.launcher.blocks = block, blocks
    assert_equal(clustered(3), GossipRules(fanout=3, loss=0.2), backend, sweep=True)


@pytest.mark.parametrize("graph", [swarm(5, nodes=60, degree=4, diffs=6, limited=0.2, spread=0.4), clustered(2)])
def test_equals_the_oracles_closure(on_cuda, graph):
    """The plain reading of the spec, without the CPU backend in between."""
    rules = GossipRules(sigma_min=0.2, cos_min=0.1, fanout=3, loss=0.2, seed=9)
    found, _ = propagate(on_cuda(0), graph.nodes, graph.adjacency, graph.diffs, rules, sweep=True)
    expected, _ = oracle.closure(
        oracle.Graph(graph.nodes, graph.edges), oracle.diffs_of(graph.diffs), rules, sweep=True
    )
    columns = (found.diffs, found.nodes, found.hops, found.energies, found.parents)
    rows = {row[:2]: row[2:] for row in zip(*(column.tolist() for column in columns), strict=True)}
    assert rows == {key: (it.hop, it.energy, it.parent) for key, it in expected.items()}


def test_no_nodes_no_edges_no_diffs(on_cuda):
    """Nothing to do is done at once."""
    nodes = Nodes.build(np.zeros((0, 4), np.float32))
    edges = Edges.build(np.zeros(0, np.int32), np.zeros(0, np.int32), np.zeros(0, np.float32))
    diffs = swarm(1, nodes=1, degree=0, diffs=0).diffs
    made = Swarm(nodes=nodes, edges=edges, adjacency=adjacency_of(edges, 0), diffs=diffs)
    assert len(assert_equal(made, GossipRules(), on_cuda(0), sweep=True)) == 0


@pytest.mark.parametrize("costs", [SPARSE, DENSE])
@pytest.mark.parametrize("setting", ["sigma_min", "cos_min"])
def test_a_gate_is_open_at_its_very_threshold(on_cuda, costs, setting):
    """spec 3.3: at or above; the next number up is closed."""
    nodes = Nodes.build(np.array([[1.0, 0.3], [0.7, 0.9]], np.float32))
    edges = Edges.build(np.array([0], np.int32), np.array([1], np.int32), np.array([1.0], np.float32))
    diffs = Diffs.build(nodes, np.array([0], np.int32), knowledge_types=np.zeros(1, np.int8), saliences=np.array([0.7]))
    made = Swarm(nodes=nodes, edges=edges, adjacency=adjacency_of(edges, 2), diffs=diffs)
    dot = int(nodes.images[0].int() @ nodes.images[1].int())
    cosine = dot / (float(nodes.lengths[0]) * float(nodes.lengths[1]))
    score = float(CpuBackend().scores(nodes, diffs, torch.tensor([0]), torch.tensor([1])))
    at = {"sigma_min": score, "cos_min": cosine}[setting]
    asked = torch.tensor([1], dtype=torch.int32)
    for threshold, reached in ((at, 2), (float(np.nextafter(at, 2.0)), 1)):
        rules = replace(GossipRules(sigma_min=-1.0, cos_min=-1.0), **{setting: threshold})
        assert len(assert_equal(made, rules, on_cuda(0, costs=costs))) == reached
        assert on_cuda(0, costs=costs).open_counts(nodes, diffs, rules, asked).tolist() == [reached - 1]
