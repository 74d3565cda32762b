"""Resonance on the shim equals the numba backend and the oracle, with == (spec 3.12), in any order of threads."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from hyphae_gpu.backends.cpu.backend import CpuBackend
from hyphae_gpu.backends.cuda.resonance import Resonances, Scope
from hyphae_gpu.backends.protocol import Backend
from hyphae_gpu.gossip.resonance import flow_of
from hyphae_gpu.swarm import FLOW_LAW, Flow, FlowLaw
from tests.gossip.test_resonance import HOSTILE, flow_from, star
from tests.graphs import Swarm, swarm, swarms
from tests.kernels.shim_launcher import ShimLauncher
from tests.oracles import resonance as oracle

seeds = st.integers(0, 2**32 - 1)
laws = st.sampled_from([FlowLaw(), FlowLaw(cut=2**39), FlowLaw(cut=0), FlowLaw(rounds=0), FlowLaw(rounds=1)])
QUICK = settings(max_examples=20, deadline=None)


def questions(flow: Flow, seed: int, groups: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Origins, offsets and nodes: some origins twice, some asked of nothing, some of a node twice."""
    random = torch.Generator().manual_seed(seed)
    count = len(flow.totals)
    origins = torch.randint(0, count, (groups,), generator=random, dtype=torch.int32)
    sizes = torch.randint(0, 60, (groups,), generator=random) * torch.randint(0, 2, (groups,), generator=random)
    offsets = torch.cat([torch.zeros(1, dtype=torch.int64), sizes.cumsum(0)])
    return origins, offsets, torch.randint(0, count, (int(offsets[-1]),), generator=random, dtype=torch.int32)


def assert_equal(backend: Backend, flow: Flow, *asked: torch.Tensor, law: FlowLaw = FLOW_LAW) -> torch.Tensor:
    """Check values and throughs against the CPU's; the values alone as well."""
    expected, through = CpuBackend().resonance(flow, *asked, law=law, with_throughs=True)
    values, throughs = backend.resonance(flow, *asked, law=law, with_throughs=True)
    assert torch.equal(values, expected)
    assert torch.equal(throughs, through)
    alone, none = backend.resonance(flow, *asked, law=law)
    assert torch.equal(alone, expected)
    assert (none.dtype, len(none)) == (torch.int32, 0)
    return values


def everywhere(flow: Flow, origins: list[int]) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    count = len(flow.totals)
    nodes = torch.arange(count, dtype=torch.int32).repeat(len(origins))
    return torch.tensor(origins, dtype=torch.int32), torch.arange(len(origins) + 1) * count, nodes


@QUICK
@given(swarms, laws, st.integers(0, 9), seeds)
def test_values_and_throughs_equal_the_cpu_backends(on_cuda, made: Swarm, law: FlowLaw, groups: int, seed: int):
    flow = flow_of(CpuBackend(), made.nodes, made.adjacency)
    assert_equal(on_cuda(seed), flow, *questions(flow, seed, groups), law=law)


@QUICK
@given(swarms, seeds)
def test_equals_the_oracle_at_every_node(on_cuda, made: Swarm, seed: int):
    flow = flow_of(CpuBackend(), made.nodes, made.adjacency)
    weights = oracle.flow_weights(made.nodes, made.edges)
    count = len(made.nodes)
    values, _ = on_cuda(seed).resonance(flow, *everywhere(flow, [0, count - 1]))
    expected = [oracle.resonance(weights, count, origin)[0] for origin in (0, count - 1)]
    assert values.reshape(2, count).tolist() == expected


@QUICK
@given(swarms, laws, seeds)
def test_too_little_room_grows_and_changes_nothing(shim_folder: Path, made: Swarm, law: FlowLaw, seed: int):
    """Cells for 64 nodes a block: larger neighbourhoods have to be run again, smaller ones not."""
    flow = flow_of(CpuBackend(), made.nodes, made.adjacency)
    asked = questions(flow, seed, 9)
    tight = Resonances(ShimLauncher(shim_folder, seed=seed), Scope(cells=1, all_cells=256))
    expected = CpuBackend().resonance(flow, *asked, law=law, with_throughs=True)
    for mine, its in zip(tight.compute(flow, *asked, law, with_throughs=True), expected, strict=True):
        assert torch.equal(mine, its)


def test_only_what_did_not_fit_is_run_again(shim_folder: Path):
    """A star of 300 leaves beside a pair: with cells for 64 nodes the pair is done at once."""
    flow = flow_from(star(300, 4096) | {(301, 302): 5, (302, 301): 5}, 303)
    launched: list[int] = []

    class Watched(ShimLauncher):
        def launch(self, kernel, arguments, **how):
            groups = arguments[7]
            launched.append(len(groups))
            super().launch(kernel, arguments, **how)

    asked = everywhere(flow, [301, 0, 302, 5])
    values, _ = Resonances(Watched(shim_folder), Scope(cells=1)).compute(flow, *asked, FLOW_LAW, with_throughs=False)
    assert launched == [4, 2, 2]
    assert torch.equal(values, CpuBackend().resonance(flow, *asked)[0])


