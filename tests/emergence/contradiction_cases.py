"""Nodes, diffs and deliveries for tests of contradictions, and the same for their oracle."""

from __future__ import annotations

import numpy as np
import torch
from hypothesis import strategies as st

from hyphae_gpu.backends.cpu.backend import CpuBackend
from hyphae_gpu.emerged import REASONS, KnownPairs
from hyphae_gpu.emergence.contradictions import Meetings, Pairs
from hyphae_gpu.state import AccessLog, NodeTable
from hyphae_gpu.swarm import Deliveries, Diffs
from hyphae_gpu.vectors import lengths
from hyphae_gpu.vocabulary import DiffType, NodeType
from tests.oracles.contradictions import Cell
from tests.topology.tables import node_table

HALF = float(np.float32(0.5))
BELOW_HALF = float(np.nextafter(np.float32(0.5), np.float32(0)))


class Crowd:
    """Cells given by keyword, all alike and live unless said otherwise; as columns and as the oracle's cells."""

    def __init__(self, *cells: dict, agents: int = 3) -> None:
        plain = {"image": [127, 0], "live": True, "created_at": 0, "salience": 0.5}
        self.cells = {i: Cell(**(plain | {"number": i} | given)) for i, given in enumerate(cells)}
        count, total = len(cells), len(cells) + agents
        filler = [Cell(**plain, number=count + i) for i in range(agents)]
        every = [*self.cells.values(), *filler]
        self.images = np.array([cell.image for cell in every], np.int8).reshape(total, -1)
        self.lengths = lengths(self.images)
        self.live = np.array([cell.live for cell in self.cells.values()] + [False] * agents, np.bool_)
        self.saliences = np.array([cell.salience for cell in every], np.float32)
        for cell, salience in zip(every, self.saliences.tolist(), strict=True):
            cell.salience = salience
        self.nodes: NodeTable = node_table(
            self.images.astype(np.float32),
            types=[NodeType.CELL] * count + [NodeType.AGENT] * agents,
            created_at=np.array([cell.created_at for cell in every], np.int64),
            saliences=self.saliences,
            claim_subjects=_codes([cell.subject for cell in every]),
            claim_values=_codes([cell.value for cell in every]),
            stances=np.array([np.nan if cell.stance is None else cell.stance for cell in every], np.float32),
        )
        reads = [(count + reader, cell.number) for cell in self.cells.values() for reader in sorted(cell.readers)]
        log = np.array(reads, np.int32).reshape(-1, 2)
        self.log = AccessLog(agents=log[:, 0].copy(), cells=log[:, 1].copy(), at=np.zeros(len(log), np.int64))

    def texts(self, numbers: np.ndarray) -> list[str | None]:
        return [self.cells[number].text for number in numbers.tolist()]

    def meetings(self, theta: float = 0.8, verifier=None, live=None) -> Meetings:
        return Meetings(
            self.nodes,
            self.images,
            self.lengths,
            self.live if live is None else live,
            theta_sim=theta,
            backend=CpuBackend(1),
            verifier=verifier,
            texts=self.texts,
        )

    def diffs(self, sent: list[tuple[int, int]]) -> Diffs:
        """Diffs of (origin, type), numbered from 100 on."""
        count = len(sent)
        origins = np.array([origin for origin, _ in sent], np.int32)
        return Diffs(
            numbers=np.arange(100, 100 + count),
            origins=origins,
            types=np.array([diff_type for _, diff_type in sent], np.int8),
            knowledge_types=np.zeros(count, np.int8),
            images=self.images[origins],
            lengths=self.lengths[origins],
            saliences=np.zeros(count, np.float32),
            energies=np.zeros(count, np.int32),
            max_hops=np.zeros(count, np.int32),
        )


def met(crowd: Crowd, *arrivals: tuple[int, int], theta: float = 0.8, known=(), verifier=None, live=None) -> list:
    """What opposes after cells' `created` diffs arrived: (a, b, similarity, reason)."""
    meetings = crowd.meetings(theta, verifier, live)
    sent = [(origin, DiffType.CREATED) for origin in sorted({origin for origin, _ in arrivals})]
    row = {origin: i for i, (origin, _) in enumerate(sent)}
    meetings.add(crowd.diffs(sent), delivered([(row[origin], node) for origin, node in arrivals]))
    return listed(meetings.opposing(known_pairs(known)))


def delivered(arrivals: list[tuple[int, int]], hops: list[int] | None = None) -> Deliveries:
    """Deliveries of (diff row, node), in any order."""
    count = len(arrivals)
    return Deliveries(
        diffs=np.array([100 + row for row, _ in arrivals], np.int64),
        nodes=np.array([node for _, node in arrivals], np.int32),
        hops=np.array(hops or [0] * count, np.int32),
        energies=torch.ones(count, dtype=torch.int32),
        scores=torch.zeros(count, dtype=torch.float64),
        parents=torch.zeros(count, dtype=torch.int32),
    )


def known_pairs(pairs=(), unresolved: bool = True) -> KnownPairs:
    columns = np.array(sorted(pairs), np.int32).reshape(-1, 2)
    return KnownPairs(a=columns[:, 0].copy(), b=columns[:, 1].copy(), open=np.full(len(columns), unresolved))


def listed(pairs: Pairs) -> list[tuple[int, int, float, str]]:
    columns = (pairs.a.tolist(), pairs.b.tolist(), pairs.similarities.tolist(), pairs.reasons.tolist())
    return [(a, b, similarity, REASONS[reason]) for a, b, similarity, reason in zip(*columns, strict=True)]


def pairs_of(pairs: list[tuple[int, int]]) -> Pairs:
    columns = np.array(sorted(pairs), np.int32).reshape(-1, 2)
    count = len(columns)
    return Pairs(
        a=columns[:, 0].copy(),
        b=columns[:, 1].copy(),
        similarities=np.full(count, 0.9),
        reasons=np.zeros(count, np.int8),
        hops=np.arange(count, dtype=np.int32),
    )


def _codes(values: list[int | None]) -> np.ndarray:
    return np.array([-1 if value is None else value for value in values], np.int32)


#: A cell of a small crowd: few values each, so that borders and ties are met often.
CELLS = st.fixed_dictionaries(
    {
        "image": st.sampled_from([[5, 0], [4, 3], [3, 4], [127, 5], [-5, 1]]),
        "live": st.sampled_from([True, True, True, False]),
        "created_at": st.integers(0, 2),
        "salience": st.sampled_from([0.1, 0.5, 0.9]),
        "subject": st.sampled_from([None, 0, 0, 1]),
        "value": st.sampled_from([None, 0, 1, 2]),
        "stance": st.sampled_from([None, HALF, BELOW_HALF, -HALF, -BELOW_HALF, 1.0, -1.0, 0.0]),
        "text": st.sampled_from([None, "a", "b", "c"]),
        "readers": st.sets(st.integers(0, 2)),
    }
)
