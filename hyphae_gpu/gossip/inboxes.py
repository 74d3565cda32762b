"""From deliveries to inboxes: whose entry it is, in what order, and where it is cut (spec 3.11, 3.14)."""

from __future__ import annotations

from dataclasses import dataclass, fields

import torch

from hyphae_gpu.swarm import Deliveries
from hyphae_gpu.vocabulary import NodeType

#: `Candidates.vias` of an entry that came by gossip and not through a beacon.
BY_GOSSIP = -1


@dataclass(frozen=True, kw_only=True, eq=False)
class Candidates:
    """Deliveries that could become inbox entries, one row an (agent, diff, via), in no order.

    agents int32: who would get it; diffs int64 numbers; vias int32: `BY_GOSSIP` or the beacon's node number; hops,
    energies int32; scores float64; parents int32.
    """

    agents: torch.Tensor
    diffs: torch.Tensor
    vias: torch.Tensor
    hops: torch.Tensor
    energies: torch.Tensor
    scores: torch.Tensor
    parents: torch.Tensor

    def __len__(self) -> int:
        return len(self.agents)

    def take(self, rows: torch.Tensor) -> Candidates:
        """Return these rows, in that order; a bool mask keeps the order."""
        return Candidates(**{spec.name: getattr(self, spec.name)[rows] for spec in fields(self)})

    @staticmethod
    def concat(parts: list[Candidates]) -> Candidates:
        """Return all rows of some candidates."""
        if not parts:
            return _no_candidates()
        names = [spec.name for spec in fields(Candidates)]
        return Candidates(**{name: torch.cat([getattr(part, name) for part in parts]) for name in names})


def _no_candidates() -> Candidates:
    """Return what an epoch without a live diff has to offer."""
    kinds = {"diffs": torch.int64, "scores": torch.float64}
    return Candidates(
        **{spec.name: torch.zeros(0, dtype=kinds.get(spec.name, torch.int32)) for spec in fields(Candidates)}
    )


def candidates(
    found: Deliveries, types: torch.Tensor, owners: torch.Tensor, numbers: torch.Tensor, makers: torch.Tensor
) -> Candidates:
    """Return the deliveries to agents and beacons, without echo: no diff goes back to its maker (spec 1.5, 3.11).

    types int8 [n] and owners int32 [n], a beacon's agent, by node number; numbers int64 [b], sorted, and makers int32
    [b]: each diff's number and the agent that made it (-1 for none).
    """
    kinds = types[found.nodes.long()]
    inboxes = torch.nonzero((kinds == NodeType.AGENT) | (kinds == NodeType.BEACON)).flatten()
    nodes, diffs = found.nodes[inboxes], found.diffs[inboxes]
    through_beacon = kinds[inboxes] == NodeType.BEACON
    agents = torch.where(through_beacon, owners[nodes.long()], nodes)
    echo = agents == makers[torch.searchsorted(numbers, diffs)]
    kept = ~echo
    rows = inboxes[kept]
    return Candidates(
        agents=agents[kept],
        diffs=diffs[kept],
        vias=torch.where(through_beacon, nodes, torch.full_like(nodes, BY_GOSSIP))[kept],
        hops=found.hops[rows],
        energies=found.energies[rows],
        scores=found.scores[rows],
        parents=found.parents[rows],
    )


def without_delivered(offered: Candidates, agents: torch.Tensor, diffs: torch.Tensor, vias: torch.Tensor) -> Candidates:
    """Return the candidates that no inbox holds yet: an entry is written once per (agent, diff, via) (spec 3.9, 3.14).

    agents int32, diffs int64, vias int32: what inboxes hold already, of the diffs that are live.
    """
    people = torch.cat([agents, offered.agents]).long() * (1 << 32) + torch.cat([vias, offered.vias]).long()
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
    """The candidates kept, in the order (agent, via, place), and their places int32, from 0 on; `cut` were left out."""

    entries: Candidates
    places: torch.Tensor
    cut: int


def ordered(offered: Candidates, *, inbox_limit: int, beacon_limit: int) -> Inboxes:
    """Order an agent's gossip entries and each beacon's by score, ties to the lowest diff number, and cut (spec 3.14).

    `inbox_limit` bounds an agent's gossip entries of this epoch, `beacon_limit` those of one beacon.
    """
    order = torch.argsort(offered.diffs, stable=True)
    order = order[torch.argsort(offered.scores[order], stable=True, descending=True)]
    order = order[torch.argsort(offered.vias[order], stable=True)]
    order = order[torch.argsort(offered.agents[order], stable=True)]
    entries = offered.take(order)
    group = entries.agents.long() * (1 << 32) + entries.vias.long()
    starts = torch.searchsorted(group, group)
    places = torch.arange(len(group), device=group.device) - starts
    limits = torch.where(entries.vias == BY_GOSSIP, inbox_limit, beacon_limit)
    kept = places < limits
    return Inboxes(entries=entries.take(kept), places=places[kept].to(torch.int32), cut=int((~kept).sum()))
