"""The same results to the bit: every column and count of a device's backend against the CPU's (spec 0.5)."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, fields, replace
from itertools import count
from typing import Any

import torch

from device.clock import Clock, say
from device.operations import differing
from device.swarms import Made, clustered, scattered
from hyphae_gpu.backends.protocol import Backend
from hyphae_gpu.gossip.resonance import flow_of, resonances
from hyphae_gpu.gossip.waves import propagate
from hyphae_gpu.swarm import Deliveries, GossipRules


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """How much is compared: edges looked at in all, and the shape of the clustered graphs."""

    relaxations: int = 100_000_000
    scattered: tuple[int, ...] = (1, 2, 33, 300, 20_000)
    nodes: int = 1 << 18
    diffs: int = 4096
    dimension: int = 384
    cluster: int = 256
    topic: int = 32


SMALL = Sizes(relaxations=200_000, scattered=(1, 2, 33, 300), nodes=8192, diffs=96, dimension=48, cluster=64, topic=16)
#: Cases of a size of scattered graphs, and of a seed of clustered ones: each kind is compared at least once.
_A_SIZE, _A_SEED = 6, 4
#: The share of the time that is kept for resonance and the graph's operations.
_KEPT = 0.15
#: What one case is judged by: made on the host, for the CPU's backend has to read it.
Case = tuple[str, Callable[[], Made], GossipRules, bool]


def run(cuda: Backend, cpu: Backend, sizes: Sizes, clock: Clock, *, keep: Callable[[Any], None]) -> bool:
    """Compare case after case until enough edges were looked at or the clock has run out; return whether all agree.

    They do not where the clock left no time to compare one of each kind. `keep` gets what was found after each case.
    """
    found: dict[str, Any] = {"equal": True, "relaxations": 0, "deliveries": 0, "cases": [], "wanted": sizes.relaxations}
    last, least = 0.0, _A_SIZE * len(sizes.scattered) + _A_SEED
    for name, make, rules, sweep in _cases(sizes):
        enough = len(found["cases"]) >= least and found["relaxations"] >= sizes.relaxations
        if enough or not clock.allows(1.5 * last + _KEPT * clock.seconds):
            break
        start = time.monotonic()
        case = compare(cuda, cpu, make(), rules, sweep=sweep)
        last = time.monotonic() - start
        found["cases"].append({"case": name, **case})
        found["relaxations"] += case["relaxations"]
        found["deliveries"] += case["deliveries"]
        if case["differs"]:
            found["equal"] = False
            say(f"  DIFFERS: {name}: {', '.join(case['differs'])}")
        keep(found)
    found["enough"] = len(found["cases"]) >= least and found["relaxations"] >= sizes.relaxations
    whole = len(found["cases"]) >= least
    for name, differs in _beside(cuda, cpu, sizes, clock):
        found["cases"].append({"case": name, "differs": differs})
        found["equal"] &= not differs
        if differs:
            say(f"  DIFFERS: {name}: {', '.join(differs)}")
        keep(found)
    found["of_each_kind"] = whole and bool(found["cases"]) and found["cases"][-1]["case"] == "operations"
    keep(found)
    say(
        f"  {len(found['cases'])} cases, {found['relaxations']:,} edges looked at, {found['deliveries']:,} deliveries: "
        + ("equal" if found["equal"] else "NOT EQUAL")
        + ("" if found["enough"] else f"; the clock allowed no more of {sizes.relaxations:,}")
    )
    return bool(found["equal"] and found["of_each_kind"])


def compare(cuda: Backend, cpu: Backend, made: Made, rules: GossipRules, *, sweep: bool) -> dict[str, Any]:
    """Propagate on both; return the counts, the seconds of each and what differs."""
    columns = (made.nodes, made.adjacency, made.diffs, rules)
    start = time.perf_counter()
    expected, expected_counts = propagate(cpu, *columns, sweep=sweep)
    middle = time.perf_counter()
    given, counts = propagate(cuda, *columns, sweep=sweep)
    end = time.perf_counter()
    differs = [
        f"column {spec.name}"
        for spec in fields(Deliveries)
        if not torch.equal(getattr(given, spec.name), getattr(expected, spec.name))
    ]
    differs += [
        f"{name} {value}, on the CPU {asdict(expected_counts)[name]}"
        for name, value in asdict(counts).items()
        if value != asdict(expected_counts)[name]
    ]
    return {**asdict(expected_counts), "differs": differs, "cpu_seconds": middle - start, "seconds": end - middle}


def _cases(sizes: Sizes) -> Iterator[Case]:
    """Yield small cases of every kind, then clustered ones without end."""
    rules = [
        GossipRules(),
        GossipRules(fanout=0),
        GossipRules(sigma_min=0.2, cos_min=0.1, fanout=3, loss=0.2, seed=2**40 + 7, epoch=3),
    ]
    for nodes in sizes.scattered:
        for i, rule in enumerate(rules):
            for limited in (0.0, 0.3):
                what = {"nodes": nodes, "degree": min(12, nodes), "diffs": 64, "dimension": (4, 33, 100)[i]}
                yield (
                    f"scattered, {nodes} nodes, fanout {rule.fanout}, loss {rule.loss}, limited {limited}",
                    lambda seed=1 + i, what=what, limited=limited: scattered(seed, **what, limited=limited),
                    rule,
                    bool(rule.loss or limited),
                )
    # nearly whole topics are reached: a hundred times as many edges a diff, so fewer diffs
    wide = GossipRules(sigma_min=0.15, cos_min=0.1, fanout=0)
    for seed in count(1):
        made = clustered("cpu", seed, nodes=sizes.nodes, diffs=sizes.diffs, dimension=sizes.dimension, **_shape(sizes))
        some = replace(made, diffs=made.diffs.take(torch.arange(0, sizes.diffs, 8)))
        for graph, rule in ((made, rules[0]), (some, wide), (made, rules[2]), (_narrow(some, seed), rules[2])):
            what = f"fanout {rule.fanout}, sigma_min {rule.sigma_min}, loss {rule.loss}, {len(graph.diffs)} diffs"
            name = f"clustered {seed}, {sizes.nodes} nodes, {what}, limited {graph.adjacency.limited}"
            yield name, lambda graph=graph: graph, rule, rule.loss > 0


def _narrow(made: Made, seed: int) -> Made:
    """Return a graph a tenth of whose edges carry one or two diffs a round."""
    dice = torch.Generator().manual_seed(seed)
    bandwidths = torch.randint(1, 3, made.adjacency.bandwidths.shape, generator=dice, dtype=torch.int32)
    bandwidths[torch.rand(bandwidths.shape, generator=dice) >= 0.1] = -1
    return replace(made, adjacency=replace(made.adjacency, bandwidths=bandwidths))


def _beside(cuda: Backend, cpu: Backend, sizes: Sizes, clock: Clock) -> Iterator[tuple[str, list[str]]]:
    """Compare resonance, and the graph's operations that the device does by itself."""
    for part in (_resonance, _operations):
        if clock.allows(0.0):
            yield part.__name__[1:], part(cuda, cpu, sizes)


