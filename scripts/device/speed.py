"""How fast gossip is on the device, beside its floor in bytes, the host's cores, and products of torch.sparse.

The floor is what a round has to read: 6 bytes an edge looked at, d + 4 a gate, at the bandwidth that a copy has in the
same run. Graphs and vectors are synthetic and lie on the device before the clock starts; the time is the wall's, from
the call to the last result, with one call to warm up.
"""

from __future__ import annotations

import statistics
import time
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from typing import Any

import torch

from device.clock import Clock, say
from device.machine import settle
from device.swarms import DEGREE, Made, clustered, diffs_of
from hyphae_gpu.backends.protocol import Backend
from hyphae_gpu.errors import first_line
from hyphae_gpu.gossip.waves import propagate
from hyphae_gpu.swarm import Deliveries, Diffs, GossipCounts, GossipRules

_EDGE_BYTES, _PAIR_BYTES = 6, 4
#: Runs of which the median counts, where there is time.
_REPEATS = 3
#: Lines that are kept of a profile.
_ROWS_KEPT = 25
ASSUMPTIONS = (
    "synthetic clustered int8 vectors, 24 semantic edges a node: 16 in its cluster, 6 in its topic, 2 anywhere",
    "edges' costs are drawn, not computed from the vectors; neighbouring numbers stand near each other",
    "floor: edges looked at x 6 bytes + gates x (d + 4) bytes, over the bandwidth of a copy measured in this run",
    "columns lie on the device before the clock starts; results stay there; one call of another size warms up",
    "default rules: sigma_min 0.30, cos_min 0.25, fanout 10, no losses",
    "torch.sparse: one product (+, x) of the whole adjacency with as many columns as a round; no gate, no maximum",
)


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """Graphs and batches that are measured; the host gets `host_nodes` and `host_diffs`."""

    nodes: tuple[int, ...] = (1 << 20, 10 * (1 << 20))
    diffs: tuple[int, ...] = (256, 1024, 4096)
    dimension: int = 768
    cluster: int = 256
    topic: int = 32
    pairs: int = 1 << 24
    host_diffs: int = 4096
    columns: int = 64


SMALL = Sizes(
    nodes=(1 << 15,), diffs=(64, 256), cluster=64, topic=16, dimension=96, pairs=1 << 14, host_diffs=64, columns=8
)


def run(
    cuda: Backend,
    cpu: Backend,
    device: torch.device,
    bandwidth: dict[str, float],
    sizes: Sizes,
    clock: Clock,
    *,
    keep: Callable[[Any], None],
) -> bool:
    """Measure until the clock has run out; return whether the host found the same. `keep` gets what there is so far."""
    found: dict[str, Any] = {"assumptions": ASSUMPTIONS, "bandwidth": bandwidth, "gossip": [], "left_out": []}
    equal = True
    slowest = 0.0
    for nodes in sizes.nodes:
        # making a graph takes less than propagating over it, and grows with it
        if not clock.allows(2 * slowest):
            found["left_out"].append(f"{nodes} nodes: no time left")
            continue
        start = time.monotonic()
        shape = {"dimension": sizes.dimension, "cluster": sizes.cluster, "topic": sizes.topic}
        made = clustered(device, 1, nodes=nodes, diffs=max(sizes.diffs), **shape)
        settle(device)
        say(f"  {nodes:,} nodes, {nodes * DEGREE:,} edges made in {time.monotonic() - start:.1f} s")
        for count in sizes.diffs:
            if not clock.allows(0.0):
                found["left_out"].append(f"{nodes} nodes x {count} diffs: no time left")
                continue
            found["gossip"].append(gossip(cuda, made, count, device, bandwidth["device"], clock))
            keep(found)
        if nodes == sizes.nodes[0]:
            found["gate"] = gates(cuda, made, device, bandwidth["device"], sizes.pairs)
            found["torch_sparse"] = sparse(made, device, sizes.columns, found["gossip"])
            keep(found)
            found["host"] = host(cuda, cpu, made, device, bandwidth, sizes.host_diffs, clock)
            equal = not found["host"]["differs"]
            keep(found)
        slowest = max(slowest, time.monotonic() - start)
        # of the last graph only: the profiler slows down what comes after it
        if nodes == sizes.nodes[-1] and clock.allows(slowest):
            found["where"] = [where(cuda, made, count, device) for count in sizes.diffs]
            keep(found)
        del made
        if device.type == "cuda":
            torch.cuda.empty_cache()
    found["goals"] = _goals(found)
    keep(found)
    return equal


