"""What the device and its software are, whether every kernel compiles for it, and how fast memory is copied."""

from __future__ import annotations

import os
import platform
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch

from device.clock import STOPPED, Clock
from hyphae_gpu.backends.cuda.sources import kernel_stems
from hyphae_gpu.cuda_facts import compile_problem, gather

_COPIES = 5
_TOOLS = ("memcheck", "racecheck")
#: How compute-sanitizer ends where it found something.
_FOUND = 97
_LINES_KEPT = 30
#: What the check says where a result differs or a part raises.
_BAD = ("DIFFERS", "FAILED")


def cores() -> int:
    """Return how many cores this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def facts(clock: Clock) -> dict[str, Any]:
    """Return the machine's facts, and what the compiler says of each kernel, as far as there is time."""
    found: dict[str, Any] = {**asdict(gather()), "python": platform.python_version(), "cores": cores()}
    if not torch.cuda.is_available():
        return found
    properties = torch.cuda.get_device_properties(0)
    free, total = torch.cuda.mem_get_info()
    found |= {"processors": properties.multi_processor_count, "free_bytes": free, "memory_bytes": total}
    found["kernels"] = {
        stem: _compiled(stem, (properties.major, properties.minor)) for stem in kernel_stems() if clock.allows(0.0)
    }
    return found


def _compiled(stem: str, capability: tuple[int, int]) -> dict[str, Any]:
    start = time.perf_counter()
    problem = compile_problem(stem, capability)
    return {"problem": problem, "seconds": time.perf_counter() - start}


def bandwidths(device: torch.device, *, device_bytes: int, host_bytes: int) -> dict[str, float]:
    """Return the bytes a second that a copy moves, read and written: on the device, and on all cores of the host."""
    source = torch.ones(device_bytes // 8, dtype=torch.int64, device=device)
    target = torch.zeros_like(source)
    on_device = min(_seconds_of_copy(target, source) for _ in range(_COPIES))
    left, right = np.ones(host_bytes // 8), np.zeros(host_bytes // 8)
    pieces = list(zip(np.array_split(right, cores()), np.array_split(left, cores()), strict=True))
    best = float("inf")
    with ThreadPoolExecutor(cores()) as pool:
        for _ in range(_COPIES):
            start = time.perf_counter()
            list(pool.map(lambda piece: np.copyto(*piece), pieces))
            best = min(best, time.perf_counter() - start)
    return {"device": 2 * source.nbytes / on_device, "host": 2 * left.nbytes / best, "host_cores": cores()}


def _seconds_of_copy(target: torch.Tensor, source: torch.Tensor) -> float:
    settle(source.device)
    start = time.perf_counter()
    target.copy_(source)
    settle(source.device)
    return time.perf_counter() - start


def settle(device: torch.device) -> None:
    """Wait until the device has done all that it was given."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def sanitizer() -> Path | None:
    """Return where compute-sanitizer is; None where it is not."""
    beside = [Path(part) / "nvidia" / "cu13" / "bin" for part in sys.path]
    toolkits = [Path("/usr/local/cuda/bin"), *sorted(Path("/usr/local").glob("cuda-*/bin"))]
    on_path = shutil.which("compute-sanitizer")
    if on_path:
        return Path(on_path)
    return next((it for folder in [*toolkits, *beside] if (it := folder / "compute-sanitizer").is_file()), None)


def sanitized(clock: Clock) -> dict[str, Any]:
    """Run the smallest parity cases under compute-sanitizer's memcheck and racecheck, half of the time each.

    A tool that finds something makes `clean` false; one that is not there or not done in time says so: no failure.
    """
    tool = sanitizer()
    if tool is None:
        return {"ran": False, "why": "compute-sanitizer is not on PATH, in /usr/local/cuda*/bin or beside the wheels"}
    found: dict[str, Any] = {"ran": True, "clean": True}
    for i, name in enumerate(_TOOLS):
        # CuPy's and torch's own probing of the driver for newer functions would count as errors
        command = [str(tool), "--tool", name, "--error-exitcode", str(_FOUND), "--report-api-errors", "no"]
        limit = max(5.0, clock.left / (len(_TOOLS) - i))
        # it ends by itself in time, and what is left of it is killed with it
        command += [
            sys.executable,
            "-m",
            "device",
            "--small",
            "--tiny",
            "--only",
            "parity",
            "--seconds",
            str(limit - 3),
        ]
        start = time.monotonic()
        code, lines = _ran(command, limit)
        # a parity check that the clock kept from comparing each kind ends with 1 too, and that is no finding
        bad = code not in (None, 0, STOPPED) and (code != 1 or any(word in line for line in lines for word in _BAD))
        found[name] = {"finished": bad or code == 0, "code": code, "seconds": time.monotonic() - start}
        if code != 0:
            found[name]["said"] = lines[:_LINES_KEPT] + lines[-_LINES_KEPT:]
        found["clean"] &= not bad
    return found


def _ran(command: list[str], seconds: float) -> tuple[int | None, list[str]]:
    """Run a command and all that it starts; return its exit code, None if it was killed in the end, and its lines."""
    # torch's own cache of memory would hide what is read past an end
    environment = os.environ | {"PYTORCH_NO_CUDA_MEMORY_CACHING": "1", "OUT": ""}
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=environment,
        start_new_session=True,
    ) as running:
        try:
            text, _ = running.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            os.killpg(running.pid, signal.SIGKILL)
            text, _ = running.communicate()
            return None, text.splitlines()
    return running.returncode, text.splitlines()
