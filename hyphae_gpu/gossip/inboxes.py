"""From deliveries to inboxes: whose entry it is, in what order, and where it is cut (spec 3.11, 3.13, 3.14)."""

from __future__ import annotations

from dataclasses import dataclass, fields

import torch

from hyphae_gpu.gossip.ranking import fused, places_within
from hyphae_gpu.swarm import Deliveries
from hyphae_gpu.vocabulary import NodeType

#: `Candidates.vias` of an entry that came by gossip and not through a beacon.
BY_GOSSIP = -1


@dataclass(frozen=True, kw_only=True, eq=False)
class Candidates:
    """Deliveries that could become inbox entries, one row an (agent, diff, via), in no order.

    agents int32: who would get it; diffs int64 numbers; vias int32: `BY_GOSSIP` or the beacon's node number; hops,
    energies int32; scores float64; resonances int64, the receiving node's; parents int32; path_starts int64 and
    path_sizes int32: where the entry's way stands in a list of nodes that is kept apart.
    """

    agents: torch.Tensor
    diffs: torch.Tensor
    vias: torch.Tensor
    hops: torch.Tensor
    energies: torch.Tensor
    scores: torch.Tensor
    resonances: torch.Tensor
    parents: torch.Tensor
    path_starts: torch.Tensor
    path_sizes: torch.Tensor

    def __len__(self) -> int:
        return len(self.agents)

    def take(self, rows: torch.Tensor) -> Candidates:
        """Return these rows, in that order; a bool mask keeps the order."""
        return Candidates(**{spec.name: getattr(self, spec.name)[rows] for spec in fields(self)})

    @staticmethod
    def concat(parts: list[Candidates]) -> Candidates:
        """Return all rows of some candidates."""
        return Candidates(
            **{
                spec.name: torch.cat([torch.zeros(0, dtype=dtype), *(getattr(part, spec.name) for part in parts)])
                for spec, dtype in zip(fields(Candidates), _DTYPES, strict=True)
            }
        )


#: dtypes of `Candidates`, in the order of its fields
_DTYPES = (
    torch.int32,
    torch.int64,
    torch.int32,
    torch.int32,
    torch.int32,
    torch.float64,
    torch.int64,
    torch.int32,
    torch.int64,
    torch.int32,
)


def receivers(found: Deliveries, types: torch.Tensor) -> torch.Tensor:
    """Return the rows of deliveries to agents and beacons, int64; types int8 [n] by node number."""
    kinds = types[found.nodes.long()]
    return torch.nonzero((kinds == NodeType.AGENT) | (kinds == NodeType.BEACON)).flatten()


def candidates(
    found: Deliveries,
    *,
    resonances: torch.Tensor,
    path_offsets: torch.Tensor,
    types: torch.Tensor,
    owners: torch.Tensor,
    makers: torch.Tensor,
) -> Candidates:
    """Return the candidates that deliveries to agents and beacons make, without echo (spec 1.5, 3.11).

    resonances int64 [m], the receiving nodes'; path_offsets int64 [m + 1], where their ways stand; types int8 [n] and
    owners int32 [n], a beacon's agent, by node number; makers int32 [m], the agent that made each delivery's diff (-1
    for none): it does not get it back.
    """
    through_beacon = types[found.nodes.long()] == NodeType.BEACON
    offered = Candidates(
        agents=torch.where(through_beacon, owners[found.nodes.long()], found.nodes),
        diffs=found.diffs,
        vias=torch.where(through_beacon, found.nodes, torch.full_like(found.nodes, BY_GOSSIP)),
        hops=found.hops,
        energies=found.energies,
        scores=found.scores,
        resonances=resonances,
        parents=found.parents,
        path_starts=path_offsets[:-1],
        path_sizes=path_offsets.diff().to(torch.int32),
    )
    return offered.take(offered.agents != makers)


def audience(offered: Candidates, activity: torch.Tensor, limit: int) -> Candidates:
    """Keep of the agents that each diff reached by gossip the `limit` it concerns most; beacons' entries stay.

    activity int64 [n]: an agent's access weights summed. By 1 / (20 + rank) of score, resonance and activity, summed;
    ties to the lowest agent number (spec 3.13). `offered` has to hold all agents that its diffs reached.
    """
    rows = torch.nonzero(offered.vias == BY_GOSSIP).flatten()
    people = offered.take(rows)
    relevances = fused(people.diffs, [people.scores, people.resonances, activity[people.agents.long()]])
    kept = torch.ones(len(offered), dtype=torch.bool, device=rows.device)
    kept[rows] = places_within(people.diffs, relevances, people.agents) < limit
    return offered.take(kept)


def without_delivered(offered: Candidates, agents: torch.Tensor, diffs: torch.Tensor, vias: torch.Tensor) -> Candidates:
    """Return the candidates that no inbox holds yet: an entry is written once per (agent, diff, via) (spec 3.9, 3.14).

    agents int32, diffs int64, vias int32: what inboxes hold already, of the diffs that are live.
    """
    people = _inbox(torch.cat([agents, offered.agents]), torch.cat([vias, offered.vias]))
    what = torch.cat([diffs, offered.diffs])
    order = torch.argsort(what, stable=True)
    order = order[torch.argsort(people[order], stable=True)]
    people, what = people[order], what[order]
    # Both sides are free of duplicates and the held ones stand first, so a repeat is a candidate that is held.
    again = torch.zeros(len(order), dtype=torch.bool, device=order.device)
    again[1:] = (people[1:] == people[:-1]) & (what[1:] == what[:-1])
    new = torch.ones(len(order), dtype=torch.bool, device=order.device)
    new[order[again]] = False
    return offered.take(new[len(agents) :])


@dataclass(frozen=True, kw_only=True, eq=False)
class Inboxes:
    """The candidates kept, in the order (agent, via, place).

    places int32, from 0 on within (agent, via); relevances float64, NaN for entries through a beacon; `cut` candidates
    were left out.
    """

    entries: Candidates
    places: torch.Tensor
    relevances: torch.Tensor
    cut: int


def ordered(offered: Candidates, *, inbox_limit: int, beacon_limit: int) -> Inboxes:
    """Order an agent's gossip entries by relevance and a beacon's by score, and cut them at their limits (spec 3.14).

    Relevance is 1 / (20 + rank by score) + 1 / (20 + rank by resonance) among the agent's own candidates; ties go to
    the lowest diff number.
    """
    groups = _inbox(offered.agents, offered.vias)
    by_gossip = offered.vias == BY_GOSSIP
    relevances = fused(groups, [offered.scores, offered.resonances])
    places = places_within(groups, torch.where(by_gossip, relevances, offered.scores), offered.diffs)
    kept = places < torch.where(by_gossip, inbox_limit, beacon_limit)
    order = torch.argsort(places, stable=True)
    order = order[torch.argsort(groups[order], stable=True)]
    order = order[kept[order]]
    return Inboxes(
        entries=offered.take(order),
        places=places[order].to(torch.int32),
        relevances=torch.where(by_gossip, relevances, torch.nan)[order],
        cut=int((~kept).sum()),
    )


def _inbox(agents: torch.Tensor, vias: torch.Tensor) -> torch.Tensor:
    """Return one number an (agent, via), in their order."""
    return agents.long() * (1 << 32) + vias.long()
