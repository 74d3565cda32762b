"""The graph operations of the CUDA backend: numpy arrays go to the device, and what was computed comes back."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import numpy.typing as npt
import torch

from hyphae_gpu.arrays import F32, F64, I8, I32, I64, Flags
from hyphae_gpu.backends.cpu.graph import GraphOperations
from hyphae_gpu.backends.cuda import centroids, closest, communities, components, cosines, near, opposing, rows
from hyphae_gpu.backends.cuda.communities import Links
from hyphae_gpu.backends.cuda.image_rows import brought
from hyphae_gpu.backends.cuda.launcher import Launcher
from hyphae_gpu.swarm import Sides

_P = ParamSpec("_P")
_R = TypeVar("_R")


def _else_on_host(operation: Callable[_P, _R]) -> Callable[_P, _R]:
    """Let the host do what the device has no memory for: its answer is the same (spec 0.5)."""
    on_host: Callable[_P, _R] = getattr(GraphOperations, operation.__name__)

    @wraps(operation)
    def on_either(*arguments: _P.args, **named: _P.kwargs) -> _R:
        try:
            return operation(*arguments, **named)
        except torch.OutOfMemoryError:
            return on_host(*arguments, **named)

    return on_either


class CudaGraphOperations(GraphOperations):
    """What topology, drift and scenes ask of a backend (`backends.protocol`), on a launcher's device.

    `equal_rows` and `groups` stay on the host, and so does what the device has no memory for.
    """

    launcher: Launcher

    @_else_on_host
    def nearest_linked(
        self, images: I8, lengths: F64, representatives: I32, offsets: I64, links: I32, count: int
    ) -> I32:
        """See `Backend.nearest_linked`."""
        return near.nearest_linked(self.launcher, images, lengths, representatives, offsets, links, count)

    @_else_on_host
    def cosines(self, images: I8, lengths: F64, left: I32, right: I32) -> F64:
        """See `Backend.cosines`."""
        return cosines.cosines(self.launcher, images, lengths, left, right)

    @_else_on_host
    def opposing(
        self, images: I8, lengths: F64, sides: Sides | None, left: I32, right: I32, least: float
    ) -> tuple[I64, F64]:
        """See `Backend.opposing`."""
        return opposing.opposing(self.launcher, images, lengths, sides, left, right, least)

    @_else_on_host
    def closest_pairs(self, images: I8, lengths: F64, members: I32, ranks: I32) -> tuple[I32, I32]:
        """See `Backend.closest_pairs`."""
        return closest.closest_pairs(self.launcher, images, lengths, members, ranks)

    @_else_on_host
    def order_rows(self, count: int, sources: I32, keys: I64) -> tuple[I64, I64]:
        """See `Backend.order_rows`."""
        ordered = rows.order_rows(count, self._brought(sources, torch.int32), self._brought(keys, torch.int64))
        return _numpy(ordered[0]), _numpy(ordered[1])

    @_else_on_host
    def centroids(self, images: I8, offsets: I64, cells: I32, weights: I64) -> tuple[F32, Flags]:
        """See `Backend.centroids`."""
        return centroids.centroids(self.launcher, images, offsets, cells, weights)

    @_else_on_host
    def components(self, count: int, left: I32, right: I32) -> I32:
        """See `Backend.components`."""
        ends = (self._brought(left, torch.int32), self._brought(right, torch.int32))
        labels: I32 = _numpy(components.components(self.launcher, count, *ends))
        return labels

    @_else_on_host
    def communities(self, offsets: I64, targets: I32, weights: I64, numbers: I64, resolution: tuple[int, int]) -> I32:
        """See `Backend.communities`."""
        links, named = self._links(offsets, targets, weights), self._brought(numbers, torch.int64)
        parts: I32 = _numpy(communities.communities(self.launcher, links, named, resolution))
        return parts

    @_else_on_host
    def merged_links(self, offsets: I64, targets: I32, weights: I64, groups: I32) -> tuple[I64, I32, I64]:
        """See `Backend.merged_links`."""
        links, named = self._links(offsets, targets, weights), self._brought(groups, torch.int32)
        merged = communities.merged_links(links, named)
        return _numpy(merged[0]), _numpy(merged[1]), _numpy(merged[2])

    def _links(self, offsets: I64, targets: I32, weights: I64) -> Links:
        brought = self._brought
        return brought(offsets, torch.int64), brought(targets, torch.int32), brought(weights, torch.int64)

    def _brought(self, array: npt.NDArray[Any], kind: torch.dtype) -> torch.Tensor:
        return brought(self.launcher.device, array, kind)


def _numpy(column: torch.Tensor) -> Any:
    return column.cpu().numpy()