def _resonance(cuda: Backend, cpu: Backend, sizes: Sizes) -> list[str]:
    differs = []
    for made in (
        scattered(5, nodes=300, degree=8, diffs=24, dimension=16),
        clustered(
            "cpu",
            99,
            nodes=4 * sizes.cluster * sizes.topic,
            diffs=sizes.diffs // 8,
            dimension=sizes.dimension,
            cluster=sizes.cluster,
            topic=sizes.topic,
        ),
    ):
        found, _ = propagate(cpu, made.nodes, made.adjacency, made.diffs, GossipRules())
        flow = flow_of(cpu, made.nodes, made.adjacency)
        theirs = flow_of(cuda, made.nodes, made.adjacency)
        differs += [
            f"flow {spec.name}"
            for spec in fields(flow)
            if not torch.equal(getattr(flow, spec.name), getattr(theirs, spec.name))
        ]
        if not torch.equal(resonances(cuda, flow, made.diffs, found), resonances(cpu, flow, made.diffs, found)):
            differs.append(f"resonances over {len(made.nodes)} nodes")
    return differs


def _operations(cuda: Backend, cpu: Backend, sizes: Sizes) -> list[str]:
    return differing(cuda, cpu, _shape(sizes), dimension=sizes.dimension, diffs=sizes.diffs // 8)


def _shape(sizes: Sizes) -> dict[str, int]:
    return {"cluster": sizes.cluster, "topic": sizes.topic}
