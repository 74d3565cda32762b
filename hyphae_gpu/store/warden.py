"""The process that owns one embedded PostgreSQL server: starts it, waits until no client is left, stops it.

Run by path with ``python -I``, so it imports the standard library alone. It is told everything in one JSON argument
and answers with one JSON line on stdout: ``{}`` when the server is ready, ``{"error": ...}`` when it cannot be.

Who is alive is never read from a file but from locks, which the kernel releases however a process ends:

- ``clients.lock``: shared by every client; this process waits for it exclusively, so it gets it after the last one.
- ``warden.lock``: held by this process for its life; its text is ``stopping`` once the server is being stopped.
- ``server.lock``: inherited by postgres and its children, so it is free only when none of them is left.
"""

from __future__ import annotations

import ctypes
import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

READY_SECONDS = 300.0
STOP_SECONDS = 300.0
_TICK = 0.01
_WATCH_SECONDS = 0.5
_SOCKET_PATH_LIMIT = 90
_LOG_BYTES = 16 << 20
_CAP_DAC_OVERRIDE = 1


class ServerError(Exception):
    """The server cannot be started; the text goes to the client."""


def lock(path: Path, operation: int, seconds: float) -> int | None:
    """Open `path` and lock it within so many seconds; return the descriptor, or None when others kept it."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    deadline = time.monotonic() + seconds
    while True:
        try:
            fcntl.flock(descriptor, operation | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                os.close(descriptor)
                return None
            time.sleep(_TICK)
        except BaseException:
            os.close(descriptor)
            raise
        else:
            return descriptor


def is_held(path: Path) -> bool:
    """Return whether some process holds `path` exclusively."""
    descriptor = lock(path, fcntl.LOCK_SH, 0)
    if descriptor is None:
        return True
    os.close(descriptor)
    return False


def open_log(path: Path) -> BinaryIO:
    """Open the server's log to append to; a long one is begun anew."""
    try:
        long = path.stat().st_size > _LOG_BYTES
    except FileNotFoundError:
        long = False
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | (os.O_TRUNC if long else 0), 0o600)
    return os.fdopen(descriptor, "ab")


def postmaster(cluster: Path) -> tuple[int, str, str] | None:
    """Return pid, socket directory and status as the running server wrote them; None before it has."""
    try:
        lines = (cluster / "postmaster.pid").read_text().splitlines()
    except (FileNotFoundError, NotADirectoryError):
        return None
    if len(lines) < 8:
        return None
    return int(lines[0]), lines[4].strip(), lines[7].strip()


