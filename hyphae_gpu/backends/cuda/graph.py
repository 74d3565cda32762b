"""The graph operations of the CUDA backend: numpy arrays go to the device, and what was computed comes back."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from hyphae_gpu.backends.cpu.graph import GraphOperations
from hyphae_gpu.backends.cuda import communities as moving
from hyphae_gpu.backends.cuda import components as joining
from hyphae_gpu.backends.cuda.launcher import Launcher
from hyphae_gpu.columns import as_tensor

I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]


class CudaGraphOperations(GraphOperations):
    """What topology, drift and scenes ask of a backend (`backends.protocol`), on a launcher's device.

    `equal_rows` and `order_rows` stay on the host, whose memory their input and output fill.
    """

    launcher: Launcher

    def components(self, count: int, left: I32, right: I32) -> I32:
        """See `Backend.components`."""
        ends = (self._brought(left, torch.int32), self._brought(right, torch.int32))
        labels: I32 = _numpy(joining.components(self.launcher, count, *ends))
        return labels

    def communities(self, offsets: I64, targets: I32, weights: I64, numbers: I64, resolution: tuple[int, int]) -> I32:
        """See `Backend.communities`."""
        links, named = self._links(offsets, targets, weights), self._brought(numbers, torch.int64)
        parts: I32 = _numpy(moving.communities(self.launcher, links, named, resolution))
        return parts

    def merged_links(self, offsets: I64, targets: I32, weights: I64, groups: I32) -> tuple[I64, I32, I64]:
        """See `Backend.merged_links`."""
        links, named = self._links(offsets, targets, weights), self._brought(groups, torch.int32)
        merged = moving.merged_links(links, named)
        return _numpy(merged[0]), _numpy(merged[1]), _numpy(merged[2])

    def _links(self, offsets: I64, targets: I32, weights: I64) -> moving.Links:
        brought = self._brought
        return brought(offsets, torch.int64), brought(targets, torch.int32), brought(weights, torch.int64)

    def _brought(self, array: npt.NDArray[Any], kind: torch.dtype) -> torch.Tensor:
        """Return an array on the device, contiguous, as the kernels read it."""
        return as_tensor(np.ascontiguousarray(array)).to(device=self.launcher.device, dtype=kind)


def _numpy(column: torch.Tensor) -> Any:
    return column.cpu().numpy()
