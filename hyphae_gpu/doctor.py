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

from hyphae_gpu.config import Settings, available_cores, masked
from hyphae_gpu.errors import DatabaseError, DeviceError

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
    "faiss": ("faiss-cpu", "pip install 'hyphae-gpu[cpu]'"),
}


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
    checks += [_library(module) for module in LIBRARIES]
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
    distribution, remedy = LIBRARIES[module]
    try:
        importlib.import_module(module)
    except Exception as error:
        return Check(name=module, state=BROKEN, found=f"does not load: {_first_line(error)}", fix=remedy)
    try:
        return Check(name=module, state=FINE, found=version(distribution))
    except PackageNotFoundError:
        return Check(name=module, state=FINE, found="loads; version unknown")


def _device(settings: Settings) -> Check:
    from hyphae_gpu.backends.select import select

    try:
        return Check(name="device", state=FINE, found=select(settings.device, settings.threads).why)
    except DeviceError as error:
        return Check(
            name="device", state=BROKEN, found=str(error), fix="--device auto", exit_code=DeviceError.exit_code
        )
    except ImportError as error:
        return Check(name="device", state=BROKEN, found=_first_line(error), fix="mend the libraries above")


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
        return _no_store(f"{where}: {_first_line(error)}", remedy)
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


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return (lines or [type(error).__name__])[0]
