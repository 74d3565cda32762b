"""Rounds until quiet (spec 3.5), with bandwidths in lock-step (spec 2.8)."""

from __future__ import annotations

from dataclasses import replace

import torch

from hyphae_gpu.backends.protocol import Backend
from hyphae_gpu.columns import offsets_of
from hyphae_gpu.swarm import Adjacency, Deliveries, Diffs, GossipCounts, GossipRules, Nodes
from hyphae_gpu.wave_state import Offers, WaveState

#: Enough for any diff: `advance` itself stops a diff that would run longer (spec 3.10).
_UNTIL_QUIET = 1 << 30


def propagate(
    backend: Backend, nodes: Nodes, adjacency: Adjacency, diffs: Diffs, rules: GossipRules, *, sweep: bool = False
) -> tuple[Deliveries, GossipCounts]:
    """Propagate diffs until all are quiet; return what reached whom and what it took (spec 3.5, 3.7).

    With `sweep`, anti-entropy sweeps then bring what was lost or throttled (spec 7.2). A pure function of its
    arguments: the same for any split of the diffs, as long as no edge has a bandwidth (then all diffs of the epoch have
    to be in one call).
    """
    start = origins(backend, nodes, diffs)
    state, counts = until_quiet(backend, nodes, adjacency, diffs, rules, start, sweep=sweep)
    found = deliveries(diffs, state)
    counts.diffs, counts.deliveries = len(diffs), len(found)
    return found, counts


def until_quiet(
    backend: Backend,
    nodes: Nodes,
    adjacency: Adjacency,
    diffs: Diffs,
    rules: GossipRules,
    state: WaveState,
    *,
    sweep: bool,
) -> tuple[WaveState, GossipCounts]:
    """Run rounds, and with `sweep` sweeps, from a state on until nothing rises; the counts leave out deliveries.

    The state that is returned lies where the diffs lie; between rounds it stays on the backend's device.
    """
    here = diffs.numbers.device
    diffs, state = diffs.to(backend.device), state.to(backend.device)
    if adjacency.limited:
        state, counts = _lock_step(backend, nodes, adjacency, diffs, rules, state)
    else:
        state, _, counts = backend.advance(nodes, adjacency, diffs, rules, state, rounds=_UNTIL_QUIET)
    counts.rounds = int(state.rounds.max()) if len(diffs) else 0
    if sweep:
        state = swept(backend, nodes, adjacency, diffs, rules, state, counts)
    return state.to(here), counts


