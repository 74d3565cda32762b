"""Looking at a node for a diff: asking the cache for what its gate needs, deciding the gate, noting what was seen."""

from __future__ import annotations

import numpy as np
from numba import njit

from hyphae_gpu.backends.cpu.gate import dot, score_of
from hyphae_gpu.backends.cpu.prefetch import prefetch

#: A node's word while a diff runs: its energy where reached (> 0), else one of these.
UNKNOWN, CLOSED, OPEN = 0, -1, -2
#: Edges that are asked for before the first of them is decided, where no single row is longer.
BLOCK_EDGES = 512
#: Frontier rows ahead of which the graph's rows are asked for.
ROWS_AHEAD = 6
_CACHE_LINE = 64


@njit(nogil=True, cache=True, forceinline=True)
def look(u, images, marks, interests, b, queries, query_length, knowledge_type, salience, gate, energy, scores):
    """Compute diff b's score at node u and whether its gate is open there (spec 3.3); note both; return the word."""
    cosine = np.float64(dot(images, u, queries, b)) / (query_length * marks[u, 0])
    row = np.int64(marks[u, 1])
    interest = np.float64(interests[row, knowledge_type]) if row >= 0 else 0.0
    score = score_of(cosine, interest, salience)
    scores[u] = score
    energy[u] = OPEN if score >= gate[0] and cosine >= gate[1] else CLOSED
    return energy[u]


@njit(nogil=True, cache=True, forceinline=True)
def ask_for_gate(u, images, marks):
    """Ask for all that the gate of node u will need."""
    for offset in range(0, images.shape[1], _CACHE_LINE):
        prefetch(images, u, offset)
    # rows seldom start with a cache line, so most end in one more
    prefetch(images, u, images.shape[1] - 1)
    prefetch(marks, u, 0)


@njit(nogil=True, cache=True, forceinline=True)
def ask_for_rows(f, front, front_size, offsets, targets, costs):
    """Ask for the edges of frontier rows that come soon."""
    if f + 2 * ROWS_AHEAD < front_size:
        prefetch(offsets, front[f + 2 * ROWS_AHEAD], 0)
    if f + ROWS_AHEAD < front_size:
        first = offsets[front[f + ROWS_AHEAD]]
        for offset in range(0, 3 * _CACHE_LINE, _CACHE_LINE):
            prefetch(targets, first, offset)
            prefetch(costs, first, offset)
