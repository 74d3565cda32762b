"""Peer: SuiteSparse:GraphBLAS through python-graphblas, one masked (max, +) matrix product a round."""

from __future__ import annotations

import time
from itertools import product
from typing import Any

import graphblas  # type: ignore[import-untyped, unused-ignore]
import numpy as np
import numpy.typing as npt
from graphblas import Matrix, binary, monoid, semiring

from benchmarks.answer import Answer
from benchmarks.gates import Gates
from benchmarks.timing import say
from hyphae_gpu.swarm import Adjacency, Diffs, GossipRules, Nodes

_BATCH_SIZES = (1, 8, 32, 128, 1024)
_TRIED_DIFFS = 128


class GraphblasPeer:
    """Spec 3.5 as the standard way has it: energies of a batch in one sparse matrix, the frontier in another.

    The gates of a batch come first, by one exact BLAS product (`Gates.open`). They are the mask of the product, or are
    applied to what comes out of it; batch size and place of the mask are chosen by trying them out.
    """

    name = "python-graphblas"

    def __init__(self, nodes: Nodes, adjacency: Adjacency, diffs: Diffs, rules: GossipRules, *, threads: int) -> None:
        if rules.fanout:
            raise ValueError("a fanout depends on the diff, so it is no product with one matrix")
        graphblas.ss.config["nthreads"] = threads
        offsets = adjacency.offsets.numpy()
        self._matrix = Matrix.from_coo(
            np.repeat(np.arange(len(nodes)), np.diff(offsets)),
            adjacency.targets.numpy(),
            -adjacency.costs.numpy(),
            nrows=len(nodes),
            ncols=len(nodes),
            dtype="INT32",
            dup_op=binary.max,
        )
        self._nodes, self._diffs = len(nodes), diffs
        self._gates = Gates(nodes, diffs, rules)
        hops = diffs.max_hops.numpy()
        if len(np.unique(hops)) > 1 or (len(hops) and hops[0] < 1):
            raise ValueError("diffs of one max_hops >= 1 only")
        self._max_hops = int(hops[0]) if len(hops) else 1
        self.batch_size, self.mask_inside = _BATCH_SIZES[0], True
        self.gate_seconds: list[float] = []

    def tune(self) -> None:
        """Choose batch size and place of the mask by the time that the first diffs take."""
        best = np.inf
        for size, inside in product(_BATCH_SIZES, (True, False)):
            if size > max(1, len(self._diffs)):
                continue
            count = min(len(self._diffs), max(_TRIED_DIFFS, size))
            start = time.perf_counter()
            self._run(count, size, inside)
            seconds = (time.perf_counter() - start) / max(1, count)
            where = "in" if inside else "after"
            say(f"  {self.name}: batches of {size}, mask {where} the product: {seconds:.5f} s a diff")
            if seconds < best:
                best, self.batch_size, self.mask_inside = seconds, size, inside

    def run(self) -> Answer:
        """Propagate all diffs; `gate_seconds` gets what the gates took of it."""
        answer, gating = self._run(len(self._diffs), self.batch_size, self.mask_inside)
        self.gate_seconds.append(gating)
        return answer

    def _run(self, count: int, size: int, inside: bool) -> tuple[Answer, float]:
        parts: list[tuple[npt.NDArray[Any], ...]] = []
        gating = 0.0
        for first in range(0, count, size):
            last = min(first + size, count)
            start = time.perf_counter()
            opened = self._gates.open(first, last)
            gating += time.perf_counter() - start
            rows, nodes, energies = self._propagate(first, last, opened, inside)
            parts.append((rows.astype(np.int64) + first, nodes.astype(np.int32), energies))
        rows, nodes, energies = (np.concatenate(columns) for columns in zip(*parts, strict=True))
        return Answer(diffs=self._diffs.numbers.numpy()[rows], nodes=nodes, energies=energies), gating

    def _propagate(
        self, first: int, last: int, opened: npt.NDArray[np.bool_], inside: bool
    ) -> tuple[npt.NDArray[Any], ...]:
        shape = {"nrows": last - first, "ncols": self._nodes}
        gates = Matrix.ss.import_bitmapr(bitmap=opened, values=np.ones(1, np.bool_), is_iso=True, **shape)
        starts = self._diffs.energies[first:last].numpy()
        rows = np.flatnonzero(starts >= 1)
        origins = self._diffs.origins[first:last].numpy()[rows]
        energies = Matrix.from_coo(rows, origins, starts[rows], dtype="INT32", **shape)
        frontier = energies.dup()
        t = 0
        while frontier.nvals and t + 1 < self._max_hops:
            offers = Matrix("INT32", **shape)
            if inside:
                offers(mask=gates.S) << frontier.mxm(self._matrix, semiring.max_plus)
            else:
                reached = frontier.mxm(self._matrix, semiring.max_plus).new()
                offers(mask=gates.S) << reached
            offers << offers.select(">", 0)
            no_rise = offers.ewise_mult(energies, binary.le).new()
            frontier = Matrix("INT32", **shape)
            frontier(mask=~no_rise.V) << offers
            energies << energies.ewise_add(frontier, monoid.max)
            t += 1
        return tuple(energies.to_coo(sort=True))
