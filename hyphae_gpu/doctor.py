"""What this machine can do: one check a line, and for each problem how to mend it."""

from __future__ import annotations

import importlib
import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING

from hyphae_gpu.config import Settings, available_cores, masked
from hyphae_gpu.errors import DatabaseError, DeviceError, first_line
from hyphae_gpu.topology import faiss_module

if TYPE_CHECKING:
    from hyphae_gpu.cuda_facts import CudaFacts

FINE, WARNING, BROKEN = "fine", "warning", "broken"
#: How a state is shown to people.
MARKS = {FINE: "ok", WARNING: "!", BROKEN: "BROKEN"}
GIB = 1 << 30
#: The interpreters that the package is made for.
PYTHONS = ((3, 11), (3, 14))
#: Module -> (distribution that brings it, what to do when it is not there).
LIBRARIES = {
    "numpy": ("numpy", "pip install hyphae-gpu"),
    "torch": ("torch", "pip install hyphae-gpu"),
    "numba": ("numba", "pip install hyphae-gpu"),
    "pyarrow": ("pyarrow", "pip install hyphae-gpu"),
    "psycopg": ("psycopg", "pip install hyphae-gpu"),
    "sklearn": ("scikit-learn", "pip install hyphae-gpu"),
}
#: The kernel that the doctor compiles: the smallest with a random generator and double precision in it.
_TRIAL_KERNEL = "losses"
_CUDA_EXTRA = "pip install 'hyphae-gpu[cuda]'"
_CUDA_TORCH = "install a PyTorch for CUDA 13 (pytorch.org, Get started)"


@dataclass(frozen=True, kw_only=True)
class Check:
    """One finding: `state` is fine, warning or broken; `fix` says what to do about the latter two.

    `exit_code` is what the command ends with when this is broken.
    """

    name: str
    state: str
    found: str
    fix: str = ""
    exit_code: int = 1


def examine(settings: Settings) -> list[Check]:
    """Check everything that a run with these settings needs; takes some seconds, changes nothing.

    The built-in server is tried in the data directory where it has one, else in a folder that goes again.
    """
    checks = [_python(), _platform(), _threads(settings)]
    checks += [*(_library(module) for module in LIBRARIES), _faiss()]
    checks += _cuda(settings)
    checks.append(_device(settings))
    if settings.database_url is None:
        checks += [_data_dir(settings.data_dir), _shared_memory()]
    checks.append(_store(settings))
    return checks


def exit_code(checks: list[Check]) -> int:
    """Return 0, or the code of the first check that is broken."""
    return next((check.exit_code for check in checks if check.state == BROKEN), 0)


def _python() -> Check:
    low, high = PYTHONS
    fits = low <= sys.version_info[:2] < high
    return Check(
        name="python",
        state=FINE if fits else BROKEN,
        found=f"{platform.python_version()} ({sys.executable})",
        fix="" if fits else "use Python 3.11, 3.12 or 3.13",
    )


def _platform() -> Check:
    return Check(name="platform", state=FINE, found=f"{platform.platform()}, {platform.machine()}")


def _threads(settings: Settings) -> Check:
    cores = available_cores()
    found = f"{settings.threads} threads on {cores} cores"
    if settings.threads > cores:
        return Check(
            name="threads", state=WARNING, found=found, fix=f"more threads than cores are slower: --threads {cores}"
        )
    return Check(name="threads", state=FINE, found=found)


def _library(module: str) -> Check:
    return _loaded(module, *LIBRARIES[module])


def _faiss() -> Check:
    """Check the module that several distributions bring."""
    found, fix = faiss_module.installed(), faiss_module.remedy()
    if len(found) > 1:
        both = " and ".join(f"{name} {it}" for name, it in found.items())
        return Check(name="faiss", state=BROKEN, found=f"{both} share its files", fix=fix)
    return _loaded("faiss", next(iter(found), faiss_module.DISTRIBUTIONS[0]), fix)


def _loaded(module: str, distribution: str, fix: str) -> Check:
    try:
        importlib.import_module(module)
    except Exception as error:
        return Check(name=module, state=BROKEN, found=f"does not load: {first_line(error)}", fix=fix)
    return Check(name=module, state=FINE, found=_installed(distribution) or "loads; version unknown")


def _installed(distribution: str) -> str | None:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return None


def _cuda(settings: Settings) -> list[Check]:
    """Check all that the CUDA backend needs, unless the CPU is asked for or PyTorch does not load."""
    if settings.device == "cpu":
        return []
    try:
        from hyphae_gpu.cuda_facts import gather
    except Exception:
        return []
    facts = gather()
    return [_driver(settings, facts), _gpu(settings, facts), _cuda_versions(settings, facts), _nvrtc(settings, facts)]


