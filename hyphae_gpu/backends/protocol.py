"""The seam: the batch operations that a device has to offer (design.md).

Every operation is a pure function of its arguments. Decisions are integers or float64 in the order the spec writes, so
that all backends agree with `==` (spec 0.1, 0.5).
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt
import torch

from hyphae_gpu.arrays import F64, I8, I32, I64
from hyphae_gpu.swarm import FLOW_LAW, Adjacency, Diffs, Flow, FlowLaw, GossipCounts, GossipRules, Nodes, Sides
from hyphae_gpu.wave_state import Offers, WaveState


class Backend(Protocol):
    """One device."""

    @property
    def name(self) -> str:
        """`cpu` or `cuda`."""

    @property
    def device(self) -> torch.device:
        """Where rounds run: columns that lie there are not copied from call to call."""

    def advance(
        self,
        nodes: Nodes,
        adjacency: Adjacency,
        diffs: Diffs,
        rules: GossipRules,
        state: WaveState,
        *,
        rounds: int,
        sweep: bool = False,
    ) -> tuple[WaveState, Offers, GossipCounts]:
        """Run up to `rounds` synchronous gossip rounds of every diff from `state` (spec 3.4, 3.5, 3.10).

        Offers over edges with a bandwidth are not made but returned, for the caller to choose among (spec 2.8); where
        the adjacency has such edges, the state returned keeps unreached nodes that were looked at too, so that no gate
        is computed twice. Rounds can be sweeps (spec 7.2): a first arrival's hop is one more than its parent's, and a
        node whose offer did not arrive stays in the frontier. Raises RuntimeError where a diff would run more than
        4,096 rounds.
        """

    def scores(self, nodes: Nodes, diffs: Diffs, diff_rows: torch.Tensor, node_rows: torch.Tensor) -> torch.Tensor:
        """Return the score of each (diff row, node number) pair, int64 [m] each -> float64 [m] (spec 3.3)."""

    def open_counts(self, nodes: Nodes, diffs: Diffs, rules: GossipRules, node_rows: torch.Tensor) -> torch.Tensor:
        """Return to how many of the diffs each node's gate is open, int32 [k] node numbers -> int64 [k] (spec 3.3)."""

    def losses(
        self,
        rules: GossipRules,
        rounds: torch.Tensor,
        sources: torch.Tensor,
        targets: torch.Tensor,
        diffs: torch.Tensor,
    ) -> torch.Tensor:
        """Return which transmissions get lost, bool [m] (spec 3.10).

        rounds int64 [m]: rounds and sweeps that the diff had run; sources, targets int32; diffs int64, their numbers.
        """

    def resonance(
        self,
        flow: Flow,
        origins: torch.Tensor,
        offsets: torch.Tensor,
        nodes: torch.Tensor,
        *,
        law: FlowLaw = FLOW_LAW,
        with_throughs: bool = False,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the resonance of queried nodes with each origin's diffs, and through whom most of it came (spec 3.12).

        origins int32 [g]; nodes int32 [m], those asked of origin i at offsets[i] : offsets[i + 1] (int64 [g + 1]).
        Returns values int64 [m] and throughs int32: with `with_throughs` [m], the neighbour over a node's own flow
        edges that sent it most (ties: lowest number; -1: none), else empty.
        """

    # The graph's own operations. Graphs are made and stored on the host, so these take and give numpy arrays; `images`
    # int8 [n, d] and `lengths` float64 [n] are those of `swarm.Nodes`.

    def equal_rows(
        self, known: npt.NDArray[np.int8], images: npt.NDArray[np.int8], wanted: npt.NDArray[np.int32]
    ) -> npt.NDArray[np.int64]:
        """Return each wanted row's distinct image: known ones first, then new ones as they appear (spec 2.6)."""

    def nearest_linked(
        self,
        images: npt.NDArray[np.int8],
        lengths: npt.NDArray[np.float64],
        representatives: npt.NDArray[np.int32],
        offsets: npt.NDArray[np.int64],
        links: npt.NDArray[np.int32],
        count: int,
    ) -> npt.NDArray[np.int32]:
        """Return each point's `count` live nodes of greatest cosine within two links, int32 [p, count] (spec 2.3)."""

    def cosines(
        self,
        images: npt.NDArray[np.int8],
        lengths: npt.NDArray[np.float64],
        left: npt.NDArray[np.int32],
        right: npt.NDArray[np.int32],
    ) -> npt.NDArray[np.float64]:
        """Return the cosine of each pair of nodes, float64 [m] (spec 0.4)."""

    def opposing(
        self, images: I8, lengths: F64, sides: Sides | None, left: I32, right: I32, least: float
    ) -> tuple[I64, F64]:
        """Return which pairs of nodes oppose each other by claim or stance and are near (spec 6.2 a, b).

        left, right int32 [m]; near: a cosine >= least; without `sides` all near pairs. Returns the pairs' places
        int64 [k], ascending, and their cosines float64 [k].
        """

    def components(
        self, count: int, left: npt.NDArray[np.int32], right: npt.NDArray[np.int32]
    ) -> npt.NDArray[np.int32]:
        """Return the lowest member of each node's connected component, int32 [count] (spec 2.6)."""

    def closest_pairs(
        self,
        images: npt.NDArray[np.int8],
        lengths: npt.NDArray[np.float64],
        members: npt.NDArray[np.int32],
        ranks: npt.NDArray[np.int32],
    ) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
        """Return for each rank above 0 the pair of greatest cosine with the members of lower rank (spec 2.6)."""

    def order_rows(
        self, count: int, sources: npt.NDArray[np.int32], keys: npt.NDArray[np.int64]
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Return (offsets, order) of edges by source, then key."""

    def centroids(
        self,
        images: npt.NDArray[np.int8],
        offsets: npt.NDArray[np.int64],
        cells: npt.NDArray[np.int32],
        weights: npt.NDArray[np.int64],
    ) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.bool_]]:
        """Return the unit vector of each group's weighted sum of images, and whether the sum was other than zero."""

    def communities(
        self,
        offsets: npt.NDArray[np.int64],
        targets: npt.NDArray[np.int32],
        weights: npt.NDArray[np.int64],
        numbers: npt.NDArray[np.int64],
        resolution: tuple[int, int],
    ) -> npt.NDArray[np.int32]:
        """Return each node's community after one level's local moving and splitting, as its first member (spec 6.4).

        Links by node, symmetric: offsets int64 [n + 1], targets int32 and weights int64 >= 1 [m]; numbers int64 [n],
        ascending; resolution: numerator and denominator. Returns int32 [n].
        """

    def merged_links(
        self,
        offsets: npt.NDArray[np.int64],
        targets: npt.NDArray[np.int32],
        weights: npt.NDArray[np.int64],
        groups: npt.NDArray[np.int32],
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32], npt.NDArray[np.int64]]:
        """Return the links between groups of nodes, summed, in the form that `communities` takes (spec 6.4)."""

    def groups(
        self,
        images: npt.NDArray[np.int8],
        lengths: npt.NDArray[np.float64],
        offsets: npt.NDArray[np.int64],
        targets: npt.NDArray[np.int32],
        begins: npt.NDArray[np.int64],
        cells: npt.NDArray[np.int32],
        least: float,
    ) -> npt.NDArray[np.int32]:
        """Return the leader of each node's group, its own number for a leader, -1 for nodes in no scene (spec 6.4).

        Links by node: offsets int64 [n + 1], targets int32 [m]. Scene s has the cells at begins[s] : begins[s + 1]
        (int64 [s + 1]; cells int32, none twice), in the order of their turns: one not yet grouped leads and takes the
        ungrouped ones of its scene that it links to with a cosine >= `least`. Returns int32 [n].
        """
