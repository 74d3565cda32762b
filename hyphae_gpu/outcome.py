"""What an epoch came to, in the form that the store, the report and `state_hash` take."""

from __future__ import annotations

from dataclasses import asdict, fields
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from hyphae_gpu.arrays import I8
from hyphae_gpu.emerged import ContradictionTable, PromotionTable, Supersessions
from hyphae_gpu.gossip.catch import Filled
from hyphae_gpu.intake import joined, rows_of
from hyphae_gpu.state import DiffTable, InboxTable
from hyphae_gpu.swarm import Adjacency
from hyphae_gpu.topology.refresh import Topology
from hyphae_gpu.vocabulary import ENERGY_UNITS, NodeType
from hyphae_gpu.wave_loop import Waves, open_shares

#: Diffs, at most, of which the open share of each agent is reported.
OPEN_SHARE_DIFFS = 1024
#: What `state_hash` covers of an inbox: no hop, parent or way (interfaces).
_DECIDED_OF_INBOX = ("agents", "diffs", "vias", "places", "energies", "scores", "resonances", "relevances")


def counts_of(waves: Waves, topology: Topology, silent: int) -> dict[str, Any]:
    """Return what the epoch's row and the report tell of graph and waves."""
    weights = topology.adjacency.weights
    placed = (waves.state.nodes.types == NodeType.AGENT) & waves.state.nodes.placed
    agents = torch.from_numpy(np.flatnonzero(placed).astype(np.int32))
    waves.tally.open_shares = open_shares(waves, agents, OPEN_SHARE_DIFFS)
    return {
        **asdict(waves.tally.counts),
        "waves": waves.count,
        "met_after": {str(hop): count for hop, count in sorted(waves.met_after.items())},
        "live_diffs": len(waves.state.diffs),
        "silent_diffs": silent,
        "live_cells": int((waves.live & (waves.nodes.layers.numpy() == 0)).sum()),
        "topology": topology.facts,
        **waves.tally.summary(
            float(weights.double().mean()) if len(weights) else 0.0,
            float(weights.max()) if len(weights) else 0.0,
        ),
    }


def decided(
    waves: Waves,
    images: I8,
    inbox: InboxTable,
    raised: ContradictionTable,
    superseded: Supersessions,
    promotions: PromotionTable,
) -> list[npt.NDArray[Any]]:
    """Return what `state_hash` covers: all that the epoch decided, without wall-clock, hop or parent.

    images int8 [n, d]: of all nodes, those that the epoch made too.
    """
    nodes, adjacency = waves.state.nodes, waves.adjacency
    scenes: list[npt.NDArray[Any]] = [np.zeros(0, np.int32), *promotions.scenes]
    return [
        nodes.types,
        nodes.layers,
        images,
        waves.saliences,
        waves.live,
        *(getattr(adjacency, spec.name).numpy() for spec in fields(Adjacency)),
        waves.digest.words(),
        *(getattr(inbox, name) for name in _DECIDED_OF_INBOX),
        *(raised.a, raised.b, raised.similarities, raised.reasons, raised.open),
        *(superseded.losers, superseded.winners),
        waves.state.node_scenes,
        *(promotions.diffs, promotions.layers, promotions.nodes, np.concatenate(scenes)),
    ]


def aged(made: list[DiffTable], ended: npt.NDArray[np.int64]) -> DiffTable:
    """Return an epoch's new diffs as they stand after it: one epoch older, or ended."""
    whole = made[0]
    for more in made[1:]:
        whole = joined(whole, more)
    whole = rows_of(whole, np.arange(len(whole)))
    whole.ttl = np.where(np.isin(whole.numbers, ended), 0, whole.ttl - 1).astype(np.int32)
    return whole


def inbox_table(filled: Filled) -> InboxTable:
    """Return an epoch's inbox entries as the store takes them."""
    entries = filled.inboxes.entries
    return InboxTable(
        agents=entries.agents.numpy(),
        diffs=entries.diffs.numpy(),
        vias=entries.vias.numpy(),
        hops=entries.hops.numpy(),
        energies=(entries.energies.numpy() / ENERGY_UNITS).astype(np.float32),
        scores=entries.scores.numpy(),
        resonances=entries.resonances.numpy(),
        relevances=filled.inboxes.relevances.numpy(),
        parents=entries.parents.numpy(),
        places=filled.inboxes.places.numpy(),
        throughs=filled.throughs.numpy(),
        path_offsets=filled.path_offsets.numpy(),
        paths=filled.path_nodes.numpy(),
    )
