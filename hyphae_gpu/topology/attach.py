"""Agents and beacons, attached to the cells nearest to them (spec 1.5, 2.4)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from hyphae_gpu.backends.protocol import Backend
from hyphae_gpu.topology.points import Standing

#: How many live cells an agent is attached to, and the search's list length (spec 2.4).
ATTACH_COUNT = 10
SEARCH_EF = 200


def nearest_cells(
    standing: Standing,
    seekers: npt.NDArray[np.int32],
    images: npt.NDArray[np.int8],
    lengths: npt.NDArray[np.float64],
    backend: Backend,
    *,
    count: int,
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32], npt.NDArray[np.float64]]:
    """Return (seekers, cells, cosines): the `count` nearest live cells that the index's search finds (spec 2.4).

    seekers int32 [k]: agents or beacons, ascending. Cells are representatives: copies hang on them. Sorted by seeker,
    then greatest cosine, then lowest cell number.
    """
    live = standing.representatives >= 0
    wanted = min(max(SEARCH_EF, count), int(live.sum()))
    if not wanted or not len(seekers):
        return np.zeros(0, np.int32), np.zeros(0, np.int32), np.zeros(0)
    points = standing.index.search(images[seekers], count=wanted, ef=SEARCH_EF, allowed=live)
    row, place = np.nonzero(points >= 0)
    cells = standing.representatives[points[row, place]]
    return nearest_of(seekers[row], cells, images, lengths, backend, count=count)


def nearest_of(
    seekers: npt.NDArray[np.int32],
    cells: npt.NDArray[np.int32],
    images: npt.NDArray[np.int8],
    lengths: npt.NDArray[np.float64],
    backend: Backend,
    *,
    count: int,
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32], npt.NDArray[np.float64]]:
    """Return each seeker's `count` candidates of greatest exact cosine, of (seeker, cell) pairs in any order."""
    cosines = backend.cosines(images, lengths, seekers, cells)
    order = np.lexsort((cells, -cosines, seekers))
    seekers, cells, cosines = seekers[order], cells[order], cosines[order]
    first = np.searchsorted(seekers, seekers, side="left")
    kept = np.arange(len(seekers)) - first < count
    return seekers[kept], cells[kept], cosines[kept]
