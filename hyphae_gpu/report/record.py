"""What a report is made from: plain values that any store or test can supply, sums made where the rows are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Sent:
    """A diff, and how far it came.

    subject, title: what its origin is about, as a person names it, and its first sentence; knowledge_type, diff_type:
    words of the vocabulary; maker: an agent's id or None; alike: of a pattern, how many agents noted it, else 0;
    energy: in the paper's units; agents: how many distinct agents have it in their inbox; hops: most of them to one of
    these.
    """

    subject: str
    title: str
    knowledge_type: str
    diff_type: str
    maker: str | None
    energy: float
    agents: int = 0
    hops: int = 0
    alike: int = 0


@dataclass(frozen=True, kw_only=True)
class Received:
    """An inbox entry.

    via: None for gossip, else the beacon's id; hop: the round of its first arrival; steps: links of the strongest way,
    None where that is not known; way: what it passed on it between its origin and its receiver, in order, as a person
    names it; own: whether the agent works with the last of them (has an access of it); down: whether the last of them
    is a scene or promoted, above the receiver.
    """

    sent: Sent
    agent: str
    epoch: int
    hop: int
    energy: float
    score: float
    via: str | None = None
    way: Sequence[str] = ()
    own: bool = False
    down: bool = False
    steps: int | None = None


@dataclass(frozen=True, kw_only=True)
class Inbox:
    """Entries under one name, the best first: what an agent received, or what a beacon caught; entries: all of them."""

    name: str
    entries: int
    shown: Sequence[Received]


@dataclass(frozen=True, kw_only=True)
class InboxSize:
    """How many entries an agent has, by gossip and through its beacons."""

    agent: str
    gossip: int = 0
    beacons: int = 0

    @property
    def entries(self) -> int:
        """All of them."""
        return self.gossip + self.beacons


@dataclass(frozen=True, kw_only=True)
class TypeTotal:
    """A knowledge type's diffs: how many, the strongest one's energy, how many of them are in an inbox, and in how many
    distinct agents' inboxes one is on average.
    """

    knowledge_type: str
    diffs: int
    energy: float
    arrived: int
    agents: float


@dataclass(frozen=True, kw_only=True)
class Scene:
    """A topic that cells gathered in (spec 6.4).

    name: its telling words, may be empty; cells; agents: those whose nearest scene it is, named: the first of their
    ids; epoch: the first that had it; vector: its centroid, of any length, None where it has no place.
    """

    id: str
    name: str
    cells: int
    agents: int = 0
    named: Sequence[str] = ()
    epoch: int
    vector: Sequence[float] | None = None


@dataclass(frozen=True, kw_only=True)
class Side:
    """One of the two cells of a contradiction.

    subject, title: as of a diff; maker: an agent's id or None; holds: its claim's value or its stance, in words, empty
    where it has none.
    """

    subject: str
    title: str
    maker: str | None
    holds: str = ""


@dataclass(frozen=True, kw_only=True)
class Contradiction:
    """Two cells that gossip brought together and that oppose each other (spec 6.2, 6.3).

    reason: claim, stance or verifier; about: the claims' subject, empty for other reasons; similarity: cosine; epoch:
    in which they met; open: nothing has resolved it; decision: how it was resolved, in words, empty while it is open;
    told: how many agents have a diff about it in their inbox, informed: the first of their ids.
    """

    a: Side
    b: Side
    reason: str
    about: str
    similarity: float
    epoch: int
    open: bool
    decision: str = ""
    told: int = 0
    informed: Sequence[str] = ()


@dataclass(frozen=True, kw_only=True)
class Promotion:
    """A diff that was promoted, and why (spec 5).

    layer: the one it was promoted to, 1 or 2; epoch: the first that promoted it; salience: the diff's; scenes: names of
    those that counted, with how many nodes had it, most first, the first few of `scene_count`; carrier: from where its
    energy went up, empty for its origin; entry: where it went on in the layer above, None where nothing was there.
    """

    sent: Sent
    layer: int
    epoch: int
    salience: float
    scenes: Sequence[tuple[str, int]]
    scene_count: int
    carrier: str
    entry: str | None


@dataclass(frozen=True, kw_only=True)
class Pattern:
    """What several agents noted alike, made one cell (spec 6.4).

    subject, title: as of a diff; agents: how many noted it, named: the first of their ids; members: of how many cells
    it was made; salience; epoch: the one that made it.
    """

    subject: str
    title: str
    agents: int
    named: Sequence[str] = ()
    members: int
    salience: float
    epoch: int


@dataclass(frozen=True, kw_only=True)
class Emerged:
    """What the swarm made of its knowledge by itself: lists that begin with what is most worth showing.

    scenes: the largest first, as many as are to be mapped; scene_count: all; scene_links: pairs of places in `scenes`
    that are nearest to each other, with their weight. contradictions, contradiction_counts: by status, open and
    resolved. promotions; promoted: (epoch, layer) -> how many. patterns; pattern_count: all.
    """

    scenes: Sequence[Scene] = ()
    scene_count: int = 0
    scene_links: Sequence[tuple[int, int, float]] = ()
    contradictions: Sequence[Contradiction] = ()
    contradiction_counts: Mapping[str, int] = field(default_factory=dict)
    promotions: Sequence[Promotion] = ()
    promoted: Mapping[tuple[int, int], int] = field(default_factory=dict)
    patterns: Sequence[Pattern] = ()
    pattern_count: int = 0


@dataclass(frozen=True, kw_only=True)
class Epoch:
    """One epoch: its number, the time it stood for (ISO 8601), wall seconds by stage, counts, state hash.

    A stage named ``topology.hnsw`` is a part of stage ``topology``. counts as the engine keeps them; read here, where
    present: diffs, deliveries, waves, rounds, sweeps, lost, throttled, repaired; promoted, how many went up in it,
    again or for the first time; met_after, how many contradictions by the hops after which their cells met; reach,
    quartiles of the nodes that a diff reached; by_type, a knowledge type's diffs, hop_bound, node_bound, hops_max and
    reach_mean (spec 4.3).
    """

    epoch: int
    as_of: str
    seconds: Mapping[str, float]
    counts: Mapping[str, Any]
    state_hash: str


@dataclass(frozen=True, kw_only=True)
class Topology:
    """The graph as stored: edges by kind; degrees: how many nodes have how many outgoing edges; duplicates: nodes that
    share another's point; dead_share: points no longer live; reachable: share of live nodes in the largest component
    before components were joined. None where it was not kept.
    """

    edges: Mapping[str, int] = field(default_factory=dict)
    degrees: Mapping[int, int] = field(default_factory=dict)
    duplicates: int | None = None
    dead_share: float | None = None
    reachable: float | None = None


@dataclass(frozen=True, kw_only=True)
class Record:
    """A whole project for `write_report`.

    title, about: what was run, in words (plain text; about may be empty); nodes: count by node type, promoted copies of
    cells aside; sizes: every agent's inbox, in any order; hops: inbox entries by hops from the origin; types: by
    knowledge type; told: diffs by diff type; farthest: the diffs that came farthest, the farthest first; inboxes,
    caught: what to show of agents and beacons; emerged: scenes, contradictions, promotions, patterns; open_shares: of
    an agent, the share of diffs whose gate it opened; settings: name -> value.
    """

    project: str
    title: str = "What travelled through the swarm"
    about: str = ""
    nodes: Mapping[str, int] = field(default_factory=dict)
    sizes: Sequence[InboxSize] = ()
    hops: Mapping[int, int] = field(default_factory=dict)
    types: Sequence[TypeTotal] = ()
    told: Mapping[str, int] = field(default_factory=dict)
    farthest: Sequence[Sent] = ()
    inboxes: Sequence[Inbox] = ()
    caught: Sequence[Inbox] = ()
    emerged: Emerged = field(default_factory=Emerged)
    epochs: Sequence[Epoch] = ()
    topology: Topology = field(default_factory=Topology)
    open_shares: Mapping[str, float] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
