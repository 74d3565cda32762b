"""What an epoch's waves bring to agents, gathered batch by batch (spec 3.11-3.14)."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from hyphae_gpu.backends.protocol import Backend
from hyphae_gpu.columns import offsets_of, ranges
from hyphae_gpu.gossip.inboxes import Candidates, Inboxes, audience, candidates, ordered, receivers, without_delivered
from hyphae_gpu.gossip.paths import Stems, paths
from hyphae_gpu.gossip.resonance import flow_of, resonances
from hyphae_gpu.swarm import Adjacency, Deliveries, Diffs, Flow, Nodes
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
    """What reached agents and beacons over all batches of an epoch; the same for any split."""

    def __init__(self, types: torch.Tensor) -> None:
        """Begin with nothing; types int8 [n] by node number."""
        self._types = types
        self._diffs: list[Diffs] = []
        self._reached: list[Deliveries] = []
        self._way_offsets: list[torch.Tensor] = [torch.zeros(1, dtype=torch.int64)]
        self._ways: list[torch.Tensor] = [torch.zeros(0, dtype=torch.int32)]
        self._way_room = 0

    def add(self, diffs: Diffs, found: Deliveries, stems: Stems | None = None) -> None:
        """Add a batch: all deliveries of its diffs, in their order, and where promotions let them in.

        No diff comes twice.
        """
        rows = receivers(found, self._types)
        offsets, ways = paths(diffs, found, rows, stems)
        self._diffs.append(diffs)
        self._reached.append(found.take(rows))
        self._way_offsets.append(offsets[1:] + self._way_room)
        self._way_room += len(ways)
        self._ways.append(ways)

    def fill(
        self,
        backend: Backend,
        nodes: Nodes,
        adjacency: Adjacency,
        *,
        owners: torch.Tensor,
        makers: torch.Tensor,
        held: Held,
        limits: Limits,
    ) -> Filled:
        """Rank all that was caught on the graph as it is now, and fill the inboxes, each entry with its reasons.

        owners int32 [n]: a beacon's agent by node number; makers int32 [n]: who made a node, by node number.
        """
        if not self._diffs:
            self.add(_no_diffs(nodes), Deliveries.concat([]))
        diffs, reached = Diffs.concat(self._diffs), Deliveries.concat(self._reached)
        flow = flow_of(backend, nodes, adjacency)
        offered = candidates(
            reached,
            resonances=resonances(backend, flow, diffs, reached),
            path_offsets=torch.cat(self._way_offsets),
            types=self._types,
            owners=owners,
            makers=makers[diffs.origins.long()][diffs.rows_of(reached.diffs)],
        )
        if limits.audience is not None:
            offered = audience(offered, _activity(adjacency), limits.audience)
        fresh = without_delivered(offered, held.agents, held.diffs, held.vias)
        inboxes = ordered(fresh, inbox_limit=limits.inbox, beacon_limit=limits.beacon)
        offsets, ways = _kept_ways(inboxes.entries, torch.cat(self._ways))
        return Filled(
            inboxes=inboxes,
            throughs=_throughs(backend, flow, diffs, inboxes.entries),
            path_offsets=offsets,
            path_nodes=ways,
        )


def _no_diffs(nodes: Nodes) -> Diffs:
    none = torch.zeros(0, dtype=torch.int64)
    return Diffs.build(nodes, none, knowledge_types=none, saliences=none)


def _kept_ways(entries: Candidates, ways: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the entries' ways, one after the other: offsets int64 [m + 1] and nodes int32."""
    return offsets_of(entries.path_sizes), ways[ranges(entries.path_starts, entries.path_sizes)]


def _throughs(backend: Backend, flow: Flow, diffs: Diffs, entries: Candidates) -> torch.Tensor:
    """Return through whom most of each entry's resonance came."""
    nodes = torch.where(entries.vias >= 0, entries.vias, entries.agents)
    origins = diffs.origins[diffs.rows_of(entries.diffs)]
    order = torch.argsort(origins, stable=True)
    distinct, counts = torch.unique_consecutive(origins[order], return_counts=True)
    _, found = backend.resonance(flow, distinct, offsets_of(counts), nodes[order], with_throughs=True)
    throughs = torch.empty_like(found)
    throughs[order] = found
    return throughs


def _activity(adjacency: Adjacency) -> torch.Tensor:
    """Return each node's access weights summed as integers, int64 [n] (spec 3.13)."""
    edges = torch.nonzero(adjacency.kinds == EdgeKind.ACCESS).flatten()
    weights = torch.round(4096.0 * adjacency.weights[edges].double()).clamp(min=1).long()
    activity = torch.zeros(adjacency.nodes, dtype=torch.int64)
    return activity.index_add_(0, adjacency.sources()[edges], weights)
