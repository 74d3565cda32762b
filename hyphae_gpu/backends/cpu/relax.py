"""Gossip rounds of many diffs on a CPU: one masked (max, +) product a round (spec 3.5).

A worker takes one diff after the other. It keeps one word a node for the diff at hand (its energy, or what is known of
its gate), walks a frontier list, and resets what it touched, so work follows the reach and never the number of nodes.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from hyphae_gpu.backends.cpu.gate import cosine_and_score
from hyphae_gpu.backends.cpu.losses import philox_word
from hyphae_gpu.vocabulary import EdgeType

#: A node's word while a diff runs: its energy where reached (> 0), else one of these.
UNKNOWN, CLOSED, OPEN = 0, -1, -2
#: Rounds and sweeps of one diff in one epoch (spec 3.10).
ROUND_LIMIT = 4096
#: What `advance` counts, by place in its `counts`.
RELAXATIONS, GATES, LOST, ROUNDS = 0, 1, 2, 3

_SEMANTIC = int(EdgeType.SEMANTIC)
_RADIX_BITS = 11


def scratch(nodes: int, fanout: int) -> tuple[np.ndarray, ...]:
    """Return one worker's arrays for graphs of this many nodes; they are clean again after every `advance`."""
    words = (np.zeros(nodes, np.int32) for _ in range(4))
    lists = (np.empty(nodes, np.int32) for _ in range(5))
    best = (np.empty(max(1, fanout), np.float64), np.empty(max(1, fanout), np.int32))
    return (*words, np.empty(nodes, np.float64), *lists, *best)


@njit(nogil=True, cache=True)
def _look(u, nodes, diff, rules, energy, score):
    """Compute the gate of the diff at node u, note it in the node's word, and return that word."""
    images, lengths, interest_rows, interests = nodes
    query, query_length, knowledge_type, salience = diff
    interest = 0.0
    if interest_rows[u] >= 0:
        interest = np.float64(interests[interest_rows[u], knowledge_type])
    cosine, score[u] = cosine_and_score(images[u], lengths[u], interest, query, query_length, salience)
    energy[u] = OPEN if score[u] >= rules[0] and cosine >= rules[1] else CLOSED
    return energy[u]


@njit(nogil=True, cache=True)
def _radix_sort(values, count, spare, bits):
    """Sort the first `count` node numbers of `values`, all below 2^bits; return the array that holds the result."""
    starts = np.empty((1 << _RADIX_BITS) + 1, np.int64)
    for shift in range(0, bits, _RADIX_BITS):
        starts[:] = 0
        for i in range(count):
            starts[((values[i] >> shift) & ((1 << _RADIX_BITS) - 1)) + 1] += 1
        for i in range(1, starts.size):
            starts[i] += starts[i - 1]
        for i in range(count):
            bucket = (values[i] >> shift) & ((1 << _RADIX_BITS) - 1)
            spare[starts[bucket]] = values[i]
            starts[bucket] += 1
        values, spare = spare, values
    return values


