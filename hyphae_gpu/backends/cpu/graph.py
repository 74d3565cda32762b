"""The graph operations of the CPU backend in one place; each lives in a file of its own name."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from hyphae_gpu.arrays import F64, I8, I32, I64
from hyphae_gpu.backends.cpu import components, cosines, equal, groups, join, modularity, near, opposing, position, rows
from hyphae_gpu.swarm import Sides


class GraphOperations:
    """What topology, drift, scenes and patterns ask of a backend (`backends.protocol`), on `threads` threads."""

    threads: int = 1

    def equal_rows(
        self, known: npt.NDArray[np.int8], images: npt.NDArray[np.int8], wanted: npt.NDArray[np.int32]
    ) -> npt.NDArray[np.int64]:
        """See `equal.equal_rows`."""
        return equal.equal_rows(known, images, wanted)

    def nearest_linked(
        self,
        images: npt.NDArray[np.int8],
        lengths: npt.NDArray[np.float64],
        representatives: npt.NDArray[np.int32],
        offsets: npt.NDArray[np.int64],
        links: npt.NDArray[np.int32],
        count: int,
    ) -> npt.NDArray[np.int32]:
        """See `near.nearest_linked`."""
        return near.nearest_linked(images, lengths, representatives, offsets, links, count=count, threads=self.threads)

    def cosines(
        self,
        images: npt.NDArray[np.int8],
        lengths: npt.NDArray[np.float64],
        left: npt.NDArray[np.int32],
        right: npt.NDArray[np.int32],
    ) -> npt.NDArray[np.float64]:
        """See `cosines.cosines`."""
        return cosines.cosines(images, lengths, left, right, threads=self.threads)

    def opposing(
        self, images: I8, lengths: F64, sides: Sides | None, left: I32, right: I32, least: float
    ) -> tuple[I64, F64]:
        """See `opposing.opposing`."""
        return opposing.opposing(images, lengths, sides, left, right, least, threads=self.threads)

    def components(
        self, count: int, left: npt.NDArray[np.int32], right: npt.NDArray[np.int32]
    ) -> npt.NDArray[np.int32]:
        """See `components.components`."""
        return components.components(count, left, right)

    def closest_pairs(
        self,
        images: npt.NDArray[np.int8],
        lengths: npt.NDArray[np.float64],
        members: npt.NDArray[np.int32],
        ranks: npt.NDArray[np.int32],
    ) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
        """See `join.closest_pairs`."""
        return join.closest_pairs(images, lengths, members, ranks)

    def order_rows(
        self, count: int, sources: npt.NDArray[np.int32], keys: npt.NDArray[np.int64]
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """See `rows.order_rows`."""
        return rows.order_rows(count, sources, keys, threads=self.threads)

    def centroids(
        self,
        images: npt.NDArray[np.int8],
        offsets: npt.NDArray[np.int64],
        cells: npt.NDArray[np.int32],
        weights: npt.NDArray[np.int64],
    ) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.bool_]]:
        """See `position.centroids`."""
        return position.centroids(images, offsets, cells, weights)

    def communities(
        self,
        offsets: npt.NDArray[np.int64],
        targets: npt.NDArray[np.int32],
        weights: npt.NDArray[np.int64],
        numbers: npt.NDArray[np.int64],
        resolution: tuple[int, int],
    ) -> npt.NDArray[np.int32]:
        """See `modularity.communities`."""
        return modularity.communities(offsets, targets, weights, numbers, resolution, threads=self.threads)

    def merged_links(
        self,
        offsets: npt.NDArray[np.int64],
        targets: npt.NDArray[np.int32],
        weights: npt.NDArray[np.int64],
        groups: npt.NDArray[np.int32],
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32], npt.NDArray[np.int64]]:
        """See `modularity.merged_links`."""
        return modularity.merged_links(offsets, targets, weights, groups)

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
        """See `groups.groups`."""
        return groups.groups(images, lengths, offsets, targets, begins, cells, least, threads=self.threads)
