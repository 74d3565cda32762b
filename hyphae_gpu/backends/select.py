"""Which device runs the batches: `auto` records why CUDA was not taken, an explicit choice is kept or refused."""

from __future__ import annotations

from dataclasses import dataclass

from hyphae_gpu.backends.protocol import Backend
from hyphae_gpu.errors import DeviceError


@dataclass(frozen=True, kw_only=True)
class Selection:
    """The backend taken, and `why`: one line that says what was tried."""

    backend: Backend
    why: str


def select(device: str, threads: int) -> Selection:
    """Return the backend for `auto`, `cpu` or `cuda`, with `threads` CPU threads, torch's own included.

    Raises DeviceError when the device that was asked for cannot be used; ValueError on another word.
    """
    if device not in ("auto", "cpu", "cuda"):
        raise ValueError(f"device {device!r}, expected auto, cpu or cuda")
    import torch

    from hyphae_gpu.backends.cpu.backend import CpuBackend
    from hyphae_gpu.backends.cuda.device import why_not_cuda

    reason = None if device == "cpu" else why_not_cuda()
    if device == "cuda" and reason:
        raise DeviceError(f"device cuda: {reason}; use --device cpu or --device auto")
    torch.set_num_threads(threads)
    if device != "cpu" and reason is None:
        return _cuda(threads)
    why = "asked for" if reason is None else f"CUDA not taken: {reason}"
    return Selection(backend=CpuBackend(threads=threads), why=f"cpu, {_count(threads)} ({why})")


def _cuda(threads: int) -> Selection:
    import torch

    from hyphae_gpu.backends.cuda.backend import CudaBackend
    from hyphae_gpu.backends.cuda.cupy_launcher import CupyLauncher

    index = torch.cuda.current_device()
    backend = CudaBackend(CupyLauncher(torch.device("cuda", index)), threads=threads)
    return Selection(backend=backend, why=f"cuda:{index}, {torch.cuda.get_device_name(index)}, {_count(threads)}")


def _count(threads: int) -> str:
    return "1 thread" if threads == 1 else f"{threads} threads"
