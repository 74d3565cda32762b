"""Near and far links between the cells of a layer, and copies (spec 2.3, 2.6)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from hyphae_gpu.backends.protocol import Backend
from hyphae_gpu.topology.points import Standing

#: How many nearest nodes each node links to (spec 2.3).
NEAR_COUNT = 10

#: Undirected pairs, the lower node first: int64, lower << 31 | higher.
PairKeys = npt.NDArray[np.int64]


def near_and_far(
    standing: Standing,
    images: npt.NDArray[np.int8],
    lengths: npt.NDArray[np.float64],
    backend: Backend,
) -> tuple[PairKeys, PairKeys]:
    """Return the near and the far pairs of a layer, each ascending, no pair in both (spec 2.3).

    Both closures under reversal are in the pair: it stands for an edge each way.
    """
    offsets, links = standing.index.base_links()
    representatives = standing.representatives
    nearest = backend.nearest_linked(images, lengths, representatives, offsets, links, NEAR_COUNT)
    point, place = np.nonzero(nearest >= 0)
    near = pair_keys(representatives[point], nearest[point, place])
    linking = np.repeat(np.arange(len(representatives)), np.diff(offsets))
    both = (representatives[linking] >= 0) & (representatives[links] >= 0)
    far = pair_keys(representatives[linking[both]], representatives[links[both]])
    return near, np.setdiff1d(far, near, assume_unique=True)


def copy_pairs(standing: Standing) -> PairKeys:
    """Return the pairs of representative and copy (spec 2.6)."""
    holders = standing.holders
    copies = holders != standing.cells
    return pair_keys(holders[copies], standing.cells[copies])


def pair_keys(left: npt.NDArray[np.int32], right: npt.NDArray[np.int32]) -> PairKeys:
    """Return the distinct undirected pairs of (left[i], right[i]), ascending."""
    low, high = np.minimum(left, right).astype(np.int64), np.maximum(left, right).astype(np.int64)
    keys: PairKeys = low << 31 | high
    # Sorting is several times faster than np.unique, which hashes.
    keys.sort()
    first = np.ones(len(keys), np.bool_)
    first[1:] = keys[1:] != keys[:-1]
    return keys[first]


def ends(keys: PairKeys) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
    """Return the lower and the higher node of each pair, int32."""
    return (keys >> 31).astype(np.int32), (keys & 0x7FFFFFFF).astype(np.int32)


def weights_of(cosines: npt.NDArray[np.float64]) -> npt.NDArray[np.float32]:
    """Return an edge's weight by its cosine: float32(clamp(cos, 0.05, 1)) (spec 2.3)."""
    return np.clip(cosines, 0.05, 1.0).astype(np.float32)
