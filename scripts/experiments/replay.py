"""The engine's graph as it stood at each moment of a study, stage by stage as an epoch builds it (spec 8.1)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace

import numpy as np
import numpy.typing as npt
import torch

from experiments.dataset import DAY
from experiments.studies import Event, Study
from hyphae_gpu.backends.protocol import Backend
from hyphae_gpu.columns import as_tensor
from hyphae_gpu.config import Settings
from hyphae_gpu.emergence.decay import decayed_saliences, live_cells
from hyphae_gpu.emergence.drift import counting_pairs, drift
from hyphae_gpu.energies import initial_energy, units
from hyphae_gpu.state import PENDING_SILENT, AccessLog, AccessPairs, EdgeTable, NodeTable
from hyphae_gpu.swarm import Adjacency, Diffs, Nodes
from hyphae_gpu.topology.hnsw import HnswIndex
from hyphae_gpu.topology.refresh import TopologyRules, refresh
from hyphae_gpu.vectors import lengths, quantise
from hyphae_gpu.vocabulary import DiffType, KnowledgeType, NodeType

#: The spec's defaults, but for a swarm that works over months: the unit of recency (spec 1.3), and no decay, since
#: earlier proposals are to be live cells.
SETTINGS = Settings(access_unit_days=30, decay_per_day=1.0)
#: What every proposal is taken in as; the salience is ingest's default.
SALIENCE, KNOWLEDGE = 0.5, KnowledgeType.DECISION

NO_EDGES = EdgeTable(
    sources=np.zeros(0, np.int32),
    targets=np.zeros(0, np.int32),
    types=np.zeros(0, np.int8),
    kinds=np.zeros(0, np.int8),
    weights=np.zeros(0, np.float32),
    bandwidths=np.zeros(0, np.int32),
)


@dataclass(frozen=True, kw_only=True)
class Moment:
    """A graph, and the events whose proposals have just joined it.

    Nodes are numbered agents first, then cells in order of time; `diffs` are the events' `created` diffs, row i of
    them is events[i]'s.
    """

    at: int
    events: tuple[Event, ...]
    live: npt.NDArray[np.bool_]
    nodes: Nodes
    pairs: AccessPairs
    adjacency: Adjacency
    diffs: Diffs


@dataclass(frozen=True, kw_only=True)
class Variation:
    """How a replay differs from the rule: all recencies 1, or makers that log no access of what they made."""

    flat_recency: bool = False
    own_access: bool = True


def replay(
    study: Study,
    vectors: npt.NDArray[np.float32],
    backend: Backend,
    *,
    settings: Settings = SETTINGS,
    variation: Variation | None = None,
) -> Iterator[Moment]:
    """Yield the moments that have events, in order; agents drift at every moment, one index grows with the events'.

    `vectors` float32 [proposals, d]. At a moment the graph holds the cells up to it, and knows the accesses before it
    and who made the cells that appear.
    """
    variation = variation or Variation()
    agents = len(study.people)
    table = node_table(study, vectors)
    images = np.zeros(table.vectors.shape, np.int8)
    images[agents:] = quantise(table.vectors[agents:])
    sizes = np.ones(len(table))
    sizes[agents:] = lengths(images[agents:])
    index = HnswIndex(vectors.shape[1], threads=settings.threads)
    rules = TopologyRules(beacon_fanin=settings.beacon_fanin, beacon_radius=settings.beacon_radius)
    for at in np.unique(study.times).tolist():
        known = agents + int(np.searchsorted(study.times, at, side="right"))
        here = NodeTable(**{spec.name: getattr(table, spec.name)[:known] for spec in fields(NodeTable)})
        log = known_accesses(study, at, makers=variation.own_access)
        np.maximum.at(table.last_access, log.cells, log.at)
        saliences = decayed_saliences(here, at, decay_per_day=settings.decay_per_day)
        live = live_cells(here, saliences, threshold=settings.salience_threshold)
        pairs = counting_pairs(log, at, live, access_unit_days=settings.access_unit_days)
        if variation.flat_recency:
            pairs = replace(pairs, recencies=np.ones_like(pairs.recencies))
        moved, positions = drift(here, images[:known], saliences, pairs, backend)
        table.vectors[moved], table.placed[moved] = positions, True
        images[moved] = quantise(positions)
        sizes[moved] = lengths(images[moved])
        events = tuple(event for event in study.events if event.at == at)
        if not events:
            continue
        topology = refresh(
            here,
            images[:known],
            sizes[:known],
            live,
            index=index,
            declared=NO_EDGES,
            pairs=pairs,
            rules=rules,
            backend=backend,
        )
        index = topology.layers[0].index
        nodes = Nodes.of_images(
            images[:known].copy(), sizes[:known].copy(), types=here.types, layers=here.layers, interests=here.interests
        )
        yield Moment(
            at=at,
            events=events,
            live=live,
            nodes=nodes,
            pairs=pairs,
            adjacency=topology.adjacency,
            diffs=created(nodes, np.array([agents + event.cell for event in events], np.int32), settings),
        )


def known_accesses(study: Study, at: int, *, makers: bool = True) -> AccessLog:
    """Return the accesses known at a moment: those before it and, of the cells that appear, the makers'.

    Cells are node numbers: `len(study.people)` + cell.
    """
    before = int(np.searchsorted(study.at, at))
    new = np.flatnonzero((study.times == at) & (study.makers >= 0) & makers)
    cells = np.concatenate([study.accessed[:before], new]) + len(study.people)
    return AccessLog(
        agents=np.concatenate([study.agents[:before], study.makers[new]]),
        cells=cells.astype(np.int32),
        at=np.concatenate([study.at[:before], study.times[new]]),
    )


def node_table(study: Study, vectors: npt.NDArray[np.float32]) -> NodeTable:
    """Return agents without a position, then all cells of a study."""
    agents, cells = len(study.people), len(study.cells)
    count = agents + cells
    is_cell = np.arange(count) >= agents
    return NodeTable(
        types=np.where(is_cell, NodeType.CELL, NodeType.AGENT).astype(np.int8),
        layers=np.zeros(count, np.int8),
        vectors=np.concatenate([np.zeros((agents, vectors.shape[1]), np.float32), vectors[study.cells]]),
        placed=is_cell.copy(),
        knowledge_types=np.where(is_cell, KNOWLEDGE, -1).astype(np.int8),
        saliences=np.where(is_cell, SALIENCE, 0).astype(np.float32),
        makers=np.concatenate([np.full(agents, -1, np.int32), study.makers]),
        created_at=np.concatenate([np.zeros(agents, np.int64), study.times]),
        last_access=np.concatenate([np.zeros(agents, np.int64), study.times]),
        superseded_by=np.full(count, -1, np.int32),
        pending=np.full(count, PENDING_SILENT, np.int8),
        interests=np.zeros((count, len(KnowledgeType)), np.float32),
        radii=np.full(count, np.nan),
        quarantined=np.zeros(count, np.bool_),
    )


def created(nodes: Nodes, origins: npt.NDArray[np.int32], settings: Settings) -> Diffs:
    """Return the `created` diffs of some cells (spec 3.1, 4.1)."""
    count = len(origins)
    saliences = np.full(count, SALIENCE, np.float32)
    kinds = np.full(count, KNOWLEDGE, np.int8)
    rows = torch.from_numpy(origins).long()
    return Diffs(
        numbers=as_tensor(np.arange(count, dtype=np.int64)),
        origins=as_tensor(origins),
        types=as_tensor(np.full(count, DiffType.CREATED, np.int8)),
        knowledge_types=as_tensor(kinds),
        images=nodes.images[rows],
        lengths=nodes.lengths[rows],
        saliences=as_tensor(saliences),
        energies=as_tensor(units(initial_energy(saliences, kinds))),
        max_hops=as_tensor(np.full(count, settings.max_hops, np.int32)),
    )


def days_between(at: int, times: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """Return the days from each time to a moment."""
    days: npt.NDArray[np.float64] = (at - times) / DAY
    return days
