"""The numba backend behind the seam: it cuts batches into jobs and runs them on threads."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields
from threading import local
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import torch

from hyphae_gpu.backends.cpu import gate, losses, relax, resonance
from hyphae_gpu.backends.cpu.graph import GraphOperations
from hyphae_gpu.swarm import FLOW_LAW, Adjacency, Diffs, Flow, FlowLaw, GossipCounts, GossipRules, Nodes
from hyphae_gpu.wave_state import Offers, WaveState

_T = TypeVar("_T")
Arrays = tuple[npt.NDArray[np.generic], ...]
#: numba's stubs know no argument lists; the kernels' docstrings do.
_advance: Any = relax.advance
_scores: Any = gate.scores
_open_counts: Any = gate.open_counts
_losses: Any = losses.losses
_resonance: Any = resonance.resonance
_JOBS_A_THREAD = 8
_FIRST_RECORDS = 1 << 18
#: dtypes of a state's and of offers' columns, in the order of the dataclasses' fields
_STATE_KINDS: tuple[Any, ...] = (np.int32, np.int32, np.int32, np.int32, np.float64, np.bool_)
_OFFER_KINDS: tuple[Any, ...] = (np.int64, np.int64, np.int32, np.int32, np.int32)


class CpuBackend(GraphOperations):
    """The CPU as a `Backend`; results do not depend on `threads`."""

    name = "cpu"
    device = torch.device("cpu")

    def __init__(self, threads: int = 1) -> None:
        if threads < 1:
            raise ValueError(f"threads is {threads}, expected at least 1")
        self.threads = threads

    def advance(
        self,
        nodes: Nodes,
        adjacency: Adjacency,
        diffs: Diffs,
        rules: GossipRules,
        state: WaveState,
        *,
        rounds: int,
        sweep: bool = False,
    ) -> tuple[WaveState, Offers, GossipCounts]:
        """See `Backend.advance`."""
        limited = adjacency.limited
        # a state that rounds or sweeps go on from keeps its closed gates too
        keeps_closed = limited or rules.loss > 0
        arguments = (
            _numpy(adjacency.offsets, adjacency.targets, adjacency.costs, adjacency.types, adjacency.bandwidths),
            (
                nodes.images.numpy(),
                relax.marks_of(nodes.lengths.numpy(), nodes.interest_rows.numpy()),
                nodes.interests.numpy(),
            ),
            _numpy(
                diffs.numbers,
                diffs.images.to(torch.int16),
                diffs.lengths,
                diffs.knowledge_types,
                diffs.saliences.double(),
                diffs.max_hops,
            ),
            _numpy(*(getattr(state, spec.name) for spec in fields(state))),
            ((rules.sigma_min, rules.cos_min), rules.fanout, keeps_closed),
            (rounds, sweep),
            (_threshold(rules), _keys(rules), rules.epoch * relax.ROUND_LIMIT),
        )
        greatest_degree = int(adjacency.offsets.diff().max()) if len(nodes) else 0
        scratches = local()

        def job(rows: npt.NDArray[np.int64]) -> list[tuple[Arrays, Arrays, npt.NDArray[np.int64]]]:
            if not hasattr(scratches, "arrays"):
                scratches.arrays = relax.scratch(len(nodes), greatest_degree, rules.fanout)
            return list(_run_job(rows, arguments, scratches.arrays, limited))

        # Diffs that start side by side share rows of the cache, so a job takes a run of origins.
        order = np.argsort(diffs.origins.numpy(), kind="stable").astype(np.int64)
        jobs = np.array_split(order, max(1, min(len(order), self.threads * _JOBS_A_THREAD)))
        parts = [part for parts in self._map(job, jobs) for part in parts]
        return _gather(order, parts, state, sweep)

    def scores(self, nodes: Nodes, diffs: Diffs, diff_rows: torch.Tensor, node_rows: torch.Tensor) -> torch.Tensor:
        """See `Backend.scores`."""
        out = np.empty(len(diff_rows), np.float64)
        _scores(
            _numpy(nodes.images, nodes.lengths, nodes.interest_rows, nodes.interests),
            _numpy(diffs.images, diffs.lengths, diffs.knowledge_types, diffs.saliences.double()),
            *_numpy(diff_rows, node_rows),
            out,
        )
        return torch.from_numpy(out)

    def open_counts(self, nodes: Nodes, diffs: Diffs, rules: GossipRules, node_rows: torch.Tensor) -> torch.Tensor:
        """See `Backend.open_counts`."""
        out = np.zeros(len(node_rows), np.int64)
        node_columns = _numpy(nodes.images, nodes.lengths, nodes.interest_rows, nodes.interests)
        diff_columns = _numpy(diffs.images, diffs.lengths, diffs.knowledge_types, diffs.saliences.double())
        asked = node_rows.numpy()

        def job(rows: npt.NDArray[np.int64]) -> None:
            first, last = (int(rows[0]), int(rows[-1]) + 1) if len(rows) else (0, 0)
            _open_counts(node_columns, diff_columns, rules.sigma_min, rules.cos_min, asked[first:last], out[first:last])

        self._map(job, np.array_split(np.arange(len(asked)), self.threads))
        return torch.from_numpy(out)

    def losses(
        self,
        rules: GossipRules,
        rounds: torch.Tensor,
        sources: torch.Tensor,
        targets: torch.Tensor,
        diffs: torch.Tensor,
    ) -> torch.Tensor:
        """See `Backend.losses`."""
        out = np.empty(len(sources), np.bool_)
        counters = rules.epoch * relax.ROUND_LIMIT + rounds
        _losses(_keys(rules), _threshold(rules), *_numpy(counters, sources, targets, diffs), out)
        return torch.from_numpy(out)

    def resonance(
        self,
        flow: Flow,
        origins: torch.Tensor,
        offsets: torch.Tensor,
        nodes: torch.Tensor,
        *,
        law: FlowLaw = FLOW_LAW,
        with_throughs: bool = False,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """See `Backend.resonance`."""
        values = np.zeros(len(nodes), np.int64)
        throughs = np.empty(len(nodes) if with_throughs else 0, np.int32)
        columns = _numpy(flow.offsets, flow.targets, flow.weights, flow.totals)
        numbers = (law.start, law.numerator, law.denominator, law.cut, law.rounds)
        scratches = local()

        def job(groups: npt.NDArray[np.int64]) -> None:
            if not hasattr(scratches, "arrays"):
                scratches.arrays = resonance.scratch(len(flow.totals))
            queries = _numpy(origins, offsets, nodes)
            _resonance(groups, columns, *queries, numbers, scratches.arrays, values, throughs)

        groups = np.arange(len(origins))
        self._map(job, np.array_split(groups, max(1, min(len(groups), self.threads * _JOBS_A_THREAD))))
        return torch.from_numpy(values), torch.from_numpy(throughs)

    def _map(self, job: Callable[[npt.NDArray[np.int64]], _T], jobs: list[npt.NDArray[np.int64]]) -> list[_T]:
        if self.threads == 1 or len(jobs) == 1:
            return [job(rows) for rows in jobs]
        with ThreadPoolExecutor(self.threads) as pool:
            return list(pool.map(job, jobs))


def _numpy(*columns: torch.Tensor) -> Arrays:
    return tuple(column.numpy() for column in columns)


def _keys(rules: GossipRules) -> npt.NDArray[np.uint64]:
    return np.array([rules.seed & 0xFFFFFFFF, (rules.seed >> 32) & 0xFFFFFFFF], np.uint64)


def _threshold(rules: GossipRules) -> np.uint64:
    return np.uint64(int(rules.loss * 2**32))


def _run_job(
    rows: npt.NDArray[np.int64], arguments: tuple[Any, ...], scratch: Arrays, limited: bool
) -> Iterator[tuple[Arrays, Arrays, npt.NDArray[np.int64]]]:
    """Advance the diffs at `rows`, with fresh and larger buffers whenever they are full."""
    records, offers = _FIRST_RECORDS, _FIRST_RECORDS if limited else 0
    while len(rows):
        sizes, steps = np.empty(len(rows), np.int64), np.empty(len(rows), np.int64)
        out = (sizes, steps, *(np.empty(records, kind) for kind in _STATE_KINDS))
        offered = tuple(np.empty(offers, kind) for kind in _OFFER_KINDS)
        counts = np.zeros(4, np.int64)
        done = _advance(rows, *arguments, scratch, out, offered, counts)
        if done < 0:
            raise RuntimeError(f"a diff reached {relax.ROUND_LIMIT} rounds in one epoch (spec 3.10)")
        used, rows = sizes[:done], rows[done:]
        filled = int(used.sum())
        kept = (
            used,
            steps[:done],
            *(column[:filled].copy() if filled * 4 < records else column[:filled] for column in out[2:]),
        )
        yield kept, tuple(column[: counts[relax.OFFERS]] for column in offered), counts
        if done == 0:
            records, offers = records * 4, offers * 4


def _gather(
    order: npt.NDArray[np.int64],
    parts: list[tuple[Arrays, Arrays, npt.NDArray[np.int64]]],
    before: WaveState,
    sweep: bool,
) -> tuple[WaveState, Offers, GossipCounts]:
    """Put the jobs' states back into diff order."""
    diffs = len(order)
    sizes, steps = np.zeros(diffs, np.int64), np.zeros(diffs, np.int64)
    if diffs:
        sizes[order] = np.concatenate([kept[0] for kept, _, _ in parts])
        steps[order] = np.concatenate([kept[1] for kept, _, _ in parts])
    ran = torch.from_numpy(steps)
    rounds, sweeps = (before.rounds, before.sweeps + ran) if sweep else (before.rounds + ran, before.sweeps)
    offsets = np.zeros(diffs + 1, np.int64)
    np.cumsum(sizes, out=offsets[1:])
    columns = tuple(np.empty(int(offsets[-1]), kind) for kind in _STATE_KINDS)
    first = 0
    for kept, _, _ in parts:
        rows = order[first : first + len(kept[0])]
        first += len(rows)
        relax.place(rows, offsets, (kept[0], *kept[2:]), columns)
    names = [spec.name for spec in fields(WaveState)]
    filled = (torch.from_numpy(offsets), rounds, sweeps, *map(torch.from_numpy, columns))
    state = WaveState(**dict(zip(names, filled, strict=True)))
    offered = (
        torch.from_numpy(np.concatenate([np.empty(0, kind), *(offers[i] for _, offers, _ in parts)]))
        for i, kind in enumerate(_OFFER_KINDS)
    )
    counts = GossipCounts()
    for _, _, part in parts:
        counts.add(
            GossipCounts(
                relaxations=int(part[relax.RELAXATIONS]),
                gates=int(part[relax.GATES]),
                lost=int(part[relax.LOST]),
            )
        )
    return state, Offers(**dict(zip([spec.name for spec in fields(Offers)], offered, strict=True))), counts
