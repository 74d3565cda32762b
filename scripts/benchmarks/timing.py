"""Times and memory: the medians of alternating runs, the peak of one part, the bandwidth of a copy."""

from __future__ import annotations

import ctypes
import gc
import os
import resource
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

_COPY_BYTES = 1 << 28
_COPIES = 5
_SELF = Path("/proc/self")
_T = TypeVar("_T")


def say(text: str) -> None:
    """Tell whoever watches."""
    print(text, file=sys.stderr, flush=True)


@dataclass
class Runs:
    """The runs of one part: wall-clock seconds, and processor seconds over all threads of this process.

    On a busy machine the second tells more; threads that wait by spinning count in it.
    """

    wall: list[float] = field(default_factory=list)
    processor: list[float] = field(default_factory=list)

    @property
    def seconds(self) -> float:
        """The median."""
        return statistics.median(self.wall)

    def facts(self) -> dict[str, Any]:
        """Return what a result says of them."""
        return {
            "seconds": self.seconds,
            "runs": self.wall,
            "processor_seconds": statistics.median(self.processor),
        }

    def time(self, part: Callable[[], _T]) -> _T:
        """Run a part once more."""
        wall, processor = time.perf_counter(), time.process_time()
        made = part()
        self.processor.append(time.process_time() - processor)
        self.wall.append(time.perf_counter() - wall)
        return made


def alternating(parts: dict[str, Callable[[], object]], repeat: int) -> dict[str, Runs]:
    """Run the parts in turn, `repeat` times over, and return each one's times."""
    runs = {name: Runs() for name in parts}
    for i in range(repeat):
        for name, part in parts.items():
            say(f"  run {i + 1} of {repeat}: {name}")
            runs[name].time(part)
    return runs


@dataclass
class Peak:
    """The memory of this process around a block: resident at its start, and the most during it, in bytes."""

    start_bytes: int = 0
    bytes: int = 0
    #: False where the system cannot reset its mark: then `bytes` is the most since the process began.
    of_block: bool = True

    def facts(self, prefix: str = "") -> dict[str, Any]:
        """Return the peak for the result."""
        return {
            f"{prefix}peak_memory_bytes": self.bytes,
            f"{prefix}memory_before_bytes": self.start_bytes,
            f"{prefix}peak_is_of_this_part": self.of_block,
        }


@contextmanager
def peak_memory() -> Iterator[Peak]:
    """Measure the peak of a block by the kernel's own mark (VmHWM), reset before it where that is possible.

    What earlier parts freed is given back first, where the C library can do that, lest it count here.
    """
    peak = Peak()
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
    try:
        (_SELF / "clear_refs").write_text("5")
    except OSError:
        peak.of_block = False
    peak.start_bytes = _status("VmRSS")
    yield peak
    peak.bytes = _status("VmHWM")


def _status(name: str) -> int:
    try:
        lines = (_SELF / "status").read_text().splitlines()
    except OSError:
        lines = []
    for line in lines:
        if line.startswith(name + ":"):
            return int(line.split()[1]) * 1024
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def copy_bandwidth(threads: int) -> float:
    """Return the bytes a second that a plain copy moves, read and written, with so many threads: best of some runs."""
    source = np.ones(_COPY_BYTES // 8)
    target = np.zeros_like(source)
    pieces = list(zip(np.array_split(target, threads), np.array_split(source, threads), strict=True))
    best = np.inf
    with ThreadPoolExecutor(threads) as pool:
        for _ in range(_COPIES):
            start = time.perf_counter()
            list(pool.map(lambda piece: np.copyto(*piece), pieces))
            best = min(best, time.perf_counter() - start)
    return 2 * source.nbytes / best


def floor(size: int, bandwidth: float, assumes: str) -> dict[str, Any]:
    """Return the least seconds that moving so many bytes takes, and what that assumes."""
    return {
        "seconds": size / bandwidth,
        "bytes": size,
        "bandwidth_bytes_per_second": bandwidth,
        "assumes": assumes,
    }


def load_average() -> list[float]:
    """Return the machine's load over 1, 5 and 15 minutes: others at work spoil times."""
    return [round(load, 2) for load in os.getloadavg()]
