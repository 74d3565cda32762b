"""The seam: the batch operations that a device has to offer (design.md).

Every operation is a pure function of its arguments. Decisions are integers or float64 in the order the spec writes, so
that all backends agree with `==` (spec 0.1, 0.5).
"""

from __future__ import annotations

from typing import Protocol

from hyphae_gpu.swarm import Adjacency, Deliveries, Diffs, GossipCounts, GossipRules, Nodes


class Backend(Protocol):
    """One device."""

    @property
    def name(self) -> str:
        """`cpu` or `cuda`."""

    def spread(
        self, nodes: Nodes, adjacency: Adjacency, diffs: Diffs, rules: GossipRules
    ) -> tuple[Deliveries, GossipCounts]:
        """Run gossip rounds until every diff is quiet and return what reached whom (spec 3.5, 3.7)."""
