"""Random swarms with three layers and scenes, small enough for the plain reading of spec 5."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from hyphae_gpu.backends.cpu.backend import CpuBackend
from hyphae_gpu.clock import Clock
from hyphae_gpu.config import Settings
from hyphae_gpu.digest import DeliveryDigest
from hyphae_gpu.emerged import KnownPairs, SceneTable
from hyphae_gpu.linking import cells as settled_cells
from hyphae_gpu.progress import Silent
from hyphae_gpu.propagation import rules_of
from hyphae_gpu.state import AccessLog, AccessPairs, DiffTable, EdgeTable, InboxKeys, IndexArrays, SwarmState
from hyphae_gpu.swarm import Deliveries, Edges, Nodes
from hyphae_gpu.vectors import lengths, quantise
from hyphae_gpu.vocabulary import DiffType, EdgeKind, EdgeType, KnowledgeType, NodeType
from hyphae_gpu.wave_loop import Waves
from tests.graphs import adjacency_of
from tests.oracles import gossip, promotion

CELLS, AGENTS, SCENES, RAISED, TOP = 26, 4, 4, 3, 3
COUNT = CELLS + AGENTS + SCENES + RAISED + TOP
WEIGHTS = np.array([1.0, 0.9, 0.5, 0.25], np.float32)
#: energies are compared with a border of 16 * 1024 units elsewhere; here a few hops
ENERGIES = np.array([1500, 3000, 6000, 12000], np.int32)


@dataclass
class Layered:
    """A state whose diffs are all live, its edges, which nodes are live or stand in the graph, who accessed what."""

    state: SwarmState
    edges: Edges
    live: np.ndarray
    pairs: AccessPairs

    @property
    def nodes(self) -> Nodes:
        table = self.state.nodes
        images = quantise(table.vectors)
        return Nodes.of_images(
            images, lengths(images), types=table.types, layers=table.layers, interests=table.interests
        )


def layered(seed: int, *, limited: float = 0.0, diffs: int = 6, claims: bool = False) -> Layered:
    """Make one: cells and agents below, scenes and promoted nodes at layer 1, promoted ones at layer 2.

    claims: whether cells claim different things of few subjects.
    """
    rng = np.random.default_rng(seed)
    layers = np.repeat([0, 0, 1, 1, 2], [CELLS, AGENTS, SCENES, RAISED, TOP]).astype(np.int8)
    types = np.repeat(
        [NodeType.CELL, NodeType.AGENT, NodeType.SCENE, NodeType.CELL, NodeType.CELL],
        [CELLS, AGENTS, SCENES, RAISED, TOP],
    ).astype(np.int8)
    spread = rng.choice([0.1, 0.3, 0.8])
    vectors = (rng.normal(size=4) + spread * rng.normal(size=(COUNT, 4))).astype(np.float32)
    table = settled_cells(vectors)
    table.types, table.layers = types, layers
    table.knowledge_types[types != NodeType.CELL] = -1
    table.makers[:CELLS] = rng.integers(-1, AGENTS, CELLS)
    table.makers[:CELLS][table.makers[:CELLS] >= 0] += CELLS
    if claims:
        table.claim_subjects[:CELLS] = rng.integers(-1, 5, CELLS)
        table.claim_values[:CELLS] = rng.integers(0, 3, CELLS)
    first = CELLS + AGENTS
    scenes = np.arange(first, first + rng.integers(0, SCENES + 1)).astype(np.int32)
    homes = np.full(COUNT, -1, np.int32)
    if len(scenes):
        homes[:first] = rng.choice([-1, *scenes], first, p=[0.1, *[0.9 / len(scenes)] * len(scenes)])
    live = types == NodeType.CELL
    live &= rng.random(COUNT) < 0.95
    table.placed[first : first + SCENES] = np.isin(np.arange(first, first + SCENES), scenes)
    if rng.random() < 0.2:
        live[layers == 2] = False
    there = np.where(types == NodeType.CELL, live, table.placed)

    origins = rng.choice(np.flatnonzero(live & (layers == 0)), diffs).astype(np.int32)
    open_cells = np.unique(origins)[:2] if rng.random() < 0.4 else np.zeros(0, np.int32)
    pairs = np.unique(rng.integers(0, [AGENTS, CELLS], (30, 2)), axis=0)
    pairs = pairs[live[pairs[:, 1]]]
    state = SwarmState(
        epoch=rng.integers(0, 5).item(),
        dimension=4,
        nodes=table,
        accesses=AccessLog(agents=np.zeros(0, np.int32), cells=np.zeros(0, np.int32), at=np.zeros(0, np.int64)),
        declared=_no_edges(),
        topology=_no_edges(),
        diffs=_diffs(rng, origins, vectors, diffs),
        next_diff=1000,
        sequences=np.zeros(COUNT, np.int32),
        delivered=InboxKeys(agents=np.zeros(0, np.int32), diffs=np.zeros(0, np.int64), vias=np.zeros(0, np.int32)),
        indexes=[IndexArrays.empty(4) for _ in range(3)],
        contradictions=KnownPairs(a=open_cells[:1], b=open_cells[1:2], open=np.ones(len(open_cells) // 2, np.bool_))
        if len(open_cells) == 2
        else KnownPairs(),
        scenes=SceneTable(
            numbers=scenes,
            sizes=np.full(len(scenes), 5, np.int32),
            epochs=np.ones(len(scenes), np.int32),
            names=[""] * len(scenes),
        ),
        node_scenes=homes,
    )
    return Layered(
        state=state,
        edges=_edges(rng, layers, types, there, limited),
        live=live,
        pairs=AccessPairs(
            agents=(pairs[:, 0] + CELLS).astype(np.int32),
            cells=pairs[:, 1].astype(np.int32),
            recencies=np.ones(len(pairs), np.float32),
        ),
    )


def _no_edges() -> EdgeTable:
    none = np.zeros(0, np.int32)
    kinds = none.astype(np.int8)
    return EdgeTable(
        sources=none, targets=none, types=kinds, kinds=kinds, weights=none.astype(np.float32), bandwidths=none
    )


def _diffs(rng: np.random.Generator, origins: np.ndarray, vectors: np.ndarray, count: int) -> DiffTable:
    units = rng.choice(ENERGIES, count)
    return DiffTable(
        numbers=np.sort(rng.choice(100, count, replace=False)).astype(np.int64),
        origins=origins,
        sequence=np.zeros(count, np.int32),
        types=rng.choice([DiffType.CREATED, DiffType.UPDATED, DiffType.CONTRADICTION], count, p=[0.5, 0.3, 0.2]).astype(
            np.int8
        ),
        knowledge_types=rng.choice(
            [KnowledgeType.DECISION, KnowledgeType.CONSTRAINT, KnowledgeType.LESSON, KnowledgeType.FACT],
            count,
            p=[0.5, 0.2, 0.2, 0.1],
        ).astype(np.int8),
        vectors=vectors[origins],
        saliences=rng.choice(np.array([0.79, 0.8, 0.9], np.float32), count),
        energies=(units / 1024).astype(np.float32),
        units=units,
        max_hops=rng.choice([3, 6, 64], count, p=[0.1, 0.1, 0.8]).astype(np.int32),
        ttl=np.full(count, 3, np.int32),
        epoch_created=np.ones(count, np.int32),
    )


def _edges(rng: np.random.Generator, layers: np.ndarray, types: np.ndarray, there: np.ndarray, limited: float) -> Edges:
    """Edges within the layers, promoted ones down; beacons aside every kind of end."""
    pairs = rng.integers(0, COUNT, (COUNT * 12, 2))
    upper = rng.integers(CELLS + AGENTS, COUNT, (COUNT * 4, 2))
    pairs = np.concatenate([pairs, upper])
    above, below = layers[pairs[:, 0]], layers[pairs[:, 1]]
    kinds = np.where(above == below, rng.choice([EdgeType.SEMANTIC, EdgeType.CAUSAL], len(pairs)), EdgeType.PROMOTED)
    kept = (pairs[:, 0] != pairs[:, 1]) & (above >= below) & there[pairs].all(axis=1)
    rows = np.unique(np.column_stack([pairs, kinds])[kept], axis=0)
    kind_of = {EdgeType.SEMANTIC: EdgeKind.NEAR, EdgeType.CAUSAL: EdgeKind.DECLARED, EdgeType.PROMOTED: EdgeKind.NONE}
    promoted = rows[:, 2] == EdgeType.PROMOTED
    return Edges(
        sources=torch.from_numpy(rows[:, 0].astype(np.int32)),
        targets=torch.from_numpy(rows[:, 1].astype(np.int32)),
        types=torch.from_numpy(rows[:, 2].astype(np.int8)),
        kinds=torch.tensor([kind_of[EdgeType(t)] for t in rows[:, 2]], dtype=torch.int8),
        weights=torch.from_numpy(np.where(promoted, np.float32(1), rng.choice(WEIGHTS, len(rows))).astype(np.float32)),
        bandwidths=torch.from_numpy(
            np.where(rng.random(len(rows)) < limited, rng.integers(1, 3, len(rows)), -1).astype(np.int32)
        ),
    )


class Ran(DeliveryDigest):
    """An epoch's waves on a layered swarm, and all deliveries they ended with."""

    def __init__(self, made: Layered, settings: Settings) -> None:
        super().__init__()
        self.found: list[Deliveries] = []
        table = made.state.nodes
        there = np.where(table.types == NodeType.CELL, made.live, table.placed)
        self.waves = Waves(
            state=made.state,
            nodes=made.nodes,
            images=made.nodes.images.numpy(),
            lengths=made.nodes.lengths.numpy(),
            adjacency=adjacency_of(made.edges, COUNT),
            members={k: np.flatnonzero(there & (table.layers == k)).astype(np.int32) for k in (1, 2)},
            pairs=made.pairs,
            saliences=table.saliences,
            live=made.live.copy(),
            as_of=0,
            settings=settings,
            backend=CpuBackend(settings.threads),
            clock=Clock(Silent()),
            progress=Silent(),
            digest=self,
        )
        self.waves.run()

    def add(self, found: Deliveries) -> None:
        self.found.append(found)
        super().add(found)

    def delivered(self) -> dict[tuple[int, int], gossip.Delivery]:
        """(diff number, node) -> delivery; fails where one came twice."""
        whole = Deliveries.concat(self.found)
        columns = (whole.diffs, whole.nodes, whole.hops, whole.energies, whole.parents)
        rows = list(zip(*(column.tolist() for column in columns), strict=True))
        found = {(diff, node): gossip.Delivery(hop, energy, parent) for diff, node, hop, energy, parent in rows}
        assert len(found) == len(rows)
        return found

    def raised(self) -> list[tuple[int, int]]:
        """The contradictions raised, by wave."""
        return [pair for one in self.waves.raised for pair in zip(one.a.tolist(), one.b.tolist(), strict=True)]

    def promoted(self) -> dict[tuple[int, int], promotion.Promotion]:
        """(diff number, layer) -> promotion, energies aside."""
        table = self.waves.promotions.recorded(COUNT)
        assert table.nodes.tolist() == list(range(COUNT, COUNT + len(table)))
        return {
            (int(table.diffs[i]), int(table.layers[i])): promotion.Promotion(
                carrier=int(table.carriers[i]),
                energy=0,
                entry=int(table.entries[i]),
                scenes=list(zip(table.scenes[i].tolist(), table.counts[i].tolist(), strict=True)),
                carried=table.carried[i].tolist(),
            )
            for i in range(len(table))
        }


