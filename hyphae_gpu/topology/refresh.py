"""One epoch's graph: index, links, attachments, access edges, adjacency (spec 2.1-2.7)."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from hyphae_gpu.arrays import F64, I8, I32, Flags
from hyphae_gpu.backends.protocol import Backend
from hyphae_gpu.state import AccessPairs, EdgeTable, NodeTable
from hyphae_gpu.swarm import Adjacency
from hyphae_gpu.topology.adjacency import (
    adjacency_of,
    as_edges,
    concatenated,
    edges_both_ways,
    edges_one_way,
    in_table_order,
    taken,
    without,
)
from hyphae_gpu.topology.attach import ATTACH_COUNT, nearest_cells
from hyphae_gpu.topology.hnsw import HnswIndex
from hyphae_gpu.topology.joining import join_components
from hyphae_gpu.topology.layers import Layer, cosine_edges, layer_of, semantic_edges
from hyphae_gpu.topology.near import weights_of
from hyphae_gpu.topology.points import Standing
from hyphae_gpu.vocabulary import EdgeKind, EdgeType, NodeType


@dataclass(frozen=True, kw_only=True)
class TopologyRules:
    """The settings of the topology, named as in spec 1.5."""

    beacon_fanin: int = 32
    beacon_radius: float = 0.3


@dataclass(frozen=True, kw_only=True)
class Ground:
    """Layer 0 of an epoch's graph, before access edges and the layers above.

    links: near and copy edges, both ways, of which scenes are made (spec 6.4); others: far edges (those that join
    components too), attachments, subscriptions; seconds by part (hnsw, near, components, attach); facts: what the run
    reports of the layer (spec 2.6).
    """

    layer: Layer
    links: EdgeTable
    others: EdgeTable
    seconds: dict[str, float]
    facts: dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Topology:
    """A refreshed graph.

    edges: the epoch's own edges, sorted by (source, target, type); adjacency: these and the declared ones whose ends
    take part; layers: each layer's points and links; seconds by part (hnsw, near, components, attach, layers, csr);
    facts: what the run reports of the graph (spec 2.6), ready for JSON.
    """

    edges: EdgeTable
    adjacency: Adjacency
    layers: list[Layer]
    seconds: dict[str, float]
    facts: dict[str, Any]

    @property
    def index(self) -> HnswIndex:
        """Layer 0's index, to go on with."""
        return self.layers[0].index


def refresh(
    nodes: NodeTable,
    images: I8,
    lengths: F64,
    live: Flags,
    *,
    index: HnswIndex,
    declared: EdgeTable,
    pairs: AccessPairs,
    rules: TopologyRules,
    backend: Backend,
) -> Topology:
    """Return the graph of nodes that are all of layer 0: `ground` and `whole` in one."""
    base = ground(nodes, images, lengths, live, index=index, rules=rules, backend=backend)
    return whole(base, nodes, images, lengths, live, upper=[], declared=declared, pairs=pairs, backend=backend)


def ground(
    nodes: NodeTable,
    images: I8,
    lengths: F64,
    live: Flags,
    *,
    index: HnswIndex,
    rules: TopologyRules,
    backend: Backend,
) -> Ground:
    """Return layer 0 of an epoch's graph.

    images int8 [n, d] and lengths float64 [n] of the nodes' present vectors; rows of nodes that are not placed are not
    read. live bool [n]: the live cells. The result is a function of these and of `index`, which grows in place (or is
    replaced, where it has to be rebuilt): go on with the index that comes back.
    """
    clock = _Clock()
    cells = np.flatnonzero(live & (nodes.layers == 0)).astype(np.int32)
    with clock.part("hnsw"):
        layer = layer_of(index, images, lengths, cells, backend)
    with clock.part("near"):
        links, far = semantic_edges(layer, images, lengths, backend)
    standing = layer.standing
    with clock.part("components"):
        representatives = np.sort(standing.representatives[standing.representatives >= 0])
        linked = np.concatenate([layer.near, layer.far, layer.copies])
        joining = join_components(cells, linked, representatives, images, lengths, backend)
        joins = cosine_edges(joining.pairs, EdgeKind.FAR, images, lengths, backend)
    with clock.part("attach"):
        attachments = _attachments(nodes, standing, images, lengths, rules, backend)
    return Ground(
        layer=layer,
        links=links,
        others=concatenated([far, joins, *attachments]),
        seconds=clock.seconds,
        facts={
            "live_cells": len(cells),
            "points": len(standing.index),
            "built_by": standing.built_by,
            "duplicates": len(layer.copies),
            "dead_share": standing.dead_share,
            "rebuilt": standing.rebuilt,
            "reachability": joining.reachability,
            "joined_components": joining.joined,
        },
    )