def gossip(
    backend: Backend, made: Made, count: int, device: torch.device, bandwidth: float, clock: Clock
) -> dict[str, Any]:
    """Return the median time of a whole propagation of `count` diffs, its rates and its floor."""
    diffs, warm = diffs_of(made.nodes, count, seed=count), diffs_of(made.nodes, count, seed=count + 1)
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)

    def once(diffs: Diffs = diffs) -> tuple[Deliveries, GossipCounts]:
        return propagate(backend, made.nodes, made.adjacency, diffs, GossipRules())

    _timed(lambda: once(warm), device)
    seconds, (_, counts) = _median(once, device, clock)
    row = _row(len(made.nodes), made.nodes.dimension, counts, seconds, bandwidth)
    say(
        f"  {row['nodes']:>11,} nodes x {count:>5,} diffs  {seconds:8.4f} s"
        f"  {row['deliveries_a_second']:.3g} deliveries/s  {row['gates_a_second']:.3g} gates/s"
        f"  {row['relaxations_a_second']:.3g} relaxations/s"
        f"  floor {row['floor_seconds']:.4f} s ({row['share_of_floor']:.0%})"
    )
    if device.type == "cuda":
        row["peak_bytes"] = torch.cuda.max_memory_allocated(device)
    return row


def gates(backend: Backend, made: Made, device: torch.device, bandwidth: float, pairs: int) -> dict[str, Any]:
    """Return what gates cost alone: scores of pairs whose nodes lie anywhere, the worst for a memory."""
    nodes, diffs = made.nodes, made.diffs
    dice = torch.Generator(device).manual_seed(3)
    rows = torch.randint(0, len(diffs), (pairs,), generator=dice, device=device)
    at = torch.randint(0, len(nodes), (pairs,), generator=dice, device=device)
    _timed(lambda: backend.scores(nodes, diffs, rows, at), device)
    seconds = statistics.median(_timed(lambda: backend.scores(nodes, diffs, rows, at), device)[0] for _ in range(3))
    # a pair's two numbers and its score pass through memory too
    floor = pairs * (nodes.dimension + 24) / bandwidth
    share = floor / seconds
    say(f"  gates alone: {pairs / seconds:.3g} gates/s, {share:.0%} of the floor's rate")
    return {"pairs": pairs, "seconds": seconds, "gates_a_second": pairs / seconds, "share_of_floor": share}