def plain(
    made: Layered, settings: Settings
) -> tuple[dict[tuple[int, int], gossip.Delivery], dict[tuple[int, int], promotion.Promotion]]:
    """The same by the rule: deliveries and promotions, energies aside."""
    state, table = made.state, made.state.diffs
    diffs = [
        gossip.Diff(
            number=int(table.numbers[i]),
            origin=int(table.origins[i]),
            knowledge_type=int(table.knowledge_types[i]),
            image=quantise(table.vectors[i : i + 1])[0].tolist(),
            salience=float(table.saliences[i]),
            energy=int(table.units[i]),
            max_hops=int(table.max_hops[i]),
        )
        for i in range(len(table))
    ]
    nodes, known = state.nodes, state.contradictions
    swarm = promotion.Swarm(
        types=nodes.types.tolist(),
        layers=nodes.layers.tolist(),
        scene_of=state.node_scenes.tolist(),
        makers=nodes.makers.tolist(),
        diff_types=dict(zip(table.numbers.tolist(), table.types.tolist(), strict=True)),
        takes_part=np.where(nodes.types == NodeType.CELL, made.live, nodes.placed).tolist(),
        open={*known.a.tolist(), *known.b.tolist()},
        pairs=list(zip(made.pairs.agents.tolist(), made.pairs.cells.tolist(), strict=True)),
        confirm_by=settings.confirm_by,
    )
    rules = rules_of(settings, state.epoch + 1)
    run, fired = promotion.waves(gossip.Graph(made.nodes, made.edges), diffs, rules, swarm, sweep=True)
    for one in fired.values():
        one.energy = 0
    return run.state, fired
