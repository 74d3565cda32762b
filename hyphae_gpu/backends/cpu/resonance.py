"""Resonance on a CPU: (+, x) rounds over flow edges, integers throughout, work bounded by the cut (spec 3.12)."""

from __future__ import annotations

import numpy as np
from numba import njit

from hyphae_gpu.backends.cpu.prefetch import prefetch

_ROWS_AHEAD = 4
_CACHE_LINE = 64


def scratch(nodes: int) -> tuple[np.ndarray, ...]:
    """Return one worker's arrays for graphs of this many nodes; they are clean again after every `resonance`.

    int64 [n]: received this round, summed over the rounds, sent a unit of weight over the rounds, the senders' factors;
    int32 [n]: lists of this round's senders, this round's receivers, all receivers.
    """
    numbers = (np.zeros(nodes, np.int64) for _ in range(4))
    lists = (np.empty(nodes, np.int32) for _ in range(3))
    return (*numbers, *lists)


@njit(nogil=True, cache=True)
def resonance(groups, flow, origins, offsets, nodes, law, scratch, values, throughs):
    """Compute the resonance of queried nodes with the diffs of some origins.

    groups int64: rows of `origins` to do; flow: offsets int64 [n + 1], targets, weights int32 [f], totals int64 [n];
    origins int32 [g]; offsets int64 [g + 1] into nodes int32 [m], what is asked of each origin; law int64: what the
    origin holds, the numerator and denominator of what is sent on, the cut, the rounds.
    Fills values int64 [m] and, where it is not empty, throughs int32 [m]: the neighbour over a node's own flow edges
    that sent it most (ties: lowest number), -1 for none.
    """
    f_offsets, f_targets, f_weights, f_totals = flow
    received, summed, sent, factors, senders, receivers, seen = scratch
    start, numerator, denominator, cut, rounds = law
    for g in groups:
        if offsets[g] == offsets[g + 1]:
            continue
        origin = origins[g]
        sending, seeing = 0, 0
        if f_totals[origin] > 0:
            senders[0], sending = origin, 1
            factors[0] = (start // denominator * numerator) // f_totals[origin]
        for _ in range(rounds):
            receiving = 0
            for i in range(sending):
                if i + _ROWS_AHEAD < sending:
                    prefetch(f_offsets, senders[i + _ROWS_AHEAD], 0)
                if i + _ROWS_AHEAD // 2 < sending:
                    ahead = f_offsets[senders[i + _ROWS_AHEAD // 2]]
                    for line in range(0, 2 * _CACHE_LINE, _CACHE_LINE):
                        prefetch(f_targets, ahead, line)
                        prefetch(f_weights, ahead, line)
                v, factor = senders[i], factors[i]
                sent[v] += factor
                for k in range(f_offsets[v], f_offsets[v + 1]):
                    u = f_targets[k]
                    if received[u] == 0:
                        receivers[receiving] = u
                        receiving += 1
                    received[u] += factor * f_weights[k]
            sending = 0
            for i in range(receiving):
                u = receivers[i]
                held = received[u]
                received[u] = 0
                if summed[u] == 0:
                    seen[seeing] = u
                    seeing += 1
                summed[u] += held
                if held > cut and f_totals[u] > 0:
                    factor = (held // denominator * numerator) // f_totals[u]
                    if factor > 0:
                        senders[sending], factors[sending] = u, factor
                        sending += 1
        for j in range(offsets[g], offsets[g + 1]):
            u = nodes[j]
            values[j] = summed[u]
            if throughs.size > 0:
                most, through = 0, -1
                for k in range(f_offsets[u], f_offsets[u + 1]):
                    v = f_targets[k]
                    amount = sent[v] * f_weights[k]
                    if amount > most or (amount == most and amount > 0 and v < through):
                        most, through = amount, v
                throughs[j] = through
        sent[origin] = 0
        for i in range(seeing):
            summed[seen[i]], sent[seen[i]] = 0, 0
