"""The columns that kernels read, on the device and in the form that they read them."""

from __future__ import annotations

from dataclasses import dataclass
from weakref import WeakKeyDictionary

import torch

from hyphae_gpu.backends.cuda.launcher import WARP
from hyphae_gpu.swarm import Adjacency, Diffs, Nodes

#: Bytes that a lane reads of an image at once; rows are padded to a multiple, and so stand at a multiple.
CHUNK = 16
#: Chunks that one lane of a group reads: enough loads in flight, few idle lanes.
_CHUNKS_A_LANE = 4


@dataclass(frozen=True, kw_only=True)
class NodeColumns:
    """Nodes as kernels/score.cuh takes them: images int8 [n, 16 * chunks], the others as in `Nodes`."""

    images: torch.Tensor
    lengths: torch.Tensor
    interest_rows: torch.Tensor
    interests: torch.Tensor

    def arguments(self) -> tuple[torch.Tensor, ...]:
        """Return the columns in the order of the kernels' parameters."""
        return self.images, self.lengths, self.interest_rows, self.interests


@dataclass(frozen=True, kw_only=True)
class DiffColumns:
    """Diffs as kernels/score.cuh takes them, and what the rounds need beside."""

    images: torch.Tensor
    lengths: torch.Tensor
    knowledge_types: torch.Tensor
    saliences: torch.Tensor
    numbers: torch.Tensor
    max_hops: torch.Tensor

    def arguments(self) -> tuple[torch.Tensor, ...]:
        """Return what a score needs, in the order of the kernels' parameters."""
        return self.images, self.lengths, self.knowledge_types, self.saliences


@dataclass(frozen=True, kw_only=True)
class GraphColumns:
    """The adjacency as kernels/expand.cu and relax.cu take it; limited: whether any edge has a bandwidth."""

    offsets: torch.Tensor
    targets: torch.Tensor
    costs: torch.Tensor
    types: torch.Tensor
    bandwidths: torch.Tensor
    limited: bool


class Mirrors:
    """Keeps what was brought to the device as long as the nodes and the adjacency it was made of live."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self._nodes: WeakKeyDictionary[Nodes, NodeColumns] = WeakKeyDictionary()
        self._graphs: WeakKeyDictionary[Adjacency, GraphColumns] = WeakKeyDictionary()

    def nodes(self, nodes: Nodes) -> NodeColumns:
        """Return the nodes' columns."""
        if nodes not in self._nodes:
            self._nodes[nodes] = NodeColumns(
                images=padded(self.moved(nodes.images)),
                lengths=self.moved(nodes.lengths),
                interest_rows=self.moved(nodes.interest_rows),
                interests=self.moved(nodes.interests),
            )
        return self._nodes[nodes]

    def graph(self, adjacency: Adjacency) -> GraphColumns:
        """Return the adjacency's columns."""
        if adjacency not in self._graphs:
            names = ("offsets", "targets", "costs", "types", "bandwidths")
            columns = {name: self.moved(getattr(adjacency, name)) for name in names}
            self._graphs[adjacency] = GraphColumns(**columns, limited=adjacency.limited)
        return self._graphs[adjacency]

    def diffs(self, diffs: Diffs) -> DiffColumns:
        """Return the diffs' columns; they are few, so nothing is kept."""
        return DiffColumns(
            images=padded(self.moved(diffs.images)),
            lengths=self.moved(diffs.lengths),
            knowledge_types=self.moved(diffs.knowledge_types),
            saliences=self.moved(diffs.saliences),
            numbers=self.moved(diffs.numbers),
            max_hops=self.moved(diffs.max_hops),
        )

    def bytes_of(self, nodes: Nodes, adjacency: Adjacency) -> int:
        """Return how much of the device's memory the nodes and the adjacency take already."""
        return sum(
            column.nbytes
            for kept in (self._nodes.get(nodes), self._graphs.get(adjacency))
            for column in (vars(kept).values() if kept is not None else ())
            if isinstance(column, torch.Tensor)
        )

    def moved(self, column: torch.Tensor) -> torch.Tensor:
        """Return a column on the device, contiguous; itself where it is that already."""
        return column.to(self.device).contiguous()


def padded(images: torch.Tensor) -> torch.Tensor:
    """Return int8 rows padded with zeros to whole chunks and aligned to them; themselves where they are."""
    count, dimension = images.shape
    width = -(-dimension // CHUNK) * CHUNK
    if width == dimension and images.data_ptr() % CHUNK == 0:
        return images
    rows = torch.zeros((count, width), dtype=torch.int8, device=images.device)
    rows[:, :dimension] = images
    return rows


def chunks_of(images: torch.Tensor) -> int:
    """Return how many chunks a padded row has."""
    return images.shape[1] // CHUNK


def lanes_of(chunks: int) -> int:
    """Return how many lanes of a warp work on one dot product: a power of two, at most 32."""
    lanes = 1
    while lanes < WARP and lanes * _CHUNKS_A_LANE < chunks:
        lanes *= 2
    return lanes
