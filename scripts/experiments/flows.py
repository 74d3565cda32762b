"""Resonance's flow by the rule, and with parts of the rule changed (spec 3.12)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace

import numpy as np
import torch

from experiments.replay import Moment
from hyphae_gpu.backends.protocol import Backend
from hyphae_gpu.gossip.resonance import flow_of
from hyphae_gpu.swarm import FLOW_LAW, Adjacency, Edges, Flow, FlowLaw
from hyphae_gpu.topology.adjacency import adjacency_of, as_edges, edges_both_ways
from hyphae_gpu.topology.near import ends, pair_keys, weights_of
from hyphae_gpu.vocabulary import EdgeKind, EdgeType, NodeType

#: The neighbours of a node where near links are exact; spec 3.12's figures were measured with as many.
EXACT_NEAREST = 12


@dataclass(frozen=True, kw_only=True)
class Rule:
    """One way to compute resonance: which flow a moment has, and the constants of its rounds."""

    name: str
    flow: Callable[[Backend, Moment], Flow]
    law: FlowLaw = FLOW_LAW


def whole(backend: Backend, moment: Moment) -> Flow:
    """Return the flow of the rule as it is."""
    return flow_of(backend, moment.nodes, moment.adjacency)


def without(*kinds: EdgeKind) -> Callable[[Backend, Moment], Flow]:
    """Return the flow of a graph that lacks edges of these kinds.

    Where access edges are lacking, attach edges take their place, as for an agent that never had any (spec 3.12).
    """

    def flow(backend: Backend, moment: Moment) -> Flow:
        adjacency = moment.adjacency
        return flow_of(backend, moment.nodes, _kept(adjacency, ~_are(adjacency, kinds)))

    return flow


def as_near(kind: EdgeKind) -> Callable[[Backend, Moment], Flow]:
    """Return the flow where links of this kind count as near ones."""

    def flow(backend: Backend, moment: Moment) -> Flow:
        kinds = moment.adjacency.kinds.clone()
        kinds[kinds == kind] = EdgeKind.NEAR
        return flow_of(backend, moment.nodes, replace(moment.adjacency, kinds=kinds))

    return flow


def of_power(power: int) -> Callable[[Backend, Moment], Flow]:
    """Return the flow where a near link weighs its cosine to this power: 1, 2 or 4."""

    def flow(backend: Backend, moment: Moment) -> Flow:
        made = flow_of(backend, moment.nodes, moment.adjacency)
        sources = torch.repeat_interleave(torch.arange(len(moment.nodes)), made.offsets.diff())
        is_agent = moment.nodes.types == NodeType.AGENT
        accessing = torch.zeros(len(moment.nodes), dtype=torch.bool)
        accessing[moment.adjacency.sources()[moment.adjacency.kinds == EdgeKind.ACCESS]] = True
        of_access = (is_agent & accessing)[sources] | (is_agent & accessing)[made.targets.long()]
        edges = torch.nonzero(~of_access).flatten()
        pairs = (sources[edges].to(torch.int32).numpy(), made.targets[edges].numpy())
        cosines = backend.cosines(moment.nodes.images.numpy(), moment.nodes.lengths.numpy(), *pairs)
        clamped = torch.from_numpy(cosines).clamp(min=0.05)
        raised = {1: clamped, 2: clamped.square(), 4: clamped.square() * clamped.square()}[power]
        weights = made.weights.clone()
        weights[edges] = torch.round(4096.0 * raised).clamp(min=1).to(torch.int32)
        totals = torch.zeros_like(made.totals).index_add_(0, sources, weights.long())
        return replace(made, weights=weights, totals=totals)

    return flow


def exact_near(backend: Backend, moment: Moment) -> Flow:
    """Return the flow where near links are those to the exactly nearest live cells, in place of HNSW's."""
    cells = np.flatnonzero(moment.live).astype(np.int32)
    images = moment.nodes.images.numpy()
    wide = images[cells].astype(np.float64) / moment.nodes.lengths.numpy()[cells][:, None]
    likeness = wide @ wide.T
    np.fill_diagonal(likeness, -np.inf)
    count = min(EXACT_NEAREST, len(cells) - 1)
    nearest = np.argsort(-likeness, axis=1, kind="stable")[:, :count]
    left, right = ends(pair_keys(np.repeat(cells, count), cells[nearest].ravel()))
    weights = weights_of(backend.cosines(images, moment.nodes.lengths.numpy(), left, right))
    near = as_edges(edges_both_ways(left, right, weights, EdgeType.SEMANTIC, EdgeKind.NEAR))
    adjacency = moment.adjacency
    kept = _kept(adjacency, ~_are(adjacency, (EdgeKind.NEAR, EdgeKind.FAR, EdgeKind.COPY)))
    columns = {
        spec.name: torch.cat(
            [
                kept.sources().to(torch.int32) if spec.name == "sources" else getattr(kept, spec.name),
                getattr(near, spec.name),
            ]
        )
        for spec in fields(Edges)
    }
    return flow_of(backend, moment.nodes, adjacency_of(Edges(**columns), len(moment.nodes), backend))


def _are(adjacency: Adjacency, kinds: tuple[EdgeKind, ...]) -> torch.Tensor:
    return torch.isin(adjacency.kinds, torch.tensor(kinds, dtype=torch.int8))


def _kept(adjacency: Adjacency, rows: torch.Tensor) -> Adjacency:
    """Return an adjacency with some of its edges."""
    offsets = torch.zeros_like(adjacency.offsets)
    torch.cumsum(torch.bincount(adjacency.sources()[rows], minlength=adjacency.nodes), 0, out=offsets[1:])
    columns = {spec.name: getattr(adjacency, spec.name)[rows] for spec in fields(Adjacency) if spec.name != "offsets"}
    return Adjacency(offsets=offsets, **columns)


_LAPSED_SILENT = without(EdgeKind.ATTACH)
#: The rule, and with each part taken away or changed: the table of ablations. Every agent here had accesses once, so
#: without attach edges those whose accesses all lapsed have no flow.
RULES = (
    Rule(name="the rule", flow=whole),
    Rule(name="no access edges", flow=without(EdgeKind.ACCESS)),
    Rule(name="no near, copy links", flow=without(EdgeKind.NEAR, EdgeKind.COPY)),
    Rule(name="cosine^1", flow=of_power(1)),
    Rule(name="cosine^2", flow=of_power(2)),
    Rule(name="cut 2^39", flow=whole, law=FlowLaw(cut=1 << 39)),
    Rule(name="no cut", flow=whole, law=FlowLaw(cut=0)),
    Rule(name="T = 4", flow=whole, law=FlowLaw(rounds=4)),
    Rule(name="T = 16", flow=whole, law=FlowLaw(rounds=16)),
    Rule(name="far links too", flow=as_near(EdgeKind.FAR)),
    Rule(name="attach links too", flow=as_near(EdgeKind.ATTACH)),
    Rule(name="12 exact nearest", flow=exact_near),
    Rule(name="lapsed agents without flow", flow=_LAPSED_SILENT),
    Rule(name="the same, cut 2^39", flow=_LAPSED_SILENT, law=FlowLaw(cut=1 << 39)),
    Rule(name="the same, no cut", flow=_LAPSED_SILENT, law=FlowLaw(cut=0)),
)
