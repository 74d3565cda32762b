"""The columns every stage works on: nodes, edges, the adjacency, diffs, deliveries.

All columns are torch tensors on one device, one row a node, edge, diff or delivery. They are validated once, at
construction; stages trust them afterwards. A *node number* is a row of `Nodes`; a *diff number* is the value of
`Diffs.numbers` (spec 0.3).
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
import torch

from hyphae_gpu.arrays import F32, I32
from hyphae_gpu.columns import Column, Columns, as_tensor, column
from hyphae_gpu.energies import initial_energy, units
from hyphae_gpu.vectors import lengths, quantise
from hyphae_gpu.vocabulary import (
    COST_LIMIT,
    ENERGY_LIMIT,
    ENERGY_UNITS,
    KINDS_OF_TYPE,
    DiffType,
    EdgeKind,
    EdgeType,
    KnowledgeType,
    NodeType,
)

#: The least |stance| that takes a side (spec 6.2 b).
LEAST_STANCE = 0.5


@dataclass(frozen=True, kw_only=True, eq=False)
class Nodes(Columns):
    """The n nodes of a graph; row = node number.

    types int8 [n] (`NodeType`), layers int8 [n] in 0..2, images int8 [n, d] (spec 0.4), lengths float64 [n]
    = sqrt(q . q), interest_rows int32 [n]: the row of `interests` that the node declared, -1 for none;
    interests float32 [m, 9] in [0, 1] by knowledge type (spec 1.6).
    """

    types: torch.Tensor = column(torch.int8)
    layers: torch.Tensor = column(torch.int8)
    images: torch.Tensor = column(torch.int8, 2)
    lengths: torch.Tensor = column(torch.float64)
    interest_rows: torch.Tensor = column(torch.int32)
    interests: torch.Tensor = column(torch.float32, 2, free=True)

    def _check(self) -> None:
        self._within("types", 0, len(NodeType))
        self._within("layers", 0, 3)
        self._within("interest_rows", -1, len(self.interests))
        if self.interests.shape[1] != len(KnowledgeType):
            raise ValueError(f"Nodes.interests has {self.interests.shape[1]} columns, expected one a knowledge type")
        if len(self) >= 2**31:
            raise ValueError(f"{len(self)} nodes; at most 2^31 - 1 fit")

    def __len__(self) -> int:
        return len(self.types)

    @property
    def dimension(self) -> int:
        """The vectors' dimension d."""
        return int(self.images.shape[1])

    @classmethod
    def build(
        cls,
        vectors: Column,
        *,
        types: Column | None = None,
        layers: Column | None = None,
        interests: Column | None = None,
    ) -> Nodes:
        """Make nodes from float32 vectors [n, d]; by default all are cells of layer 0 without interests.

        `interests` is float32 [n, 9]; a row of zeros declares none. Raises ValueError on a wrong dtype or shape.
        """
        images = quantise(np.asarray(vectors))
        count = len(images)
        return cls.of_images(
            images,
            lengths(images),
            types=np.zeros(count, np.int8) if types is None else types,
            layers=np.zeros(count, np.int8) if layers is None else layers,
            interests=np.zeros((count, len(KnowledgeType)), np.float32) if interests is None else interests,
        )

    @classmethod
    def of_images(cls, images: Column, lengths: Column, *, types: Column, layers: Column, interests: Column) -> Nodes:
        """Make nodes whose images are known; `interests` float32 [n, 9], a row of zeros declares none."""
        declared = as_tensor(interests)
        having = torch.nonzero(declared.any(dim=1)).flatten()
        rows = torch.full((len(declared),), -1, dtype=torch.int32)
        rows[having] = torch.arange(len(having), dtype=torch.int32)
        return cls(
            types=as_tensor(types),
            layers=as_tensor(layers),
            images=as_tensor(images),
            lengths=as_tensor(lengths),
            interest_rows=rows,
            interests=declared[having],
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class Edges(Columns):
    """Directed edges in any order (spec 2.1).

    sources, targets int32 [e] node numbers; types int8 (`EdgeType`); kinds int8 (`EdgeKind`); weights float32 in
    (0, 1]; bandwidths int32, diffs a round, -1 for no limit.
    """

    sources: torch.Tensor = column(torch.int32)
    targets: torch.Tensor = column(torch.int32)
    types: torch.Tensor = column(torch.int8)
    kinds: torch.Tensor = column(torch.int8)
    weights: torch.Tensor = column(torch.float32)
    bandwidths: torch.Tensor = column(torch.int32)

    def _check(self) -> None:
        self._within("types", 0, len(EdgeType))
        self._within("kinds", 0, len(EdgeKind))
        allowed = torch.zeros((len(EdgeType), len(EdgeKind)), dtype=torch.bool)
        for kind_of, kinds in KINDS_OF_TYPE.items():
            allowed[kind_of, list(kinds)] = True
        pairs_fine = allowed[self.types.long().cpu(), self.kinds.long().cpu()]
        weights_fine = (self.weights > 0) & (self.weights <= 1)
        for name, fine in (
            ("kinds", pairs_fine),
            ("weights", weights_fine),
            ("targets", self.sources != self.targets),
            ("bandwidths", (self.bandwidths >= 1) | (self.bandwidths == -1)),
        ):
            if not bool(fine.all()):
                row = int(torch.nonzero(~fine)[0, 0])
                raise ValueError(f"Edges.{name}[{row}] is {getattr(self, name)[row].item()}: refused by spec 2.1")

    def __len__(self) -> int:
        return len(self.sources)

    @classmethod
    def build(
        cls, sources: Column, targets: Column, weights: Column, *, edge_type: EdgeType = EdgeType.SEMANTIC
    ) -> Edges:
        """Make edges of one type without bandwidths, of the kind that type has by default (spec 2.1)."""
        count = len(sources)
        return cls(
            sources=as_tensor(sources).to(torch.int32),
            targets=as_tensor(targets).to(torch.int32),
            types=torch.full((count,), edge_type, dtype=torch.int8),
            kinds=torch.full((count,), KINDS_OF_TYPE[edge_type][0], dtype=torch.int8),
            weights=as_tensor(weights).to(torch.float32),
            bandwidths=torch.full((count,), -1, dtype=torch.int32),
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class Adjacency(Columns):
    """Edges by source (CSR); a row's edges stand in order of (cost, target, type).

    offsets int64 [n + 1]; per edge: targets int32, costs int32 (units of 1/1024, spec 3.6), types int8, kinds int8,
    weights float32, bandwidths int32 (-1 for no limit).
    """

    offsets: torch.Tensor = column(torch.int64, free=True)
    targets: torch.Tensor = column(torch.int32)
    costs: torch.Tensor = column(torch.int32)
    types: torch.Tensor = column(torch.int8)
    kinds: torch.Tensor = column(torch.int8)
    weights: torch.Tensor = column(torch.float32)
    bandwidths: torch.Tensor = column(torch.int32)

    def _check(self) -> None:
        if int(self.offsets[0]) != 0 or int(self.offsets[-1]) != len(self.targets):
            raise ValueError("Adjacency.offsets must run from 0 to the number of edges")

    @property
    def nodes(self) -> int:
        """How many nodes the rows stand for."""
        return len(self.offsets) - 1

    def sources(self) -> torch.Tensor:
        """Return each edge's source, int64."""
        rows = torch.arange(self.nodes, device=self.offsets.device)
        return torch.repeat_interleave(rows, self.offsets.diff())

    def among(self, taking_part: torch.Tensor) -> Adjacency:
        """Return the edges whose two ends take part, bool [n] by node number."""
        kept = taking_part[self.sources()] & taking_part[self.targets.long()]
        offsets = torch.zeros_like(self.offsets)
        torch.cumsum(kept, 0, out=(ends := torch.empty(len(kept), dtype=torch.int64)))
        offsets[1:] = torch.cat([torch.zeros(1, dtype=torch.int64), ends])[self.offsets[1:]]
        columns = ("targets", "costs", "types", "kinds", "weights", "bandwidths")
        return Adjacency(offsets=offsets, **{name: getattr(self, name)[kept] for name in columns})

    @property
    def limited(self) -> bool:
        """Whether any edge has a bandwidth."""
        return bool((self.bandwidths >= 0).any())


@dataclass(frozen=True, kw_only=True, eq=False)
class Flow(Columns):
    """The flow edges by source (CSR), over which resonance spreads (spec 3.12).

    offsets int64 [n + 1]; per edge: targets int32, weights int32 in [1, 4096]; totals int64 [n], a row's sum.
    """

    offsets: torch.Tensor = column(torch.int64, free=True)
    targets: torch.Tensor = column(torch.int32)
    weights: torch.Tensor = column(torch.int32)
    totals: torch.Tensor = column(torch.int64, free=True)


@dataclass(frozen=True, kw_only=True)
class FlowLaw:
    """The constants of spec 3.12: what an origin holds, the share that is sent on, the cut, the rounds."""

    start: int = 1 << 52
    numerator: int = 7
    denominator: int = 10
    cut: int = 1 << 42
    rounds: int = 8


FLOW_LAW = FlowLaw()


def costs_of(weights: torch.Tensor) -> torch.Tensor:
    """Return cost = ceil(1024 / w), saturated at 2^24 (spec 3.6); float32 (0, 1] -> int32."""
    raw = torch.ceil(float(ENERGY_UNITS) / weights.double())
    return raw.clamp(max=float(COST_LIMIT)).to(torch.int32)


@dataclass(frozen=True, kw_only=True, eq=False)
class Diffs(Columns):
    """The b diffs that are propagated together (spec 3.1).

    numbers int64 [b], unique; origins int32 node numbers; types int8 (`DiffType`); knowledge_types int8
    (`KnowledgeType`); images int8 [b, d] and lengths float64 as for nodes; saliences float32 in [0, 1];
    energies int32, E0 in units of 1/1024 (spec 3.6); max_hops int32.
    """

    numbers: torch.Tensor = column(torch.int64)
    origins: torch.Tensor = column(torch.int32)
    types: torch.Tensor = column(torch.int8)
    knowledge_types: torch.Tensor = column(torch.int8)
    images: torch.Tensor = column(torch.int8, 2)
    lengths: torch.Tensor = column(torch.float64)
    saliences: torch.Tensor = column(torch.float32)
    energies: torch.Tensor = column(torch.int32)
    max_hops: torch.Tensor = column(torch.int32)

    def _check(self) -> None:
        self._within("types", 0, len(DiffType))
        self._within("knowledge_types", 0, len(KnowledgeType))
        self._within("energies", 0, int(ENERGY_LIMIT) * ENERGY_UNITS)
        if not bool(((self.saliences >= 0) & (self.saliences <= 1)).all()):
            raise ValueError("Diffs.saliences must lie in [0, 1]")

    def __len__(self) -> int:
        return len(self.numbers)

    @classmethod
    def build(
        cls,
        nodes: Nodes,
        origins: Column,
        *,
        knowledge_types: Column,
        saliences: Column,
        diff_type: DiffType = DiffType.CREATED,
        max_hops: int = 64,
    ) -> Diffs:
        """Make diffs that carry their origins' vectors and start with the energy of spec 4.1, numbered from 0 on."""
        rows, types = as_tensor(origins).long(), as_tensor(knowledge_types).to(torch.int8)
        given = as_tensor(saliences).to(torch.float32)
        energies = units(initial_energy(given.numpy(), types.numpy()))
        return cls(
            numbers=torch.arange(len(rows)),
            origins=rows.to(torch.int32),
            types=torch.full((len(rows),), diff_type, dtype=torch.int8),
            knowledge_types=types,
            images=nodes.images[rows],
            lengths=nodes.lengths[rows],
            saliences=given,
            energies=as_tensor(energies),
            max_hops=torch.full((len(rows),), max_hops, dtype=torch.int32),
        )

    def rows_of(self, numbers: torch.Tensor) -> torch.Tensor:
        """Return the row of each diff number, int64; every number must be among them."""
        order = torch.argsort(self.numbers)
        # deliveries stand diff by diff, so few different ones follow each other
        distinct, counts = torch.unique_consecutive(numbers, return_counts=True)
        return torch.repeat_interleave(order[torch.searchsorted(self.numbers[order], distinct)], counts)


@dataclass(frozen=True, kw_only=True, eq=False)
class Deliveries(Columns):
    """What reached whom (spec 3.7), sorted by (diff, node).

    diffs int64 diff numbers; nodes int32; hops int32, the round of first arrival; energies int32, units of 1/1024;
    scores float64 (spec 3.3); parents int32, -1 at the origin.
    """

    diffs: torch.Tensor = column(torch.int64)
    nodes: torch.Tensor = column(torch.int32)
    hops: torch.Tensor = column(torch.int32)
    energies: torch.Tensor = column(torch.int32)
    scores: torch.Tensor = column(torch.float64)
    parents: torch.Tensor = column(torch.int32)

    def __len__(self) -> int:
        return len(self.diffs)


@dataclass(frozen=True, kw_only=True)
class Sides:
    """What cells claim and which side they take, by node number (spec 6.2).

    subjects, values int32 [n], -1 where there is no claim; stances float32 [n], NaN where there is none: they take a
    side from `LEAST_STANCE` on, above or below zero.
    """

    subjects: I32
    values: I32
    stances: F32


@dataclass(frozen=True, kw_only=True)
class GossipRules:
    """The settings of propagation that decide who receives what (spec 3.3, 3.4, 3.10)."""

    sigma_min: float = 0.30
    cos_min: float = 0.25
    fanout: int = 10
    loss: float = 0.0
    seed: int = 0
    epoch: int = 0


@dataclass(kw_only=True)
class GossipCounts:
    """What a propagation did: sums over its diffs, the same for any batch size and thread count.

    rounds is the longest diff's; relaxations are edges looked at from a frontier node; gates are (diff, node) scores
    computed; throttled and lost as spec 2.8 and 3.10; sweeps is the longest diff's, those in which something was
    offered, and repaired the (diff, node) that sweeps reached or raised (spec 7.2).
    """

    diffs: int = 0
    deliveries: int = 0
    rounds: int = 0
    relaxations: int = 0
    gates: int = 0
    throttled: int = 0
    lost: int = 0
    sweeps: int = 0
    repaired: int = 0

    def add(self, other: GossipCounts) -> None:
        """Add another slice's counts to these."""
        for spec in fields(self):
            mine, its = getattr(self, spec.name), getattr(other, spec.name)
            setattr(self, spec.name, max(mine, its) if spec.name in ("rounds", "sweeps") else mine + its)
