"""What a report is made from: plain values that any store or test can supply."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Sent:
    """A diff: number; subject (what its origin is about, as a person names it) and title (its first sentence);
    knowledge and diff type as words; maker (agent or None); energy in the paper's units; the epoch that made it.
    """

    number: int
    subject: str
    title: str
    knowledge_type: str
    diff_type: str
    maker: str | None
    energy: float
    epoch: int


@dataclass(frozen=True, kw_only=True)
class Received:
    """An inbox entry: the diff's number; via None for gossip, else the beacon's id; place from 0 within its (agent,
    via, epoch); parent: what handed it over, as a person names it, None where nothing did; own: whether the agent
    works with that parent (has an access of it).
    """

    agent: str
    diff: int
    epoch: int
    hop: int
    energy: float
    score: float
    via: str | None = None
    place: int = 0
    parent: str | None = None
    own: bool = False


@dataclass(frozen=True, kw_only=True)
class Epoch:
    """One epoch: its number, the time it stood for (ISO 8601), wall seconds by stage, counts, state hash.

    A stage named ``topology.hnsw`` is a part of stage ``topology``. counts as the engine keeps them; read here, where
    present: diffs, deliveries, rounds; reach, quartiles of the nodes that a diff reached; by_type, a knowledge type's
    diffs, energy, hop_bound, node_bound, hops_max and reach_mean (spec 4.3).
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

    title, about: what was run, in words (plain text; about may be empty); nodes: count by node type; agents: every
    agent's id; open_shares: of an agent, the share of diffs whose gate it opened; featured: agents to show, the first
    ones by inbox where empty; settings: name -> value.
    """

    project: str
    title: str = "What travelled through the swarm"
    about: str = ""
    nodes: Mapping[str, int] = field(default_factory=dict)
    agents: Sequence[str] = ()
    sent: Sequence[Sent] = ()
    received: Sequence[Received] = ()
    epochs: Sequence[Epoch] = ()
    topology: Topology = field(default_factory=Topology)
    open_shares: Mapping[str, float] = field(default_factory=dict)
    featured: Sequence[str] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
