"""Gossip rounds of many diffs on a CPU: one masked (max, +) product a round (spec 3.5).

A worker takes one diff after the other. It keeps one word a node for the diff at hand (its energy, or what is known of
its gate), walks a frontier list, and resets what it touched, so work follows the reach and never the number of nodes.

Most of the time would go into waiting for memory: the gate of a new node needs its image and two records from anywhere.
So a round goes over the frontier a few rows at a time: `_gather` picks the edges that may change something and asks for
what they will need, `_settle` then decides them.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from hyphae_gpu.backends.cpu.gate import dot, score_of
from hyphae_gpu.backends.cpu.losses import philox_word
from hyphae_gpu.backends.cpu.prefetch import prefetch
from hyphae_gpu.backends.cpu.sorting import radix_sort
from hyphae_gpu.vocabulary import EdgeType

#: A node's word while a diff runs: its energy where reached (> 0), else one of these.
UNKNOWN, CLOSED, OPEN = 0, -1, -2
#: Rounds and sweeps of one diff in one epoch (spec 3.10).
ROUND_LIMIT = 4096
#: What `advance` counts, by place in its `counts`.
RELAXATIONS, GATES, LOST, OFFERS = 0, 1, 2, 3

#: Columns of a node's record: energy at the round's start and the round it rose in, parent, hop; its score, a float64;
#: the round in which an offer of its own did not arrive.
_BEFORE, _ROUND, _PARENT, _HOP, _SCORE, _UNMET = 0, 1, 2, 3, 2, 6
_RECORD_WORDS = 8
#: Places in the sizes: nodes touched, in the frontier, in the next; edges pending, offers appended; the round's stamp.
_TOUCHED, _FRONT, _UPCOMING, _PENDING, _APPENDED, _NOW = 0, 1, 2, 3, 4, 5
#: Edges that are gathered before they are settled, where no single row is longer.
_BLOCK_EDGES = 512
#: Frontier rows ahead of which the graph's rows are asked for.
_ROWS_AHEAD = 6
_CACHE_LINE = 64
_SEMANTIC = int(EdgeType.SEMANTIC)


def scratch(nodes: int, greatest_degree: int, fanout: int) -> tuple[np.ndarray, ...]:
    """Return one worker's arrays for a graph of this size; they are clean again after every `advance`.

    energy int32 [n]; records int32 [n, 8] and the same memory as float64 [n, 4]; four lists of n node numbers;
    pending edges int64, sources, offers int32; the best scores float64 and nodes int32 of a fanout; sizes int64 [6].
    """
    records = np.zeros((nodes, _RECORD_WORDS), np.int32)
    lists = (np.empty(nodes, np.int32) for _ in range(4))
    room = _BLOCK_EDGES + greatest_degree
    pending = (np.empty(room, np.int64), np.empty(room, np.int32), np.empty(room, np.int32))
    best = (np.empty(max(1, fanout), np.float64), np.empty(max(1, fanout), np.int32))
    energy, sizes = np.zeros(nodes, np.int32), np.zeros(6, np.int64)
    return (energy, records, records.view(np.float64), *lists, *pending, *best, sizes)


def marks_of(lengths: np.ndarray, interest_rows: np.ndarray) -> np.ndarray:
    """Return (length, interest row) of each node side by side, float64 [n, 2], since a gate needs both."""
    return np.column_stack([lengths, interest_rows.astype(np.float64)])


@njit(nogil=True, cache=True, forceinline=True)
def _look(u, images, marks, interests, b, queries, query_length, knowledge_type, salience, gate, energy, scores):
    """Compute diff b's score at node u and whether its gate is open there (spec 3.3); note both; return the word."""
    cosine = np.float64(dot(images, u, queries, b)) / (query_length * marks[u, 0])
    row = np.int64(marks[u, 1])
    interest = np.float64(interests[row, knowledge_type]) if row >= 0 else 0.0
    score = score_of(cosine, interest, salience)
    scores[u, _SCORE] = score
    energy[u] = OPEN if score >= gate[0] and cosine >= gate[1] else CLOSED
    return energy[u]


@njit(nogil=True, cache=True, forceinline=True)
def _ask_for(u, images, marks, records):
    """Ask for all that a gate and a rise of node u will need."""
    for offset in range(0, images.shape[1], _CACHE_LINE):
        prefetch(images, u, offset)
    prefetch(marks, u, 0)
    prefetch(records, u, 0)


@njit(nogil=True, cache=True, forceinline=True)
def _ask_for_rows(f, front, front_size, offsets, targets, costs):
    """Ask for the edges of frontier rows that come soon."""
    if f + 2 * _ROWS_AHEAD < front_size:
        prefetch(offsets, front[f + 2 * _ROWS_AHEAD], 0)
    if f + _ROWS_AHEAD < front_size:
        first = offsets[front[f + _ROWS_AHEAD]]
        for offset in range(0, 3 * _CACHE_LINE, _CACHE_LINE):
            prefetch(targets, first, offset)
            prefetch(costs, first, offset)