@njit(nogil=True, cache=True)
def advance(rows, graph, nodes, diffs, state, rules, timing, losses, scratch, out, offers, counts):
    """Run up to `timing[1]` rounds of the diffs at `rows`; append their states to `out`; return how many fitted.

    graph: offsets int64 [n + 1], targets, costs int32, types int8, bandwidths int32 (spec 2.8; unlimited edges are
        crossed at once, offers over limited ones are appended to `offers` and left to the caller).
    nodes: images int8 [n, d], lengths float64, interest_rows int32, interests float32 [m, 9].
    diffs: numbers int64, images int16 [b, d], lengths float64, knowledge_types int8, saliences float64, max_hops int32.
    state: offsets int64 [b + 1] and, per (diff, node) in node order, nodes, energies (or CLOSED, OPEN), hops,
        parents int32, scores float64, fresh bool: rose in the last round.
    rules: sigma_min, cos_min float64, fanout int64, keep_closed bool: whether `out` gets unreached nodes too.
    timing: rounds run before this call, rounds to run now.
    losses: threshold uint64 (0: none), key words uint64 [2], epoch * 4096 as int64.
    out: sizes int64 [rows], then columns as `state` has them, with room; offers: rows of (diff row int64, edge int64,
        source, target, energy int32), with room; counts int64: see RELAXATIONS ..., and [4] = offers appended.
    Returns the number of rows done: fewer than asked where room ran out, -1 where a diff reached 4,096 rounds.
    """
    offsets, targets, costs, types, bandwidths = graph
    energy, before, stamp, parent, score, hop, touched, front, front_energy, upcoming, best, best_nodes = scratch
    numbers, queries, query_lengths, knowledge_types, saliences, max_hops = diffs
    s_offsets, s_nodes, s_energies, s_hops, s_parents, s_scores, s_fresh = state
    o_sizes, o_nodes, o_energies, o_hops, o_parents, o_scores, o_fresh = out
    f_rows, f_edges, f_sources, f_targets, f_energies = offers
    fanout, keep_closed = rules[2], rules[3]
    threshold, keys, epoch_counter = losses
    exact = threshold > 0 or keep_closed
    bits = 0
    while (energy.size - 1) >> bits > 0:
        bits += 1
    now = 0
    stamp[:] = 0
    written = 0
    appended = 0
    for i in range(rows.size):
        b = rows[i]
        diff = (queries[b], query_lengths[b], knowledge_types[b], saliences[b])
        relaxations, gates, lost = 0, 0, 0
        first_offer = appended
        fits = True
        count, front_size = 0, 0
        for j in range(s_offsets[b], s_offsets[b + 1]):
            u = s_nodes[j]
            energy[u], hop[u], parent[u], score[u] = s_energies[j], s_hops[j], s_parents[j], s_scores[j]
            touched[count] = u
            count += 1
            if s_fresh[j]:
                front[front_size] = u
                front_size += 1
        t = timing[0]
        now += 1
        while fits and front_size > 0 and t + 1 < max_hops[b] and t - timing[0] < timing[1]:
            if t >= ROUND_LIMIT:
                return -1
            now += 1
            upcoming_size = 0
            for f in range(front_size):
                front_energy[f] = energy[front[f]]
            for f in range(front_size):
                v, held_v = front[f], front_energy[f]
                cut_score, cut_node = -np.inf, 0
                if fanout > 0:
                    semantic, kept = 0, 0
                    for k in range(offsets[v], offsets[v + 1]):
                        semantic += types[k] == _SEMANTIC
                    if semantic > fanout:
                        for k in range(offsets[v], offsets[v + 1]):
                            if types[k] != _SEMANTIC:
                                continue
                            u = targets[k]
                            if energy[u] == UNKNOWN:
                                _look(u, nodes, diff, rules, energy, score)
                                gates += 1
                                touched[count] = u
                                count += 1
                            place = kept
                            while place > 0 and (
                                score[u] > best[place - 1]
                                or (score[u] == best[place - 1] and u < best_nodes[place - 1])
                            ):
                                if place < fanout:
                                    best[place], best_nodes[place] = best[place - 1], best_nodes[place - 1]
                                place -= 1
                            if place < fanout:
                                best[place], best_nodes[place] = score[u], u
                                kept = min(kept + 1, fanout)
                        cut_score, cut_node = best[fanout - 1], best_nodes[fanout - 1]
                for k in range(offsets[v], offsets[v + 1]):
                    offer = held_v - costs[k]
                    if offer <= 0:
                        break
                    u = targets[k]
                    if cut_score > -np.inf and types[k] == _SEMANTIC:
                        if score[u] < cut_score or (score[u] == cut_score and u > cut_node):
                            continue
                    relaxations += 1
                    held = energy[u]
                    if held == CLOSED or (held > offer and not exact):
                        continue
                    if held == UNKNOWN:
                        held = _look(u, nodes, diff, rules, energy, score)
                        gates += 1
                        touched[count] = u
                        count += 1
                        if held == CLOSED:
                            continue
                    if offer <= (before[u] if stamp[u] == now else held):
                        continue
                    if keep_closed and bandwidths[k] >= 0:
                        if appended == f_rows.size:
                            fits = False
                            break
                        f_rows[appended], f_edges[appended], f_energies[appended] = b, k, offer
                        f_sources[appended], f_targets[appended] = v, u
                        appended += 1
                        continue
                    if threshold > 0:
                        if philox_word(keys[0], keys[1], epoch_counter + t, v, u, numbers[b]) < threshold:
                            lost += 1
                            continue
                    if offer > held:
                        if stamp[u] != now:
                            stamp[u], before[u] = now, held
                            upcoming[upcoming_size] = u
                            upcoming_size += 1
                            if held < 0:
                                hop[u] = t + 1
                        energy[u], parent[u] = offer, v
                    elif offer == held and v < parent[u]:
                        parent[u] = v
                if not fits:
                    break
            front, upcoming, front_size = upcoming, front, upcoming_size
            t += 1

        size = 0
        for j in range(count):
            if keep_closed or energy[touched[j]] > 0:
                upcoming[size] = touched[j]
                size += 1
        fits = fits and written + size <= o_nodes.size
        if fits:
            ordered = _radix_sort(upcoming, size, front_energy, bits)
            for j in range(size):
                u = ordered[j]
                o_nodes[written], o_energies[written], o_hops[written] = u, energy[u], hop[u]
                o_parents[written], o_scores[written] = parent[u], score[u]
                o_fresh[written] = stamp[u] == now
                written += 1
            o_sizes[i] = size
            counts[RELAXATIONS] += relaxations
            counts[GATES] += gates
            counts[LOST] += lost
            counts[ROUNDS] = max(counts[ROUNDS], t)
        for j in range(count):
            energy[touched[j]] = UNKNOWN
        if not fits:
            counts[4] = first_offer
            return i
    counts[4] = appended
    return rows.size


@njit(nogil=True, cache=True)
def place(rows, offsets, kept, columns):
    """Copy one job's records (`kept`: sizes, then columns) to where the diffs at `rows` stand in `columns`."""
    sizes, nodes, energies, hops, parents, scores, fresh = kept
    to_nodes, to_energies, to_hops, to_parents, to_scores, to_fresh = columns
    start = 0
    for i in range(rows.size):
        a, b, at = start, start + sizes[i], offsets[rows[i]]
        end = at + sizes[i]
        to_nodes[at:end], to_energies[at:end], to_hops[at:end] = nodes[a:b], energies[a:b], hops[a:b]
        to_parents[at:end], to_scores[at:end], to_fresh[at:end] = parents[a:b], scores[a:b], fresh[a:b]
        start = b
