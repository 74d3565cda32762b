"""One epoch's graph: index, links, attachments, access edges, adjacency (spec 2.1-2.7)."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

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
from hyphae_gpu.topology.near import PairKeys, copy_pairs, ends, near_and_far, weights_of
from hyphae_gpu.topology.points import Standing, place
from hyphae_gpu.vocabulary import EdgeKind, EdgeType, NodeType


@dataclass(frozen=True, kw_only=True)
class TopologyRules:
    """The settings of the topology, named as in spec 1.5."""

    beacon_fanin: int = 32
    beacon_radius: float = 0.3


@dataclass(frozen=True, kw_only=True)
class Topology:
    """A refreshed graph.

    edges: the epoch's own edges, sorted by (source, target, type); adjacency: these and the declared ones whose ends
    take part; index, and whether it changed; seconds by part (hnsw, near, components, attach, csr); facts: what the run
    reports of the graph (spec 2.6), ready for JSON.
    """

    edges: EdgeTable
    adjacency: Adjacency
    index: HnswIndex
    index_changed: bool
    seconds: dict[str, float]
    facts: dict[str, Any]


def refresh(
    nodes: NodeTable,
    images: npt.NDArray[np.int8],
    lengths: npt.NDArray[np.float64],
    live: npt.NDArray[np.bool_],
    *,
    index: HnswIndex,
    declared: EdgeTable,
    pairs: AccessPairs,
    rules: TopologyRules,
    backend: Backend,
) -> Topology:
    """Return the graph of an epoch.

    images int8 [n, d] and lengths float64 [n] of the nodes' present vectors; rows of nodes that are not placed are not
    read. live bool [n]: the live cells. declared: edges that rows gave, sorted by (source, target, type); pairs: the
    access pairs that count. The result is a function of these and of `index`, which grows in place (or is replaced,
    where it has to be rebuilt): go on with the index that comes back.
    """
    clock = _Clock()
    cells = np.flatnonzero(live & (nodes.layers == 0)).astype(np.int32)
    with clock.part("hnsw"):
        standing = place(index, images, cells, backend)
    with clock.part("near"):
        near, far = near_and_far(standing, images, lengths, backend)
        copies = copy_pairs(standing)
        tables = [
            _semantic(near, EdgeKind.NEAR, images, lengths, backend),
            _semantic(far, EdgeKind.FAR, images, lengths, backend),
            _copy_edges(copies),
        ]
    with clock.part("components"):
        representatives = np.sort(standing.representatives[standing.representatives >= 0])
        linked = np.concatenate([near, far, copies])
        joining = join_components(cells, linked, representatives, images, lengths, backend)
        tables.append(_semantic(joining.pairs, EdgeKind.FAR, images, lengths, backend))
    with clock.part("attach"):
        tables += _attachments(nodes, standing, images, lengths, rules, backend)
    with clock.part("csr"):
        taking_part = np.where(nodes.types == NodeType.CELL, live, nodes.placed)
        access = edges_both_ways(pairs.agents, pairs.cells, pairs.recencies, EdgeType.CAUSAL, EdgeKind.ACCESS)
        own = concatenated([*tables, _between(access, taking_part)])
        own = in_table_order(without(own, declared, len(nodes), backend), len(nodes), backend)
        adjacency = adjacency_of(as_edges(concatenated([own, _between(declared, taking_part)])), len(nodes), backend)
    return Topology(
        edges=own,
        adjacency=adjacency,
        index=standing.index,
        index_changed=standing.rebuilt or standing.added > 0,
        seconds=clock.seconds,
        facts={
            "live_cells": len(cells),
            "points": len(standing.index),
            "duplicates": len(copies),
            "dead_share": standing.dead_share,
            "rebuilt": standing.rebuilt,
            "reachability": joining.reachability,
            "joined_components": joining.joined,
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


def _semantic(
    keys: PairKeys,
    kind: EdgeKind,
    images: npt.NDArray[np.int8],
    lengths: npt.NDArray[np.float64],
    backend: Backend,
) -> EdgeTable:
    left, right = ends(keys)
    return edges_both_ways(
        left, right, weights_of(backend.cosines(images, lengths, left, right)), EdgeType.SEMANTIC, kind
    )


def _copy_edges(keys: PairKeys) -> EdgeTable:
    return edges_both_ways(*ends(keys), np.ones(len(keys), np.float32), EdgeType.SEMANTIC, EdgeKind.COPY)


def _attachments(
    nodes: NodeTable,
    standing: Standing,
    images: npt.NDArray[np.int8],
    lengths: npt.NDArray[np.float64],
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


def _between(table: EdgeTable, taking_part: npt.NDArray[np.bool_]) -> EdgeTable:
    """Return the edges whose two ends take part."""
    return taken(table, taking_part[table.sources] & taking_part[table.targets])


def _degrees(adjacency: Adjacency, taking_part: npt.NDArray[np.bool_]) -> dict[str, float]:
    """Return least, mean and greatest number of edges that leave a node; beacons count with none (spec 1.5)."""
    degrees = np.diff(adjacency.offsets.numpy())[taking_part]
    if not len(degrees):
        return {"min": 0, "mean": 0.0, "max": 0}
    return {"min": int(degrees.min()), "mean": float(degrees.mean()), "max": int(degrees.max())}


def _edge_counts(edges: EdgeTable) -> dict[str, int]:
    """Return how many edges of each kind the epoch made; subscriptions have no kind (spec 2.1)."""
    counts = np.bincount(edges.kinds, minlength=len(EdgeKind))
    counts[EdgeKind.NONE], subscriptions = 0, int(counts[EdgeKind.NONE])
    named = {
        kind.name.lower(): int(counts[kind]) for kind in EdgeKind if kind not in (EdgeKind.NONE, EdgeKind.DECLARED)
    }
    return {**named, "subscription": subscriptions}
