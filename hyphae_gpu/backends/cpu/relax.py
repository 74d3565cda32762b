"""Gossip rounds of many diffs on a CPU: one masked (max, +) product a round (spec 3.5).

A worker takes one diff after the other. It keeps one word a node for the diff at hand (its energy, or what is known of
its gate), walks a frontier list, and resets what it touched, so work follows the reach and never the number of nodes.

Most of the time would go into waiting for memory: the gate of a new node needs its image and two records from anywhere.
So a round goes over the frontier a few rows at a time: `_gather` picks the edges that may change something and asks for
what they will need, `_settle` then decides them. With a fanout, `fanout.cut_rows` goes first.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from hyphae_gpu.backends.cpu.fanout import UNASKED, block_scratch, cut_rows
from hyphae_gpu.backends.cpu.looking import (
    BLOCK_EDGES,
    CLOSED,
    ROWS_AHEAD,
    UNKNOWN,
    ask_for_gate,
    ask_for_rows,
    look,
)
from hyphae_gpu.backends.cpu.losses import philox_word
from hyphae_gpu.backends.cpu.prefetch import prefetch
from hyphae_gpu.backends.cpu.sorting import radix_sort
from hyphae_gpu.vocabulary import EdgeType

#: Rounds and sweeps of one diff in one epoch (spec 3.10).
ROUND_LIMIT = 4096
#: What `advance` counts, by place in its `counts`.
RELAXATIONS, GATES, LOST, OFFERS = 0, 1, 2, 3

#: Columns of a node's record: energy at the round's start and the round it rose in, parent, hop; the round in which an
#: offer of its own did not arrive. A record fills half a cache line.
_BEFORE, _ROUND, _PARENT, _HOP, _UNMET = 0, 1, 2, 3, 4
_RECORD_WORDS = 8
#: Places in the sizes: nodes touched, in the frontier, in the next; edges pending, offers appended; the round's stamp.
_TOUCHED, _FRONT, _UPCOMING, _PENDING, _APPENDED, _NOW = 0, 1, 2, 3, 4, 5
_SEMANTIC = int(EdgeType.SEMANTIC)


def scratch(nodes: int, greatest_degree: int, fanout: int) -> tuple[Any, ...]:
    """Return one worker's arrays for a graph of this size; they are clean again after every `advance`.

    energy int32 [n]; records int32 [n, 8]; scores float64 [n], kept clean only where there is a fanout; four lists of n
    node numbers; pending edges int64, sources, offers int32; sizes int64 [6]; the arrays of `fanout.block_scratch`.
    """
    energy, records = np.zeros(nodes, np.int32), np.zeros((nodes, _RECORD_WORDS), np.int32)
    scores = np.full(nodes, UNASKED) if fanout else np.empty(nodes, np.float64)
    lists = (np.empty(nodes, np.int32) for _ in range(4))
    room = BLOCK_EDGES + greatest_degree
    pending = (np.empty(room, np.int64), np.empty(room, np.int32), np.empty(room, np.int32))
    return (energy, records, scores, *lists, *pending, np.zeros(6, np.int64), block_scratch(greatest_degree))


def marks_of(lengths: np.ndarray, interest_rows: np.ndarray) -> np.ndarray:
    """Return (length, interest row) of each node side by side, float64 [n, 2], since a gate needs both."""
    return np.column_stack([lengths, interest_rows.astype(np.float64)])


@njit(nogil=True, cache=True)
def _gather(f, stop, graph, nodes, fanout, exact, scratch, counts):
    """Append to the pending edges those of frontier rows f to `stop` that may change something; return the next row.

    An edge is left out where its target's gate is closed or where the target holds more, unless `exact`: then every
    offer through an open gate has to be judged against the round's start. With a fanout, `cut_rows` has gone over these
    rows.
    """
    offsets, targets, costs, types, _ = graph
    images, marks, _ = nodes
    energy, records, _, _, front, front_energy, _, pending_edges, pending_sources, pending_offers, sizes, _ = scratch
    row_scores, _, _, cut_scores, cut_nodes = scratch[11]
    start, passed, size, offered = f, 0, 0, 0
    while f < stop and size < BLOCK_EDGES:
        v, held_v = front[f], front_energy[f]
        first, last = offsets[v], offsets[v + 1]
        cut_score, cut_node = -np.inf, np.int32(0)
        if fanout > 0:
            cut_score, cut_node = cut_scores[f - start], cut_nodes[f - start]
        else:
            ask_for_rows(f, front, stop, offsets, targets, costs)
        for k in range(first, last):
            offer = held_v - costs[k]
            if offer <= 0:
                break
            u = targets[k]
            if cut_score > -np.inf and types[k] == _SEMANTIC:
                score = row_scores[passed + k - first]
                if score < cut_score or (score == cut_score and u > cut_node):
                    continue
            offered += 1
            held = energy[u]
            if held == CLOSED or (held > offer and not exact):
                continue
            if held == UNKNOWN:
                ask_for_gate(u, images, marks)
            prefetch(records, u, 0)
            pending_edges[size], pending_sources[size], pending_offers[size] = k, v, offer
            size += 1
        passed += last - first
        f += 1
    sizes[_PENDING] = size
    counts[RELAXATIONS] += offered
    return f


@njit(nogil=True, cache=True)
def _settle(t, hop, graph, nodes, diffs, b, rules, sweep, losses, scratch, offers, counts):
    """Decide the pending edges: gates, losses, rises; return whether the offers over limited edges had room.

    t counts rounds and sweeps. A first arrival's hop is the round's, in a sweep one more than its parent's (spec 7.2).
    """
    _, targets, _, _, bandwidths = graph
    images, marks, interests = nodes
    numbers, queries, query_lengths, knowledge_types, saliences, _ = diffs
    gate, _, keep_closed = rules
    threshold, keys, epoch_counter = losses
    energy, records, scores, touched, _, _, upcoming, pending_edges, pending_sources, pending_offers, sizes, _ = scratch
    f_rows, f_edges, f_sources, f_targets, f_energies = offers
    query_length, knowledge_type, salience = query_lengths[b], knowledge_types[b], saliences[b]
    now, count, rising, appended = sizes[_NOW], sizes[_TOUCHED], sizes[_UPCOMING], sizes[_APPENDED]
    gates, lost = 0, 0
    for j in range(sizes[_PENDING]):
        k, v, offer = pending_edges[j], pending_sources[j], pending_offers[j]
        u = targets[k]
        held = energy[u]
        if held == UNKNOWN:
            held = look(
                u, images, marks, interests, b, queries, query_length, knowledge_type, salience, gate, energy, scores
            )
            gates += 1
            touched[count] = u
            count += 1
        if held == CLOSED or offer <= (records[u, _BEFORE] if records[u, _ROUND] == now else held):
            continue
        if keep_closed and bandwidths[k] >= 0:
            if appended == f_rows.size:
                return False
            f_rows[appended], f_edges[appended], f_energies[appended] = b, k, offer
            f_sources[appended], f_targets[appended] = v, u
            appended += 1
            continue
        if threshold > 0 and philox_word(keys[0], keys[1], epoch_counter + t, v, u, numbers[b]) < threshold:
            lost += 1
            records[v, _UNMET] = now
            continue
        if offer > held:
            if records[u, _ROUND] != now:
                records[u, _ROUND], records[u, _BEFORE] = now, held
                upcoming[rising] = u
                rising += 1
            energy[u] = offer
        elif offer < held or v >= records[u, _PARENT]:
            continue
        records[u, _PARENT] = v
        if records[u, _BEFORE] < 0:
            records[u, _HOP] = records[v, _HOP] + 1 if sweep else hop
    sizes[_TOUCHED], sizes[_UPCOMING], sizes[_APPENDED] = count, rising, appended
    counts[GATES] += gates
    counts[LOST] += lost
    return True


@njit(nogil=True, cache=True)
def _load(b, state, scratch):
    """Put a diff's state into the nodes' words and records, and its fresh nodes into the frontier."""
    s_offsets, _, _, s_nodes, s_energies, s_hops, s_parents, s_scores, s_fresh = state
    energy, records, scores, touched, front = scratch[:5]
    sizes = scratch[10]
    first, last = s_offsets[b], s_offsets[b + 1]
    size = 0
    for j in range(first, last):
        u = s_nodes[j]
        energy[u], records[u, _HOP], records[u, _PARENT] = s_energies[j], s_hops[j], s_parents[j]
        scores[u] = s_scores[j]
        touched[j - first] = u
        if s_fresh[j]:
            front[size] = u
            size += 1
    sizes[_TOUCHED], sizes[_FRONT] = last - first, size


@njit(nogil=True, cache=True)
def _store(at, keep_closed, sweep, bits, scratch, out):
    """Write the touched nodes, or only the reached ones, at `at` in node order; return how many, -1 without room."""
    _, _, o_nodes, o_energies, o_hops, o_parents, o_scores, o_fresh = out
    energy, records, scores, touched, _, spare, listed = scratch[:7]
    sizes = scratch[10]
    size = 0
    for j in range(sizes[_TOUCHED]):
        if keep_closed or energy[touched[j]] > 0:
            listed[size] = touched[j]
            size += 1
    if at + size > o_nodes.size:
        return -1
    ordered = radix_sort(listed, size, spare, bits)
    for j in range(size):
        if j + ROWS_AHEAD < size:
            prefetch(records, ordered[j + ROWS_AHEAD], 0)
        u = ordered[j]
        o_nodes[at + j], o_energies[at + j], o_hops[at + j] = u, energy[u], records[u, _HOP]
        o_parents[at + j], o_scores[at + j] = records[u, _PARENT], scores[u]
        o_fresh[at + j] = records[u, _ROUND] == sizes[_NOW] or (sweep and records[u, _UNMET] == sizes[_NOW])
    return size


@njit(nogil=True, cache=True)
def advance(rows, graph, nodes, diffs, state, rules, timing, losses, scratch, out, offers, counts):
    """Run up to `timing[0]` rounds of the diffs at `rows`; append their states to `out`; return how many fitted.

    graph: offsets int64 [n + 1], targets, costs int32, types int8, bandwidths int32 (spec 2.8; unlimited edges are
        crossed at once, offers over limited ones are appended to `offers` and left to the caller).
    nodes: images int8 [n, d], marks float64 [n, 2] (`marks_of`), interests float32 [m, 9].
    diffs: numbers int64, images int16 [b, d], lengths float64, knowledge_types int8, saliences float64, max_hops int32.
    state: offsets int64 [b + 1], rounds and sweeps int64 [b] that each diff has run and, per (diff, node) in node
        order, nodes, energies (or CLOSED, OPEN), hops, parents int32, scores float64, fresh bool: in the frontier
        (it rose in the last round; in a sweep also: an offer of its own did not arrive).
    rules: (sigma_min, cos_min) float64, fanout int64, keep_closed bool: whether `out` gets unreached nodes too.
    timing: rounds to run, whether they are sweeps (spec 7.2).
    losses: threshold uint64 (0: none), key words uint64 [2], epoch * 4096 as int64.
    out: sizes, steps (rounds or sweeps run now) int64 [rows], then columns as `state` has them, with room; offers:
        rows of (diff row int64, edge int64, source, target, energy int32), with room; counts int64 [4]: see RELAXATIONS
        and the rest.
    Returns the number of rows done: fewer than asked where room ran out, -1 where a diff reached 4,096 rounds.
    """
    max_hops = diffs[5]
    energy, records, scores, touched = scratch[:4]
    front, front_energy, upcoming = scratch[4:7]
    sizes = scratch[10]
    exact = losses[0] > 0 or rules[2]
    gate, fanout, _ = rules
    most, sweep = timing
    bits = 0
    while (energy.size - 1) >> bits > 0:
        bits += 1
    records[:, _ROUND] = 0
    records[:, _UNMET] = 0
    sizes[:] = 0
    step = np.zeros_like(counts)
    written = 0
    for i in range(rows.size):
        b = rows[i]
        step[:] = 0
        first_offer = sizes[_APPENDED]
        sizes[_NOW] += 1
        _load(b, state, scratch)
        rounds, ran, fits = state[1][b], state[1][b] + state[2][b], True
        done = 0
        while fits and sizes[_FRONT] > 0 and (sweep or rounds + done + 1 < max_hops[b]) and done < most:
            if ran + done >= ROUND_LIMIT:
                return -1
            sizes[_NOW] += 1
            sizes[_UPCOMING] = 0
            senders = 0
            for f in range(sizes[_FRONT]):
                v = front[f]
                if not sweep or records[v, _HOP] + 1 < max_hops[b]:
                    front[senders], front_energy[senders] = v, energy[v]
                    senders += 1
            f = 0
            while f < senders and fits:
                stop = senders
                if fanout > 0:
                    before = sizes[_TOUCHED]
                    stop, sizes[_TOUCHED] = cut_rows(
                        f, front, senders, graph, nodes, diffs, b, gate, fanout, (energy, scores, touched), before,
                        scratch[11],
                    )  # fmt: skip
                    step[GATES] += sizes[_TOUCHED] - before
                f = _gather(f, stop, graph, nodes, fanout, exact, scratch, step)
                fits = _settle(
                    ran + done, rounds + done + 1, graph, nodes, diffs, b, rules, sweep, losses, scratch, offers, step
                )
            front[: sizes[_UPCOMING]] = upcoming[: sizes[_UPCOMING]]
            sizes[_FRONT] = sizes[_UPCOMING]
            done += 1
        size = _store(written, rules[2], sweep, bits, scratch, out) if fits else -1
        for j in range(sizes[_TOUCHED]):
            energy[touched[j]] = UNKNOWN
        if fanout > 0:
            for j in range(sizes[_TOUCHED]):
                scores[touched[j]] = UNASKED
        if size < 0:
            sizes[_APPENDED] = first_offer
            break
        out[0][i], out[1][i] = size, done
        written += size
        for place in range(OFFERS):
            counts[place] += step[place]
    else:
        i = rows.size
    counts[OFFERS] = sizes[_APPENDED]
    return i


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
