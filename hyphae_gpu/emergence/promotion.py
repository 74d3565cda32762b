"""Emergent consensus: which diffs are promoted, and what carries them (spec 5)."""

from __future__ import annotations

from dataclasses import dataclass, field, fields

import numpy as np

from hyphae_gpu.arrays import F32, I8, I32, I64, Flags
from hyphae_gpu.emerged import NewNodes, PromotionTable
from hyphae_gpu.state import NodeTable
from hyphae_gpu.vocabulary import (
    PROMOTED_TYPES,
    PROMOTION_NODES,
    PROMOTION_SALIENCE,
    PROMOTION_SCENES,
    DiffType,
    NodeType,
)

#: Counts of (diff, scene) that are held at once.
_COUNTS_AT_ONCE = 1 << 24


@dataclass(frozen=True, kw_only=True)
class Counted:
    """Nodes that a diff was delivered to and that count for a scene, in order of rows: one row a (diff, scene, node).

    rows int64, diff rows; scenes int64, from 0 on in order of scene number; nodes, energies int32.
    """

    rows: I64
    scenes: I64
    nodes: I32
    energies: I32

    def take(self, which: I64 | Flags) -> Counted:
        """Return some rows, by number or by mask."""
        return Counted(**{spec.name: getattr(self, spec.name)[which] for spec in fields(self)})

    @staticmethod
    def concat(parts: list[Counted]) -> Counted:
        """Return the rows of all parts, one part after the other."""
        none = Counted(
            rows=np.zeros(0, np.int64),
            scenes=np.zeros(0, np.int64),
            nodes=np.zeros(0, np.int32),
            energies=np.zeros(0, np.int32),
        )
        columns = [spec.name for spec in fields(Counted)]
        return Counted(**{name: np.concatenate([getattr(p, name) for p in [none, *parts]]) for name in columns})


@dataclass(kw_only=True)
class Confirmed:
    """Diffs that a rule of spec 5.1 would promote, contradictions aside, ascending by row.

    rows int64, diff rows; carriers int32 and energies int32: v* and what it holds (spec 5.2); scenes, counts: of each
    the scenes that count, those with most counted nodes first (ties: lowest number), and how many nodes each has;
    carried: of each the counted nodes of the first scene, or the scenes' own nodes, greatest energy first.
    """

    rows: I64 = field(default_factory=lambda: np.zeros(0, np.int64))
    carriers: I32 = field(default_factory=lambda: np.zeros(0, np.int32))
    energies: I32 = field(default_factory=lambda: np.zeros(0, np.int32))
    scenes: list[I32] = field(default_factory=list)
    counts: list[I32] = field(default_factory=list)
    carried: list[I32] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.rows)


def promotable(layer: int, types: I8, knowledge_types: I8, saliences: F32) -> Flags:
    """Return which diffs may be promoted to a layer, 1 or 2, if enough of the swarm has them; bool [b] (spec 5.1).

    types, knowledge_types int8, saliences float32 of the diffs. Contradiction diffs never are.
    """
    may: Flags = np.isin(knowledge_types, PROMOTED_TYPES[layer]) & (types != DiffType.CONTRADICTION)
    if layer == 2:
        may &= saliences.astype(np.float64) >= PROMOTION_SALIENCE
    return may


def confirmed_by_scene(counted: Counted, scenes: I32) -> Confirmed:
    """Return the diffs that reached enough nodes of one scene: layer 0 -> 1 (spec 5.1, 5.2).

    scenes int32: the scenes' numbers, ascending, that `counted.scenes` are places in.
    """
    found = Confirmed()
    block = max(1, _COUNTS_AT_ONCE // max(1, len(scenes)))
    rows = int(counted.rows.max()) + 1 if len(counted.rows) else 0
    for first in range(0, rows, block):
        here = slice(*np.searchsorted(counted.rows, (first, first + block)).tolist())
        _confirm_block(found, counted.take(np.arange(here.start, here.stop)), first, scenes)
    return found


def _confirm_block(found: Confirmed, counted: Counted, first: int, scenes: I32) -> None:
    """Add the confirmed diffs of some rows, from `first` on."""
    if not len(counted.rows):
        return
    local, size = counted.rows - first, len(scenes)
    counts = np.bincount(local * size + counted.scenes, minlength=(int(local[-1]) + 1) * size).reshape(-1, size)
    best = counts.argmax(axis=1)
    enough = counts[np.arange(len(counts)), best] >= PROMOTION_NODES
    carrying = counted.take(enough[local] & (counted.scenes == best[local]))
    which = np.flatnonzero(enough)
    carried = _by_energy(carrying, which + first)
    found.rows = np.concatenate([found.rows, which + first])
    _add_carried(found, carried, carrying)
    for row in which:
        having = np.flatnonzero(counts[row] >= PROMOTION_NODES)
        having = having[np.argsort(-counts[row, having], kind="stable")]
        found.scenes.append(scenes[having])
        found.counts.append(counts[row, having].astype(np.int32))


def confirmed_by_scenes(counted: Counted) -> Confirmed:
    """Return the diffs that reached the own nodes of enough scenes: layer 1 -> 2; `counted.nodes` are scenes."""
    rows, sizes = np.unique(counted.rows, return_counts=True)
    which = rows[sizes >= PROMOTION_SCENES]
    carrying = counted.take(np.isin(counted.rows, which))
    found = Confirmed(rows=which)
    _add_carried(found, _by_energy(carrying, which), carrying)
    found.scenes = list(found.carried)
    found.counts = [np.ones(len(nodes), np.int32) for nodes in found.carried]
    return found


def _by_energy(carrying: Counted, rows: I64) -> list[I64]:
    """Return for each diff row its counted nodes' places, greatest energy first (ties: lowest number)."""
    order = np.lexsort((carrying.nodes, -carrying.energies.astype(np.int64), carrying.rows))
    starts = np.searchsorted(carrying.rows[order], rows)
    ends = np.searchsorted(carrying.rows[order], rows, side="right")
    return [order[start:end] for start, end in zip(starts, ends, strict=True)]


def _add_carried(found: Confirmed, carried: list[I64], carrying: Counted) -> None:
    leaders = np.array([places[0] for places in carried], np.int64)
    found.carriers = np.concatenate([found.carriers, carrying.nodes[leaders]])
    found.energies = np.concatenate([found.energies, carrying.energies[leaders]])
    found.carried += [carrying.nodes[places] for places in carried]


def promoted_nodes(table: PromotionTable, nodes: NodeTable, saliences: F32) -> NewNodes:
    """Return the nodes that promotions make: the origin cells' text, vector and decayed salience, a layer up (5.2)."""
    cells = table.cells
    return NewNodes(
        types=np.full(len(cells), NodeType.CELL, np.int8),
        layers=table.layers,
        vectors=nodes.vectors[cells],
        knowledge_types=nodes.knowledge_types[cells],
        saliences=saliences[cells],
        makers=nodes.makers[cells],
        made_of=cells,
        patterns=np.zeros(len(cells), np.bool_),
        texts=[None] * len(cells),
        members=[np.zeros(0, np.int32)] * len(cells),
    )