@njit(nogil=True, cache=True)
def _fanout_cut(v, graph, nodes, diffs, b, gate, fanout, scratch, counts):
    """Return score and node of the last of v's semantic edges that are within the fanout (spec 3.4).

    Highest score first, ties to the lowest node; (-inf, 0) where all are. Looks at every semantic target if need be.
    """
    offsets, targets, _, types, _ = graph
    images, marks, interests = nodes
    _, queries, query_lengths, knowledge_types, saliences, _ = diffs
    energy, records, scores, touched, _, _, _, _, _, _, best, best_nodes, sizes = scratch
    semantic = 0
    for k in range(offsets[v], offsets[v + 1]):
        if types[k] == _SEMANTIC:
            semantic += 1
            if energy[targets[k]] == UNKNOWN:
                _ask_for(targets[k], images, marks, records)
    if semantic <= fanout:
        return -np.inf, np.int32(0)
    kept = 0
    for k in range(offsets[v], offsets[v + 1]):
        if types[k] != _SEMANTIC:
            continue
        u = targets[k]
        if energy[u] == UNKNOWN:
            _look(
                u, images, marks, interests, b, queries, query_lengths[b], knowledge_types[b], saliences[b], gate,
                energy, scores,
            )  # fmt: skip
            counts[GATES] += 1
            touched[sizes[_TOUCHED]] = u
            sizes[_TOUCHED] += 1
        score = scores[u, _SCORE]
        place = kept
        while place > 0 and (score > best[place - 1] or (score == best[place - 1] and u < best_nodes[place - 1])):
            if place < fanout:
                best[place], best_nodes[place] = best[place - 1], best_nodes[place - 1]
            place -= 1
        if place < fanout:
            best[place], best_nodes[place] = score, u
            kept = min(kept + 1, fanout)
    return best[fanout - 1], best_nodes[fanout - 1]


@njit(nogil=True, cache=True)
def _gather(f, graph, nodes, diffs, b, rules, exact, sweep, scratch, counts):
    """Append to the pending edges those of frontier rows from f on that may change something; return the next row.

    An edge is left out where its target's gate is closed or where the target holds more, unless `exact`: then every
    offer through an open gate has to be judged against the round's start.
    """
    offsets, targets, costs, types, _ = graph
    images, marks, _ = nodes
    max_hops = diffs[5]
    gate, fanout, _ = rules
    energy, records, scores, _, front, front_energy, _, pending_edges, pending_sources, pending_offers = scratch[:10]
    sizes = scratch[12]
    front_size = sizes[_FRONT]
    size, offered = 0, 0
    while f < front_size and size < _BLOCK_EDGES:
        _ask_for_rows(f, front, front_size, offsets, targets, costs)
        v, held_v = front[f], front_energy[f]
        if sweep and records[v, _HOP] + 1 >= max_hops[b]:
            f += 1
            continue
        cut_score, cut_node = -np.inf, np.int32(0)
        if fanout > 0:
            cut_score, cut_node = _fanout_cut(v, graph, nodes, diffs, b, gate, fanout, scratch, counts)
        for k in range(offsets[v], offsets[v + 1]):
            offer = held_v - costs[k]
            if offer <= 0:
                break
            u = targets[k]
            if cut_score > -np.inf and types[k] == _SEMANTIC:
                score = scores[u, _SCORE]
                if score < cut_score or (score == cut_score and u > cut_node):
                    continue
            offered += 1
            held = energy[u]
            if held == CLOSED or (held > offer and not exact):
                continue
            if held == UNKNOWN:
                _ask_for(u, images, marks, records)
            else:
                prefetch(records, u, 0)
            pending_edges[size], pending_sources[size], pending_offers[size] = k, v, offer
            size += 1
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
    energy, records, scores, touched, _, _, upcoming, pending_edges, pending_sources, pending_offers = scratch[:10]
    sizes = scratch[12]
    f_rows, f_edges, f_sources, f_targets, f_energies = offers
    query_length, knowledge_type, salience = query_lengths[b], knowledge_types[b], saliences[b]
    now, count, rising, appended = sizes[_NOW], sizes[_TOUCHED], sizes[_UPCOMING], sizes[_APPENDED]
    gates, lost = 0, 0
    for j in range(sizes[_PENDING]):
        k, v, offer = pending_edges[j], pending_sources[j], pending_offers[j]
        u = targets[k]
        held = energy[u]
        if held == UNKNOWN:
            held = _look(
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
    sizes = scratch[12]
    first, last = s_offsets[b], s_offsets[b + 1]
    size = 0
    for j in range(first, last):
        u = s_nodes[j]
        energy[u], records[u, _HOP], records[u, _PARENT] = s_energies[j], s_hops[j], s_parents[j]
        scores[u, _SCORE] = s_scores[j]
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
    sizes = scratch[12]
    size = 0
    for j in range(sizes[_TOUCHED]):
        if keep_closed or energy[touched[j]] > 0:
            listed[size] = touched[j]
            size += 1
    if at + size > o_nodes.size:
        return -1
    ordered = radix_sort(listed, size, spare, bits)
    for j in range(size):
        if j + _ROWS_AHEAD < size:
            prefetch(records, ordered[j + _ROWS_AHEAD], 0)
        u = ordered[j]
        o_nodes[at + j], o_energies[at + j], o_hops[at + j] = u, energy[u], records[u, _HOP]
        o_parents[at + j], o_scores[at + j] = records[u, _PARENT], scores[u, _SCORE]
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
    energy, records, _, touched = scratch[:4]
    front, front_energy, upcoming = scratch[4:7]
    sizes = scratch[12]
    exact = losses[0] > 0 or rules[2]
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
            for f in range(sizes[_FRONT]):
                front_energy[f] = energy[front[f]]
            f = 0
            while f < sizes[_FRONT] and fits:
                f = _gather(f, graph, nodes, diffs, b, rules, exact, sweep, scratch, step)
                fits = _settle(
                    ran + done, rounds + done + 1, graph, nodes, diffs, b, rules, sweep, losses, scratch, offers, step
                )
            front[: sizes[_UPCOMING]] = upcoming[: sizes[_UPCOMING]]
            sizes[_FRONT] = sizes[_UPCOMING]
            done += 1
        size = _store(written, rules[2], sweep, bits, scratch, out) if fits else -1
        for j in range(sizes[_TOUCHED]):
            energy[touched[j]] = UNKNOWN
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
