"""The gates by the rule of spec 3.3, by the fastest exact means that numpy has: for peers that know no gates."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from hyphae_gpu.swarm import Diffs, GossipRules, Nodes

_CHUNK_NODES = 8_192
#: Products and sums of integers are exact in float32 up to here (spec 0.4).
_EXACT_FLOAT32 = 2**24
#: Relative distance from the threshold within which a float32 comparison is not trusted.
_MARGIN = 1e-5


class Gates:
    """Scores and gates of a swarm's nodes; images are held as floats, so that BLAS multiplies them, exactly."""

    def __init__(self, nodes: Nodes, diffs: Diffs, rules: GossipRules) -> None:
        longest = float(nodes.lengths.max()) * float(diffs.lengths.max()) if len(nodes) and len(diffs) else 0.0
        self._float: type[np.floating[Any]] = np.float32 if longest < _EXACT_FLOAT32 else np.float64
        self._images: npt.NDArray[Any] = nodes.images.numpy().astype(self._float)
        self._lengths = nodes.lengths.numpy()
        self._listens = nodes.interest_rows.numpy()
        self._interests = nodes.interests.numpy().astype(np.float64)
        self._listeners = np.flatnonzero(self._listens >= 0)
        self._queries: npt.NDArray[Any] = diffs.images.numpy().astype(self._float)
        self._query_lengths = diffs.lengths.numpy()
        self._kinds = diffs.knowledge_types.numpy()
        self._saliences = diffs.saliences.double().numpy()
        self._rules = rules

    def scores(self, row: int, nodes: npt.NDArray[np.int32]) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_]]:
        """Return the score of one diff at some nodes, and which gates are open there."""
        dots = self._images[nodes] @ self._queries[row]
        return self._decide(row, nodes, dots.astype(np.float64))

    def _decide(
        self, rows: int | npt.NDArray[np.int64], nodes: npt.NDArray[np.integer], dots: npt.NDArray[np.float64]
    ) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_]]:
        """Return score and gate of pairs whose dot products are known, in float64 as spec 3.3 orders it."""
        cosines = dots / (self._query_lengths[rows] * self._lengths[nodes])
        listens = self._listens[nodes]
        interests = np.zeros(len(nodes))
        heard = listens >= 0
        kinds = np.broadcast_to(self._kinds[rows], len(nodes))
        interests[heard] = self._interests[listens[heard], kinds[heard]]
        scores = ((0.6 * cosines) + (0.3 * interests)) + (0.1 * self._saliences[rows])
        return scores, (scores >= self._rules.sigma_min) & (cosines >= self._rules.cos_min)

    def open(self, first: int, last: int) -> npt.NDArray[np.bool_]:
        """Return which gates are open to the diffs first .. last - 1, all nodes, bool [last - first, n].

        One matrix product. Without an interest a gate is a threshold on the cosine, so float32 settles all pairs but
        the few that lie next to it; those, and nodes with interests, are decided in float64.
        """
        count = len(self._lengths)
        is_open = np.empty((last - first, count), np.bool_)
        saliences = self._saliences[first:last]
        wanted = np.maximum((self._rules.sigma_min - 0.1 * saliences) / 0.6, self._rules.cos_min)
        low = (wanted * self._query_lengths[first:last]).astype(self._float)[:, None]
        margin = np.abs(low) * self._float(_MARGIN) + self._float(1e-30)
        for start in range(0, count, _CHUNK_NODES):
            stop = min(start + _CHUNK_NODES, count)
            dots = self._queries[first:last] @ self._images[start:stop].T
            distance = dots * (1 / self._lengths[start:stop]).astype(self._float)
            distance -= low
            is_open[:, start:stop] = distance >= 0
            unsure = np.abs(distance) <= margin
            unsure[:, self._listeners[(self._listeners >= start) & (self._listeners < stop)] - start] = True
            rows, nodes = np.nonzero(unsure)
            exact = dots[rows, nodes].astype(np.float64)
            is_open[rows, nodes + start] = self._decide(rows + first, nodes + start, exact)[1]
        return is_open
