"""The closest pair between each component and those joined before it, by exact search on the device (spec 2.6)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch

from hyphae_gpu.backends.cuda.image_rows import ImageRows, brought
from hyphae_gpu.backends.cuda.launcher import WARP, Launcher, grid_of

#: Rows that one warp compares a seeking row with, and results of warps that are on the device at once.
_SLICE_ROWS = 512
_RESULTS_AT_ONCE = 1 << 24
_NONE = 2**31 - 1


def closest_pairs(
    launcher: Launcher,
    images: npt.NDArray[np.int8],
    lengths: npt.NDArray[np.float64],
    members: npt.NDArray[np.int32],
    ranks: npt.NDArray[np.int32],
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
    """Return (nodes, partners), int32 [greatest rank]; see `Backend.closest_pairs`."""
    joined = int(ranks.max(initial=0))
    if not joined:
        return np.zeros(0, np.int32), np.zeros(0, np.int32)
    rows = ImageRows.bring(launcher.device, images[members], lengths[members], np.arange(len(members), dtype=np.int32))
    seeking = np.flatnonzero(ranks > 0)
    at_once = max(1, _RESULTS_AT_ONCE * _SLICE_ROWS // len(members))
    parts = [_closest(launcher, rows, ranks, seeking[at : at + at_once]) for at in range(0, len(seeking), at_once)]
    best = np.concatenate([cosines for cosines, _ in parts])
    partners = np.concatenate([found for _, found in parts])
    # Stable, so that of equal cosines the lowest node stands first in its rank.
    order = np.lexsort((-best, ranks[seeking]))
    firsts = order[np.searchsorted(ranks[seeking][order], np.arange(1, joined + 1))]
    return members[seeking[firsts]], members[partners[firsts]]


def _closest(
    launcher: Launcher, rows: ImageRows, ranks: npt.NDArray[np.int32], seeking: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int32]]:
    """Return each seeking row's greatest cosine with a row of lower rank, and the lowest row that has it."""
    device, count = launcher.device, len(ranks)
    slices = -(-count // _SLICE_ROWS)
    partners = torch.empty((slices, len(seeking)), dtype=torch.int32, device=device)
    cosines = torch.empty((slices, len(seeking)), dtype=torch.float64, device=device)
    asked = (brought(device, ranks, torch.int32), count, brought(device, seeking, torch.int64), len(seeking))
    grid = grid_of(launcher, slices * len(seeking), lanes=WARP)
    launcher.launch("closest", (*rows.arguments(), *asked, _SLICE_ROWS, partners, cosines), grid=grid)
    cosines[partners < 0] = -torch.inf
    best = cosines.amax(0)
    lowest = torch.where((cosines == best) & (partners >= 0), partners, _NONE).amin(0)
    return best.cpu().numpy(), lowest.cpu().numpy()
