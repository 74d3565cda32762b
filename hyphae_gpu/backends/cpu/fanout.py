"""The fanout: a node forwards over the semantic edges whose targets score highest for the diff (spec 3.4).

All of a node's semantic targets have to be looked at before one edge is chosen. So this goes over some frontier rows
three times: it reads the known scores and asks for what the unknown ones need, looks at those, and then finds for each
row the last target within the fanout.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from hyphae_gpu.backends.cpu.looking import BLOCK_EDGES, ROWS_AHEAD, UNKNOWN, ask_for_gate, ask_for_rows, look
from hyphae_gpu.backends.cpu.prefetch import prefetch
from hyphae_gpu.vocabulary import EdgeType

#: The score of a node that was not looked at; no score is infinite.
UNASKED = np.inf
_SEMANTIC = int(EdgeType.SEMANTIC)
#: Above every node number.
_NO_NODE = np.int32(2**31 - 1)
_GOLDEN_RATIO = 0.6180339887498949


def block_scratch(greatest_degree: int) -> tuple[np.ndarray, ...]:
    """Return one worker's arrays for `cut_rows`; nothing in them outlives a block of frontier rows.

    The scores of the rows' edges float64; place and node of each target not looked at yet, int32; the cuts of the rows:
    scores float64 and nodes int32.
    """
    room = BLOCK_EDGES + greatest_degree
    scores, places, missing = np.empty(room, np.float64), np.empty(room, np.int32), np.empty(room, np.int32)
    return (scores, places, missing, np.empty(BLOCK_EDGES, np.float64), np.empty(BLOCK_EDGES, np.int32))


@njit(nogil=True, cache=True)
def cut_rows(f, front, front_size, graph, nodes, diffs, b, gate, fanout, words, count, block):
    """Find the cuts of some frontier rows, from f on; return the row after them and how many nodes are touched now.

    words: energy, scores, touched of all nodes, of which `count` are touched (`relax.scratch`). In `block` an edge has
    its place by its number in the rows, one row after the other. A row's cut is score and node of its last semantic
    target within the fanout: highest score first, ties to the lowest node; -inf where the fanout leaves none out. Then
    no target is looked at for its sake, and the scores of its edges are undefined.
    """
    offsets, targets, costs, types, _ = graph
    images, marks, interests = nodes
    _, queries, query_lengths, knowledge_types, saliences, _ = diffs
    energy, scores, touched = words
    row_scores, places, missing, cut_scores, cut_nodes = block
    start, size, unknown = f, 0, 0
    while f < front_size and size < BLOCK_EDGES and f - start < cut_scores.size:
        ask_for_rows(f, front, front_size, offsets, targets, costs)
        if f + ROWS_AHEAD < front_size:
            prefetch(types, offsets[front[f + ROWS_AHEAD]], 0)
        first, last = offsets[front[f]], offsets[front[f] + 1]
        cut_scores[f - start] = -np.inf
        if last - first > fanout:
            row = row_scores[size : size + last - first]
            if _read_row(targets[first:last], types[first:last], scores, row) > fanout:
                cut_scores[f - start] = 0.0
                for i in range(row.size):
                    if row[i] == UNASKED:
                        ask_for_gate(targets[first + i], images, marks)
                        places[unknown], missing[unknown] = size + i, targets[first + i]
                        unknown += 1
        size += last - first
        f += 1

    query_length, knowledge_type, salience = query_lengths[b], knowledge_types[b], saliences[b]
    for j in range(unknown):
        u = missing[j]
        # rows share targets, so it may be known by now
        if energy[u] == UNKNOWN:
            look(u, images, marks, interests, b, queries, query_length, knowledge_type, salience, gate, energy, scores)
            touched[count] = u
            count += 1
        row_scores[places[j]] = scores[u]

    size = 0
    for g in range(start, f):
        first, last = offsets[front[g]], offsets[front[g] + 1]
        if cut_scores[g - start] > -np.inf:
            row = row_scores[size : size + last - first]
            cut_scores[g - start], cut_nodes[g - start] = last_within(row, targets[first:last], fanout)
        size += last - first
    return f, count


@njit(nogil=True, cache=True)
def _read_row(targets, types, scores, row):
    """Put the scores of a row's targets into `row`, -inf for edges of other types; return how many are semantic."""
    semantic = 0
    for i in range(row.size):
        semantic += types[i] == _SEMANTIC
        row[i] = scores[targets[i]]
    if semantic < row.size:
        for i in range(row.size):
            if types[i] != _SEMANTIC:
                row[i] = -np.inf
    return semantic


@njit(nogil=True, cache=True)
def last_within(row, targets, fanout):
    """Return score and node of the last of a row's targets within the fanout: highest score first, then lowest node.

    row float64 [k], of which more than `fanout` are above -inf; targets int32 [k]. Counts, which the processor does
    several at a time, what lies above one score after the other, each between the two that enclose the cut so far.
    """
    turn = 1
    while turn < row.size:
        turn *= 2
    # An odd step takes every place once. This one spreads them, so that sorted rows are halved as quickly as others.
    step = np.int64(turn * _GOLDEN_RATIO) | 1
    low, high = -np.inf, np.inf
    # Edges stand by cost, the most alike first: the cut is often near the first `fanout`.
    place = fanout
    for _ in range(turn):
        if place < row.size and low < row[place] < high:
            score = row[place]
            above, equal = _above_and_equal(row, score)
            if above >= fanout:
                low = score
            elif above + equal < fanout:
                high = score
            elif above + equal == fanout:
                return score, _NO_NODE
            else:
                return score, _lowest(row, targets, score, fanout - above)
        place = (place + step) & (turn - 1)
    return -np.inf, _NO_NODE


@njit(nogil=True, cache=True)
def _above_and_equal(row, score):
    above, equal = 0, 0
    for i in range(row.size):
        above += row[i] > score
        equal += row[i] == score
    return above, equal


@njit(nogil=True, cache=True)
def _lowest(row, targets, score, rank):
    """Return the rank-th lowest node, from 1 on, of those with this score; halves the numbers, so any rank is quick."""
    below, node = np.int64(-1), np.int64(_NO_NODE)
    while node - below > 1:
        middle = (below + node) // 2
        count = 0
        for i in range(row.size):
            count += (row[i] == score) & (targets[i] <= middle)
        if count >= rank:
            node = middle
        else:
            below = middle
    return np.int32(node)
