"""Unit vectors of weighted sums of images on the device (spec 1.3, 6.4)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch

from hyphae_gpu.backends.cuda.image_rows import ImageRows, brought
from hyphae_gpu.backends.cuda.launcher import Launcher


def centroids(
    launcher: Launcher,
    images: npt.NDArray[np.int8],
    offsets: npt.NDArray[np.int64],
    cells: npt.NDArray[np.int32],
    weights: npt.NDArray[np.int64],
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.bool_]]:
    """Return float32 [g, d] and bool [g]; see `Backend.centroids`."""
    device, groups, dimension = launcher.device, len(offsets) - 1, images.shape[1]
    rows = ImageRows.bring(device, images, None, cells)
    out = torch.zeros((groups, dimension), dtype=torch.float32, device=device)
    having = torch.zeros(groups, dtype=torch.bool, device=device)
    grid = min(groups, launcher.blocks)
    if grid:
        arguments = (
            *(rows.images, rows.words, dimension),
            brought(device, offsets, torch.int64),
            brought(device, rows.places[cells], torch.int32),
            brought(device, weights, torch.int64),
            groups,
            torch.empty(grid * rows.words * 4, dtype=torch.int64, device=device),
            *(out, having),
        )
        launcher.launch("centroids", arguments, grid=grid)
    return out.cpu().numpy(), having.cpu().numpy()
