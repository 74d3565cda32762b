"""Launches the .cu files on CPU tensors: compiled by g++ with the shim, threads as fibers in an order a seed picks."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NoReturn

import pytest
import torch

from hyphae_gpu.backends.cuda.launcher import Argument
from hyphae_gpu.backends.cuda.sources import entries, kernel_source

SHIM = Path(__file__).parent / "shim"
FLAGS = ("-std=c++17", "-O1", "-fPIC", "-ffp-contract=off", "-Wall", "-Wextra", "-Werror", "-Wno-unknown-pragmas")
#: Makes every access to memory a place where threads may switch; see runtime.cpp.
KERNEL_FLAGS = ("-fsanitize=thread", "--param=tsan-distinguish-volatile=1")
#: longjmp between stacks is what fibers are made of; the fortified one refuses it.
RUNTIME_FLAGS = ("-U_FORTIFY_SOURCE",)
ENTRY = """
extern "C" __attribute__((no_sanitize("thread"))) const char *shim_{name}(const shim::Launch *launch) {{
    if (launch->count != shim::parameters_of({name})) return "other arguments than the kernel has parameters";
    auto body = [](const std::uint64_t *given) {{ shim::call({name}, given); }};
    return shim::run(body, *launch);
}}
"""


class KernelError(RuntimeError):
    """A launch that a device would leave undefined: what the shim stopped at."""


class Launch(ctypes.Structure):
    """shim::Launch of shim.hpp."""

    _fields_ = (
        ("arguments", ctypes.POINTER(ctypes.c_uint64)),
        ("sizes", ctypes.POINTER(ctypes.c_uint64)),
        ("count", ctypes.c_int64),
        ("grid", ctypes.c_int64),
        ("block", ctypes.c_int64),
        ("shared", ctypes.c_int64),
        ("seed", ctypes.c_uint64),
        ("find_races", ctypes.c_int64),
        ("most_accesses", ctypes.c_int64),
    )


class ShimLauncher:
    """A `Launcher` whose device is the CPU; `seed` picks the order of threads, another one at each launch."""

    device = torch.device("cpu")
    block = 64

    def __init__(
        self, folder: Path, *, seed: int = 0, sources: Path | None = None, blocks: int = 3, find_races: bool = True
    ) -> None:
        """Keep what is compiled in `folder`; `sources` holds .cu files that go before those of the package.

        With `find_races` a launch fails where two threads touch a word without order between them.
        """
        self.folder, self.sources, self.blocks, self.find_races = folder, sources, blocks, find_races
        self.seed = seed

    #: Accesses to memory after which a launch counts as endless; Python could not stop it.
    most_accesses = 1 << 30
    #: A device's memory, as far as plans are concerned.
    memory_bytes = 1 << 36

    def free_bytes(self) -> int:
        """See `Launcher.free_bytes`."""
        return self.memory_bytes

    def seconds(self, work: Callable[[], object]) -> float:
        """See `Launcher.seconds`; what a shim takes says nothing of a device."""
        work()
        return 1.0

    def launch(
        self, kernel: str, arguments: Sequence[Argument], *, grid: int, block: int | None = None, shared_bytes: int = 0
    ) -> None:
        """See `Launcher.launch`. Raises KernelError where a device's behaviour would be undefined."""
        stem, _, entry = kernel.partition(".")
        block = self.block if block is None else block
        assert grid >= 1, f"{kernel}: a grid of {grid} blocks"
        assert 1 <= block <= 1024, f"{kernel}: a block of {block} threads"
        room = ctypes.c_uint64 * max(1, len(arguments))
        sizes = (a.numel() * a.element_size() if isinstance(a, torch.Tensor) else 0 for a in arguments)
        words, held = room(*map(self._word, arguments)), room(*sizes)
        function = getattr(library(self.folder, stem, self.sources), f"shim_{entry or stem}")
        self.seed += 1
        shape = (len(arguments), grid, block, shared_bytes, self.seed)
        launch = Launch(words, held, *shape, self.find_races, self.most_accesses)
        with _LOCK:
            failure = function(ctypes.byref(launch))
        if failure is not None:
            raise KernelError(f"{kernel}: {failure.decode()}")

    @staticmethod
    def _word(argument: Argument) -> int:
        if isinstance(argument, torch.Tensor):
            assert argument.is_contiguous()
            assert argument.device.type == "cpu"
            return argument.data_ptr()
        if isinstance(argument, float):
            return int.from_bytes(ctypes.c_double(argument), "little")
        assert -(2**63) <= argument < 2**63, f"{argument} does not fit into int64"
        return argument & (2**64 - 1)


_LIBRARIES: dict[tuple[Path, str], ctypes.CDLL] = {}
_LOCK = threading.Lock()


def library(folder: Path, stem: str, sources: Path | None = None) -> ctypes.CDLL:
    """Return the compiled kernels of one .cu file; compiled once a folder."""
    key = (folder, stem)
    if key not in _LIBRARIES:
        runtime, text = folder / "runtime.o", folder / f"{stem}.cpp"
        compiled, built = folder / f"{stem}.o", folder / f"{stem}.so"
        if not runtime.exists():
            _compile(*RUNTIME_FLAGS, "-c", str(SHIM / "runtime.cpp"), "-o", str(runtime))
        source = kernel_source(stem, sources)
        names = entries(source)
        parts = ['#include "shim.hpp"', f'#line 1 "{stem}.cu"', source, *(ENTRY.format(name=name) for name in names)]
        text.write_text("\n".join(parts))
        _compile(*KERNEL_FLAGS, "-I", str(SHIM), "-c", str(text), "-o", str(compiled))
        _compile("-shared", str(compiled), str(runtime), "-o", str(built))
        loaded = ctypes.CDLL(str(built))
        for name in names:
            getattr(loaded, f"shim_{name}").restype = ctypes.c_char_p
            getattr(loaded, f"shim_{name}").argtypes = [ctypes.POINTER(Launch)]
        _LIBRARIES[key] = loaded
    return _LIBRARIES[key]


def _compile(*arguments: str) -> None:
    done = subprocess.run(["g++", *FLAGS, *arguments], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, f"g++ {' '.join(arguments)}:\n{done.stderr[:4000]}"


def need_compiler() -> None:
    """Skip where there is no g++; in CI its absence is a failure."""
    if sys.platform != "linux":
        pytest.skip("the shim needs ELF sections and GCC's instrumentation: Linux only")
    if not shutil.which("g++"):
        missing("g++ is missing: kernels cannot be run without a GPU (on Debian: apt install g++)")


def missing(what: str) -> NoReturn:
    """Skip a test for a tool that is not here, but fail it in CI, where nothing may go unseen."""
    if os.environ.get("CI") == "true":
        pytest.fail(what, pytrace=False)
    pytest.skip(what)
