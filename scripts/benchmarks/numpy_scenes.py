"""Peer: the communities of spec 6.4 by whole-array operations of numpy: sort, segmented sum, segmented arg-max."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components

from hyphae_gpu.emergence.scenes import Links

I64 = npt.NDArray[np.int64]
_ITERATIONS, _SUB_STEPS, _QUIET = 100, 4, 1000


class NumpyScenes:
    """One run; `iterations` and `visits` (links looked at) say what it took."""

    def __init__(self, links: Links, numbers: I64, resolution: tuple[int, int]) -> None:
        sources = np.repeat(np.arange(len(numbers)), np.diff(links.offsets))
        self._given = (sources, links.targets.astype(np.int64), links.weights)
        self._numbers, self._resolution = numbers, resolution
        self.iterations = self.visits = 0

    def run(self) -> npt.NDArray[np.int32]:
        """Return each node's community as the row of its lowest member."""
        self.iterations = self.visits = 0
        sources, targets, weights = self._given
        whole = heads = np.arange(len(self._numbers))
        while True:
            parts = self._moved(sources, targets, weights, self._numbers[heads])
            firsts, groups = np.unique(parts, return_inverse=True)
            if len(firsts) == len(heads):
                return heads[whole].astype(np.int32)
            keys = groups[sources] * len(firsts) + groups[targets]
            order = np.argsort(keys, kind="stable")
            begins = np.flatnonzero(np.diff(keys[order], prepend=-1))
            weights = np.add.reduceat(weights[order], begins) if len(begins) else weights[:0]
            sources, targets = np.divmod(keys[order][begins], len(firsts))
            whole, heads = groups[whole], heads[firsts]

    def _moved(self, sources: I64, targets: I64, weights: I64, numbers: I64) -> I64:
        """Move a level's nodes until few move; return the lowest member of each one's connected part."""
        count = len(numbers)
        totals = np.zeros(count, np.int64)
        np.add.at(totals, sources, weights)
        community = np.arange(count)
        between = sources != targets
        links = (sources[between], targets[between], weights[between])
        for iteration in range(_ITERATIONS):
            steps = _splitmix64(numbers.astype(np.uint64) * np.uint64(1_000_003) + np.uint64(iteration)) % np.uint64(
                _SUB_STEPS
            )
            moves = sum(self._sub_step(links, steps == step, totals, community) for step in range(_SUB_STEPS))
            self.iterations += 1
            self.visits += len(links[0])
            if not moves or moves * _QUIET < count:
                break
        inside = community[sources] == community[targets]
        matrix = coo_matrix(
            (np.ones(int(inside.sum()), np.int8), (sources[inside], targets[inside])), shape=(count, count)
        )
        found, labels = connected_components(matrix, directed=False)
        lowest = np.full(found, count, np.int64)
        np.minimum.at(lowest, labels, np.arange(count))
        return lowest[labels]

    def _sub_step(self, links: tuple[I64, I64, I64], moving: npt.NDArray[np.bool_], totals: I64, community: I64) -> int:
        """Move the nodes of one sub-step at once; return how many went elsewhere."""
        count, two_m = len(totals), int(totals.sum())
        numerator, denominator = self._resolution
        mine = moving[links[0]]
        keys = links[0][mine] * count + community[links[1][mine]]
        order = np.argsort(keys, kind="stable")
        begins = np.flatnonzero(np.diff(keys[order], prepend=-1))
        if not len(begins):
            return 0
        linked = np.add.reduceat(links[2][mine][order], begins)
        nodes, c = np.divmod(keys[order][begins], count)
        sums = np.zeros(count, np.int64)
        np.add.at(sums, community, totals)
        own = c == community[nodes]
        scale = float(denominator * two_m)
        penalty = (numerator * totals).astype(np.float64)
        gains = scale * linked.astype(np.float64) - penalty[nodes] * (sums[c] - own * totals[nodes]).astype(np.float64)
        stay = -penalty * (sums[community] - totals).astype(np.float64)
        stay[nodes[own]] = gains[own]
        best = np.lexsort((c, -gains, nodes))
        best = best[np.diff(nodes[best], prepend=-1) != 0]
        goes = best[gains[best] > stay[nodes[best]]]
        community[nodes[goes]] = c[goes]
        return len(goes)


def _splitmix64(state: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Return the first output from each state (Steele 2014)."""
    z = state + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))
