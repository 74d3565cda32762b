"""How strongly a diff concerns a node: the (+, x) rounds over flow edges (spec 3.12)."""

from __future__ import annotations

import torch

from hyphae_gpu.backends.protocol import Backend
from hyphae_gpu.columns import offsets_of
from hyphae_gpu.swarm import Adjacency, Deliveries, Diffs, Flow, Nodes
from hyphae_gpu.vocabulary import EdgeKind, EdgeType, NodeType
from hyphae_gpu.weights import near_weights, whole_weights


def flow_of(backend: Backend, nodes: Nodes, adjacency: Adjacency) -> Flow:
    """Return the flow edges with their integer weights (spec 3.12).

    Near and copy links, access and declared edges; of an agent that has no outgoing access edge its attach edges, both
    ways, as near. A near weight is max(1, rint(4096 * c^4)), c = max(cos, 0.05), of the two ends' cosine; the others'
    max(1, rint(4096 * w)). The flow lies on the host, as graphs do.
    """
    nodes, adjacency = nodes.to("cpu"), adjacency.to("cpu")
    kinds = adjacency.kinds
    sources = adjacency.sources()
    is_agent = nodes.types == NodeType.AGENT
    accessing = torch.zeros(len(nodes), dtype=torch.bool, device=kinds.device)
    accessing[sources[kinds == EdgeKind.ACCESS]] = True
    lonely = is_agent & ~accessing
    attached = (kinds == EdgeKind.ATTACH) & (lonely[sources] | lonely[adjacency.targets.long()])
    near = (kinds == EdgeKind.NEAR) | attached
    flows = torch.nonzero(near | (kinds == EdgeKind.COPY) | (adjacency.types == EdgeType.CAUSAL)).flatten()

    whole = torch.from_numpy(whole_weights(adjacency.weights[flows].numpy()))
    by_cosine = torch.nonzero(near[flows]).flatten()
    edges = flows[by_cosine]
    ends = (sources[edges].to(torch.int32).numpy(), adjacency.targets[edges].numpy())
    whole[by_cosine] = torch.from_numpy(near_weights(backend, nodes.images.numpy(), nodes.lengths.numpy(), *ends))

    offsets = offsets_of(torch.bincount(sources[flows], minlength=len(nodes)))
    totals = torch.zeros(len(nodes), dtype=torch.int64, device=kinds.device)
    totals.index_add_(0, sources[flows], whole.long())
    return Flow(offsets=offsets, targets=adjacency.targets[flows], weights=whole, totals=totals)


def resonances(backend: Backend, flow: Flow, diffs: Diffs, found: Deliveries) -> torch.Tensor:
    """Return the resonance of each delivery's node with its diff, int64 (spec 3.12).

    `found` must be in order of `diffs`, as propagation returns it. Diffs of one origin are computed once.
    """
    rows = diffs.rows_of(found.diffs)
    origins, which = torch.unique(diffs.origins, return_inverse=True)
    groups = which[rows]
    order = torch.argsort(groups, stable=True)
    offsets = offsets_of(torch.bincount(groups, minlength=len(origins)))
    values, _ = backend.resonance(flow, origins, offsets, found.nodes[order])
    out = torch.empty_like(values)
    out[order] = values
    return out