def _cuda_problem(settings: Settings, facts: CudaFacts, name: str, found: str, fix: str) -> Check:
    """Make a check of what keeps CUDA from running: broken if it is asked for, a warning if there is a device.

    On a machine without one that does not ask for it nothing is to be mended.
    """
    if settings.device == "cuda":
        return Check(name=name, state=BROKEN, found=found, fix=fix, exit_code=DeviceError.exit_code)
    if facts.driver is None and not facts.gpus:
        return Check(name=name, state=FINE, found=found)
    return Check(name=name, state=WARNING, found=found, fix=fix)


def _driver(settings: Settings, facts: CudaFacts) -> Check:
    if facts.driver is None or facts.driver_cuda is None:
        fix = "install NVIDIA's driver; in Docker: --gpus all, with the NVIDIA Container Toolkit on the host"
        return _cuda_problem(settings, facts, "driver", "no NVIDIA driver", fix)
    found = f"{facts.driver}, for CUDA up to {_dotted(facts.driver_cuda)}"
    built = [version for version in (facts.torch_cuda, facts.cupy_cuda) if version]
    # within a major version an older driver runs newer programs
    if built and facts.driver_cuda[0] < max(built)[0]:
        found += f", but PyTorch or CuPy is for CUDA {_dotted(max(built))}"
        return _cuda_problem(settings, facts, "driver", found, f"install a driver for CUDA {max(built)[0]}")
    return Check(name="driver", state=FINE, found=found)


def _gpu(settings: Settings, facts: CudaFacts) -> Check:
    from hyphae_gpu.backends.cuda.device import OLDEST

    if not facts.gpus:
        if facts.torch_cuda is None:
            found, fix = f"not seen: PyTorch {facts.torch} is built without CUDA", _CUDA_TORCH
        else:
            found, fix = "none that PyTorch can use", "see nvidia-smi and CUDA_VISIBLE_DEVICES; in Docker: --gpus all"
        return _cuda_problem(settings, facts, "gpu", found, fix)
    shown = [
        f"{gpu.name}, {gpu.memory_bytes / GIB:.0f} GiB, compute capability {_dotted(gpu.capability)}"
        for gpu in facts.gpus
    ]
    # the first is the one that runs
    if facts.gpus[0].capability < OLDEST:
        found = f"{shown[0]}, older than the kernels' {_dotted(OLDEST)}"
        return _cuda_problem(settings, facts, "gpu", found, "use a newer device, or --device cpu")
    return Check(name="gpu", state=FINE, found="; ".join(shown))


def _cuda_versions(settings: Settings, facts: CudaFacts) -> Check:
    name = "cuda versions"
    if facts.cupy is None or facts.cupy_cuda is None:
        return _cuda_problem(settings, facts, name, f"CuPy does not load: {facts.cupy_problem}", _CUDA_EXTRA)
    cupy = f"CuPy {facts.cupy} for CUDA {_dotted(facts.cupy_cuda)}"
    if facts.torch_cuda is None:
        found = f"PyTorch {facts.torch} without CUDA, {cupy}"
        return _cuda_problem(settings, facts, name, found, _CUDA_TORCH)
    found = f"PyTorch {facts.torch} for CUDA {_dotted(facts.torch_cuda)}, {cupy}"
    if facts.torch_cuda[0] == facts.cupy_cuda[0]:
        return Check(name=name, state=FINE, found=found)
    if facts.gpus:  # even where the CPU would do: the two cannot have been meant
        return Check(name=name, state=BROKEN, found=found, fix=_CUDA_TORCH, exit_code=DeviceError.exit_code)
    return _cuda_problem(settings, facts, name, found, _CUDA_TORCH)


def _nvrtc(settings: Settings, facts: CudaFacts) -> Check:
    from hyphae_gpu.backends.cuda.device import OLDEST
    from hyphae_gpu.cuda_facts import compile_problem

    if facts.cupy is None:
        return _cuda_problem(settings, facts, "nvrtc", "not tried: CuPy does not load", _CUDA_EXTRA)
    capability = facts.gpus[0].capability if facts.gpus else OLDEST
    what = f"kernel {_TRIAL_KERNEL} for compute capability {_dotted(capability)}"
    try:
        problem = compile_problem(_TRIAL_KERNEL, capability)
    except FileNotFoundError as error:
        return _cuda_problem(settings, facts, "nvrtc", first_line(error), "pip install --force-reinstall hyphae-gpu")
    if problem:
        return _cuda_problem(settings, facts, "nvrtc", f"{what} does not compile: {problem}", _CUDA_EXTRA)
    return Check(name="nvrtc", state=FINE, found=f"compiles {what}")


