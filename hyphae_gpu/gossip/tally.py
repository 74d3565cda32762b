"""What a run tells of its waves: counts, reach, hops, and both bounds of spec 4.3 beside what was measured."""

from __future__ import annotations

from typing import Any

import numpy as np

from hyphae_gpu.swarm import Deliveries, Diffs, GossipCounts
from hyphae_gpu.vocabulary import ENERGY_UNITS, KnowledgeType, names

#: Agents whose open share is told one by one, the widest open ones.
_WIDEST = 1000


class Tally:
    """Sums over the batches of an epoch; the same for any split."""

    def __init__(self) -> None:
        self.counts = GossipCounts()
        #: by agent's node number, the share of diffs that its gate lets in (spec 3.3)
        self.open_shares: dict[int, float] = {}
        self._hops = np.zeros(0, np.int64)
        self._reach: list[np.ndarray[Any, np.dtype[np.int64]]] = []
        self._types: list[np.ndarray[Any, np.dtype[np.int8]]] = []
        self._energies: list[np.ndarray[Any, np.dtype[np.int32]]] = []
        self._deepest: list[np.ndarray[Any, np.dtype[np.int64]]] = []

    def ran(self, wave: GossipCounts) -> None:
        """Add what a wave took. Its sweeps come after those of the waves before; rounds are each diff's own."""
        sweeps = self.counts.sweeps + wave.sweeps
        self.counts.add(wave)
        self.counts.sweeps = sweeps

    def add(self, diffs: Diffs, found: Deliveries) -> None:
        """Add diffs that are through, and all their deliveries."""
        self.counts.add(GossipCounts(diffs=len(diffs), deliveries=len(found)))
        hops = np.bincount(found.hops.numpy())
        grown = np.zeros(max(len(hops), len(self._hops)), np.int64)
        grown[: len(self._hops)] += self._hops
        grown[: len(hops)] += hops
        self._hops = grown
        order = np.argsort(diffs.numbers.numpy())
        rows = order[np.searchsorted(diffs.numbers.numpy()[order], found.diffs.numpy())]
        deepest = np.full(len(diffs), -1, np.int64)
        np.maximum.at(deepest, rows, found.hops.numpy())
        self._reach.append(np.bincount(rows, minlength=len(diffs)))
        self._types.append(diffs.knowledge_types.numpy())
        self._energies.append(diffs.energies.numpy())
        self._deepest.append(deepest)

    def summary(self, mean_weight: float, greatest_weight: float) -> dict[str, Any]:
        """Return what the report shows: hop counts, reach, and by knowledge type the bounds of spec 4.3.

        `hop_bound` = E0 * greatest weight, `node_bound` = E0 * mean weight (the paper's, which a branching wave
        passes), both of the type's strongest diff, in the paper's units.
        """
        reach = np.concatenate([np.zeros(0, np.int64), *self._reach])
        types = np.concatenate([np.zeros(0, np.int8), *self._types])
        energies = np.concatenate([np.zeros(0, np.int32), *self._energies])
        deepest = np.concatenate([np.zeros(0, np.int64), *self._deepest])
        by_type = {}
        for code, name in enumerate(names(KnowledgeType)):
            rows = types == code
            if rows.any():
                energy = float(energies[rows].max()) / ENERGY_UNITS
                by_type[name] = {
                    "diffs": int(rows.sum()),
                    "reach_mean": float(reach[rows].mean()),
                    "reach_max": int(reach[rows].max()),
                    "hops_max": int(deepest[rows].max()),
                    "energy": energy,
                    "hop_bound": energy * greatest_weight,
                    "node_bound": energy * mean_weight,
                }
        return {
            "hops": self._hops.tolist(),
            "reach": _quartiles(reach),
            "by_type": by_type,
            "open_share": _quartiles(np.array(list(self.open_shares.values()), np.float64)),
            "open_shares": dict(sorted(self.open_shares.items(), key=lambda item: (-item[1], item[0]))[:_WIDEST]),
        }


def _quartiles(values: np.ndarray[Any, Any]) -> dict[str, float]:
    if not len(values):
        return {}
    points = np.percentile(values, (0, 25, 50, 75, 100)).tolist()
    return dict(zip(("min", "q1", "median", "q3", "max"), points, strict=True)) | {"mean": float(values.mean())}
