"""Who wins a contradiction (spec 6.3), and what the swarm is told about it (spec 6.2, 6.6)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import numpy.typing as npt

from hyphae_gpu.arrays import F32, F64, I32, Flags
from hyphae_gpu.emerged import ContradictionTable, KnownPairs, Supersessions
from hyphae_gpu.emergence.contradictions import Pairs
from hyphae_gpu.energies import initial_energy, units
from hyphae_gpu.state import PENDING_SILENT, AccessLog, DiffTable, NodeTable, SwarmState
from hyphae_gpu.vocabulary import DiffType

#: What a contradiction diff has of its cell's usual energy (spec 6.2).
CONTRADICTION_ENERGY = 1.5
FLAG, RECENCY, SALIENCE, VOTE = "flag", "recency", "salience", "vote"
_1970 = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, kw_only=True)
class Judgement:
    """What became of a wave's pairs.

    raised: the new contradictions; hops int32: of each the least after which the two met; superseded: losers and
    winners, in order of losers; speaking: cells of those that stay open, int32, ascending, each once.
    """

    raised: ContradictionTable
    hops: I32
    superseded: Supersessions
    speaking: I32


def judge(
    pairs: Pairs,
    nodes: NodeTable,
    saliences: F32,
    live: Flags,
    accesses: AccessLog,
    *,
    policy: str,
    as_of: int,
) -> Judgement:
    """Judge a wave's pairs under a policy (spec 6.2, 6.3); a pure function, nothing is changed.

    pairs: those that were not raised before; saliences float32 [n]: the decayed ones; live bool [n]: which nodes are
    live cells now; accesses: the log, of which rows up to `as_of` vote. Pairs are taken in the order of their newer
    cell's created_at, then its number, then the older's; one with a cell that is not live, or lost before in that
    order, raises nothing.
    """
    newer, older = by_age(pairs, nodes.created_at)
    if policy == FLAG:
        chosen = np.flatnonzero(live[newer] & live[older])
        return Judgement(
            raised=_raised(pairs, chosen, [None] * len(chosen)),
            hops=pairs.hops[chosen],
            superseded=Supersessions(),
            speaking=np.unique(np.concatenate([pairs.a[chosen], pairs.b[chosen]])),
        )
    weights = _weights(policy, nodes, saliences, accesses, as_of)
    # The newer is the newest and wins any tie, so by recency it always wins.
    wins = np.ones(len(pairs), np.bool_) if policy == RECENCY else weights[newer] >= weights[older]
    winners, losers = np.where(wins, newer, older), np.where(wins, older, newer)
    turn = _in_turn(newer, older, losers, nodes.created_at, live)
    chosen = np.sort(turn)
    decided = zip(winners[chosen].tolist(), losers[chosen].tolist(), strict=True)
    order = turn[np.argsort(losers[turn])]
    return Judgement(
        raised=_raised(pairs, chosen, [_decision(policy, winner, loser, weights) for winner, loser in decided]),
        hops=pairs.hops[chosen],
        superseded=Supersessions(losers=losers[order], winners=winners[order]),
        speaking=np.zeros(0, np.int32),
    )


def by_age(pairs: Pairs, created_at: npt.NDArray[np.int64]) -> tuple[I32, I32]:
    """Return each pair's newer and older cell; of two made at once the higher number is the newer."""
    # b is the higher number, so only a strictly later a is the newer one.
    swapped = created_at[pairs.a] > created_at[pairs.b]
    return np.where(swapped, pairs.a, pairs.b), np.where(swapped, pairs.b, pairs.a)


def _in_turn(
    newer: I32, older: I32, losers: I32, created_at: npt.NDArray[np.int64], live: Flags
) -> npt.NDArray[np.int64]:
    """Return the rows that raise something, in the order of their turn (spec 6.2)."""
    gone = set()
    turn = []
    for row in np.lexsort((older, newer, created_at[newer])).tolist():
        one, other = int(newer[row]), int(older[row])
        if live[one] and live[other] and one not in gone and other not in gone:
            gone.add(int(losers[row]))
            turn.append(row)
    return np.array(turn, np.int64)


def _weights(
    policy: str, nodes: NodeTable, saliences: F32, accesses: AccessLog, as_of: int
) -> npt.NDArray[np.int64] | F64:
    """Return what decides between two cells under a policy, by node: the greater wins (spec 6.3)."""
    if policy == RECENCY:
        return nodes.created_at
    if policy == SALIENCE:
        return saliences.astype(np.float64)
    if policy == VOTE:
        return votes(accesses, saliences, as_of)
    raise ValueError(f"policy {policy!r}, expected flag, recency, salience or vote")


def votes(accesses: AccessLog, saliences: F32, as_of: int) -> F64:
    """Return each node's votes: the agents that accessed it up to `as_of`, times its salience; float64 [n]."""
    known = accesses.at <= as_of
    agents, cells = accesses.agents[known].astype(np.int64), accesses.cells[known].astype(np.int64)
    voters = np.unique(cells * (len(saliences) + 1) + agents) // (len(saliences) + 1)
    counts = np.bincount(voters, minlength=len(saliences)).astype(np.float64)
    return np.multiply(counts, saliences.astype(np.float64))