def test_room_that_most_needed_is_there_at_once_the_next_time(shim_folder: Path):
    flow = flow_from(star(300, 4096), 301)
    launched: list[int] = []

    class Watched(ShimLauncher):
        def launch(self, kernel, arguments, **how):
            launched.append(len(arguments[7]))
            super().launch(kernel, arguments, **how)

    resonances, asked = Resonances(Watched(shim_folder), Scope(cells=1)), everywhere(flow, [0, 1, 2])
    for expected in ([3, 3, 3], [3]):
        launched.clear()
        values, _ = resonances.compute(flow, *asked, FLOW_LAW, with_throughs=False)
        assert launched == expected
        assert torch.equal(values, CpuBackend().resonance(flow, *asked)[0])


@pytest.mark.parametrize("name", [name for name in HOSTILE if "100,000" not in name])
def test_hostile_graphs_equal_the_cpu_backends(on_cuda, name: str):
    pairs, count = HOSTILE[name]
    flow = flow_from(pairs, count)
    assert_equal(on_cuda(1), flow, *everywhere(flow, [0, 1]))


@pytest.mark.parametrize("leaves", [1023, 1024, 1025, 1500])
def test_a_row_that_all_warps_walk_together_sends_as_any_other(on_cuda, leaves: int):
    """Two hubs that share their leaves, so that rows longer than 1,024 edges stand among short ones."""
    pairs = star(leaves, 4096) | {(leaves + 1, leaf): leaf % 7 + 1 for leaf in range(1, leaves + 1)}
    pairs |= {(leaf, leaves + 1): 4096 for leaf in range(1, 40)}
    flow = flow_from(pairs, leaves + 2)
    few = torch.arange(0, leaves + 2, 97, dtype=torch.int32)
    asked = (torch.tensor([0], dtype=torch.int32), torch.tensor([0, len(few)]), few)
    assert int(assert_equal(on_cuda(leaves), flow, *asked, law=FlowLaw(rounds=3)).sum()) > 0


def test_equal_amounts_come_through_the_lowest_neighbour(on_cuda):
    """Forty equal ways from one node to another, the neighbours in descending order: every lane sees a tie."""
    middle = range(2, 42)
    pairs = {(0, v): 9 for v in middle} | {(v, 1): 9 for v in middle} | {(1, v): 9 for v in middle}
    flow = flow_from(pairs, 42)
    backwards = Flow(
        offsets=flow.offsets,
        targets=torch.cat([row.flip(0) for row in flow.targets.tensor_split(flow.offsets[1:-1])]),
        weights=flow.weights,
        totals=flow.totals,
    )
    _, throughs = on_cuda(3).resonance(backwards, *everywhere(backwards, [0]), with_throughs=True)
    assert throughs[1] == 2
    assert_equal(on_cuda(4), backwards, *everywhere(backwards, [0, 5]))


@pytest.mark.parametrize(("cut", "felt"), [(8, 0), (7, 8)])
def test_a_node_at_the_cut_does_not_send(on_cuda, cut: int, felt: int):
    """The origin's 10 make 2 a unit of weight, so the next node holds 8."""
    flow = flow_from({(0, 1): 4, (1, 2): 4}, 3)
    law = FlowLaw(start=10, numerator=1, denominator=1, cut=cut, rounds=2)
    assert assert_equal(on_cuda(cut), flow, *everywhere(flow, [0]), law=law).tolist() == [0, 8, felt]


def test_clustered_people_equal_the_cpu_backends(on_cuda):
    made = swarm(23, nodes=300, degree=9, diffs=12, dimension=16, spread=0.5)
    flow = flow_of(CpuBackend(), made.nodes, made.adjacency)
    origins = made.diffs.origins.unique().tolist()[:5]
    assert int((assert_equal(on_cuda(9), flow, *everywhere(flow, origins)) > 0).sum()) > 300


@pytest.mark.parametrize("nodes", [0, 1])
def test_nothing_asked_gives_nothing(on_cuda, nodes: int):
    flow = flow_from({}, nodes)
    none = torch.zeros(0, dtype=torch.int32)
    for groups in (0, nodes):
        asked = (torch.zeros(groups, dtype=torch.int32), torch.zeros(groups + 1, dtype=torch.int64), none)
        values, throughs = on_cuda(0).resonance(flow, *asked, with_throughs=True)
        assert (len(values), len(throughs)) == (0, 0)
