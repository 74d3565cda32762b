"""What every way of propagating answers: who was reached with how much energy."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hyphae_gpu.swarm import Deliveries


@dataclass(frozen=True, kw_only=True)
class Answer:
    """Deliveries sorted by (diff, node): diff numbers int64, nodes int32, energies int32."""

    diffs: npt.NDArray[np.int64]
    nodes: npt.NDArray[np.int32]
    energies: npt.NDArray[np.int32]

    @classmethod
    def of(cls, found: Deliveries) -> Answer:
        """Return the engine's deliveries as an answer."""
        return cls(diffs=found.diffs.numpy(), nodes=found.nodes.numpy(), energies=found.energies.numpy())

    def first(self, number: int) -> Answer:
        """Return what reached whom of the diffs below a number."""
        size = int(np.searchsorted(self.diffs, number))
        return Answer(diffs=self.diffs[:size], nodes=self.nodes[:size], energies=self.energies[:size])

    def equals(self, other: Answer) -> bool:
        """Return whether every delivery of one is in the other with the same energy."""
        return all(np.array_equal(getattr(self, name), getattr(other, name)) for name in ("diffs", "nodes", "energies"))