def _decision(policy: str, winner: int, loser: int, weights: npt.NDArray[np.int64] | F64) -> dict[str, Any]:
    """Return one decision with its reason, as plain values."""
    high, low = weights[winner].item(), weights[loser].item()
    if policy == RECENCY:
        reason = f"created at {_moment(high)}, the other at {_moment(low)}"
    else:
        what = "salience" if policy == SALIENCE else "votes"
        reason = f"{what} {high:.6g}, the other {low:.6g}"
    if high == low:
        reason += ": a tie, so the newer wins"
    return {"policy": policy, "winner": winner, "loser": loser, "reason": reason}


def _moment(microseconds: int) -> str:
    try:
        return (_1970 + timedelta(microseconds=microseconds)).isoformat()
    except OverflowError:
        return f"{microseconds} microseconds after 1970"


def _raised(
    pairs: Pairs, rows: npt.NDArray[np.int64], resolutions: Sequence[dict[str, Any] | None]
) -> ContradictionTable:
    return ContradictionTable(
        a=pairs.a[rows],
        b=pairs.b[rows],
        similarities=pairs.similarities[rows],
        reasons=pairs.reasons[rows],
        open=np.array([decision is None for decision in resolutions], np.bool_),
        resolutions=list(resolutions),
    )


def with_raised(known: KnownPairs, raised: ContradictionTable) -> KnownPairs:
    """Return the known pairs with a wave's new ones, sorted."""
    a, b = np.concatenate([known.a, raised.a]), np.concatenate([known.b, raised.b])
    order = np.lexsort((b, a))
    return KnownPairs(a=a[order], b=b[order], open=np.concatenate([known.open, raised.open])[order])


def in_open_contradiction(known: KnownPairs, count: int) -> Flags:
    """Return which of `count` nodes are in an open contradiction; bool (spec 5.1: they block a promotion)."""
    inside = np.zeros(count, np.bool_)
    inside[known.a[known.open]] = True
    inside[known.b[known.open]] = True
    return inside


def declared_supersessions(nodes: NodeTable) -> tuple[Supersessions, Flags]:
    """Return what rows superseded since the last epoch, and which of it is told to the swarm (spec 6.6).

    To be asked before the epoch takes the rows in: a superseding cell that was loaded silently tells nothing.
    """
    news = (nodes.superseded_by >= 0) & (nodes.superseded_by != nodes.told_superseded)
    losers = np.flatnonzero(news).astype(np.int32)
    winners = nodes.superseded_by[losers]
    return Supersessions(losers=losers, winners=winners), nodes.pending[winners] != PENDING_SILENT


def supersede(state: SwarmState, gone: Supersessions) -> npt.NDArray[np.int64]:
    """Mark cells as superseded and as told of, in place; return the numbers of their live diffs, which end (6.6)."""
    state.nodes.superseded_by[gone.losers] = gone.winners
    state.nodes.told_superseded[gone.losers] = gone.winners
    return state.diffs.numbers[np.isin(state.diffs.origins, gone.losers)]


def superseded_diffs(
    state: SwarmState, gone: Supersessions, saliences: F32, *, ttl_epochs: int, max_hops: int
) -> DiffTable:
    """Make the `superseded` diff of each loser (spec 6.6), in order of losers, numbered from `state.next_diff` on.

    Origin is the winner; vector, salience (decayed) and knowledge type are the loser's. A winner that is superseded
    itself by now says nothing, for its diffs would end at once. The state is not changed.
    """
    speaks = state.nodes.superseded_by[gone.winners] < 0
    order = np.argsort(gone.losers[speaks])
    losers, winners = gone.losers[speaks][order], gone.winners[speaks][order]
    energies = initial_energy(saliences[losers], state.nodes.knowledge_types[losers])
    kind = DiffType.SUPERSEDED
    return _diffs(state, kind, winners, losers, saliences, energies, ttl_epochs=ttl_epochs, max_hops=max_hops)


def contradiction_diffs(state: SwarmState, cells: I32, saliences: F32, *, ttl_epochs: int, max_hops: int) -> DiffTable:
    """Make the `contradiction` diff of each cell (spec 6.2), in order of cells, numbered from `state.next_diff` on.

    The caller leaves out cells that sent one in this epoch already. The state is not changed.
    """
    cells = np.sort(cells)
    energies = CONTRADICTION_ENERGY * initial_energy(saliences[cells], state.nodes.knowledge_types[cells])
    kind = DiffType.CONTRADICTION
    return _diffs(state, kind, cells, cells, saliences, energies, ttl_epochs=ttl_epochs, max_hops=max_hops)


def _diffs(
    state: SwarmState,
    kind: DiffType,
    origins: I32,
    about: I32,
    saliences: F32,
    energies: F64,
    *,
    ttl_epochs: int,
    max_hops: int,
) -> DiffTable:
    """Make diffs from `origins` about cells; raises ValueError for an energy that spec 3.6 refuses."""
    nodes, count = state.nodes, len(origins)
    order = np.argsort(origins, kind="stable")
    earlier = np.empty(count, np.int64)
    earlier[order] = np.arange(count) - np.searchsorted(origins[order], origins[order])
    return DiffTable(
        numbers=state.next_diff + np.arange(count, dtype=np.int64),
        origins=origins.astype(np.int32),
        sequence=(state.sequences[origins] + earlier).astype(np.int32),
        types=np.full(count, kind, np.int8),
        knowledge_types=nodes.knowledge_types[about],
        vectors=nodes.vectors[about],
        saliences=saliences[about],
        energies=energies.astype(np.float32),
        units=units(energies),
        max_hops=np.full(count, max_hops, np.int32),
        ttl=np.full(count, ttl_epochs, np.int32),
        epoch_created=np.full(count, state.epoch + 1, np.int32),
    )
