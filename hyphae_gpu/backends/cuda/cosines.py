"""Exact cosines of given pairs of nodes on the device (spec 0.4)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch

from hyphae_gpu.backends.cuda.image_rows import ImageRows, brought
from hyphae_gpu.backends.cuda.launcher import Launcher, grid_of

#: Pairs, 16 bytes each, that are on the device at once.
_PAIRS_AT_ONCE = 1 << 26


def cosines(
    launcher: Launcher,
    images: npt.NDArray[np.int8],
    lengths: npt.NDArray[np.float64],
    left: npt.NDArray[np.int32],
    right: npt.NDArray[np.int32],
) -> npt.NDArray[np.float64]:
    """Return the cosine of each pair, float64 [m]; see `Backend.cosines`."""
    out = np.empty(len(left), np.float64)
    rows = ImageRows.bring(launcher.device, images, lengths, left, right)
    for first in range(0, len(left), _PAIRS_AT_ONCE):
        some = slice(first, first + _PAIRS_AT_ONCE)
        pairs = [brought(launcher.device, rows.places[side[some]], torch.int32) for side in (left, right)]
        found = torch.empty(len(pairs[0]), dtype=torch.float64, device=launcher.device)
        grid = grid_of(launcher, len(found), lanes=rows.lanes)
        launcher.launch("cosines", (*rows.arguments(), *pairs, len(found), found), grid=grid)
        out[some] = found.cpu().numpy()
    return out
