"""What an epoch's waves bring to agents, gathered batch by batch (spec 3.11-3.14)."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from hyphae_gpu.backends.protocol import Backend
from hyphae_gpu.gossip.inboxes import Candidates, Inboxes, audience, candidates, ordered, receivers, without_delivered
from hyphae_gpu.gossip.paths import paths
from hyphae_gpu.gossip.resonance import flow_of, resonances
from hyphae_gpu.swarm import Adjacency, Deliveries, Diffs, Nodes
from hyphae_gpu.vocabulary import EdgeKind


@dataclass(frozen=True, kw_only=True, eq=False)
class Limits:
    """Who is kept, and how many entries (spec 3.13, 3.14); audience None: everybody."""

    audience: int | None
    inbox: int
    beacon: int


@dataclass(frozen=True, kw_only=True, eq=False)
class Held:
    """What inboxes hold already of the diffs that are live: agents int32, diffs int64, vias int32."""

    agents: torch.Tensor
    diffs: torch.Tensor
    vias: torch.Tensor


@dataclass(frozen=True, kw_only=True, eq=False)
class Filled:
    """An epoch's inboxes, with the reasons of each entry.

    throughs int32 [m]: the neighbour from which most of an entry's resonance came, -1 for none; path_offsets int64
    [m + 1] into path_nodes int32: the way from the receiver back to the origin.
    """

    inboxes: Inboxes
    throughs: torch.Tensor
    path_offsets: torch.Tensor
    path_nodes: torch.Tensor


class Catch:
    """Collects candidates over the batches of an epoch, then fills the inboxes; the same for any split."""

    def __init__(
        self, backend: Backend, nodes: Nodes, adjacency: Adjacency, owners: torch.Tensor, held: Held, limits: Limits
    ) -> None:
        """Prepare for one epoch's graph; owners int32 [n]: a beacon's agent by node number."""
        self._backend = backend
        self._nodes = nodes
        self._owners = owners
        self._held = held
        self._limits = limits
        self._flow = flow_of(backend, nodes, adjacency)
        self._activity = _activity(adjacency)
        self._offered: list[Candidates] = []
        self._ways: list[torch.Tensor] = []
        self._way_room = 0

    def add(self, diffs: Diffs, found: Deliveries, makers: torch.Tensor) -> None:
        """Add a batch: all deliveries of its diffs, in their order; makers int32 [b], the agents that made them."""
        rows = receivers(found, self._nodes.types)
        reached = found.take(rows)
        way_offsets, ways = paths(diffs, found, rows)
        offered = candidates(
            reached,
            resonances=resonances(self._backend, self._flow, diffs, reached),
            path_offsets=way_offsets + self._way_room,
            types=self._nodes.types,
            owners=self._owners,
            makers=makers[diffs.rows_of(reached.diffs)],
        )
        if self._limits.audience is not None:
            offered = audience(offered, self._activity, self._limits.audience)
        self._offered.append(without_delivered(offered, self._held.agents, self._held.diffs, self._held.vias))
        self._ways.append(ways)
        self._way_room += len(ways)

    def fill(self, diffs: Diffs) -> Filled:
        """Order and cut all that was added, and give each entry its reasons; `diffs` are those of all batches."""
        inboxes = ordered(
            Candidates.concat(self._offered), inbox_limit=self._limits.inbox, beacon_limit=self._limits.beacon
        )
        entries = inboxes.entries
        offsets = torch.zeros(len(entries) + 1, dtype=torch.int64)
        torch.cumsum(entries.path_sizes, 0, out=offsets[1:])
        within = torch.arange(int(offsets[-1])) - torch.repeat_interleave(offsets[:-1], entries.path_sizes)
        places = torch.repeat_interleave(entries.path_starts, entries.path_sizes) + within
        ways = torch.cat([torch.zeros(0, dtype=torch.int32), *self._ways])
        return Filled(
            inboxes=inboxes,
            throughs=self._throughs(diffs, entries),
            path_offsets=offsets,
            path_nodes=ways[places],
        )

    def _throughs(self, diffs: Diffs, entries: Candidates) -> torch.Tensor:
        """Return through whom most of each entry's resonance came."""
        nodes = torch.where(entries.vias >= 0, entries.vias, entries.agents)
        origins = diffs.origins[diffs.rows_of(entries.diffs)]
        order = torch.argsort(origins, stable=True)
        distinct, counts = torch.unique_consecutive(origins[order], return_counts=True)
        offsets = torch.zeros(len(distinct) + 1, dtype=torch.int64)
        torch.cumsum(counts, 0, out=offsets[1:])
        _, found = self._backend.resonance(self._flow, distinct, offsets, nodes[order], with_throughs=True)
        throughs = torch.empty_like(found)
        throughs[order] = found
        return throughs


def _activity(adjacency: Adjacency) -> torch.Tensor:
    """Return each node's access weights summed as integers, int64 [n] (spec 3.13)."""
    edges = torch.nonzero(adjacency.kinds == EdgeKind.ACCESS).flatten()
    weights = torch.round(4096.0 * adjacency.weights[edges].double()).clamp(min=1).long()
    activity = torch.zeros(adjacency.nodes, dtype=torch.int64)
    return activity.index_add_(0, adjacency.sources()[edges], weights)
