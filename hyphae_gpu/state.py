"""What the engine holds between two epochs, and what one epoch changed: the contract between engine and store.

Everything is numpy, indexed by node number unless said otherwise. Times are int64 microseconds since 1970 UTC; -1 in a
number column stands for "none".
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from hyphae_gpu.arrays import F32, F64, I8, I32, I64, Flags
from hyphae_gpu.emerged import (
    ContradictionTable,
    KnownPairs,
    NewNodes,
    PromotedKeys,
    PromotionTable,
    Resolved,
    SceneChanges,
    SceneTable,
    Supersessions,
)

#: `NodeTable.pending` of a node that no epoch has taken in yet.
SETTLED, PENDING_CREATED, PENDING_UPDATED, PENDING_SILENT, PENDING_PATTERN = 0, 1, 2, 3, 4


@dataclass(kw_only=True)
class NodeTable:
    """Every node of the project, row = node number.

    types, layers int8; vectors float32 [n, d], zeros where placed is False (an agent that has no position yet);
    knowledge_types int8, -1 for other nodes than cells; saliences float32, s0 as given; makers int32: a cell's agent,
    a beacon's owner; created_at, last_access int64; superseded_by int32; pending int8 (constants above: `created`,
    `updated` and pattern cells make a diff when the next epoch takes them in, silent ones none); interests float32
    [n, 9], zeros where nothing was declared; radii float64, NaN where the beacon gave none; quarantined bool.

    Columns that may be left out, which stands for "none" everywhere: claim_subjects, claim_values int32, one code a
    distinct text; stances float32, NaN for none; told_superseded int32: the superseding cell about which an epoch has
    told already (6.6); made_of int32: of a promoted node the cell that it came from (5.2), of a pattern the cell that
    led its group (6.4).
    """

    types: I8
    layers: I8
    vectors: F32
    placed: Flags
    knowledge_types: I8
    saliences: F32
    makers: I32
    created_at: I64
    last_access: I64
    superseded_by: I32
    pending: I8
    interests: F32
    radii: F64
    quarantined: Flags
    claim_subjects: I32 = field(default_factory=lambda: np.zeros(0, np.int32))
    claim_values: I32 = field(default_factory=lambda: np.zeros(0, np.int32))
    stances: F32 = field(default_factory=lambda: np.zeros(0, np.float32))
    told_superseded: I32 = field(default_factory=lambda: np.zeros(0, np.int32))
    made_of: I32 = field(default_factory=lambda: np.zeros(0, np.int32))

    def __post_init__(self) -> None:
        count = len(self.types)
        for name in ("claim_subjects", "claim_values", "told_superseded", "made_of"):
            if not len(getattr(self, name)):
                setattr(self, name, np.full(count, -1, np.int32))
        if not len(self.stances):
            self.stances = np.full(count, np.nan, np.float32)

    def __len__(self) -> int:
        return len(self.types)

    def extended(self, new: NewNodes, at: int) -> NodeTable:
        """Return the table with nodes that an epoch made behind it, created and accessed `at` (microseconds).

        One of a zero vector has no position.
        """
        count = len(new)
        none = np.full(count, -1, np.int32)
        when = np.full(count, at, np.int64)
        more = NodeTable(
            types=new.types,
            layers=new.layers,
            vectors=new.vectors,
            placed=np.asarray(new.vectors.any(axis=1), np.bool_),
            knowledge_types=new.knowledge_types,
            saliences=new.saliences,
            makers=new.makers,
            created_at=when,
            last_access=when,
            superseded_by=none,
            pending=np.where(new.patterns, PENDING_PATTERN, SETTLED).astype(np.int8),
            interests=np.zeros((count, self.interests.shape[1]), np.float32),
            radii=np.full(count, np.nan),
            quarantined=np.zeros(count, np.bool_),
            made_of=new.made_of,
        )
        columns = ((spec.name, getattr(self, spec.name), getattr(more, spec.name)) for spec in fields(self))
        return NodeTable(**{name: np.concatenate([mine, its]) for name, mine, its in columns})


@dataclass(kw_only=True)
class AccessLog:
    """Rows of the access log, in no order: agents, cells int32 node numbers; at int64."""

    agents: I32
    cells: I32
    at: I64


@dataclass(kw_only=True)
class AccessPairs:
    """The (agent, live cell) pairs that count in an epoch (spec 1.3), sorted by (agent, cell): one row a pair.

    agents, cells int32 node numbers; recencies float32, multiples of 2^-12 in [0.05, 1].
    """

    agents: I32
    cells: I32
    recencies: F32

    def __len__(self) -> int:
        return len(self.agents)


@dataclass(kw_only=True)
class EdgeTable:
    """Edges as stored, sorted by (source, target, type): one row an edge, columns as `swarm.Edges`."""

    sources: I32
    targets: I32
    types: I8
    kinds: I8
    weights: F32
    bandwidths: I32

    def __len__(self) -> int:
        return len(self.sources)


@dataclass(kw_only=True)
class DiffTable:
    """Live diffs in number order (spec 3.1): those with ttl > 0, row i of every column is one diff.

    numbers int64; origins int32; sequence int32, the origin's sequence number; types, knowledge_types int8;
    vectors float32 [b, d]; saliences float32; energies float32, in the paper's units as stored; units int32,
    E0 in 1/1024; max_hops int32; ttl int32, epochs left; epoch_created int32.
    """

    numbers: I64
    origins: I32
    sequence: I32
    types: I8
    knowledge_types: I8
    vectors: F32
    saliences: F32
    energies: F32
    units: I32
    max_hops: I32
    ttl: I32
    epoch_created: I32

    def __len__(self) -> int:
        return len(self.numbers)


@dataclass(kw_only=True)
class InboxKeys:
    """Which (agent, diff, via) the inbox already holds, for live diffs: agents int32, diffs int64, vias int32.

    vias is -1 for gossip, else the beacon's node number.
    """

    agents: I32
    diffs: I64
    vias: I32


@dataclass(kw_only=True)
class IndexArrays:
    """One HNSW index as plain arrays (spec 2.2, 2.6); row = point, in order of addition.

    founders int32: the node whose vector made the point; vectors float32 [p, d], the unit vectors that the index holds;
    levels int32; links int32, the neighbour table of every point, point after point, -1 for empty places;
    entry_point, max_level as the index has them.
    """

    founders: I32
    vectors: F32
    levels: I32
    links: I32
    entry_point: int
    max_level: int

    def __len__(self) -> int:
        return len(self.founders)

    @classmethod
    def empty(cls, dimension: int) -> IndexArrays:
        """Return an index without points."""
        none = np.zeros(0, np.int32)
        vectors = np.zeros((0, dimension), np.float32)
        return cls(founders=none, vectors=vectors, levels=none, links=none, entry_point=-1, max_level=-1)


@dataclass(kw_only=True)
class SwarmState:
    """A whole project after `epoch` epochs, as the store has it."""

    epoch: int
    dimension: int
    nodes: NodeTable
    accesses: AccessLog
    #: edges that rows gave (kind declared, subscription, promoted)
    declared: EdgeTable
    #: edges that the last epoch made (kinds near, far, attach, copy, access; a beacon's subscriptions)
    topology: EdgeTable
    diffs: DiffTable
    next_diff: int
    #: how many diffs each node has made, int32 [n]
    sequences: I32
    delivered: InboxKeys
    #: the indexes of layers 0, 1 and 2
    indexes: list[IndexArrays]
    contradictions: KnownPairs = field(default_factory=KnownPairs)
    #: the scenes there are, and the scene of each node, int32 [n]
    scenes: SceneTable = field(default_factory=SceneTable)
    node_scenes: I32 = field(default_factory=lambda: np.zeros(0, np.int32))
    #: what live diffs were promoted to before
    promoted: PromotedKeys = field(default_factory=PromotedKeys)

    def __post_init__(self) -> None:
        if not len(self.node_scenes):
            self.node_scenes = np.full(len(self.nodes), -1, np.int32)


@dataclass(kw_only=True)
class InboxTable:
    """New inbox entries, in the order agent, via, place: one row an entry (spec 3.14).

    agents int32; diffs int64; vias int32 (-1 for gossip, else the beacon's node number); hops int32; energies float32,
    the paper's units; scores float64; resonances int64; relevances float64, NaN through a beacon; parents int32, -1 for
    none; places int32, from 0 within (agent, via); throughs int32: the neighbour from which most of the resonance came,
    -1 for none; paths int32: the way of each entry from the receiver back to the origin, at path_offsets[i] :
    path_offsets[i + 1] (int64, one more than rows).
    """

    agents: I32
    diffs: I64
    vias: I32
    hops: I32
    energies: F32
    scores: F64
    resonances: I64
    relevances: F64
    parents: I32
    places: I32
    throughs: I32
    path_offsets: I64
    paths: I32

    def __len__(self) -> int:
        return len(self.agents)


@dataclass(kw_only=True)
class Checkpoint:
    """All that one epoch changed; the store writes it in one transaction (spec 8.3).

    Every node's pending mark is cleared by it, and every live diff's ttl falls by one, apart from what is listed.
    """

    epoch: int
    started_at: int
    as_of: int
    #: nodes that were there before and moved, the new vectors [k, d], and those that have no position any more
    moved: I32
    moved_vectors: F32
    displaced: I32
    #: nodes that the epoch made, in this order, and the first one's number
    new_nodes: NewNodes
    first_new_node: int
    #: nodes whose last_access changed, and to when
    accessed: I32
    accessed_at: I64
    #: diffs made in this epoch, ttl as after it
    new_diffs: DiffTable
    #: numbers of older diffs that ended before their ttl did
    ended_diffs: I64
    #: edges gone from `topology` (their keys), and those that came or changed
    removed_edges: EdgeTable
    written_edges: EdgeTable
    inbox: InboxTable
    #: the whole index after the epoch of each layer that changed, by layer
    indexes: dict[int, IndexArrays]
    seconds: dict[str, float]
    counts: dict[str, Any]
    state_hash: str
    settings: dict[str, Any] = field(default_factory=dict)
    #: contradictions raised in this epoch, and those known before that are over now
    contradictions: ContradictionTable = field(default_factory=ContradictionTable)
    resolved: Resolved = field(default_factory=Resolved)
    #: cells superseded by policy, and by rows that this epoch took in: both columns of the loser are set
    superseded: Supersessions = field(default_factory=Supersessions)
    scenes: SceneChanges = field(default_factory=SceneChanges)
    promotions: PromotionTable = field(default_factory=PromotionTable)
