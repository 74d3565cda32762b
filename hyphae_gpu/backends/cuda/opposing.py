"""Near pairs of cells that oppose each other, on the device (spec 6.2)."""

from __future__ import annotations

import numpy as np
import torch

from hyphae_gpu.arrays import F64, I8, I32, I64
from hyphae_gpu.backends.cuda.image_rows import ImageRows, brought
from hyphae_gpu.backends.cuda.launcher import Argument, Launcher, grid_of
from hyphae_gpu.swarm import LEAST_STANCE, Sides

#: Pairs, 17 bytes each, that are on the device at once.
_PAIRS_AT_ONCE = 1 << 26


def opposing(
    launcher: Launcher, images: I8, lengths: F64, sides: Sides | None, left: I32, right: I32, least: float
) -> tuple[I64, F64]:
    """Return which pairs oppose each other, and their cosines; see `Backend.opposing`."""
    device = launcher.device
    rows = ImageRows.bring(device, images, lengths, left, right)
    kinds = {"subjects": torch.int32, "values": torch.int32, "stances": torch.float32}
    columns: list[torch.Tensor] = [
        brought(device, getattr(sides, name)[rows.numbers], kind)
        if sides
        else torch.empty(0, dtype=kind, device=device)
        for name, kind in kinds.items()
    ]
    rule: tuple[Argument, ...] = (*rows.arguments(), int(sides is not None), *columns, LEAST_STANCE)
    found, cosines = [np.zeros(0, np.int64)], [np.zeros(0)]
    for first in range(0, len(left), _PAIRS_AT_ONCE):
        some = slice(first, first + _PAIRS_AT_ONCE)
        pairs = [brought(device, rows.places[side[some]], torch.int32) for side in (left, right)]
        count = len(pairs[0])
        opposed = torch.empty(count, dtype=torch.int8, device=device)
        its = torch.empty(count, dtype=torch.float64, device=device)
        arguments = (*rule, *pairs, count, float(least), opposed, its)
        launcher.launch("opposing", arguments, grid=grid_of(launcher, count))
        which = torch.nonzero(opposed).flatten()
        found.append(first + which.cpu().numpy())
        cosines.append(its[which].cpu().numpy())
    return np.concatenate(found), np.concatenate(cosines)
