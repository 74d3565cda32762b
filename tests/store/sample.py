"""Small made-up rows and epochs, and where two states differ; `expected` tells what a store holds after an epoch."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
import pyarrow as pa

from hyphae_gpu.emerged import (
    ContradictionTable,
    NewNodes,
    PromotedKeys,
    PromotionTable,
    Resolved,
    SceneChanges,
    SceneTable,
    Supersessions,
)
from hyphae_gpu.rows import Rows, schemas
from hyphae_gpu.state import (
    Checkpoint,
    DiffTable,
    EdgeTable,
    InboxKeys,
    InboxTable,
    IndexArrays,
    SwarmState,
)
from hyphae_gpu.vocabulary import DiffType, EdgeKind, EdgeType, KnowledgeType, NodeType

DAY = 86_400_000_000
NOW = 1_700_000_000_000_000


def rows(
    *,
    dimension: int = 4,
    cells: list[dict[str, Any]] | None = None,
    agents: list[dict[str, Any]] | None = None,
    beacons: list[dict[str, Any]] | None = None,
    accesses: list[dict[str, Any]] | None = None,
    edges: list[dict[str, Any]] | None = None,
    space: str = "given",
    embedder: dict[str, Any] | None = None,
) -> Rows:
    """Rows from dicts; what a cell leaves out gets a plain value, `row` counts cells first, then agents, ..."""
    kinds = {"cell": cells, "agent": agents, "beacon": beacons, "access": accesses, "edge": edges}
    plain = {"knowledge_type": 5, "salience": 0.5, "confidence": 1.0, "created_at": NOW} | {
        "embedding": [1.0] * dimension
    }
    tables, row = {}, 0
    for kind, schema in schemas(dimension).items():
        made = []
        for given in kinds[kind] or []:
            full = {"row": row} | (plain if kind == "cell" else {}) | given
            made.append({field.name: full.get(field.name) for field in schema})
            row += 1
        tables[kind] = pa.Table.from_pylist(made, schema=schema)
    return Rows(
        dimension=dimension,
        embedding_space=space,
        cells=tables["cell"],
        agents=tables["agent"],
        beacons=tables["beacon"],
        accesses=tables["access"],
        edges=tables["edge"],
        embedder_arrays=embedder or {},
    )


def swarm(cells: int = 12, agents: int = 3, beacons: int = 2, dimension: int = 4, seed: int = 0) -> Rows:
    """A little swarm with something in every column."""
    rng = np.random.default_rng(seed)

    def vector() -> list[float]:
        return [float(x) for x in rng.normal(size=dimension).astype(np.float32)]

    return rows(
        dimension=dimension,
        agents=[
            {
                "id": f"agent-{i}",
                "embedding": vector() if i % 2 else None,
                "interests": [float(np.float32(x)) for x in rng.random(9)] if i % 2 else None,
                "trust": 0.5 if i % 2 else None,
                "sponsor": "agent-0" if i else None,
            }
            for i in range(agents)
        ],
        cells=[
            {
                "id": f"cell-{i} \u00e9\u4e16",
                "text": None if i == 3 else f"text {i} \U0001f344 'quoted' \\ \t",
                "embedding": vector(),
                "knowledge_type": i % 9,
                "salience": float(np.float32(rng.random())),
                "agent": f"agent-{i % agents}" if agents and i % 4 else None,
                "created_at": NOW + i * DAY + 1,
                "supersedes": "cell-0 \u00e9\u4e16" if i == 5 else None,
                "claim_subject": "port" if i % 3 == 0 else None,
                "claim_value": "" if i % 3 == 0 else None,
                "stance": -0.5 if i % 2 else None,
                "payload": '{"a": [1, 2]}' if i % 2 else None,
            }
            for i in range(cells)
        ],
        beacons=[
            {
                "id": f"beacon-{i}",
                "agent": "agent-0",
                "text": "watch",
                "embedding": vector(),
                "interests": [0.0] * 8 + [0.25],
                "radius": 0.4 if i else None,
            }
            for i in range(beacons)
        ],
        accesses=[{"agent": "agent-0", "cell": f"cell-{i} \u00e9\u4e16", "at": NOW + i} for i in range(0, cells, 3)],
        edges=[
            {
                "src": f"cell-{i} \u00e9\u4e16",
                "tgt": f"cell-{i + 1} \u00e9\u4e16",
                "type": i % 4,
                "weight": 0.5,
                "bandwidth": 3 if i % 2 else None,
            }
            for i in range(cells - 1)
        ],
    )


def edges(keys: list[tuple[int, int, int]], kind: int = EdgeKind.NEAR, weight: float = 0.5) -> EdgeTable:
    keys = sorted(keys)
    count = len(keys)
    columns = np.array(keys, np.int64).reshape(count, 3)
    kinds = np.where(
        columns[:, 2] == EdgeType.SEMANTIC, kind, np.where(columns[:, 2] == EdgeType.CAUSAL, EdgeKind.ACCESS, 0)
    )
    return EdgeTable(
        sources=columns[:, 0].astype(np.int32),
        targets=columns[:, 1].astype(np.int32),
        types=columns[:, 2].astype(np.int8),
        kinds=kinds.astype(np.int8),
        weights=np.full(count, weight, np.float32),
        bandwidths=np.full(count, -1, np.int32),
    )


def index(points: int, dimension: int, seed: int = 0) -> IndexArrays:
    rng = np.random.default_rng(seed)
    return IndexArrays(
        founders=np.arange(points, dtype=np.int32),
        vectors=rng.normal(size=(points, dimension)).astype(np.float32),
        levels=rng.integers(1, 3, points).astype(np.int32),
        links=rng.integers(-1, max(1, points), points * 5).astype(np.int32),
        entry_point=int(points > 0) - 1,
        max_level=2,
    )


def epoch(state: SwarmState, seed: int = 0, *, diffs: int = 4, emerging: bool = True) -> Checkpoint:
    """A made-up epoch after `state` that touches every table; not `emerging`: it makes no node and no scene."""
    rng = np.random.default_rng(seed)
    count, wide = len(state.nodes), state.dimension
    cells = cells_of(state)
    agents = np.flatnonzero(state.nodes.types == 1).astype(np.int32)
    beacons = np.flatnonzero(state.nodes.types == 3).astype(np.int32)
    held = {
        key: i
        for i, key in enumerate(zip(state.topology.sources, state.topology.targets, state.topology.types, strict=True))
    }
    pairs = {
        (int(a), int(b), int(t))
        for a, b, t in zip(*rng.integers(0, count, (2, 3 * count)), rng.integers(0, 2, 3 * count), strict=True)
        if a != b
    }
    if emerging:
        # From new scenes and from a promoted node down to cells (spec 2.7).
        pairs |= {(count + i, int(cells[i]), int(EdgeType.PROMOTED)) for i in range(3)}
    going = {(int(a), int(b), int(t)) for (a, b, t), i in held.items() if i % 3 == 0} - pairs
    origins = rng.choice(cells, diffs).astype(np.int32)
    sequence = np.array([state.sequences[o] + int((origins[:i] == o).sum()) for i, o in enumerate(origins)], np.int32)
    made = DiffTable(
        numbers=state.next_diff + np.arange(diffs),
        origins=origins,
        sequence=sequence,
        types=rng.integers(0, len(DiffType), diffs).astype(np.int8),
        knowledge_types=state.nodes.knowledge_types[origins],
        vectors=state.nodes.vectors[origins],
        saliences=state.nodes.saliences[origins],
        energies=rng.random(diffs).astype(np.float32) * 10,
        units=rng.integers(1, 10000, diffs).astype(np.int32),
        max_hops=np.full(diffs, 64, np.int32),
        ttl=np.full(diffs, 2, np.int32),
        epoch_created=np.full(diffs, state.epoch + 1, np.int32),
    )
    targets = [(a, via) for a in agents for via in (-1, *beacons)]
    entries = [(a, int(d), via) for a, via in targets for d in made.numbers]
    size = len(entries)
    beaten = cells[4:][-2:].astype(np.int32)
    promotions = promoted(state, made, rng) if emerging else PromotionTable()
    ended, standing = (state.scenes.numbers[part] if emerging else agents[:0] for part in (slice(1), slice(1, 2)))
    moved = np.concatenate([agents, standing])
    return Checkpoint(
        epoch=state.epoch + 1,
        started_at=NOW + 10 * DAY + state.epoch,
        as_of=NOW + 9 * DAY,
        moved=moved,
        moved_vectors=rng.normal(size=(len(moved), wide)).astype(np.float32),
        displaced=ended,
        new_nodes=new_nodes(state, promotions, rng) if emerging else NewNodes(vectors=np.zeros((0, wide), np.float32)),
        first_new_node=count,
        accessed=cells[:2].astype(np.int32),
        accessed_at=np.full(len(cells[:2]), NOW + 5 * DAY + state.epoch),
        new_diffs=made,
        ended_diffs=state.diffs.numbers[:1],
        removed_edges=edges(sorted(going)),
        written_edges=edges(sorted(pairs), kind=EdgeKind.FAR, weight=float(np.float32(rng.random() * 0.9 + 0.05))),
        inbox=InboxTable(
            agents=np.array([e[0] for e in entries], np.int32),
            diffs=np.array([e[1] for e in entries], np.int64),
            vias=np.array([e[2] for e in entries], np.int32),
            hops=rng.integers(0, 9, size).astype(np.int32),
            energies=rng.random(size).astype(np.float32),
            scores=rng.random(size),
            resonances=rng.integers(0, 2**60, size),
            relevances=rng.random(size),
            parents=rng.integers(-1, count, size).astype(np.int32),
            places=np.tile(np.arange(diffs, dtype=np.int32), len(targets)),
            throughs=rng.integers(-1, count, size).astype(np.int32),
            path_offsets=2 * np.arange(size + 1, dtype=np.int64),
            paths=rng.integers(0, count, 2 * size).astype(np.int32),
        ),
        indexes={
            layer: index(state.epoch + points, wide, seed + layer)
            for layer, points in enumerate((count, 5, 3))
            if layer < 2 or state.epoch % 2
        },
        seconds={"gossip": 0.5},
        counts={"deliveries": 7, "cut": 1, "live_cells": 5},
        state_hash=f"hash-{state.epoch + 1}",
        settings={"fanout": 10},
        contradictions=contradictions(state, rng),
        resolved=Resolved(
            a=state.contradictions.a[state.contradictions.open],
            b=state.contradictions.b[state.contradictions.open],
            resolutions=[{"cells": [1], "reason": "superseded"}] * int(state.contradictions.open.sum()),
        ),
        superseded=Supersessions(losers=beaten, winners=cells[: len(beaten)].astype(np.int32)),
        scenes=scenes(state, rng) if emerging else SceneChanges(),
        promotions=promotions,
    )


def cells_of(state: SwarmState) -> Any:
    """The numbers of the cells that can send diffs, which those of upper layers cannot."""
    return np.flatnonzero((state.nodes.types == NodeType.CELL) & (state.nodes.layers == 0))


def promoted(state: SwarmState, made: DiffTable, rng: np.random.Generator) -> PromotionTable:
    """Of the first new diff both promotions, of the second, if there is one, that to layer 1, with no entry there."""
    rows = [(row, layer) for row, layer in ((0, 1), (0, 2), (1, 1)) if row < len(made)]
    count = len(state.nodes)
    diffs = np.array([row for row, _ in rows], np.int64)
    return PromotionTable(
        diffs=made.numbers[diffs],
        layers=np.array([layer for _, layer in rows], np.int8),
        cells=made.origins[diffs],
        nodes=(count + 2 + np.arange(len(rows))).astype(np.int32),
        carriers=rng.integers(0, count, len(rows)).astype(np.int32),
        entries=np.array([count, count + 1, -1][: len(rows)], np.int32),
        scenes=[np.array(one, np.int32) for one in ([count + 1, count], [count, count + 1], [count])[: len(rows)]],
        counts=[np.array(one, np.int32) for one in ([7, 5], [1, 1], [9])[: len(rows)]],
        carried=[rng.integers(0, count, 7 - row).astype(np.int32) for row in range(len(rows))],
    )


def new_nodes(state: SwarmState, promotions: PromotionTable, rng: np.random.Generator) -> NewNodes:
    """Two new scenes, of which one has no place, then what was promoted, then a pattern of three cells."""
    leader, *others = cells_of(state)[[1, 4, 0]].astype(np.int32).tolist()
    made_of = np.array([-1, -1, *promotions.cells.tolist(), leader], np.int32)
    count, of = len(made_of), np.maximum(made_of, 0)
    vectors = rng.normal(size=(count, state.dimension)).astype(np.float32)
    vectors[1] = 0
    made, kinds = made_of >= 0, state.nodes.knowledge_types[of]
    kinds[-1] = KnowledgeType.PATTERN
    return NewNodes(
        vectors=vectors,
        types=np.where(made, NodeType.CELL, NodeType.SCENE).astype(np.int8),
        layers=np.array([1, 1, *promotions.layers.tolist(), 0], np.int8),
        knowledge_types=np.where(made, kinds, np.int8(-1)),
        saliences=np.where(made, rng.random(count), 0.0).astype(np.float32),
        makers=np.where(made, state.nodes.makers[of], -1).astype(np.int32),
        made_of=made_of,
        patterns=np.arange(count) == count - 1,
        texts=[*[None] * (count - 1), f"a pattern, gr\u00f6\u00dfer {state.epoch}" if state.epoch % 2 else None],
        members=[*[np.zeros(0, np.int32)] * (count - 1), np.array([leader, *others], np.int32)],
    )


def scenes(state: SwarmState, rng: np.random.Generator) -> SceneChanges:
    """Two new scenes, one of them without a name; the oldest is no more, another is larger; some nodes move."""
    first = len(state.nodes)
    kept = state.scenes.numbers[1:2]
    numbers = np.concatenate([kept, np.array([first, first + 1], np.int32)])
    homes = (state.nodes.types != NodeType.SCENE) & (rng.random(len(state.nodes)) < 0.5)
    nodes = np.flatnonzero(homes).astype(np.int32)
    now = rng.choice([-1, *numbers], len(nodes)).astype(np.int32)
    moved = now != state.node_scenes[nodes]
    return SceneChanges(
        nodes=nodes[moved],
        scenes=now[moved],
        written=SceneTable(
            numbers=numbers,
            sizes=rng.integers(5, 99, len(numbers)).astype(np.int32),
            epochs=np.concatenate([state.scenes.epochs[1:2], np.full(2, state.epoch + 1, np.int32)]),
            names=[*(["larger, gr\u00f6\u00dfer"] * len(kept)), "rate, limits", ""],
        ),
        ended=state.scenes.numbers[:1],
    )


def contradictions(state: SwarmState, rng: np.random.Generator) -> ContradictionTable:
    """Three pairs of cells that no epoch has raised: open, open, decided."""
    cells = cells_of(state)[:9]
    known = set(zip(state.contradictions.a.tolist(), state.contradictions.b.tolist(), strict=True))
    pairs = [(a, b) for a in cells.tolist() for b in cells.tolist() if a < b and (a, b) not in known][:3]
    a, b = np.array(pairs, np.int32).reshape(-1, 2).T
    decision = {
        "policy": "vote",
        "winner": int(cells[0]),
        "loser": int(cells[-1]),
        "reason": 'votes "2", \\ the other 1',
    }
    return ContradictionTable(
        a=a.copy(),
        b=b.copy(),
        similarities=rng.random(len(a)),
        reasons=np.arange(len(a), dtype=np.int8),
        open=np.arange(len(a)) < 2,
        resolutions=[None, None, decision][: len(a)],
    )


def _in_order(table: Any) -> Any:
    """The rows of a table in which they have no order, sorted."""
    columns = {spec.name: getattr(table, spec.name) for spec in fields(table)}
    order = np.lexsort(list(columns.values()))
    return type(table)(**{name: column[order] for name, column in columns.items()})


def differences(one: Any, other: Any, place: str = "state") -> list[str]:
    """Where two states differ in value, dtype or shape: paths like ``state.nodes.vectors``; empty when equal."""
    if isinstance(one, InboxKeys | PromotedKeys):
        one, other = _in_order(one), _in_order(other)
    if isinstance(one, list) and len(one) == len(other) and any(hasattr(x, "__dataclass_fields__") for x in one):
        pairs = enumerate(zip(one, other, strict=True))
        return [d for i, (mine, its) in pairs for d in differences(mine, its, f"{place}[{i}]")]
    if isinstance(one, np.ndarray):
        same = (
            one.dtype == other.dtype
            and one.shape == other.shape
            and np.array_equal(one, other, equal_nan=one.dtype.kind == "f")
        )
        return [] if same else [f"{place}: {one.dtype}{one.shape} against {other.dtype}{other.shape}"]
    if hasattr(one, "__dataclass_fields__"):
        return [
            d
            for spec in fields(one)
            for d in differences(getattr(one, spec.name), getattr(other, spec.name), f"{place}.{spec.name}")
        ]
    return [] if one == other else [f"{place}: {one} against {other}"]
