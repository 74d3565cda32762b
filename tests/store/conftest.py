"""One embedded server for the session, an empty database for each test."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

from hyphae_gpu.store import Store, embedded, open_store
from hyphae_gpu.store.embedded import EmbeddedServer

_serial = itertools.count()


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedServer]:
    # Nothing of these tests has to outlive the machine, and a database a test means many files to sync.
    hasty = embedded.server_settings() | {"fsync": "off"}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(embedded, "server_settings", lambda: hasty)
        held = EmbeddedServer(tmp_path_factory.mktemp("embedded") / "data")
    yield held
    held.close()


@pytest.fixture
def database_url(server: EmbeddedServer) -> str:
    """The connection string of a new, empty database."""
    name = f"test_{next(_serial)}"
    with psycopg.connect(server.conninfo, autocommit=True) as connection:
        connection.execute(f"create database {name} template template0".encode())
    return server.conninfo.replace("dbname=postgres", f"dbname={name}")


@pytest.fixture
def opened(database_url: str, tmp_path: Path) -> Iterator[Callable[..., Store]]:
    """A function that opens the test's database; what it opened is closed at the end."""
    stores: list[Store] = []

    def open_one(hold: str | None = "test", project: str = "default") -> Store:
        stores.append(open_store(database_url=database_url, data_dir=tmp_path, project=project, hold=hold))
        return stores[-1]

    yield open_one
    for store in stores:
        store.close()
