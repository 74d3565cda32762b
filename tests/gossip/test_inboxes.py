"""Audiences, inboxes and ways against plain readings, with == (spec 3.11-3.14)."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import fields

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from hyphae_gpu.backends.cpu.backend import CpuBackend
from hyphae_gpu.gossip.inboxes import BY_GOSSIP, Candidates, audience, candidates, ordered, without_delivered
from hyphae_gpu.gossip.paths import paths
from hyphae_gpu.gossip.waves import propagate
from hyphae_gpu.swarm import Deliveries, GossipRules
from hyphae_gpu.vocabulary import NodeType
from tests.graphs import swarm
from tests.oracles import resonance as oracle

Row = dict[str, int | float]


def made(seed: int, *, agents: int, diffs: int, beacons: int) -> Candidates:
    """Random candidates with many ties; each (agent, diff, via) at most once."""
    rng = np.random.default_rng(seed)
    keys = [(a, d, v) for a in range(agents) for d in range(diffs) for v in (BY_GOSSIP, *range(100, 100 + beacons))]
    kept = [key for key in keys if rng.random() < 0.6 and (key[2] == BY_GOSSIP or key[2] % agents == key[0])]
    rows = np.array([kept[i] for i in rng.permutation(len(kept))], np.int64).reshape(-1, 3)
    count = len(rows)
    return Candidates(
        agents=torch.from_numpy(rows[:, 0].astype(np.int32)),
        diffs=torch.from_numpy(rows[:, 1]),
        vias=torch.from_numpy(rows[:, 2].astype(np.int32)),
        hops=torch.zeros(count, dtype=torch.int32),
        energies=torch.ones(count, dtype=torch.int32),
        scores=torch.from_numpy(rng.choice([0.3, 0.4, 0.5], count)),
        resonances=torch.from_numpy(rng.choice([0, 5, 2**50], count)),
        parents=torch.zeros(count, dtype=torch.int32),
        path_starts=torch.arange(count),
        path_sizes=torch.ones(count, dtype=torch.int32),
    )


def rows_of(offered: Candidates) -> list[Row]:
    names = [spec.name for spec in fields(Candidates)]
    return [
        dict(zip(names, row, strict=True)) for row in zip(*(getattr(offered, n).tolist() for n in names), strict=True)
    ]


crowds = st.builds(
    made, st.integers(0, 2**32 - 1), agents=st.integers(1, 6), diffs=st.integers(0, 12), beacons=st.integers(0, 3)
)


@settings(max_examples=150, deadline=None)
@given(crowds, st.integers(1, 8), st.integers(1, 8))
def test_inboxes_are_ordered_by_relevance_and_cut(offered: Candidates, inbox_limit: int, beacon_limit: int) -> None:
    """spec 3.14"""
    boxes: dict[tuple[int, int], list[Row]] = defaultdict(list)
    for row in rows_of(offered):
        boxes[int(row["agents"]), int(row["vias"])].append(row)
    expected = []
    for (agent, via), rows in sorted(boxes.items()):
        if via == BY_GOSSIP:
            entries = [(int(r["diffs"]), float(r["scores"]), int(r["resonances"])) for r in rows]
            kept = oracle.inbox(entries, inbox_limit)
        else:
            by_score = sorted(rows, key=lambda r: (-r["scores"], r["diffs"]))[:beacon_limit]
            kept = [(int(r["diffs"]), None) for r in by_score]
        expected += [(agent, via, place, *entry) for place, entry in enumerate(kept)]
    found = ordered(offered, inbox_limit=inbox_limit, beacon_limit=beacon_limit)
    entries = found.entries
    columns = (entries.agents, entries.vias, found.places, entries.diffs, found.relevances)
    rows = [
        (*row[:4], None if np.isnan(row[4]) else row[4]) for row in zip(*(c.tolist() for c in columns), strict=True)
    ]
    assert rows == expected
    assert found.cut == len(offered) - len(expected)


@settings(max_examples=150, deadline=None)
@given(crowds, st.integers(1, 6), st.integers(0, 3))
def test_an_audience_is_those_whom_a_diff_concerns_most(offered: Candidates, limit: int, seed: int) -> None:
    """spec 3.13"""
    activity = torch.from_numpy(np.random.default_rng(seed).choice([0, 7, 4096], 200))
    people: dict[int, list[tuple[int, float, int, int]]] = defaultdict(list)
    for r in rows_of(offered):
        if r["vias"] == BY_GOSSIP:
            agent = int(r["agents"])
            people[int(r["diffs"])].append((agent, float(r["scores"]), int(r["resonances"]), int(activity[agent])))
    kept = {(agent, diff) for diff, those in people.items() for agent in oracle.audience(those, limit)}
    expected = [r for r in rows_of(offered) if r["vias"] != BY_GOSSIP or (r["agents"], r["diffs"]) in kept]
    assert rows_of(audience(offered, activity, limit)) == expected


@settings(max_examples=100, deadline=None)
@given(crowds, st.integers(0, 2**32 - 1))
def test_what_an_inbox_holds_is_not_offered_again(offered: Candidates, seed: int) -> None:
    """spec 3.9"""
    rng = np.random.default_rng(seed)
    held = [r for r in rows_of(offered) if rng.random() < 0.5]
    held += [{"agents": 99, "diffs": 3, "vias": BY_GOSSIP}]
    columns = [torch.tensor([int(r[name]) for r in held]) for name in ("agents", "diffs", "vias")]
    fresh = without_delivered(offered, columns[0].to(torch.int32), columns[1], columns[2].to(torch.int32))
    known = {(r["agents"], r["diffs"], r["vias"]) for r in held}
    assert rows_of(fresh) == [r for r in rows_of(offered) if (r["agents"], r["diffs"], r["vias"]) not in known]


def test_the_maker_gets_no_echo_not_even_through_its_beacon() -> None:
    """spec 3.11, 1.5"""
    types = torch.tensor([NodeType.CELL, NodeType.AGENT, NodeType.AGENT, NodeType.BEACON], dtype=torch.int8)
    owners = torch.tensor([-1, -1, -1, 1], dtype=torch.int32)
    nodes = torch.tensor([1, 2, 3, 1, 2, 3], dtype=torch.int32)
    zeros = torch.zeros(6, dtype=torch.int32)
    found = Deliveries(
        diffs=torch.tensor([0, 0, 0, 1, 1, 1]),
        nodes=nodes,
        hops=zeros,
        energies=zeros,
        scores=zeros.double(),
        parents=zeros,
    )
    offered = candidates(
        found,
        resonances=torch.zeros(6, dtype=torch.int64),
        path_offsets=torch.arange(7),
        types=types,
        owners=owners,
        makers=torch.tensor([1, 1, 1, 2, 2, 2], dtype=torch.int32),
    )
    entries = list(zip(offered.agents.tolist(), offered.diffs.tolist(), offered.vias.tolist(), strict=True))
    assert entries == [(2, 0, BY_GOSSIP), (1, 1, BY_GOSSIP), (1, 1, 3)]


@pytest.mark.parametrize("fanout", [0, 2])
def test_a_way_follows_the_parents_to_the_origin(fanout: int) -> None:
    """spec 3.7"""
    given_swarm = swarm(3, nodes=400, degree=6, diffs=20, spread=0.5)
    rules = GossipRules(sigma_min=0.1, cos_min=0.0, fanout=fanout)
    found, _ = propagate(CpuBackend(), given_swarm.nodes, given_swarm.adjacency, given_swarm.diffs, rules)
    columns = (found.diffs, found.nodes, found.parents)
    parents = {(d, n): p for d, n, p in zip(*(c.tolist() for c in columns), strict=True)}
    rows = torch.arange(0, len(found), 3)
    offsets, ways = paths(given_swarm.diffs, found, rows)
    longest = 0
    for i, row in enumerate(rows.tolist()):
        diff, node = int(found.diffs[row]), int(found.nodes[row])
        expected = [node]
        while parents[diff, expected[-1]] >= 0:
            expected.append(parents[diff, expected[-1]])
        assert ways[offsets[i] : offsets[i + 1]].tolist() == expected
        longest = max(longest, len(expected))
    assert longest >= 4
