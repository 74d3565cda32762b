"""Connected components on the device (spec 2.6)."""

from __future__ import annotations

import torch

from hyphae_gpu.backends.cuda.launcher import Launcher, grid_of


def components(launcher: Launcher, count: int, left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    """Return the lowest member of each node's component, int32 [count]; left, right int32 [m] on the device."""
    parents = torch.arange(count, dtype=torch.int32, device=launcher.device)
    if len(left):
        launcher.launch("components", (left, right, len(left), parents), grid=grid_of(launcher, len(left)))
    return flattened(launcher, parents)


def flattened(launcher: Launcher, parents: torch.Tensor) -> torch.Tensor:
    """Hang each node of the trees of kernels/components.cuh on its root; return the same tensor."""
    if len(parents):
        launcher.launch("components.flatten", (parents, len(parents)), grid=grid_of(launcher, len(parents)))
    return parents