def origins(backend: Backend, nodes: Nodes, diffs: Diffs) -> WaveState:
    """Return E_0: every diff at its origin, its gate not asked; none where E0 or max_hops is below 1 (spec 3.5)."""
    starts = (diffs.energies >= 1) & (diffs.max_hops >= 1)
    rows = torch.nonzero(starts).flatten()
    at = diffs.origins[rows]
    return WaveState(
        offsets=offsets_of(starts.long()),
        rounds=torch.zeros_like(diffs.numbers),
        sweeps=torch.zeros_like(diffs.numbers),
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


def swept(
    backend: Backend,
    nodes: Nodes,
    adjacency: Adjacency,
    diffs: Diffs,
    rules: GossipRules,
    state: WaveState,
    counts: GossipCounts,
) -> WaveState:
    """Sweep until no holder has anything to offer, whatever was lost (spec 7.2); adds to `counts`.

    The first sweep compares every holder with its neighbours; a later one only those whose offers did not arrive and
    those that rose since, for the others have nothing new to offer.
    """
    nothing_unmet = rules.loss == 0 and not adjacency.limited and not bool(state.fresh.any())
    if nothing_unmet or not len(diffs):
        return state
    before = state
    state = replace(state, fresh=state.energies > 0)
    while bool(state.fresh.any()):
        state, step = _round(backend, nodes, adjacency, diffs, rules, state, sweep=True)
        counts.add(step)
    # each diff's last sweep is the one that finds nothing to offer
    counts.sweeps = max(0, int((state.sweeps - before.sweeps).max()) - 1)
    counts.repaired += _risen(before, state, len(nodes))
    return state


def _risen(before: WaveState, after: WaveState, nodes: int) -> int:
    """Return how many (diff, node) hold more energy than before."""
    known, keys = before.rows() * nodes + before.nodes, after.rows() * nodes + after.nodes
    held = torch.zeros_like(after.energies)
    held[torch.searchsorted(keys, known)] = before.energies.clamp(min=0)
    return int((after.energies > held).sum())


def _lock_step(
    backend: Backend, nodes: Nodes, adjacency: Adjacency, diffs: Diffs, rules: GossipRules, state: WaveState
) -> tuple[WaveState, GossipCounts]:
    """Run all diffs round by round, so that they can share edges with a bandwidth (spec 2.8)."""
    counts = GossipCounts()
    while bool((state.fresh & (state.rounds + 1 < diffs.max_hops)[state.rows()]).any()):
        state, step = _round(backend, nodes, adjacency, diffs, rules, state, sweep=False)
        counts.add(step)
    return state, counts


def _round(
    backend: Backend,
    nodes: Nodes,
    adjacency: Adjacency,
    diffs: Diffs,
    rules: GossipRules,
    start: WaveState,
    *,
    sweep: bool,
) -> tuple[WaveState, GossipCounts]:
    """Run one round or sweep of all diffs, with the choice that edges with a bandwidth ask for."""
    state, offers, counts = backend.advance(nodes, adjacency, diffs, rules, start, rounds=1, sweep=sweep)
    arriving = _fittest(offers, adjacency.bandwidths, diffs)
    counts.throttled += len(offers) - int(arriving.sum())
    if rules.loss > 0 and len(offers):
        ran = (start.rounds + start.sweeps)[offers.rows]
        gone = backend.losses(rules, ran, offers.sources, offers.targets, diffs.numbers[offers.rows])
        counts.lost += int((gone & arriving).sum())
        arriving &= ~gone
    risen = _apply(start, state, offers.take(arriving), len(nodes), sweep=sweep)
    return (_retrying(risen, offers.take(~arriving), len(nodes)) if sweep else risen), counts


def _fittest(offers: Offers, bandwidths: torch.Tensor, diffs: Diffs) -> torch.Tensor:
    """Return which offers an edge can carry: those of highest energy, ties to the lowest diff number (spec 2.8)."""
    order = torch.argsort(diffs.numbers[offers.rows], stable=True)
    order = order[torch.argsort(offers.energies[order], stable=True, descending=True)]
    order = order[torch.argsort(offers.edges[order], stable=True)]
    edges = offers.edges[order]
    rank = torch.arange(len(edges), device=edges.device) - torch.searchsorted(edges, edges)
    carried = bandwidths[edges.to(bandwidths.device)].to(edges.device)
    fits = torch.zeros(len(edges), dtype=torch.bool, device=edges.device)
    fits[order] = rank < carried
    return fits


def _retrying(state: WaveState, unmet: Offers, nodes: int) -> WaveState:
    """Keep in the frontier the nodes whose offers did not arrive."""
    fresh = state.fresh.clone()
    fresh[torch.searchsorted(state.rows() * nodes + state.nodes, unmet.rows * nodes + unmet.sources)] = True
    return replace(state, fresh=fresh)


def _apply(start: WaveState, state: WaveState, offers: Offers, nodes: int, *, sweep: bool) -> WaveState:
    """Let offers that crossed raise their receivers, as if they had come with the round's others (spec 3.5, 3.7).

    `start` is the state before the round, `state` the one after its unlimited edges were crossed.
    """
    if not len(offers):
        return state
    keys = state.rows() * nodes + state.nodes
    theirs = offers.rows * nodes + offers.targets
    order = torch.argsort(offers.sources, stable=True)
    order = order[torch.argsort(offers.energies[order], stable=True, descending=True)]
    order = order[torch.argsort(theirs[order], stable=True)]
    first = torch.ones(len(order), dtype=torch.bool, device=order.device)
    first[1:] = theirs[order][1:] != theirs[order][:-1]
    best = order[first]
    at = torch.searchsorted(keys, theirs[best])

    offered, sources, held = offers.energies[best], offers.sources[best], state.energies[at]
    rises = offered > held
    # An equal energy that is there already rose in this same round, since every offer beats the round's start.
    wins = rises | ((offered == held) & (sources < state.parents[at]))
    energies, parents, hops, fresh = (
        column.clone() for column in (state.energies, state.parents, state.hops, state.fresh)
    )
    energies[at[rises]] = offered[rises]
    parents[at[wins]] = sources[wins]
    fresh[at] = True
    new = wins & ~_reached(start, nodes, theirs[best])
    from_parent = state.hops[torch.searchsorted(keys, offers.rows[best] * nodes + sources)] + 1
    arrival = from_parent if sweep else (start.rounds[offers.rows[best]] + 1).to(torch.int32)
    hops[at[new]] = arrival[new]
    return replace(state, energies=energies, parents=parents, hops=hops, fresh=fresh)


def _reached(state: WaveState, nodes: int, keys: torch.Tensor) -> torch.Tensor:
    """Return whether each (diff row * nodes + node) holds energy in a state."""
    known = state.rows() * nodes + state.nodes
    at = torch.searchsorted(known, keys).clamp(max=max(0, len(known) - 1))
    return (known[at] == keys) & (state.energies[at] > 0)
