"""Rounds until quiet (spec 3.5), with bandwidths in lock-step (spec 2.8)."""

from __future__ import annotations

from dataclasses import replace

import torch

from hyphae_gpu.backends.protocol import Backend
from hyphae_gpu.swarm import Adjacency, Deliveries, Diffs, GossipCounts, GossipRules, Nodes, Offers, WaveState

#: Enough for any diff: `advance` itself stops a diff that would run longer (spec 3.10).
_UNTIL_QUIET = 1 << 30


def propagate(
    backend: Backend, nodes: Nodes, adjacency: Adjacency, diffs: Diffs, rules: GossipRules
) -> tuple[Deliveries, GossipCounts]:
    """Propagate diffs until all are quiet; return what reached whom and what it took (spec 3.5, 3.7).

    A pure function of its arguments: the same for any split of the diffs, as long as no edge has a bandwidth (then all
    diffs of the epoch have to be in one call).
    """
    state = origins(backend, nodes, diffs)
    if adjacency.limited:
        state, counts = _lock_step(backend, nodes, adjacency, diffs, rules, state)
    else:
        state, _, counts = backend.advance(nodes, adjacency, diffs, rules, state, rounds_done=0, rounds=_UNTIL_QUIET)
    found = deliveries(diffs, state)
    counts.diffs, counts.deliveries = len(diffs), len(found)
    return found, counts


def origins(backend: Backend, nodes: Nodes, diffs: Diffs) -> WaveState:
    """Return E_0: every diff at its origin, its gate not asked; none where E0 or max_hops is below 1 (spec 3.5)."""
    starts = (diffs.energies >= 1) & (diffs.max_hops >= 1)
    rows = torch.nonzero(starts).flatten()
    offsets = torch.zeros(len(diffs) + 1, dtype=torch.int64, device=rows.device)
    torch.cumsum(starts, 0, out=offsets[1:])
    at = diffs.origins[rows]
    return WaveState(
        offsets=offsets,
        nodes=at,
        energies=diffs.energies[rows],
        hops=torch.zeros_like(at),
        parents=torch.full_like(at, -1),
        scores=backend.scores(nodes, diffs, rows, at.long()),
        fresh=torch.ones(len(rows), dtype=torch.bool, device=rows.device),
    )


def deliveries(diffs: Diffs, state: WaveState) -> Deliveries:
    """Return the nodes that hold energy, in order of (diff, node)."""
    rows: torch.Tensor | slice = slice(None)
    if not bool((state.energies > 0).all()):
        rows = torch.nonzero(state.energies > 0).flatten()
    return Deliveries(
        diffs=diffs.numbers[state.rows()[rows]],
        nodes=state.nodes[rows],
        hops=state.hops[rows],
        energies=state.energies[rows],
        scores=state.scores[rows],
        parents=state.parents[rows],
    )


def _lock_step(
    backend: Backend, nodes: Nodes, adjacency: Adjacency, diffs: Diffs, rules: GossipRules, state: WaveState
) -> tuple[WaveState, GossipCounts]:
    counts = GossipCounts()
    t = 0
    while bool((state.fresh & (t + 1 < diffs.max_hops[state.rows()])).any()):
        state, offers, step = backend.advance(nodes, adjacency, diffs, rules, state, rounds_done=t, rounds=1)
        crossing = _fittest(offers, adjacency.bandwidths, diffs)
        counts.throttled += len(offers) - len(crossing.rows)
        if rules.loss > 0:
            gone = backend.losses(rules, t, crossing.sources, crossing.targets, diffs.numbers[crossing.rows])
            counts.lost += int(gone.sum())
            crossing = _take(crossing, torch.nonzero(~gone).flatten())
        state = _apply(state, crossing, len(nodes), t)
        counts.add(step)
        t += 1
    return state, counts


def _fittest(offers: Offers, bandwidths: torch.Tensor, diffs: Diffs) -> Offers:
    """Keep what an edge can carry: those of highest energy, ties to the lowest diff number (spec 2.8)."""
    order = torch.argsort(diffs.numbers[offers.rows], stable=True)
    order = order[torch.argsort(offers.energies[order], stable=True, descending=True)]
    order = order[torch.argsort(offers.edges[order], stable=True)]
    edges = offers.edges[order]
    rank = torch.arange(len(edges), device=edges.device) - torch.searchsorted(edges, edges)
    return _take(offers, order[rank < bandwidths[edges]])


def _take(offers: Offers, rows: torch.Tensor) -> Offers:
    columns = ("rows", "edges", "sources", "targets", "energies")
    return Offers(**{name: getattr(offers, name)[rows] for name in columns})


def _apply(state: WaveState, offers: Offers, nodes: int, t: int) -> WaveState:
    """Let offers that crossed raise their receivers, as if they had come with the round's others (spec 3.5, 3.7)."""
    keys = state.rows() * nodes + state.nodes
    theirs = offers.rows * nodes + offers.targets
    order = torch.argsort(offers.sources, stable=True)
    order = order[torch.argsort(offers.energies[order], stable=True, descending=True)]
    order = order[torch.argsort(theirs[order], stable=True)]
    theirs = theirs[order]
    first = torch.ones(len(theirs), dtype=torch.bool, device=theirs.device)
    first[1:] = theirs[1:] != theirs[:-1]
    best = order[first]
    at = torch.searchsorted(keys, theirs[first])

    offered, sources, held = offers.energies[best], offers.sources[best], state.energies[at]
    rises = offered > held
    # An equal energy that is there already rose in this same round, since every offer beats the round's start.
    wins = rises | ((offered == held) & (sources < state.parents[at]))
    energies, parents, hops, fresh = (
        column.clone() for column in (state.energies, state.parents, state.hops, state.fresh)
    )
    energies[at[rises]] = offered[rises]
    parents[at[wins]] = sources[wins]
    hops[at[held < 0]] = t + 1
    fresh[at] = True
    return replace(state, energies=energies, parents=parents, hops=hops, fresh=fresh)
