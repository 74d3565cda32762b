"""The gate of (diff, node): cosine, score, and whether the node lets the diff in (spec 0.4, 3.3)."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(nogil=True, cache=True, forceinline=True)
def dot(images, u, queries, b):
    """Return the exact dot product of images[u] and queries[b], int8 or int16 rows, as int32.

    At most 16,000 products of 127 * 127 stay below 2^31. The casts keep the loop in 32 bits, so that it vectorises;
    rows are taken by index, since a view of a row would cost more than its product.
    """
    total = np.int32(0)
    for i in range(images.shape[1]):
        total = np.int32(total + np.int32(np.int32(images[u, i]) * np.int32(queries[b, i])))
    return total


@njit(nogil=True, cache=True, forceinline=True)
def score_of(cosine, interest, salience):
    """Return the score in float64, in the order of spec 3.3."""
    return ((0.6 * cosine) + (0.3 * interest)) + (0.1 * salience)


@njit(nogil=True, cache=True)
def scores(nodes, diffs, diff_rows, node_rows, out):
    """Compute the score of each (diff row, node) pair (spec 3.3).

    nodes: images int8 [n, d], lengths float64, interest_rows int32, interests float32 [m, 9]; diffs: images int8
    [b, d], lengths float64, knowledge_types int8, saliences float64; rows int64 [k]; out float64 [k].
    """
    images, lengths, interest_rows, interests = nodes
    queries, query_lengths, knowledge_types, saliences = diffs
    for i in range(out.size):
        b, u = diff_rows[i], node_rows[i]
        interest = 0.0
        if interest_rows[u] >= 0:
            interest = np.float64(interests[interest_rows[u], knowledge_types[b]])
        cosine = np.float64(dot(images, u, queries, b)) / (query_lengths[b] * lengths[u])
        out[i] = score_of(cosine, interest, saliences[b])


@njit(nogil=True, cache=True)
def open_counts(nodes, diffs, sigma_min, cos_min, node_rows, out):
    """Count for each of some nodes the diffs to which its gate is open (spec 3.3).

    nodes and diffs as in `scores`; node_rows int32 [k]; out int64 [k].
    """
    images, lengths, interest_rows, interests = nodes
    queries, query_lengths, knowledge_types, saliences = diffs
    for i in range(node_rows.size):
        u = node_rows[i]
        row = interest_rows[u]
        out[i] = 0
        for b in range(query_lengths.size):
            interest = np.float64(interests[row, knowledge_types[b]]) if row >= 0 else 0.0
            cosine = np.float64(dot(images, u, queries, b)) / (query_lengths[b] * lengths[u])
            out[i] += cosine >= cos_min and score_of(cosine, interest, saliences[b]) >= sigma_min
