"""Crystallisation: scenes are the communities of near and copy links, and keep their numbers (spec 6.4)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hyphae_gpu.arrays import F32, F64, I8, I32, I64, Flags
from hyphae_gpu.backends.protocol import Backend
from hyphae_gpu.emergence.decay import GRID
from hyphae_gpu.emergence.nearest import nearest_rows
from hyphae_gpu.state import EdgeTable, NodeTable
from hyphae_gpu.vectors import lengths as lengths_of
from hyphae_gpu.vectors import quantise
from hyphae_gpu.vocabulary import EdgeKind, NodeType
from hyphae_gpu.weights import near_weights, whole_weights

#: Cells that a scene has at least (spec 6.4).
SMALLEST_SCENE = 5


@dataclass(frozen=True, kw_only=True)
class Links:
    """Symmetric weighted links by node: offsets int64 [n + 1]; targets int32, weights int64 >= 1 [m]."""

    offsets: I64
    targets: I32
    weights: I64


@dataclass(frozen=True, kw_only=True)
class Scenes:
    """An epoch's scenes, row = scene, ascending by number.

    of_nodes int32 [n]: the number of the scene that a live cell belongs to, or that is nearest to an agent or beacon,
    -1 for none. numbers, sizes (cells) int32 [k]; centroids float32 unit vectors [k, d], zeros where `placed` bool [k]
    is False (the sum was zero); changed bool [k]: the scene is new or its cells are others than before.
    """

    of_nodes: I32
    numbers: I32
    sizes: I32
    centroids: F32
    placed: Flags
    changed: Flags
    #: the cells of each scene: offsets int64 [k + 1] and cells int32, scene by scene, ascending
    offsets: I64
    cells: I32

    def __len__(self) -> int:
        return len(self.numbers)


def crystallise(
    nodes: NodeTable,
    images: I8,
    lengths: F64,
    saliences: F32,
    live: Flags,
    links: EdgeTable,
    before: I32,
    *,
    following: int,
    resolution: tuple[int, int],
    backend: Backend,
) -> Scenes:
    """Return the scenes of an epoch's graph.

    images int8 [n, d] and lengths float64 [n] of the nodes' present vectors, saliences float32 [n] the decayed ones,
    live bool [n]: the live cells; links: near and copy edges of layer 0, both ways, in any order; before int32 [n]:
    `Scenes.of_nodes` of the epoch before, -1 for new nodes; following: the number that the first new scene gets;
    resolution: numerator and denominator.
    """
    cells = np.flatnonzero(live & (nodes.layers == 0)).astype(np.int32)
    weighted = scene_links(cells, images, lengths, links, backend)
    members = communities(weighted, cells.astype(np.int64), resolution, backend)
    sizes = np.bincount(members, minlength=len(cells))
    heads = np.flatnonzero(sizes >= SMALLEST_SCENE)
    places = np.full(len(cells), -1, np.int64)
    places[heads] = np.arange(len(heads))
    place_of_cell = places[members]

    found = kept_numbers(before[cells], place_of_cell, len(heads), following)
    of_nodes = np.full(len(nodes), -1, np.int32)
    inside = place_of_cell >= 0
    of_nodes[cells[inside]] = found[place_of_cell[inside]]

    rows = np.argsort(found)
    numbers = found[rows]
    offsets, ordered = _grouped(of_nodes, cells[inside], numbers)
    weights = np.rint(float(GRID) * saliences[ordered].astype(np.float64)).astype(np.int64)
    centroids, placed = backend.centroids(images, offsets, ordered, weights)
    changed = _changed(nodes, before, of_nodes, numbers, following)

    askers = np.flatnonzero(np.isin(nodes.types, (NodeType.AGENT, NodeType.BEACON)) & nodes.placed).astype(np.int32)
    marks = quantise(centroids[placed])
    nearest = nearest_rows(images[askers], lengths[askers], marks, lengths_of(marks))
    of_nodes[askers] = numbers[placed][nearest] if placed.any() else -1
    return Scenes(
        of_nodes=of_nodes,
        numbers=numbers,
        sizes=np.diff(offsets).astype(np.int32),
        offsets=offsets,
        cells=ordered,
        centroids=centroids,
        placed=placed,
        changed=changed,
    )


def scene_links(cells: I32, images: I8, lengths: F64, links: EdgeTable, backend: Backend) -> Links:
    """Return the near and copy edges among cells, with the weights of spec 3.12; row = place in `cells`, ascending."""
    places = np.full(len(images), -1, np.int32)
    places[cells] = np.arange(len(cells), dtype=np.int32)
    chosen = (links.kinds == EdgeKind.NEAR) | (links.kinds == EdgeKind.COPY)
    chosen &= (places[links.sources] >= 0) & (places[links.targets] >= 0)
    sources, targets, near = links.sources[chosen], links.targets[chosen], links.kinds[chosen] == EdgeKind.NEAR
    weights = np.empty(len(sources), np.int64)
    weights[near] = near_weights(backend, images, lengths, sources[near], targets[near])
    weights[~near] = whole_weights(links.weights[chosen][~near])
    rows, order = backend.order_rows(len(cells), places[sources], targets.astype(np.int64))
    return Links(offsets=rows, targets=places[targets[order]], weights=weights[order])


def communities(links: Links, numbers: I64, resolution: tuple[int, int], backend: Backend) -> I32:
    """Return the community of each node as the row of its lowest member, int32 [n] (spec 6.4).

    numbers int64 [n], ascending: the nodes' numbers.
    """
    whole = np.arange(len(numbers), dtype=np.int32)
    heads = whole
    while True:
        parts = backend.communities(links.offsets, links.targets, links.weights, numbers[heads], resolution)
        firsts = np.flatnonzero(parts == np.arange(len(parts)))
        if len(firsts) == len(heads):
            return heads[whole]
        group_of = np.full(len(parts), -1, np.int32)
        group_of[firsts] = np.arange(len(firsts), dtype=np.int32)
        groups = group_of[parts]
        offsets, targets, weights = backend.merged_links(links.offsets, links.targets, links.weights, groups)
        links = Links(offsets=offsets, targets=targets, weights=weights)
        whole, heads = groups[whole], heads[firsts]


def kept_numbers(before: I32, places: I64, count: int, following: int) -> I32:
    """Return the number of each new scene: of the old one it shares most cells with, else the next (spec 6.4).

    before int32 [m]: the old scene's number of each cell, -1 for none; places int64 [m]: its new scene, 0 to count - 1
    in order of lowest cell, -1 for none. Each number is kept once, by the larger overlap (ties: lowest old number, then
    lowest place); new scenes are numbered from `following` on, in order of place. Returns int32 [count].
    """
    both = (before >= 0) & (places >= 0)
    keys, shared = np.unique(before[both].astype(np.int64) * count + places[both], return_counts=True)
    former, place = np.divmod(keys, max(count, 1))
    numbers = np.full(count, -1, np.int32)
    taken: set[int] = set()
    for i in np.lexsort((place, former, -shared)).tolist():
        number, scene = int(former[i]), int(place[i])
        if numbers[scene] < 0 and number not in taken:
            numbers[scene] = number
            taken.add(number)
    fresh = numbers < 0
    numbers[fresh] = following + np.arange(int(fresh.sum()))
    return numbers


def _grouped(of_nodes: I32, cells: I32, numbers: I32) -> tuple[I64, I32]:
    """Return the cells of each scene: offsets int64 [k + 1] and cells, scene by scene, ascending."""
    rows = np.searchsorted(numbers, of_nodes[cells])
    offsets = np.zeros(len(numbers) + 1, np.int64)
    np.cumsum(np.bincount(rows, minlength=len(numbers)), out=offsets[1:])
    return offsets, cells[np.argsort(rows, kind="stable")]


def _changed(nodes: NodeTable, before: I32, of_nodes: I32, numbers: I32, following: int) -> Flags:
    """Return which scenes are new, lost a cell or got one."""
    moved = (nodes.types == NodeType.CELL) & (before != of_nodes)
    touched = np.concatenate([before[moved], of_nodes[moved]])
    changed: Flags = np.isin(numbers, touched) | (numbers >= following)
    return changed
