"""What a store has to hold after a made-up epoch, worked out in plain Python."""

from __future__ import annotations

import copy
from dataclasses import fields
from typing import Any

import numpy as np

from hyphae_gpu.emerged import KnownPairs, PromotedKeys, SceneTable
from hyphae_gpu.state import (
    PENDING_PATTERN,
    SETTLED,
    Checkpoint,
    DiffTable,
    EdgeTable,
    InboxKeys,
    NodeTable,
    SwarmState,
)
from hyphae_gpu.vocabulary import KnowledgeType


def after(state: SwarmState, done: Checkpoint) -> SwarmState:
    """What `load` has to return once `done` was written on top of `state`."""
    new = copy.deepcopy(state)
    new.epoch = done.epoch
    new.nodes.pending[:] = 0
    new.nodes = _with_made(new.nodes, done)
    made = len(done.new_nodes)
    new.sequences = np.concatenate([state.sequences, np.zeros(made, np.int32)])
    new.node_scenes = np.concatenate([state.node_scenes, np.full(made, -1, np.int32)])
    new.nodes.vectors[done.displaced] = 0
    new.nodes.placed[done.displaced] = False
    new.nodes.vectors[done.moved] = done.moved_vectors
    new.nodes.placed[done.moved] = True
    new.nodes.last_access[done.accessed] = done.accessed_at
    ttl = np.where(np.isin(state.diffs.numbers, done.ended_diffs), 0, state.diffs.ttl - 1)
    new.diffs.ttl = ttl.astype(np.int32)
    alive = ttl > 0
    new.diffs = DiffTable(
        **{
            spec.name: np.concatenate([getattr(new.diffs, spec.name)[alive], getattr(done.new_diffs, spec.name)])
            for spec in fields(DiffTable)
        }
    )
    new.next_diff += len(done.new_diffs)
    np.add.at(new.sequences, done.new_diffs.origins, 1)
    kept = edge_dict(state.topology)
    for key in edge_dict(done.removed_edges):
        kept.pop(key, None)
    kept |= edge_dict(done.written_edges)
    new.topology = done.written_edges if not kept else _edges_of(kept)
    for layer, arrays in done.indexes.items():
        new.indexes[layer] = arrays
    new.delivered = _still_alive(new, InboxKeys, state.delivered, done.inbox)
    new.promoted = _still_alive(new, PromotedKeys, state.promoted, done.promotions)
    new.nodes.superseded_by[done.superseded.losers] = done.superseded.winners
    new.nodes.told_superseded[done.superseded.losers] = done.superseded.winners
    raised = done.contradictions
    a = np.concatenate([state.contradictions.a, raised.a])
    b = np.concatenate([state.contradictions.b, raised.b])
    unresolved = np.concatenate([np.zeros(len(state.contradictions), np.bool_), raised.open])
    order = np.lexsort((b, a))
    new.contradictions = KnownPairs(a=a[order], b=b[order], open=unresolved[order])
    new.node_scenes[done.scenes.nodes] = done.scenes.scenes
    columns = ("numbers", "sizes", "epochs", "names")
    table = {row[0]: row for row in zip(*(getattr(state.scenes, name) for name in columns), strict=True)}
    table |= {row[0]: row for row in zip(*(getattr(done.scenes.written, name) for name in columns), strict=True)}
    table = {number: row for number, row in sorted(table.items()) if number not in done.scenes.ended}
    numbers, sizes, epochs, names = (list(column) for column in zip(*table.values(), strict=True))
    new.scenes = SceneTable(
        numbers=np.array(numbers, np.int32),
        sizes=np.array(sizes, np.int32),
        epochs=np.array(epochs, np.int32),
        names=names,
    )
    return new


def _with_made(nodes: NodeTable, done: Checkpoint) -> NodeTable:
    """The table with the epoch's nodes behind it: made and accessed at its time, nothing said of the rest."""
    made = done.new_nodes
    count = len(made)
    plain = {
        "types": made.types,
        "layers": made.layers,
        "vectors": made.vectors,
        "placed": (made.vectors != 0).any(axis=1),
        "knowledge_types": made.knowledge_types,
        "saliences": made.saliences,
        "makers": made.makers,
        "created_at": [done.as_of] * count,
        "last_access": [done.as_of] * count,
        "superseded_by": [-1] * count,
        "pending": [PENDING_PATTERN if pattern else SETTLED for pattern in made.patterns],
        "interests": np.zeros((count, len(KnowledgeType))),
        "radii": [np.nan] * count,
        "quarantined": [False] * count,
        "claim_subjects": [-1] * count,
        "claim_values": [-1] * count,
        "stances": [np.nan] * count,
        "told_superseded": [-1] * count,
        "made_of": made.made_of,
    }
    columns = {spec.name: getattr(nodes, spec.name) for spec in fields(NodeTable)}
    return NodeTable(**{name: np.concatenate([old, np.array(plain[name], old.dtype)]) for name, old in columns.items()})


def _still_alive(state: SwarmState, kind: Any, *parts: Any) -> Any:
    """The rows of `parts` whose diffs are alive, as `kind`."""
    names = [spec.name for spec in fields(kind)]
    columns = {name: np.concatenate([getattr(part, name) for part in parts]) for name in names}
    alive = np.isin(columns["diffs"], state.diffs.numbers)
    return kind(**{name: column[alive] for name, column in columns.items()})


def edge_dict(table: EdgeTable) -> dict[tuple[int, int, int], tuple[Any, ...]]:
    columns = [getattr(table, spec.name).tolist() for spec in fields(EdgeTable)]
    return {(s, t, k): rest for s, t, k, *rest in zip(*columns, strict=True)}


def _edges_of(kept: dict[tuple[int, int, int], Any]) -> EdgeTable:
    whole = [(*key, *kept[key]) for key in sorted(kept)]
    kinds = (np.int32, np.int32, np.int8, np.int8, np.float32, np.int32)
    columns = [np.array(column, kind) for column, kind in zip(zip(*whole, strict=True), kinds, strict=True)]
    return EdgeTable(**dict(zip([spec.name for spec in fields(EdgeTable)], columns, strict=True)))