def host(
    cuda: Backend,
    cpu: Backend,
    made: Made,
    device: torch.device,
    bandwidth: dict[str, float],
    count: int,
    clock: Clock,
) -> dict[str, Any]:
    """Do one job on the device and on the host's cores: the ratio of the times beside that of the bandwidths."""
    job = Made(made.nodes, made.adjacency, diffs_of(made.nodes, count, seed=7))
    copy = job.to("cpu")
    warm = diffs_of(job.nodes, max(8, count // 8), seed=8)
    on_host = Made(copy.nodes, copy.adjacency, warm).to("cpu")
    propagate(cpu, on_host.nodes, on_host.adjacency, on_host.diffs, GossipRules())
    propagate(cuda, job.nodes, job.adjacency, warm, GossipRules())
    seconds, (expected, counts) = _median(
        lambda: propagate(cpu, copy.nodes, copy.adjacency, copy.diffs, GossipRules()), torch.device("cpu"), clock
    )
    there, (given, _) = _median(
        lambda: propagate(cuda, job.nodes, job.adjacency, job.diffs, GossipRules()), device, clock
    )
    differs = [
        s.name for s in fields(Deliveries) if not torch.equal(getattr(given, s.name).cpu(), getattr(expected, s.name))
    ]
    row = _row(len(copy.nodes), copy.nodes.dimension, counts, seconds, bandwidth["host"])
    ratio, of_bandwidths = seconds / there, bandwidth["device"] / bandwidth["host"]
    say(
        f"  {count} diffs on the host's cores: {seconds:.3f} s, on the device {there:.4f} s: "
        f"x{ratio:.1f}; the bandwidths' ratio x{of_bandwidths:.1f}"
    )
    return {
        **row,
        "differs": differs,
        "device_seconds": there,
        "times_as_fast": ratio,
        "bandwidths_ratio": of_bandwidths,
        "share_of_bandwidths_ratio": ratio / of_bandwidths,
    }


def where(backend: Backend, made: Made, count: int, device: torch.device) -> dict[str, Any]:
    """Say what the time of one propagation goes to: the device's kernels and the host's calls, by their own time.

    A job that cannot be profiled says why; it is slower under the profiler than alone.
    """
    diffs = diffs_of(made.nodes, count, seed=count)
    kinds = [torch.profiler.ProfilerActivity.CPU]
    if device.type == "cuda":
        kinds.append(torch.profiler.ProfilerActivity.CUDA)
    try:
        with torch.profiler.profile(activities=kinds) as watched:
            seconds, _ = _timed(lambda: propagate(backend, made.nodes, made.adjacency, diffs, GossipRules()), device)
        found = watched.key_averages()
    except Exception as error:  # whatever the machine's profiler lacks is no fault of the kernels
        return {"ran": False, "why": f"{type(error).__name__}: {error}"}

    def longest(name: str) -> list[dict[str, Any]]:
        rows = sorted(found, key=lambda row: -getattr(row, name, 0))[:_ROWS_KEPT]
        return [{"name": row.key[:80], "calls": row.count, "microseconds": getattr(row, name, 0)} for row in rows]

    sides = {"device": longest("self_device_time_total"), "host": longest("self_cpu_time_total")}
    return {"ran": True, "nodes": len(made.nodes), "diffs": count, "seconds": seconds, **sides}


def sparse(made: Made, device: torch.device, columns: int, measured: list[dict[str, Any]]) -> dict[str, Any]:
    """Time a product of the adjacency with dense columns by torch.sparse, and say what a propagation takes that way."""
    nodes, graph = len(made.nodes), made.adjacency
    # the peer gets its rows in the order it likes best, and numbers of half the size
    targets, order = graph.targets.reshape(nodes, DEGREE).sort(1)
    parts = (graph.offsets.to(torch.int32), targets.flatten(), graph.weights.reshape(nodes, DEGREE).gather(1, order))
    try:
        with warnings.catch_warnings():  # that these tensors are in a beta state
            warnings.simplefilter("ignore", UserWarning)
            matrix = torch.sparse_csr_tensor(*parts[:2], parts[2].flatten(), (nodes, nodes), check_invariants=False)
        wave = torch.rand((nodes, columns), device=device)
        _timed(lambda: matrix @ wave, device)
        seconds = statistics.median(_timed(lambda: matrix @ wave, device)[0] for _ in range(3))
    except RuntimeError as error:
        return {"ran": False, "why": first_line(error)}
    found = {"ran": True, "columns": columns, "seconds_a_product": seconds}
    found["relaxations_a_second"] = len(graph.targets) * columns / seconds
    for row in measured:
        if row["nodes"] == nodes:
            whole = seconds * row["rounds"] * row["diffs"] / columns
            found[f"seconds_for_{row['diffs']}_diffs"] = whole
            found[f"ours_times_as_fast_for_{row['diffs']}_diffs"] = whole / row["seconds"]
    say(f"  torch.sparse: {seconds:.4f} s for one product with {columns} columns")
    return found


def _row(nodes: int, dimension: int, counts: GossipCounts, seconds: float, bandwidth: float) -> dict[str, Any]:
    floor_bytes = counts.relaxations * _EDGE_BYTES + counts.gates * (dimension + _PAIR_BYTES)
    names = ("deliveries", "gates", "relaxations")
    return {
        "nodes": nodes,
        "dimension": dimension,
        **asdict(counts),
        "seconds": seconds,
        **{f"{name}_a_second": getattr(counts, name) / seconds for name in names},
        "floor_bytes": floor_bytes,
        "floor_seconds": floor_bytes / bandwidth,
        "share_of_floor": floor_bytes / bandwidth / seconds,
    }


def _goals(found: dict[str, Any]) -> dict[str, Any]:
    """Return each goal of the check with what was measured for it; None where it was not."""
    largest = [row["seconds"] for row in found["gossip"] if row["nodes"] >= 10_000_000 and row["diffs"] == 4096]
    return {
        "gate, at least 0.5 of its floor": found.get("gate", {}).get("share_of_floor"),
        "at least 0.5 of the bandwidths' ratio over the host": found.get("host", {}).get("share_of_bandwidths_ratio"),
        "10M nodes x 4096 diffs, under 2 s": largest[0] if largest else None,
    }


def _median(work: Callable[[], Any], device: torch.device, clock: Clock) -> tuple[float, Any]:
    """Return the median time of a few runs, as many as there is time for, and what the first returned."""
    taken, result = _timed(work, device)
    runs = [taken]
    while len(runs) < _REPEATS and clock.allows(taken):
        runs.append(_timed(work, device)[0])
    return statistics.median(runs), result


def _timed(work: Callable[[], Any], device: torch.device) -> tuple[float, Any]:
    settle(device)
    start = time.perf_counter()
    result = work()
    settle(device)
    return time.perf_counter() - start, result