def whole(
    base: Ground,
    nodes: NodeTable,
    images: I8,
    lengths: F64,
    live: Flags,
    *,
    upper: list[HnswIndex],
    declared: EdgeTable,
    pairs: AccessPairs,
    backend: Backend,
    node_scenes: I32 | None = None,
) -> Topology:
    """Return an epoch's graph with all its layers in one adjacency (spec 2.7).

    nodes, images, lengths, live as in `ground`, with the scenes' nodes; upper: the indexes of layers 1 and 2, treated
    like the ground's; declared: edges that rows gave, sorted by (source, target, type); pairs: the access pairs that
    count; node_scenes int32 [n]: the scene of each node, -1 (or left out) for none.
    """
    clock = _Clock()
    clock.seconds |= base.seconds
    taking_part = np.where(nodes.types == NodeType.CELL, live, nodes.placed)
    layers, tables = [base.layer], [base.links, base.others]
    with clock.part("layers"):
        for number, index in enumerate(upper, start=1):
            members = np.flatnonzero(taking_part & (nodes.layers == number)).astype(np.int32)
            layers.append(layer_of(index, images, lengths, members, backend))
            tables += semantic_edges(layers[-1], images, lengths, backend)
        tables.append(_going_down(nodes, node_scenes))
    with clock.part("csr"):
        tables.append(edges_both_ways(pairs.agents, pairs.cells, pairs.recencies, EdgeType.CAUSAL, EdgeKind.ACCESS))
        allowed = _Allowed(taking_part, nodes.layers)
        own = concatenated([allowed.of(table) for table in tables])
        own = in_table_order(without(own, declared, len(nodes), backend), len(nodes), backend)
        adjacency = adjacency_of(as_edges(concatenated([own, allowed.of(declared)])), len(nodes), backend)
    return Topology(
        edges=own,
        adjacency=adjacency,
        layers=layers,
        seconds=clock.seconds,
        facts=base.facts
        | {
            "layers": [len(layer.standing.cells) for layer in layers],
            "degrees": _degrees(adjacency, taking_part),
            "edges": _edge_counts(own),
        },
    )


class _Clock:
    """Wall-clock seconds by part."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        """Time a block."""
        start = time.perf_counter()
        yield
        self.seconds[name] = time.perf_counter() - start


def _attachments(
    nodes: NodeTable,
    standing: Standing,
    images: I8,
    lengths: F64,
    rules: TopologyRules,
    backend: Backend,
) -> tuple[EdgeTable, EdgeTable]:
    """Return agents' attach edges (spec 2.4) and beacons' subscriptions (spec 1.5)."""
    agents = np.flatnonzero((nodes.types == NodeType.AGENT) & nodes.placed).astype(np.int32)
    agent, cell, cosines = nearest_cells(standing, agents, images, lengths, backend, count=ATTACH_COUNT)
    attach = edges_both_ways(agent, cell, weights_of(cosines), EdgeType.SEMANTIC, EdgeKind.ATTACH)
    beacons = np.flatnonzero((nodes.types == NodeType.BEACON) & nodes.placed).astype(np.int32)
    beacon, cell, cosines = nearest_cells(standing, beacons, images, lengths, backend, count=rules.beacon_fanin)
    radii = np.where(np.isnan(nodes.radii), rules.beacon_radius, nodes.radii)
    heard = cosines >= radii[beacon]
    ones = np.ones(int(heard.sum()), np.float32)
    return attach, edges_one_way(cell[heard], beacon[heard], ones, EdgeType.SUBSCRIPTION, EdgeKind.NONE)


def _going_down(nodes: NodeTable, node_scenes: I32 | None) -> EdgeTable:
    """Return the promoted edges, from a scene to what belongs to it, from a promoted node to its cell (spec 2.7)."""
    scenes = np.full(len(nodes), -1, np.int32) if node_scenes is None else node_scenes
    belonging = np.flatnonzero((scenes >= 0) & np.isin(nodes.types, (NodeType.CELL, NodeType.AGENT)))
    raised = np.flatnonzero((nodes.layers > 0) & (nodes.made_of >= 0))
    sources = np.concatenate([scenes[belonging], raised]).astype(np.int32)
    targets = np.concatenate([belonging, nodes.made_of[raised]]).astype(np.int32)
    return edges_one_way(sources, targets, np.ones(len(sources), np.float32), EdgeType.PROMOTED, EdgeKind.NONE)


class _Allowed:
    """Edges between nodes that take part, within a layer or, promoted ones, down from one to another (spec 2.7)."""

    def __init__(self, taking_part: Flags, layers: I8) -> None:
        self._taking_part, self._layers = taking_part, layers
        self._one_layer = not layers.any()

    def of(self, table: EdgeTable) -> EdgeTable:
        """Return those of a table."""
        kept = self._taking_part[table.sources] & self._taking_part[table.targets]
        if not self._one_layer:
            above, below = self._layers[table.sources], self._layers[table.targets]
            kept &= (above == below) | ((table.types == EdgeType.PROMOTED) & (above > below))
        return taken(table, kept)


def _degrees(adjacency: Adjacency, taking_part: Flags) -> dict[str, float]:
    """Return least, mean and greatest number of edges that leave a node; beacons count with none (spec 1.5)."""
    degrees = np.diff(adjacency.offsets.numpy())[taking_part]
    if not len(degrees):
        return {"min": 0, "mean": 0.0, "max": 0}
    return {"min": int(degrees.min()), "mean": float(degrees.mean()), "max": int(degrees.max())}


def _edge_counts(edges: EdgeTable) -> dict[str, int]:
    """Return how many edges of each kind the epoch made, and of each type that has no kinds (spec 2.1)."""
    kinds, types = np.bincount(edges.kinds, minlength=len(EdgeKind)), np.bincount(edges.types, minlength=len(EdgeType))
    named = {kind.name.lower(): int(kinds[kind]) for kind in EdgeKind if kind not in (EdgeKind.NONE, EdgeKind.DECLARED)}
    return {**named, "subscription": int(types[EdgeType.SUBSCRIPTION]), "promoted": int(types[EdgeType.PROMOTED])}
