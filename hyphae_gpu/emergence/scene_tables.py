"""Scenes from epoch to epoch: what the store has to know of a change (spec 6.4)."""

from __future__ import annotations

import numpy as np

from hyphae_gpu.backends.protocol import Backend
from hyphae_gpu.emergence.contradictions import Texts
from hyphae_gpu.emergence.naming import name_scenes
from hyphae_gpu.emergence.scenes import Scenes, crystallise
from hyphae_gpu.state import F32, F64, I8, Flags, SceneChanges, SceneTable, SwarmState
from hyphae_gpu.swarm import Adjacency


def next_scenes(
    state: SwarmState,
    images: I8,
    lengths: F64,
    saliences: F32,
    live: Flags,
    adjacency: Adjacency,
    *,
    updated: Flags,
    resolution: tuple[int, int],
    backend: Backend,
    texts: Texts | None,
) -> SceneChanges:
    """Find the scenes of the next epoch's graph (`scenes.crystallise`), make them the state's, return what changed.

    updated bool [n]: the nodes that rows have given another content since the last epoch.
    """
    found = crystallise(
        state.nodes,
        images,
        lengths,
        saliences,
        live,
        adjacency,
        state.node_scenes,
        following=state.next_scene,
        resolution=resolution,
        backend=backend,
    )
    return record_scenes(state, found, updated, texts)


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
    state.scenes, state.next_scene, state.node_scenes = now, found.following, found.of_nodes
    return changes
