"""The gate of (diff, node): cosine, score, and whether the node lets the diff in (spec 0.4, 3.3)."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(nogil=True, cache=True)
def dot(row, query):
    """Return the exact dot product of two int8 or int16 rows as int32.

    At most 16,000 products of 127 * 127 stay below 2^31. The casts keep the loop in 32 bits, so that it vectorises.
    """
    total = np.int32(0)
    for i in range(row.size):
        total = np.int32(total + np.int32(np.int32(row[i]) * np.int32(query[i])))
    return total


@njit(nogil=True, cache=True)
def cosine_and_score(row, length, interest, query, query_length, salience):
    """Return (cosine, score) in float64, in the order of spec 3.3."""
    cosine = np.float64(dot(row, query)) / (query_length * length)
    return cosine, ((0.6 * cosine) + (0.3 * interest)) + (0.1 * salience)


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
        _, out[i] = cosine_and_score(images[u], lengths[u], interest, queries[b], query_lengths[b], saliences[b])
