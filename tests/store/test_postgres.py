"""Connecting: a real server over TCP, versions that are refused, messages without passwords, one engine at a time."""

from __future__ import annotations

import os
import pwd
import re
import socket
import subprocess
import sys
import time
from pathlib import Path

import psycopg
import pytest
from psycopg.types.json import Jsonb

from hyphae_gpu.errors import BusyError, DatabaseError, UsageError
from hyphae_gpu.store import migrations, open_store, postgres
from hyphae_gpu.store.embedded import find_binaries
from tests.store import sample
from tests.store.expected import after


@pytest.fixture
def tcp_url(tmp_path: Path):
    """A PostgreSQL of its own on 127.0.0.1 that asks for a password, as a service would run."""
    binaries, home = find_binaries(), tmp_path / "cluster"
    home.mkdir(mode=0o700)
    (tmp_path / "password").write_text("se cret/1")
    options = {"cwd": "/", "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    if os.geteuid() == 0:
        somebody = pwd.getpwnam("nobody")
        os.chown(home, somebody.pw_uid, somebody.pw_gid)
        for part in (tmp_path, *tmp_path.parents):
            if not part.stat().st_mode & 0o001:
                part.chmod(part.stat().st_mode | 0o011)
        (tmp_path / "password").chmod(0o644)
        options |= {"user": somebody.pw_uid, "group": somebody.pw_gid, "extra_groups": []}
    initdb = [binaries / "initdb", "-D", home, "-U", "owner", "--auth=scram-sha-256", "--no-sync"]
    subprocess.run([*initdb, f"--pwfile={tmp_path / 'password'}"], check=True, **options)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    serve = [binaries / "postgres", "-D", home, "-h", "127.0.0.1", "-p", str(port), "-k", ""]
    server = subprocess.Popen(serve, **options)
    url = f"postgresql://owner:se%20cret%2F1@127.0.0.1:{port}/postgres"
    deadline = time.monotonic() + 30
    while True:
        try:
            psycopg.connect(url).close()
            break
        except psycopg.OperationalError:
            assert time.monotonic() < deadline
            time.sleep(0.05)
    yield url
    server.terminate()
    server.wait(timeout=30)


def test_a_server_over_tcp_holds_a_project(tcp_url, tmp_path):
    with open_store(database_url=tcp_url, data_dir=tmp_path / "unused", hold="test") as store:
        store.write_rows(sample.swarm(), diffs=True)
        state = store.load()
        done = sample.epoch(state)
        store.checkpoint(done)
        assert sample.differences(after(state, done).nodes, store.load().nodes) == []
        assert store.build_indexes()
    assert not (tmp_path / "unused").exists()
    wrong = tcp_url.replace("se%20cret%2F1", "hunter2")
    with pytest.raises(DatabaseError) as refused:
        open_store(database_url=wrong, data_dir=tmp_path)
    assert "password authentication failed" in str(refused.value)
    assert "hunter2" not in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://u:hunter2@127.0.0.1:1/x",
        "postgresql://u:hunter2@127.0.0.1:notaport/x",
        "postgresql://u:hunter2@/x?host=127.0.0.1&port=1&nonsense=1",
        "host=127.0.0.1 port=1 user=u password=hunter2",
        "hunter2",
        "mysql://u:hunter2@127.0.0.1:1/x",
    ],
)
def test_an_unreachable_database_is_one_line_without_the_password(url, tmp_path):
    with pytest.raises(DatabaseError) as refused:
        open_store(database_url=url, data_dir=tmp_path)
    message = str(refused.value)
    assert "hunter2" not in message
    assert "\n" not in message
    assert refused.value.__cause__ is None
    assert refused.value.exit_code == 4


@pytest.mark.parametrize("project", ["", "A", "a-b", "a b", "a" * 41, 'a"; drop', "ä"])
def test_a_project_name_that_is_no_schema_name_is_refused(project, database_url, tmp_path):
    with pytest.raises(UsageError, match="a-z"):
        open_store(database_url=database_url, data_dir=tmp_path, project=project)


def test_projects_do_not_see_each_other(opened):
    one, other = opened(project="one"), opened(project="other")
    one.write_rows(sample.rows(cells=[{"id": "a"}]), diffs=True)
    assert other.status()["nodes"]["cell"] == 0
    other.write_rows(sample.rows(dimension=3, cells=[{"id": "a"}, {"id": "b"}]), diffs=True)
    assert one.status()["nodes"]["cell"] == 1


