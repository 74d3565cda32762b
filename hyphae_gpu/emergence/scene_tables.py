"""Scenes from epoch to epoch: what the store has to know of a change, and the scenes' own nodes (spec 1.4, 6.4)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hyphae_gpu.arrays import F32, F64, I8, I32, Flags
from hyphae_gpu.backends.protocol import Backend
from hyphae_gpu.emerged import NewNodes, SceneChanges, SceneTable
from hyphae_gpu.emergence.contradictions import Texts
from hyphae_gpu.emergence.naming import name_scenes
from hyphae_gpu.emergence.scenes import Scenes, crystallise
from hyphae_gpu.state import EdgeTable, NodeTable, SwarmState
from hyphae_gpu.vocabulary import NodeType


@dataclass(frozen=True, kw_only=True)
class SceneNodes:
    """What becomes of the scenes' own nodes (spec 1.4): each stands at its scene's centroid, in layer 1.

    new: nodes of new scenes, numbered from the first free number on; moved int32 and vectors float32 [k, d]: those that
    stand elsewhere now; displaced int32: those that have no place any more, since the scene ended or its centroid is
    zero.
    """

    new: NewNodes
    moved: I32
    vectors: F32
    displaced: I32


def next_scenes(
    state: SwarmState,
    images: I8,
    lengths: F64,
    saliences: F32,
    live: Flags,
    links: EdgeTable,
    *,
    updated: Flags,
    resolution: tuple[int, int],
    backend: Backend,
    texts: Texts | None,
) -> tuple[SceneChanges, SceneNodes]:
    """Find the scenes of the next epoch's graph (`scenes.crystallise`), make them the state's, return what changed.

    updated bool [n]: the nodes that rows have given another content since the last epoch. A new scene's number is that
    of its node, the next free one; the caller adds the nodes.
    """
    found = crystallise(
        state.nodes,
        images,
        lengths,
        saliences,
        live,
        links,
        state.node_scenes,
        following=len(state.nodes),
        resolution=resolution,
        backend=backend,
    )
    nodes = scene_nodes(state.nodes, state.scenes, found)
    return record_scenes(state, found, updated, texts), nodes


def scene_nodes(nodes: NodeTable, before: SceneTable, found: Scenes) -> SceneNodes:
    """Return what becomes of the scenes' own nodes, where `before` were the scenes of the last epoch."""
    known = found.numbers < len(nodes)
    numbers, centroids, placed = found.numbers[known], found.centroids[known], found.placed[known]
    there = nodes.placed[numbers]
    moved = placed & (~there | (nodes.vectors[numbers] != centroids).any(axis=1))
    ended = before.numbers[~np.isin(before.numbers, found.numbers)]
    lost = np.concatenate([numbers[~placed & there], ended[nodes.placed[ended]]])
    fresh = np.flatnonzero(~known)
    return SceneNodes(
        new=NewNodes(
            types=np.full(len(fresh), NodeType.SCENE, np.int8),
            layers=np.ones(len(fresh), np.int8),
            vectors=found.centroids[fresh],
            knowledge_types=np.full(len(fresh), -1, np.int8),
            saliences=np.zeros(len(fresh), np.float32),
            makers=np.full(len(fresh), -1, np.int32),
            made_of=np.full(len(fresh), -1, np.int32),
            patterns=np.zeros(len(fresh), np.bool_),
            texts=[None] * len(fresh),
            members=[np.zeros(0, np.int32)] * len(fresh),
        ),
        moved=numbers[moved],
        vectors=centroids[moved],
        displaced=np.sort(lost),
    )


def record_scenes(state: SwarmState, found: Scenes, updated: Flags, texts: Texts | None) -> SceneChanges:
    """Make the scenes of the next epoch those of the state, and return what changed.

    Scenes whose cells changed or were updated get a new name, where there are `texts` to make one of.
    """
    epoch = state.epoch + 1
    changed = found.changed | np.isin(found.numbers, found.of_nodes[updated])
    before = state.scenes
    known = np.isin(found.numbers, before.numbers)
    places = np.searchsorted(before.numbers, found.numbers[known])
    names, epochs = np.full(len(found), "", object), np.full(len(found), epoch, np.int32)
    names[known] = np.array(before.names, object)[places]
    epochs[known] = before.epochs[places]
    if texts is not None:
        names[changed] = name_scenes(found.offsets, found.cells, changed, texts)

    now = SceneTable(numbers=found.numbers, sizes=found.sizes, epochs=epochs, names=names.tolist())
    moved = np.flatnonzero(state.node_scenes != found.of_nodes).astype(np.int32)
    changes = SceneChanges(
        nodes=moved,
        scenes=found.of_nodes[moved],
        written=SceneTable(
            numbers=now.numbers[changed],
            sizes=now.sizes[changed],
            epochs=now.epochs[changed],
            names=names[changed].tolist(),
        ),
        ended=before.numbers[~np.isin(before.numbers, now.numbers)],
    )
    state.scenes, state.node_scenes = now, found.of_nodes
    return changes
