"""Peer: one diff after the other in plain numpy, the frontier as an array of nodes."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from benchmarks.answer import Answer
from benchmarks.gates import Gates
from hyphae_gpu.swarm import Adjacency, Diffs, GossipRules, Nodes
from hyphae_gpu.vocabulary import EdgeType

I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]


class NumpyPeer:
    """Spec 3.5 by whole-array operations a round; knows the fanout, gates only what it meets."""

    name = "numpy"

    def __init__(self, nodes: Nodes, adjacency: Adjacency, diffs: Diffs, rules: GossipRules) -> None:
        self._offsets = adjacency.offsets.numpy()
        self._targets = adjacency.targets.numpy()
        self._costs = adjacency.costs.numpy()
        self._semantic = adjacency.types.numpy() == EdgeType.SEMANTIC
        self._diffs, self._fanout = diffs, rules.fanout
        self._gates = Gates(nodes, diffs, rules)
        self._scores = np.zeros(len(nodes))
        self._known = np.zeros(len(nodes), np.bool_)
        self._open = np.zeros(len(nodes), np.bool_)
        self._energies = np.zeros(len(nodes), np.int32)

    def run(self, count: int) -> Answer:
        """Propagate the first `count` diffs."""
        parts = []
        for row in range(count):
            parts.append(self._reached(row))
            for column in (self._known, self._open, self._energies):
                column[:] = 0
        return Answer(
            diffs=np.repeat(self._diffs.numbers.numpy()[:count], [len(nodes) for nodes, _ in parts]),
            nodes=np.concatenate([np.zeros(0, np.int32), *(nodes for nodes, _ in parts)]),
            energies=np.concatenate([np.zeros(0, np.int32), *(energies for _, energies in parts)]),
        )

    def _reached(self, row: int) -> tuple[I32, I32]:
        energies, hops = self._energies, int(self._diffs.max_hops[row])
        start = int(self._diffs.energies[row])
        if start < 1 or hops < 1:
            return np.zeros(0, np.int32), np.zeros(0, np.int32)
        frontier = np.array([int(self._diffs.origins[row])], np.int32)
        energies[frontier] = start
        t = 0
        while len(frontier) and t + 1 < hops:
            edges, sources = self._edges_of(frontier)
            if self._fanout:
                edges, sources = self._cut(row, edges, sources)
            offers = energies[sources] - self._costs[edges]
            affordable = offers > 0
            targets, offers = self._targets[edges[affordable]], offers[affordable]
            self._look(row, targets)
            better = self._open[targets] & (offers > energies[targets])
            targets, offers = targets[better], offers[better]
            np.maximum.at(energies, targets, offers)
            frontier = np.unique(targets)
            t += 1
        reached = np.flatnonzero(energies).astype(np.int32)
        return reached, energies[reached]

    def _edges_of(self, frontier: I32) -> tuple[I64, I32]:
        """Return the edges that leave the frontier, and the node that each leaves."""
        first, last = self._offsets[frontier], self._offsets[frontier + 1]
        degrees = last - first
        starts = np.cumsum(degrees) - degrees
        edges = np.arange(int(degrees.sum())) + np.repeat(first - starts, degrees)
        return edges, np.repeat(frontier, degrees)

    def _look(self, row: int, targets: I32) -> None:
        """Compute the gates of targets that were not met before."""
        new = np.unique(targets[~self._known[targets]])
        self._scores[new], self._open[new] = self._gates.scores(row, new)
        self._known[new] = True

    def _cut(self, row: int, edges: I64, sources: I32) -> tuple[I64, I32]:
        """Keep, of each node's semantic edges, the K whose targets score highest (spec 3.4), and all others."""
        semantic = self._semantic[edges]
        ranked, owners = edges[semantic], sources[semantic]
        targets = self._targets[ranked]
        self._look(row, targets)
        order = np.lexsort((targets, -self._scores[targets], owners))
        owners = owners[order]
        place = np.arange(len(owners)) - np.searchsorted(owners, owners)
        kept = order[place < self._fanout]
        return (
            np.concatenate([ranked[kept], edges[~semantic]]),
            np.concatenate([sources[semantic][kept], sources[~semantic]]),
        )
