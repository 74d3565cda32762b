"""Images on their way to the device: only the rows that an operation asks of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from hyphae_gpu.backends.cuda.mirrors import CHUNK, chunks_of, lanes_of, padded
from hyphae_gpu.columns import as_tensor

#: All rows are brought where at least one in so many is asked of: that is simpler than a copy of the others.
_WORTH_CHOOSING = 2


@dataclass(frozen=True, kw_only=True)
class ImageRows:
    """Rows on the device: images int8 [k, 16 * chunks] padded with zeros, lengths float64 [k],
    or empty where they are not needed.

    numbers int64 [k]: the rows' node numbers, ascending, on the host; places int32 [n]: the row of each node that was
    asked of, on the host.
    """

    images: torch.Tensor
    lengths: torch.Tensor
    numbers: npt.NDArray[np.int64]
    places: npt.NDArray[np.int32]

    @classmethod
    def bring(
        cls,
        device: torch.device,
        images: npt.NDArray[np.int8],
        lengths: npt.NDArray[np.float64] | None,
        *asked: npt.NDArray[np.int32],
    ) -> ImageRows:
        """Bring the rows of these node numbers, each once; images int8 [n, d], lengths float64 [n] if needed."""
        lengths = np.zeros(0) if lengths is None else lengths
        used = np.zeros(len(images), np.bool_)
        for numbers in asked:
            used[numbers] = True
        if np.count_nonzero(used) * _WORTH_CHOOSING < len(used):
            chosen = np.flatnonzero(used)
            places = np.empty(len(images), np.int32)
            places[chosen] = np.arange(len(chosen), dtype=np.int32)
            images, lengths = images[chosen], lengths[chosen] if len(lengths) else lengths
        else:
            chosen, places = np.arange(len(images)), np.arange(len(images), dtype=np.int32)
        return cls(
            images=padded(brought(device, images, torch.int8)),
            lengths=brought(device, lengths, torch.float64),
            numbers=chosen,
            places=places,
        )

    @property
    def words(self) -> int:
        """How many words of four components a row has."""
        return self.chunks * (CHUNK // 4)

    @property
    def chunks(self) -> int:
        """How many chunks a row has, as kernels/score.cuh reads them."""
        return chunks_of(self.images)

    @property
    def lanes(self) -> int:
        """How many lanes work on one dot product."""
        return lanes_of(self.chunks)

    def arguments(self) -> tuple[torch.Tensor, torch.Tensor, int, int]:
        """Return images, lengths, chunks, lanes: how kernels of dot products begin."""
        return self.images, self.lengths, self.chunks, self.lanes


def brought(device: torch.device, array: npt.NDArray[Any], kind: torch.dtype) -> torch.Tensor:
    """Return an array on the device, contiguous, of the dtype that kernels read."""
    return as_tensor(np.ascontiguousarray(array)).to(device=device, dtype=kind)
