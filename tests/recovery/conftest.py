"""A server for the job's databases, and what an undisturbed job leaves after each of its transactions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest

from hyphae_gpu.errors import DatabaseError
from hyphae_gpu.store import embedded
from hyphae_gpu.store.embedded import EmbeddedServer
from tests.recovery import job, rows
from tests.recovery.snapshot import Snapshot, snapshot


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedServer]:
    """Holds its databases for the session; it outlives the processes killed, so nothing needs to be synced."""
    try:
        hasty = embedded.server_settings() | {"fsync": "off"}
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(embedded, "server_settings", lambda: hasty)
            held = EmbeddedServer(tmp_path_factory.mktemp("recovery") / "data")
    except DatabaseError as error:
        pytest.skip(f"NOT SHOWN, no built-in PostgreSQL here: {error}")
    yield held
    held.close()


@dataclass(frozen=True)
class Databases:
    """Databases on one server, made as copies of others."""

    server: EmbeddedServer

    def url(self, name: str) -> str:
        return self.server.conninfo.replace("dbname=postgres", f"dbname={name}")

    def copy(self, name: str, of: str = "template0") -> str:
        """Make a database and return its address."""
        with psycopg.connect(self.server.conninfo, autocommit=True) as connection:
            connection.execute(f"create database {name} template {of}".encode())
        return self.url(name)

    def drop(self, name: str) -> None:
        with psycopg.connect(self.server.conninfo, autocommit=True) as connection:
            connection.execute(f"drop database if exists {name} with (force)".encode())


@pytest.fixture(scope="session")
def databases(server: EmbeddedServer) -> Databases:
    return Databases(server)


@dataclass(frozen=True)
class Undisturbed:
    """The job run whole, one transaction a command; state k is the store after k transactions, database `after_k`."""

    folder: Path
    states: list[Snapshot]


@pytest.fixture(scope="session")
def undisturbed(databases: Databases, tmp_path_factory: pytest.TempPathFactory) -> Undisturbed:
    folder = tmp_path_factory.mktemp("undisturbed")
    rows.write(folder)
    url = databases.copy("undisturbed")
    states = [snapshot(url)]
    databases.copy("after_0", of="undisturbed")
    for step in job.STEPS:
        for command in step.one_by_one():
            job.done(folder, [command], DATABASE_URL=url)
            databases.copy(f"after_{len(states)}", of="undisturbed")
            states.append(snapshot(url))
    return Undisturbed(folder, states)
