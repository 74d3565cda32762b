"""Peer: SuiteSparse:GraphBLAS through python-graphblas, one masked (max, +) matrix product a round."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from itertools import product
from typing import Any

import graphblas  # type: ignore[import-untyped, unused-ignore] # it brings no types
import numpy as np
import numpy.typing as npt
from graphblas import Matrix, binary, monoid, semiring

from benchmarks.answer import Answer
from benchmarks.gates import Gates
from benchmarks.timing import say
from hyphae_gpu.swarm import Adjacency, Diffs, GossipRules, Nodes

_BATCH_SIZES = (8, 32, 128)
_TRIED_DIFFS = 128


@dataclass(frozen=True, kw_only=True)
class Way:
    """One way to write spec 3.5 in GraphBLAS.

    semiring: `max_plus` over int32, or `min_plus` over float32, the same with the sign turned, for which the library
    has a compiled kernel; energies and costs up to 2^24 are exact in both. masked: whether the gates are the product's
    mask or are applied to what comes out. A mask has to be sparse and the method named: left to itself (9.4.5) a
    product with a bitmap as its mask may never return.
    """

    batch_size: int
    semiring: str
    masked: bool

    def __str__(self) -> str:
        """Return the way in words."""
        return f"batches of {self.batch_size}, {self.semiring}, mask {'in' if self.masked else 'after'} the product"


_WAYS = [
    Way(batch_size=size, semiring=name, masked=masked)
    for size, name, masked in product(_BATCH_SIZES, ("max_plus", "min_plus"), (True, False))
]


class GraphblasPeer:
    """Spec 3.5 as the standard way has it: energies of a batch in one sparse matrix, the frontier in another.

    The gates of a batch come first, by one exact BLAS product (`Gates.open`). The way that suits the library best is
    chosen by trying all of them on some diffs.
    """

    name = "python-graphblas"

    def __init__(self, nodes: Nodes, adjacency: Adjacency, diffs: Diffs, rules: GossipRules, *, threads: int) -> None:
        if rules.fanout:
            raise ValueError("a fanout depends on the diff, so it is no product with one matrix")
        graphblas.ss.config["nthreads"] = threads
        count = len(nodes)
        places = (np.repeat(np.arange(count), np.diff(adjacency.offsets.numpy())), adjacency.targets.numpy())
        costs = adjacency.costs.numpy()
        shape = {"nrows": count, "ncols": count}
        self._matrices = {
            "max_plus": Matrix.from_coo(*places, -costs, dtype="INT32", dup_op=binary.max, **shape),
            "min_plus": Matrix.from_coo(*places, costs, dtype="FP32", dup_op=binary.min, **shape),
        }
        self._nodes, self._diffs = count, diffs
        self._gates = Gates(nodes, diffs, rules)
        hops = diffs.max_hops.numpy()
        if not len(hops) or hops.min() != hops.max() or hops[0] < 1:
            raise ValueError("diffs of one max_hops >= 1 only, and at least one")
        self._max_hops = int(hops[0])
        self.way = _WAYS[0]
        self.gate_seconds: list[float] = []

    def tune(self) -> None:
        """Choose the way that takes the first diffs the least time."""
        count = min(len(self._diffs), _TRIED_DIFFS)
        best = np.inf
        for way in _WAYS:
            start = time.perf_counter()
            self._run(count, way)
            seconds = (time.perf_counter() - start) / count
            say(f"  {self.name}: {way}: {seconds:.5f} s a diff")
            if seconds < best:
                best, self.way = seconds, way

    def facts(self) -> dict[str, Any]:
        """Return the way that was chosen."""
        return asdict(self.way)

    def run(self) -> Answer:
        """Propagate all diffs; `gate_seconds` gets what the gates took of it."""
        answer, gating = self._run(len(self._diffs), self.way)
        self.gate_seconds.append(gating)
        return answer

    def _run(self, count: int, way: Way) -> tuple[Answer, float]:
        parts: list[tuple[npt.NDArray[Any], ...]] = []
        gating = 0.0
        for first in range(0, count, way.batch_size):
            last = min(first + way.batch_size, count)
            start = time.perf_counter()
            opened = self._gates.open(first, last)
            gating += time.perf_counter() - start
            rows, nodes, energies = self._propagate(first, last, opened, way)
            parts.append((rows.astype(np.int64) + first, nodes.astype(np.int32), energies))
        rows, nodes, energies = (np.concatenate(columns) for columns in zip(*parts, strict=True))
        return Answer(diffs=self._diffs.numbers.numpy()[rows], nodes=nodes, energies=energies), gating

    def _propagate(
        self, first: int, last: int, opened: npt.NDArray[np.bool_], way: Way
    ) -> tuple[npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[np.int32]]:
        shape = {"nrows": last - first, "ncols": self._nodes}
        rising = way.semiring == "max_plus"
        kind, sign = ("INT32", 1) if rising else ("FP32", -1)
        add, no_better, left = (monoid.max, binary.le, ">") if rising else (monoid.min, binary.ge, "<")
        over, matrix = getattr(semiring, way.semiring), self._matrices[way.semiring]
        if way.masked:
            gates = Matrix.from_coo(*np.nonzero(opened), True, dtype=bool, **shape)
        else:
            gates = Matrix.ss.import_bitmapr(bitmap=opened, values=np.ones(1, np.bool_), is_iso=True, **shape)
        starts = self._diffs.energies[first:last].numpy()
        rows = np.flatnonzero(starts >= 1)
        origins = self._diffs.origins[first:last].numpy()[rows]
        energies = Matrix.from_coo(rows, origins, sign * starts[rows], dtype=kind, **shape)
        frontier = energies.dup()
        t = 0
        while frontier.nvals and t + 1 < self._max_hops:
            offers = Matrix(kind, **shape)
            if way.masked:
                offers(mask=gates.S, axb_method="gustavson") << frontier.mxm(matrix, over)
            else:
                offers(mask=gates.S) << frontier.mxm(matrix, over).new()
            offers << offers.select(left, 0)
            no_rise = offers.ewise_mult(energies, no_better).new()
            frontier = Matrix(kind, **shape)
            frontier(mask=~no_rise.V) << offers
            energies << energies.ewise_add(frontier, add)
            t += 1
        rows, nodes, held = energies.to_coo(sort=True)
        return rows, nodes, (sign * held).astype(np.int32)