@pytest.mark.parametrize(
    ("version", "newest", "todo"),
    [
        ("0.8.1", "0.8.1", r"install pgvector 0\.8\.2.*ALTER EXTENSION vector UPDATE;"),
        ("0.8.1", "0.8.5", r"needed: run 'ALTER EXTENSION vector UPDATE;'"),
        ("0.7.4", "0.7.4", "CVE-2026-3172"),
    ],
)
def test_an_old_pgvector_is_refused_with_what_to_do(version, newest, todo, database_url, tmp_path, monkeypatch):
    monkeypatch.setattr(postgres, "vector_version", lambda connection: ("public", version, newest))
    with pytest.raises(DatabaseError, match=todo):
        open_store(database_url=database_url, data_dir=tmp_path)


@pytest.mark.parametrize("version", ["0.8.2", "0.8.10", "0.9.0", "1.0"])
def test_a_pgvector_that_is_new_enough_is_taken(version, database_url, tmp_path, monkeypatch):
    monkeypatch.setattr(postgres, "vector_version", lambda connection: ("public", version, version))
    open_store(database_url=database_url, data_dir=tmp_path).close()


def test_a_store_of_a_newer_version_is_refused(opened, database_url, tmp_path):
    with opened()._database.connect() as connection:
        connection.execute("update meta set value = %s where key = 'schema_version'", [Jsonb(migrations.VERSION + 1)])
    with pytest.raises(DatabaseError, match="upgrade"):
        open_store(database_url=database_url, data_dir=tmp_path)


def test_an_older_store_is_brought_up_step_by_step(opened, database_url, tmp_path, monkeypatch):
    opened().close()
    monkeypatch.setattr(migrations, "VERSION", migrations.VERSION + 2)
    steps = {
        migrations.VERSION - 2: "create table step_one ()",
        migrations.VERSION - 1: "alter table step_one add n int",
    }
    monkeypatch.setattr(migrations, "STEPS", steps)
    for _ in range(2):
        with open_store(database_url=database_url, data_dir=tmp_path) as store:
            assert store._connection.execute("select count(n) from step_one").fetchone() == (0,)
            assert migrations.version_of(store._connection, "hyphae_default") == migrations.VERSION


HOLDER = """
import sys, pathlib
from hyphae_gpu.store import open_store
store = open_store(database_url=sys.argv[1], data_dir=pathlib.Path("unused"), hold="run")
print("held", flush=True)
sys.stdin.readline()
store.close()
"""


def holder(url: str) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, url], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "held\n"
    return process


def test_a_second_engine_is_told_who_holds_the_project(database_url, opened):
    process = holder(database_url)
    with pytest.raises(BusyError) as busy:
        opened(hold="ingest")
    assert re.search(rf"'run' \(pid {process.pid} on {re.escape(socket.gethostname())}, since 20", str(busy.value))
    assert busy.value.exit_code == 75
    assert opened(hold=None).status()["epoch"] == 0, "reading goes on"
    opened(hold="run", project="another").close()
    process.communicate("\n", timeout=30)
    opened(hold="ingest").close()


def test_the_project_of_a_killed_engine_can_be_taken_at_once(database_url, opened):
    process = holder(database_url)
    process.kill()
    process.communicate()
    opened(hold="ingest").close()


def test_an_engine_that_lost_its_hold_writes_nothing(database_url, opened):
    old = opened(hold="run")
    old.write_rows(sample.swarm(), diffs=True)
    done = sample.epoch(old.load())
    # The server cut the lock's connection, as a broken network would; the process lives on.
    pid = old._lock._connection.info.backend_pid
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("select pg_terminate_backend(%s, 5000)", [pid])
    new = opened(hold="ingest")
    with pytest.raises(BusyError, match="'ingest'"):
        old.checkpoint(done)
    with pytest.raises(BusyError, match="taken over"):
        old.write_rows(sample.rows(cells=[{"id": "late"}]), diffs=True)
    assert new.status()["epoch"] == 0
    new.checkpoint(done)
    old.close()
    with pytest.raises(BusyError):
        opened(hold="third")


def test_a_store_opened_for_reading_does_not_write(opened):
    store = opened(hold=None)
    with pytest.raises(DatabaseError, match="reading"):
        store.write_rows(sample.swarm(), diffs=True)
