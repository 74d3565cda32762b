"""The plan of a device's memory: what fits is taken, what does not is refused with what would."""

from __future__ import annotations

import re

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from hyphae_gpu.backends.cpu.backend import CpuBackend
from hyphae_gpu.backends.cuda.memory import GIB, graph_bytes, plan
from hyphae_gpu.errors import DeviceError
from hyphae_gpu.gossip.resonance import flow_of
from hyphae_gpu.gossip.waves import propagate
from hyphae_gpu.swarm import GossipRules
from tests.graphs import swarm

TEN_MILLION = {"nodes": 10_000_000, "edges": 240_000_000, "dimension": 768}


def test_ten_million_nodes_and_a_thousand_diffs_fit_into_100_gib():
    """Each diff may look at 200,000 nodes, where real text makes it look at some thousand."""
    made = plan(**TEN_MILLION, diffs=1024, free_bytes=100 * GIB, pairs_a_diff=200_000)
    assert made.batch == 1024
    assert made.graph_bytes == 10_000_000 * (768 + 20) + 240_000_000 * 13
    assert made.graph_bytes + made.batch * made.diff_bytes < 90 * GIB


def test_a_batch_that_does_not_fit_is_cut():
    whole = plan(**TEN_MILLION, diffs=4096, free_bytes=100 * GIB, pairs_a_diff=200_000)
    assert 1024 <= whole.batch < 4096
    assert whole.graph_bytes + (whole.batch + 1) * whole.diff_bytes > 90 * GIB


def test_a_graph_that_does_not_fit_is_refused_with_what_would():
    with pytest.raises(DeviceError, match=r"need 11\.\d GiB, 8\.0 GiB are free: about \d+ nodes like these") as refused:
        plan(**TEN_MILLION, diffs=1024, free_bytes=8 * GIB, pairs_a_diff=1000)
    fitting = int(re.search(r"about (\d+) nodes", str(refused.value))[1])
    plan(nodes=fitting, edges=24 * fitting, dimension=768, diffs=1, free_bytes=8 * GIB, pairs_a_diff=1000)
    more = int(fitting * 1.01)
    with pytest.raises(DeviceError):
        plan(nodes=more, edges=24 * more, dimension=768, diffs=1, free_bytes=8 * GIB, pairs_a_diff=1000)


def test_one_wide_call_is_forgotten(on_shim):
    """A table that is mostly empty takes time to fill with emptiness and to walk."""
    made, backend, planned = swarm(2, nodes=50, degree=4, diffs=5, spread=0.3), on_shim(0), []
    for seen in (1_000_000, None, None):
        backend._pairs_a_diff = seen or backend._pairs_a_diff
        propagate(backend, made.nodes, made.adjacency, made.diffs, GossipRules())
        planned.append(backend._pairs_a_diff)
    assert planned == [500_000, 250_000, 125_000]
    backend._pairs_a_diff = 3000
    propagate(backend, made.nodes, made.adjacency, made.diffs, GossipRules())
    assert backend._pairs_a_diff == 2048


def test_what_the_device_has_no_memory_for_is_told_in_one_line(on_shim, monkeypatch):
    """The gate at the origins is asked first, and brings the nodes: a graph that is too large is met there."""
    made, backend, rows = swarm(2, nodes=50, degree=4, diffs=5, spread=0.3), on_shim(0), torch.arange(3)

    def no_memory(*arguments, **shape):
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 7 GiB.\nmore")

    monkeypatch.setattr(backend.launcher, "launch", no_memory)
    flow = flow_of(CpuBackend(), made.nodes, made.adjacency)
    asked = {
        "scores": (made.nodes, made.diffs, rows, rows),
        "open_counts": (made.nodes, made.diffs, GossipRules(), rows.int()),
        "losses": (GossipRules(loss=0.5), rows, rows.int(), rows.int(), rows),
        "resonance": (flow, rows[:1].int(), torch.tensor([0, 2]), rows[:2].int()),
    }
    for name, arguments in asked.items():
        told = rf"^device cuda: no room for {name} \(CUDA out of memory\. .* 7 GiB\.\); use .* --device cpu$"
        with pytest.raises(DeviceError, match=told):
            getattr(backend, name)(*arguments)
    with pytest.raises(DeviceError, match="no room for scores"):
        propagate(backend, made.nodes, made.adjacency, made.diffs, GossipRules())


@given(
    nodes=st.integers(0, 10**8),
    degree=st.integers(0, 64),
    dimension=st.integers(2, 16_000),
    diffs=st.integers(0, 10**5),
    free=st.integers(0, 1 << 40),
    pairs=st.integers(0, 10**7),
)
def test_what_is_planned_fits(nodes, degree, dimension, diffs, free, pairs):
    graph = graph_bytes(nodes=nodes, edges=nodes * degree, dimension=dimension)
    job = {"nodes": nodes, "edges": nodes * degree, "dimension": dimension, "diffs": diffs, "pairs_a_diff": pairs}
    if int(free * 0.9) - graph < plan(**job, free_bytes=1 << 60).diff_bytes:
        with pytest.raises(DeviceError, match="would fit"):
            plan(**job, free_bytes=free)
        return
    made = plan(**job, free_bytes=free)
    assert 1 <= made.batch <= max(1, diffs)
    assert made.graph_bytes == graph
    assert graph + made.batch * made.diff_bytes <= free * 0.9
    assert made.room.slots == made.batch * max(1, min(pairs, nodes))
    assert made.room.pending >= made.batch
