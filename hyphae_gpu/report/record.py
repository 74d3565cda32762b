"""What a report is made from: plain values that any store or test can supply, sums made where the rows are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Sent:
    """A diff, and how far it came.

    subject, title: what its origin is about, as a person names it, and its first sentence; knowledge_type, diff_type:
    words of the vocabulary; maker: an agent's id or None; energy: in the paper's units; agents: how many distinct
    agents have it in their inbox; hops: most of them to one of these.
    """

    subject: str
    title: str
    knowledge_type: str
    diff_type: str
    maker: str | None
    energy: float
    agents: int = 0
    hops: int = 0


@dataclass(frozen=True, kw_only=True)
class Received:
    """An inbox entry.

    via: None for gossip, else the beacon's id; way: what it passed between its origin and its receiver, in order, as a
    person names it; own: whether the agent works with the last of them (has an access of it).
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
class Epoch:
    """One epoch: its number, the time it stood for (ISO 8601), wall seconds by stage, counts, state hash.

    A stage named ``topology.hnsw`` is a part of stage ``topology``. counts as the engine keeps them; read here, where
    present: diffs, deliveries, rounds; reach, quartiles of the nodes that a diff reached; by_type, a knowledge type's
    diffs, hop_bound, node_bound, hops_max and reach_mean (spec 4.3).
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

    title, about: what was run, in words (plain text; about may be empty); nodes: count by node type; sizes: every
    agent's inbox, in any order; hops: inbox entries by hops from the origin; types: by knowledge type; farthest: the
    diffs that came farthest, the farthest first; inboxes, caught: what to show of agents and beacons; open_shares: of
    an agent, the share of diffs whose gate it opened; settings: name -> value.
    """

    project: str
    title: str = "What travelled through the swarm"
    about: str = ""
    nodes: Mapping[str, int] = field(default_factory=dict)
    sizes: Sequence[InboxSize] = ()
    hops: Mapping[int, int] = field(default_factory=dict)
    types: Sequence[TypeTotal] = ()
    farthest: Sequence[Sent] = ()
    inboxes: Sequence[Inbox] = ()
    caught: Sequence[Inbox] = ()
    epochs: Sequence[Epoch] = ()
    topology: Topology = field(default_factory=Topology)
    open_shares: Mapping[str, float] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