def _alive(pid: int) -> bool:
    """Return whether the process runs; one of our own children that ended is reaped."""
    try:
        if os.waitpid(pid, os.WNOHANG)[0] == pid:
            return False
    except ChildProcessError:
        pass
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _wait(condition: Callable[[], bool], seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() >= deadline:
            return False
        time.sleep(_TICK)
    return True


class Server:
    """One cluster directory and the postgres that serves it."""

    def __init__(self, order: dict[str, Any]) -> None:
        self.home = Path(order["data_dir"])
        self.cluster = self.home / "pg"
        self.binaries = Path(order["bin_dir"])
        self.settings: dict[str, str] = order["settings"]
        self.account: tuple[int, int] | None = tuple(order["account"]) if order["account"] else None
        self.override: bool = order["override"]
        self.log = self.home / "postgres.log"
        self.pid = 0
        self.sockets = ""

    def start(self) -> None:
        """Adopt the server that runs, or make the cluster where there is none and start one; wait until it is ready."""
        inherited = lock(self.home / "server.lock", fcntl.LOCK_EX, 0)
        if inherited is None and not self._adopt():
            inherited = lock(self.home / "server.lock", fcntl.LOCK_EX, STOP_SECONDS)
            if inherited is None:
                raise ServerError("processes of an earlier server do not end")
        if inherited is None:
            return
        try:
            if not self.cluster.exists():
                self._initialise()
            self._launch(inherited)
        finally:
            os.close(inherited)
        self._await_ready()

    def _adopt(self) -> bool:
        """Take over a server whose warden died; False when its postmaster is gone too."""
        seen = postmaster(self.cluster)
        if seen is None or not _alive(seen[0]):
            return False
        self.pid, self.sockets, _ = seen
        self._await_ready()
        return True

    def _run_as(self) -> dict[str, Any]:
        """Return the process options that make a child run under the server's account."""
        options: dict[str, Any] = {
            "cwd": "/",
            "env": {"PATH": "/usr/bin:/bin", "LC_ALL": "C"},
            "stdin": subprocess.DEVNULL,
        }
        if self.account is not None:
            uid, gid = self.account
            if self.override:
                options["preexec_fn"] = lambda: _become(uid, gid)
            else:
                options |= {"user": uid, "group": gid, "extra_groups": []}
        return options

    def _initialise(self) -> None:
        """Make the cluster beside its place and move it there whole, so that a killed initdb leaves nothing behind."""
        fresh = self.home / "pg.new"
        shutil.rmtree(fresh, ignore_errors=True)
        fresh.mkdir(mode=0o700)
        if self.account is not None:
            os.chown(fresh, *self.account)
        command = [str(self.binaries / "initdb"), "-D", str(fresh), "-U", "postgres", "--auth=trust", "--encoding=UTF8"]
        command += ["--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--data-checksums"]
        command += ["--no-instructions"]
        done = subprocess.run(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, **self._run_as()
        )
        if done.returncode:
            raise ServerError(f"initdb failed: {_last_line(done.stdout)}")
        fresh.rename(self.cluster)

    def _launch(self, inherited: int) -> None:
        """Start postgres on a socket directory of its own; `inherited` is the lock that it keeps."""
        # No process of this cluster is left (its lock was free), so a pid file is a dead server's.
        (self.cluster / "postmaster.pid").unlink(missing_ok=True)
        self.sockets = _socket_directory()
        if self.account is not None:
            os.chown(self.sockets, *self.account)
        command = [str(self.binaries / "postgres"), "-D", str(self.cluster), "-k", self.sockets]
        for name, value in self.settings.items():
            command += ["-c", f"{name}={value}"]
        with open_log(self.log) as log:
            child = subprocess.Popen(
                command, stdout=log, stderr=log, pass_fds=[inherited], start_new_session=True, **self._run_as()
            )
        self.pid = child.pid
        child.returncode = 0  # reaped by _alive: Popen need not look after it

    def _await_ready(self) -> None:
        """Wait for the server, through crash recovery if need be."""

        def settled() -> bool:
            seen = postmaster(self.cluster)
            return not _alive(self.pid) or (seen is not None and seen[0] == self.pid and seen[2] == "ready")

        in_time = _wait(settled, READY_SECONDS)
        if in_time and _alive(self.pid):
            return
        tail = _last_line(self.log.read_text(errors="replace")) if self.log.exists() else ""
        self.stop()
        raise ServerError(f"postgres {'ended' if in_time else 'was not ready in time'}: {tail} (log: {self.log})")

    def stop(self) -> None:
        """Stop the server: clients cut off, then without a checkpoint, then by force; remove its socket directory."""
        for sign, seconds in ((signal.SIGINT, STOP_SECONDS), (signal.SIGQUIT, 10.0), (signal.SIGKILL, 10.0)):
            if _alive(self.pid):
                os.kill(self.pid, sign)
            if _wait(lambda: not _alive(self.pid) and not is_held(self.home / "server.lock"), seconds):
                break
        if Path(self.sockets).name.startswith("hyphae-"):
            shutil.rmtree(self.sockets, ignore_errors=True)

    def watch(self, over: threading.Event) -> None:
        """Return when `over` is set or the server has ended by itself."""
        while not over.wait(_WATCH_SECONDS):
            if not _alive(self.pid):
                return


def _socket_directory() -> str:
    """Make a private directory whose path leaves room for a socket's name (the system's limit is about 107 bytes)."""
    base = tempfile.gettempdir()
    if len(os.fsencode(base)) > _SOCKET_PATH_LIMIT - 16:
        base = "/tmp"
    return tempfile.mkdtemp(prefix="hyphae-", dir=base)


def _become(uid: int, gid: int) -> None:
    """Turn into another user that may still pass directories closed to it (root's own rights, kept for that alone).

    Without this, everything above the data and the binaries would have to be opened to all users.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    bits = 1 << _CAP_DAC_OVERRIDE
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)
    data = (ctypes.c_uint32 * 6)(bits, bits, bits, 0, 0, 0)
    keep_capabilities, ambient, ambient_raise = 8, 47, 2
    libc.prctl(keep_capabilities, 1, 0, 0, 0)
    os.setgroups([])
    os.setresgid(gid, gid, gid)
    os.setresuid(uid, uid, uid)
    if libc.capset(header, data) or libc.prctl(ambient, ambient_raise, _CAP_DAC_OVERRIDE, 0, 0):
        raise OSError(ctypes.get_errno(), "cannot keep CAP_DAC_OVERRIDE")


def _last_line(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "no output"


def _answer(message: dict[str, str]) -> None:
    """Tell the client that started us, if it still listens, and let go of the pipe."""
    with suppress(BrokenPipeError):
        os.write(1, json.dumps(message).encode() + b"\n")
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 1)
    os.close(nothing)


@contextmanager
def _held(path: Path) -> Iterator[int | None]:
    # Others only probe this lock for an instant; whoever keeps it longer is another warden.
    descriptor = lock(path, fcntl.LOCK_EX, 1.0)
    try:
        yield descriptor
    finally:
        if descriptor is not None:
            os.close(descriptor)


def main(order: dict[str, Any]) -> int:
    """Serve until the last client is gone; return the exit status."""
    over = threading.Event()
    for sign in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(sign, lambda *_: over.set())
    server = Server(order)
    with _held(server.home / "warden.lock") as mine:
        if mine is None:
            _answer({})
            return 0
        os.ftruncate(mine, 0)
        try:
            server.start()
        except (ServerError, OSError, subprocess.SubprocessError) as problem:
            _answer({"error": str(problem)})
            return 1
        _answer({})
        clients = os.open(server.home / "clients.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

        def wait_for_the_last() -> None:
            fcntl.flock(clients, fcntl.LOCK_EX)
            over.set()

        threading.Thread(target=wait_for_the_last, daemon=True).start()
        server.watch(over)
        os.write(mine, b"stopping")
        server.stop()
    return 0


if __name__ == "__main__":
    # A child of a child: the client need not reap it.
    if os.fork():
        os._exit(0)
    status = main(json.loads(sys.argv[1]))
    sys.stdout.flush()
    os._exit(status)
