"""What the engine holds between two epochs, and what one epoch changed: the contract between engine and store.

Everything is numpy, indexed by node number unless said otherwise. Times are int64 microseconds since 1970 UTC; -1 in a
number column stands for "none".
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

I8 = npt.NDArray[np.int8]
I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]
F32 = npt.NDArray[np.float32]
F64 = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

#: `NodeTable.pending` of a node that no epoch has taken in yet.
SETTLED, PENDING_CREATED, PENDING_UPDATED, PENDING_SILENT = 0, 1, 2, 3


@dataclass(kw_only=True)
class NodeTable:
    """Every node of the project, row = node number.

    types, layers int8; vectors float32 [n, d], zeros where placed is False (an agent that has no position yet);
    knowledge_types int8, -1 for other nodes than cells; saliences float32, s0 as given; makers int32: a cell's agent,
    a beacon's owner; created_at, last_access int64; superseded_by int32; pending int8 (constants above: `created` and
    `updated` cells make a diff when the next epoch takes them in, silent ones none); interests float32 [n, 9], zeros
    where nothing was declared; radii float64, NaN where the beacon gave none; quarantined bool.

    The columns that contradictions need may be left out, which stands for "none" everywhere: claim_subjects,
    claim_values int32, one code a distinct text; stances float32, NaN for none; told_superseded int32: the superseding
    cell about which an epoch has told already (6.6).
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

    def __post_init__(self) -> None:
        count = len(self.types)
        for name in ("claim_subjects", "claim_values", "told_superseded"):
            if not len(getattr(self, name)):
                setattr(self, name, np.full(count, -1, np.int32))
        if not len(self.stances):
            self.stances = np.full(count, np.nan, np.float32)

    def __len__(self) -> int:
        return len(self.types)


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


#: Why two cells oppose each other (spec 6.2 a, b, c); a table of contradictions holds the word's place.
REASONS = ("claim", "stance", "verifier")


@dataclass(kw_only=True)
class KnownPairs:
    """Contradictions that were raised before, sorted by (a, b): a pair is raised once, ever (spec 6.2).

    a, b int32 node numbers, a < b; open bool: nobody and nothing has resolved it.
    """

    a: I32 = field(default_factory=lambda: np.zeros(0, np.int32))
    b: I32 = field(default_factory=lambda: np.zeros(0, np.int32))
    open: Flags = field(default_factory=lambda: np.zeros(0, np.bool_))

    def __len__(self) -> int:
        return len(self.a)


@dataclass(kw_only=True)
class ContradictionTable:
    """Contradictions as they were raised, sorted by (a, b) (spec 6.2, 6.3).

    a, b int32 node numbers, a < b; similarities float64; reasons int8, places in `REASONS`; open bool; resolutions: of
    each what a policy decided, as plain values for JSON, None while it is open.
    """

    a: I32 = field(default_factory=lambda: np.zeros(0, np.int32))
    b: I32 = field(default_factory=lambda: np.zeros(0, np.int32))
    similarities: F64 = field(default_factory=lambda: np.zeros(0, np.float64))
    reasons: I8 = field(default_factory=lambda: np.zeros(0, np.int8))
    open: Flags = field(default_factory=lambda: np.zeros(0, np.bool_))
    resolutions: list[dict[str, Any] | None] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.a)

    @staticmethod
    def concat(parts: list[ContradictionTable]) -> ContradictionTable:
        """Return the rows of all parts, one part after the other."""
        parts = [ContradictionTable(), *parts]
        columns = {
            name: np.concatenate([getattr(p, name) for p in parts])
            for name in ("a", "b", "similarities", "reasons", "open")
        }
        return ContradictionTable(**columns, resolutions=[one for p in parts for one in p.resolutions])


@dataclass(kw_only=True)
class Resolved:
    """Known contradictions that are over, and how: a, b int32, a < b; resolutions as in `ContradictionTable`."""

    a: I32 = field(default_factory=lambda: np.zeros(0, np.int32))
    b: I32 = field(default_factory=lambda: np.zeros(0, np.int32))
    resolutions: list[dict[str, Any]] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.a)


@dataclass(kw_only=True)
class Supersessions:
    """Cells that others supersede (spec 6.6): losers, winners int32; a loser is listed once."""

    losers: I32 = field(default_factory=lambda: np.zeros(0, np.int32))
    winners: I32 = field(default_factory=lambda: np.zeros(0, np.int32))

    def __len__(self) -> int:
        return len(self.losers)

    @staticmethod
    def concat(parts: list[Supersessions]) -> Supersessions:
        """Return the rows of all parts (one at least), one part after the other."""
        return Supersessions(
            losers=np.concatenate([p.losers for p in parts]), winners=np.concatenate([p.winners for p in parts])
        )


@dataclass(kw_only=True)
class SceneTable:
    """Scenes (spec 6.4), ascending by number: row = scene. By default none.

    numbers, sizes (cells), epochs (the first that had it) int32; names: a few telling words, empty where no cell has
    any.
    """

    numbers: I32 = field(default_factory=lambda: np.zeros(0, np.int32))
    sizes: I32 = field(default_factory=lambda: np.zeros(0, np.int32))
    epochs: I32 = field(default_factory=lambda: np.zeros(0, np.int32))
    names: list[str] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.numbers)


@dataclass(kw_only=True)
class SceneChanges:
    """What an epoch changed of scenes. By default nothing.

    nodes int32: those that are in another scene than before, and scenes int32: in which, -1 for none; written: scenes
    that are new or whose size or name changed; ended int32: numbers of scenes that are no more.
    """

    nodes: I32 = field(default_factory=lambda: np.zeros(0, np.int32))
    scenes: I32 = field(default_factory=lambda: np.zeros(0, np.int32))
    written: SceneTable = field(default_factory=SceneTable)
    ended: I32 = field(default_factory=lambda: np.zeros(0, np.int32))


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
    index: IndexArrays
    contradictions: KnownPairs = field(default_factory=KnownPairs)
    #: the scenes there are, the number that the next new one gets, and the scene of each node, int32 [n], -1 for none
    scenes: SceneTable = field(default_factory=SceneTable)
    next_scene: int = 0
    node_scenes: I32 = field(default_factory=lambda: np.zeros(0, np.int32))

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
    #: nodes whose position moved, and the new vectors [k, d]
    moved: I32
    moved_vectors: F32
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
    #: the whole index after the epoch, or None where nothing was added
    index: IndexArrays | None
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
