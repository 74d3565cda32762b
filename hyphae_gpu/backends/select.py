"""Which device runs the batches: `auto` records why CUDA was not taken, an explicit choice is kept or refused."""

from __future__ import annotations

from dataclasses import dataclass

from hyphae_gpu.backends.protocol import Backend
from hyphae_gpu.errors import DeviceError

#: Why no CUDA device is taken. One sentence for `auto`'s record and for the refusal of an explicit `cuda`.
NO_CUDA = "this version of hyphae-gpu has no CUDA backend yet"


@dataclass(frozen=True, kw_only=True)
class Selection:
    """The backend taken, and `why`: one line that says what was tried."""

    backend: Backend
    why: str


def select(device: str, threads: int) -> Selection:
    """Return the backend for `auto`, `cpu` or `cuda`, with `threads` CPU threads, torch's own included.

    Raises DeviceError when the device that was asked for cannot be used; ValueError on another word.
    """
    if device == "cuda":
        raise DeviceError(f"device cuda: {NO_CUDA}; use --device cpu or --device auto")
    if device not in ("auto", "cpu"):
        raise ValueError(f"device {device!r}, expected auto, cpu or cuda")
    import torch

    from hyphae_gpu.backends.cpu.backend import CpuBackend

    torch.set_num_threads(threads)
    reason = "asked for" if device == "cpu" else f"CUDA not taken: {NO_CUDA}"
    return Selection(backend=CpuBackend(threads=threads), why=f"cpu, {_count(threads)} ({reason})")


def _count(threads: int) -> str:
    return "1 thread" if threads == 1 else f"{threads} threads"
