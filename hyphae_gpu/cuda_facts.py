"""What there is of CUDA on this machine: driver, devices, the versions of the libraries. Judges nothing."""

from __future__ import annotations

import ctypes
import importlib
from dataclasses import dataclass

import torch

from hyphae_gpu.backends.cuda.sources import COMPILER_OPTIONS, kernel_source
from hyphae_gpu.errors import first_line

#: Where the driver's two libraries are found: by their names, as the loader of the system knows them.
_DRIVER, _MANAGEMENT = "libcuda.so.1", "libnvidia-ml.so.1"
_TEXT_BYTES = 96


@dataclass(frozen=True, kw_only=True)
class Gpu:
    """One device as PyTorch sees it: name, compute capability, bytes of memory."""

    name: str
    capability: tuple[int, int]
    memory_bytes: int


@dataclass(frozen=True, kw_only=True)
class CudaFacts:
    """What was found; None for what is not there.

    driver: the driver's version, `unknown` where only its library is found; driver_cuda: the newest CUDA, as (major,
    minor), that it runs; torch_cuda, cupy_cuda: the CUDA that PyTorch and CuPy are for; cupy_problem: why it is None.
    """

    driver: str | None = None
    driver_cuda: tuple[int, int] | None = None
    gpus: tuple[Gpu, ...] = ()
    torch: str = ""
    torch_cuda: tuple[int, int] | None = None
    cupy: str | None = None
    cupy_cuda: tuple[int, int] | None = None
    cupy_problem: str = ""


def gather() -> CudaFacts:
    """Look at this machine; raises nothing, whatever is missing or does not load."""
    driver_cuda = _driver_cuda()
    cupy, cupy_cuda, problem = _cupy()
    return CudaFacts(
        driver=None if driver_cuda is None else _driver_version() or "unknown",
        driver_cuda=driver_cuda,
        gpus=_gpus(),
        torch=torch.__version__,
        torch_cuda=_pair(torch.version.cuda),
        cupy=cupy,
        cupy_cuda=cupy_cuda,
        cupy_problem=problem,
    )


def compile_problem(stem: str, capability: tuple[int, int]) -> str | None:
    """Compile one kernel file by NVRTC for a compute capability; return the compiler's complaint, None where it works.

    Needs CuPy, and neither a device nor a driver. Raises FileNotFoundError where there are no kernels.
    """
    source = kernel_source(stem)
    try:
        nvrtc = importlib.import_module("cupy.cuda").nvrtc
        program = nvrtc.createProgram(source, f"{stem}.cu", (), ())
    except Exception as error:
        return first_line(error)
    major, minor = capability
    try:
        nvrtc.compileProgram(program, (*COMPILER_OPTIONS, f"--gpu-architecture=sm_{major}{minor}"))
    except Exception as error:
        return nvrtc.getProgramLog(program).strip().split("\n")[0] or first_line(error)
    return None


def _driver_cuda() -> tuple[int, int] | None:
    try:
        library = ctypes.CDLL(_DRIVER)
        number = ctypes.c_int()
        failed = library.cuDriverGetVersion(ctypes.byref(number))
    except (OSError, AttributeError):
        return None
    return None if failed else (number.value // 1000, number.value % 1000 // 10)


def _driver_version() -> str | None:
    try:
        library = ctypes.CDLL(_MANAGEMENT)
        text = ctypes.create_string_buffer(_TEXT_BYTES)
        if library.nvmlInit_v2() or library.nvmlSystemGetDriverVersion(text, _TEXT_BYTES):
            return None
        library.nvmlShutdown()
    except (OSError, AttributeError):
        return None
    return text.value.decode("ascii", "replace")


def _gpus() -> tuple[Gpu, ...]:
    if not torch.cuda.is_available():
        return ()
    found = map(torch.cuda.get_device_properties, range(torch.cuda.device_count()))
    return tuple(Gpu(name=it.name, capability=(it.major, it.minor), memory_bytes=it.total_memory) for it in found)


def _cupy() -> tuple[str | None, tuple[int, int] | None, str]:
    try:
        cupy = importlib.import_module("cupy")
        number = cupy.cuda.runtime.runtimeGetVersion()
    except Exception as error:
        return None, None, first_line(error)
    return cupy.__version__, (number // 1000, number % 1000 // 10), ""


def _pair(version: str | None) -> tuple[int, int] | None:
    if version is None:
        return None
    major, _, minor = version.partition(".")
    return int(major), int(minor.split(".")[0] or 0)
