"""How kernels are started, as a small protocol: CuPy on a device, a C++ shim in the tests."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import torch

#: What a kernel takes: a tensor as the pointer to its first element, an int as int64, a float as double.
Argument = torch.Tensor | int | float

WARP = 32


class Launcher(Protocol):
    """Starts kernels on one device, in order, on torch's current stream."""

    device: torch.device
    #: Blocks that fill the device: more only wait.
    blocks: int
    #: Threads of a block where a launch asks for no other size: whole warps.
    block: int

    def free_bytes(self) -> int:
        """Return how much of the device's memory torch can still hand out."""

    def seconds(self, work: Callable[[], object]) -> float:
        """Return how long a piece of work takes on the device; it is done more than once."""

    def launch(
        self, kernel: str, arguments: Sequence[Argument], *, grid: int, block: int | None = None, shared_bytes: int = 0
    ) -> None:
        """Start `kernel`, `stem` or `stem.entry` of kernels/stem.cu, on `grid` blocks of `block` threads.

        Returns before it has ended where the device works by itself. Tensors have to be contiguous and on `device`.
        """


def grid_of(launcher: Launcher, items: int, *, lanes: int = 1) -> int:
    """Return how many blocks to start for `items` that a kernel loops over, `lanes` threads for each."""
    return max(1, min(launcher.blocks, -(-items * lanes // launcher.block)))
