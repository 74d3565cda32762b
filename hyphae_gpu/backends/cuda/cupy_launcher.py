"""Kernels on a CUDA device: compiled by NVRTC through CuPy at first use, over torch's memory, on torch's stream."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import cupy
import torch
from cupy.cuda import compiler

from hyphae_gpu.backends.cuda.launcher import Argument
from hyphae_gpu.backends.cuda.sources import COMPILER_OPTIONS, kernel_source
from hyphae_gpu.errors import DeviceError, first_line

#: Threads of a block: enough warps to hide latency, few enough for any kernel's registers.
_BLOCK = 256
#: Blocks that one multiprocessor gets: enough to hide latency, few enough to loop.
_BLOCKS_A_PROCESSOR = 8


class CupyLauncher:
    """A `Launcher` on one CUDA device.

    CuPy keeps what it compiled on disk, for each user; a kernel's text holds all it includes, so a change is seen.
    """

    def __init__(self, device: torch.device) -> None:
        """`device` is a CUDA device with its index."""
        self.device, self.block = device, _BLOCK
        self.blocks = _BLOCKS_A_PROCESSOR * torch.cuda.get_device_properties(device).multi_processor_count
        self._kernels: dict[str, Any] = {}

    def free_bytes(self) -> int:
        """See `Launcher.free_bytes`: what is free, and what torch holds without using it."""
        free, _ = torch.cuda.mem_get_info(self.device)
        # the flat statistics that torch has functions for cost a hundred times as much
        held = torch.cuda.memory_stats_as_nested_dict(self.device)
        unused = held["reserved_bytes"]["all"]["current"] - held["allocated_bytes"]["all"]["current"] if held else 0
        return int(free + unused)

    def seconds(self, work: Callable[[], object]) -> float:
        """See `Launcher.seconds`: the second time, since the first compiles and chooses."""
        work()
        event: Any = torch.cuda.Event
        begin, end = event(enable_timing=True), event(enable_timing=True)
        with torch.cuda.device(self.device):
            begin.record()
            work()
            end.record()
        end.synchronize()
        return float(begin.elapsed_time(end)) / 1e3

    def launch(
        self, kernel: str, arguments: Sequence[Argument], *, grid: int, block: int | None = None, shared_bytes: int = 0
    ) -> None:
        """See `Launcher.launch`."""
        words = tuple(_word(argument) for argument in arguments)
        with cupy.cuda.Device(self.device.index), self._stream():
            self._kernel(kernel)((grid,), (block or self.block,), words, shared_mem=shared_bytes)

    def _stream(self) -> Any:
        """Return torch's current stream as CuPy's."""
        stream = torch.cuda.current_stream(self.device)
        if hasattr(stream, "__cuda_stream__"):
            return cupy.cuda.Stream.from_external(stream)
        # an older torch does not speak the protocol
        return cupy.cuda.ExternalStream(stream.cuda_stream, self.device.index)

    def _kernel(self, kernel: str) -> Any:
        """Return a compiled kernel. Raises DeviceError where NVRTC or the driver refuses it."""
        if kernel not in self._kernels:
            stem, _, entry = kernel.partition(".")
            module = cupy.RawModule(code=kernel_source(stem), options=COMPILER_OPTIONS, backend="nvrtc")
            try:
                self._kernels[kernel] = module.get_function(entry or stem)
            except (compiler.CompileException, RuntimeError, ImportError, OSError) as error:
                what = f"kernel {kernel} does not compile or load: {first_line(error)}"
                raise DeviceError(f"device cuda: {what}") from error
        return self._kernels[kernel]


def _word(argument: Argument) -> int | float:
    """Return what CuPy passes as eight bytes: an int or a float. A bool would be one byte."""
    if isinstance(argument, torch.Tensor):
        return argument.data_ptr()
    return argument if isinstance(argument, float) else int(argument)