def _dotted(version: tuple[int, int]) -> str:
    return f"{version[0]}.{version[1]}"


def _device(settings: Settings) -> Check:
    from hyphae_gpu.backends.select import select

    try:
        return Check(name="device", state=FINE, found=select(settings.device, settings.threads).why)
    except DeviceError as error:
        return Check(
            name="device", state=BROKEN, found=str(error), fix="--device auto", exit_code=DeviceError.exit_code
        )
    except ImportError as error:
        return Check(name="device", state=BROKEN, found=first_line(error), fix="mend the libraries above")


def _data_dir(folder: Path) -> Check:
    """Check that the folder, or the nearest one above it that exists, can be written and has room."""
    existing = folder.absolute()
    while not existing.exists() and existing != existing.parent:
        existing = existing.parent
    if not (existing.is_dir() and os.access(existing, os.W_OK | os.X_OK)):
        return Check(
            name="data folder",
            state=BROKEN,
            found=f"{folder.absolute()}: {existing} cannot be written",
            fix="choose another with --data-dir",
            exit_code=DatabaseError.exit_code,
        )
    free = shutil.disk_usage(existing).free
    made = "" if folder.exists() else ", made at first use"
    found = f"{folder.absolute()}{made}, {free / GIB:.1f} GiB free"
    if free < GIB:
        return Check(name="data folder", state=WARNING, found=found, fix="make room, or choose another with --data-dir")
    return Check(name="data folder", state=FINE, found=found)


def _shared_memory() -> Check:
    try:
        free = shutil.disk_usage("/dev/shm").free
    except OSError:
        return Check(name="shared memory", state=FINE, found="no /dev/shm; the built-in server uses files instead")
    if free < GIB:
        return Check(
            name="shared memory",
            state=WARNING,
            found=f"{free / GIB:.2f} GiB free in /dev/shm; the built-in server uses files instead, which is slower",
            fix="in Docker: --shm-size=1g",
        )
    return Check(name="shared memory", state=FINE, found=f"{free / GIB:.1f} GiB free in /dev/shm")


def _store(settings: Settings) -> Check:
    from hyphae_gpu.store.postgres import PGVECTOR_FLOOR

    where = "built-in server" if settings.database_url is None else masked(settings.database_url)
    try:
        with _reachable(settings) as conninfo:
            server, pgvector = _versions(conninfo)
    except Exception as error:
        remedy = "see the message" if settings.database_url is None else "check DATABASE_URL, and that the server runs"
        return _no_store(f"{where}: {first_line(error)}", remedy)
    if pgvector is None:
        return _no_store(
            f"{where}: PostgreSQL {server} without pgvector", "install pgvector 0.8.2 or newer on the server"
        )
    if tuple(int(part) for part in pgvector.split(".")) < PGVECTOR_FLOOR:
        return _no_store(
            f"{where}: pgvector {pgvector} has CVE-2026-3172",
            "install pgvector 0.8.2 or newer, then ALTER EXTENSION vector UPDATE",
        )
    return Check(name="store", state=FINE, found=f"{where}: PostgreSQL {server}, pgvector {pgvector}")


def _no_store(found: str, fix: str) -> Check:
    return Check(name="store", state=BROKEN, found=found, fix=fix, exit_code=DatabaseError.exit_code)


@contextmanager
def _reachable(settings: Settings) -> Iterator[str]:
    """Yield a connection string, with the built-in server running meanwhile where there is no other."""
    if settings.database_url is not None:
        yield settings.database_url
        return
    from hyphae_gpu.store.embedded import EmbeddedServer

    with tempfile.TemporaryDirectory(prefix="hyphae-doctor-") as trial:
        used = settings.data_dir if (settings.data_dir / "pg").exists() else Path(trial)
        server = EmbeddedServer(used)
        try:
            yield server.conninfo
        finally:
            server.close()


def _versions(conninfo: str) -> tuple[str, str | None]:
    """Return the server's version and the version of pgvector that is installed, or else that could be."""
    import psycopg

    query = (
        "SELECT current_setting('server_version'), (SELECT coalesce(installed_version, default_version) "
        "FROM pg_available_extensions WHERE name = 'vector')"
    )
    with psycopg.connect(conninfo, connect_timeout=10) as connection:
        row = connection.execute(query).fetchone()
    assert row is not None
    return row[0], row[1]
