"""The nearest nodes among an index's links and the links of those, on the device (spec 2.3)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch

from hyphae_gpu.backends.cuda.image_rows import ImageRows, brought
from hyphae_gpu.backends.cuda.launcher import Launcher

#: Places for candidates, 20 bytes each, that all blocks have together at most, unless one point needs more.
_ALL_PLACES = 1 << 26
_LEAST_ROOM = 16


def nearest_linked(
    launcher: Launcher,
    images: npt.NDArray[np.int8],
    lengths: npt.NDArray[np.float64],
    representatives: npt.NDArray[np.int32],
    offsets: npt.NDArray[np.int64],
    links: npt.NDArray[np.int32],
    count: int,
) -> npt.NDArray[np.int32]:
    """Return each point's `count` live nodes of greatest cosine, int32 [p, count]; see `Backend.nearest_linked`."""
    device, points = launcher.device, len(representatives)
    live = representatives >= 0
    rows = ImageRows.bring(device, images, lengths, representatives[live])
    standing = np.full(points, -1, np.int32)
    standing[live] = rows.places[representatives[live]]
    starts, targets = brought(device, offsets, torch.int64), brought(device, links, torch.int32)
    out = torch.full((points, count), -1, dtype=torch.int32, device=device)
    if points and count:
        reaches = _reaches(starts, targets)
        room = max(_LEAST_ROOM, 1 << int(reaches.max()).bit_length())
        grid = max(1, min(points, launcher.blocks, _ALL_PLACES // room))
        arguments = (
            *rows.arguments(),
            *(brought(device, standing, torch.int32), starts, targets, reaches, points, count, room),
            torch.empty(grid * room * 2, dtype=torch.int32, device=device),
            torch.empty(grid * room, dtype=torch.int32, device=device),
            torch.empty(grid * room, dtype=torch.float64, device=device),
            out,
        )
        launcher.launch("near.nearest_linked", arguments, grid=grid)
    found = out.cpu().numpy()
    taken = found >= 0
    found[taken] = rows.numbers[found[taken]]
    return found


def _reaches(offsets: torch.Tensor, links: torch.Tensor) -> torch.Tensor:
    """Return how many links there are within two of each point, int64 [p], counted as often as they come."""
    degrees = offsets.diff()
    beyond = torch.cat([degrees.new_zeros(1), degrees[links.long()].cumsum(0)])
    return degrees + beyond[offsets[1:]] - beyond[offsets[:-1]]
