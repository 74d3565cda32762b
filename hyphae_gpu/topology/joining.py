"""Components of the live graph, and the links that join them (spec 2.6)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hyphae_gpu.backends.protocol import Backend
from hyphae_gpu.topology.near import PairKeys, ends, pair_keys


@dataclass(frozen=True, kw_only=True)
class Joining:
    """The pairs that join components; how many components joined; the largest one's share of cells before that."""

    pairs: PairKeys
    joined: int
    reachability: float


def join_components(
    cells: npt.NDArray[np.int32],
    pairs: PairKeys,
    representatives: npt.NDArray[np.int32],
    images: npt.NDArray[np.int8],
    lengths: npt.NDArray[np.float64],
    backend: Backend,
) -> Joining:
    """Join every component but the largest to it, in order of lowest member (spec 2.6).

    cells int32 [k]: the live cells; pairs: their links, copies included; representatives int32: one cell of each
    distinct image, ascending. Of equal size the component of the lowest member counts as the largest. What is joined
    belongs to it: a later component may be linked to an earlier one. Copies share their representative's image and
    have higher numbers, so only representatives are searched.
    """
    if not len(cells):
        return Joining(pairs=pairs[:0], joined=0, reachability=1.0)
    labels = backend.components(len(images), *ends(pairs))
    lowest, sizes = np.unique(labels[cells], return_counts=True)
    largest = int(np.argmax(sizes))
    ranks = np.arange(1, len(lowest) + 1, dtype=np.int32)
    ranks[largest + 1 :] -= 1
    ranks[largest] = 0
    of_members = ranks[np.searchsorted(lowest, labels[representatives])]
    nodes, partners = backend.closest_pairs(images, lengths, representatives, of_members)
    return Joining(
        pairs=pair_keys(nodes, partners), joined=len(lowest) - 1, reachability=float(sizes[largest] / len(cells))
    )
