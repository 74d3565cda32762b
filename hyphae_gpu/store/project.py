"""One project's store: what engine and commands call."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import numpy.typing as npt
import psycopg

from hyphae_gpu.errors import BadInputError, DatabaseError
from hyphae_gpu.rows import Rows
from hyphae_gpu.state import Checkpoint, SwarmState
from hyphae_gpu.store import queries
from hyphae_gpu.store.checkpoint import write_checkpoint
from hyphae_gpu.store.embedded import EmbeddedServer
from hyphae_gpu.store.engine_lock import EngineLock
from hyphae_gpu.store.export import export
from hyphae_gpu.store.failpoints import fail_point
from hyphae_gpu.store.history import history
from hyphae_gpu.store.known import StoreKnown
from hyphae_gpu.store.load import load_state
from hyphae_gpu.store.postgres import Connection, Database, database_errors
from hyphae_gpu.store.renewal import begin_anew
from hyphae_gpu.store.scenes import scenes
from hyphae_gpu.store.search import Progress, build_indexes, search
from hyphae_gpu.store.write import write_rows


def open_store(*, database_url: str | None, data_dir: Path, project: str = "default", hold: str | None = None) -> Store:
    """Open a project of the PostgreSQL at `database_url`, or of the embedded one in `data_dir`, making it if need be.

    `hold` is the name of the command that takes the project's engine lock in order to write; None is for reading.
    Raises DatabaseError when the database cannot be used, BusyError when another engine holds the project,
    UsageError for a bad project name.
    """
    return Store(database_url=database_url, data_dir=data_dir, project=project, hold=hold)


class Store:
    """An open project; a context manager. Every method may raise DatabaseError."""

    def __init__(self, *, database_url: str | None, data_dir: Path, project: str, hold: str | None) -> None:
        self.project = project
        self._lock: EngineLock | None = None
        with ExitStack() as stack:
            conninfo = database_url
            if conninfo is None:
                server = EmbeddedServer(data_dir)
                stack.callback(server.close)
                conninfo = server.conninfo
            self._database = Database(conninfo, project, embedded=database_url is None)
            self._connection: Connection = self._database.connect()
            stack.callback(self._connection.close)
            if hold is not None:
                self._lock = EngineLock(self._database, project, hold)
                stack.callback(self._lock.release)
            self._closing = stack.pop_all()

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Release the lock, the connections and the embedded server."""
        self._closing.close()

    @contextmanager
    def _writing(self, name: str) -> Iterator[Connection]:
        """Run one transaction that commits only while the engine lock is ours."""
        if self._lock is None:
            raise DatabaseError(
                f"the store of project {self.project!r} was opened for reading; open it with hold=COMMAND"
            )
        with database_errors():
            with self._connection.transaction():
                self._lock.check(self._connection)
                yield self._connection
                fail_point(f"{name}.commit.before")
            fail_point(f"{name}.commit.after")

    @contextmanager
    def _reading(self) -> Iterator[Connection]:
        """Run one read-only transaction that sees a single instant."""
        with database_errors(), self._connection.transaction():
            self._connection.execute("set transaction isolation level repeatable read read only")
            yield self._connection

    def known(self) -> StoreKnown:
        """Return what ingest asks while it checks rows (`rows.Known`)."""
        return StoreKnown(self._connection)

    def begin_anew(self, purpose: str) -> None:
        """Empty the project and note what it is for; raises UsageError where it holds anything else (`renewal`)."""
        with self._writing("renewal") as connection:
            begin_anew(connection, purpose)

    def write_rows(self, rows: Rows, *, diffs: bool) -> dict[str, int]:
        """Write checked rows in one transaction and return what came of them (`write.write_rows`).

        Raises BadInputError where rows and store do not fit, BusyError when the project was taken over.
        """
        try:
            with self._writing("ingest") as connection:
                return write_rows(connection, rows, diffs=diffs)
        except DatabaseError as problem:
            if isinstance(problem.__cause__, (psycopg.DataError, psycopg.IntegrityError)):
                raise BadInputError([("some row", str(problem))]) from problem
            raise

    def load(self) -> SwarmState:
        """Return the whole project; raises DatabaseError when nothing was ingested."""
        with self._reading() as connection:
            return load_state(connection)

    def checkpoint(self, done: Checkpoint) -> None:
        """Write what an epoch changed, all or nothing (spec 8.3); raises BusyError when the project was taken over."""
        with self._writing("checkpoint") as connection:
            write_checkpoint(connection, done)

    def status(self) -> dict[str, Any]:
        """Return what the store holds: the object of ``status --json``."""
        with self._reading() as connection:
            return queries.status(connection, self.project)

    def inbox(self, agent_id: str, since: int | None = None, limit: int | None = None) -> list[dict[str, Any]]:
        """Return what reached an agent, newest epoch first (`queries.inbox`)."""
        with self._reading() as connection:
            return queries.inbox(connection, agent_id, since, limit)

    def contradictions(self, *, only_open: bool = False, limit: int | None = None) -> list[dict[str, Any]]:
        """Return which cells contradict each other, newest epoch first (`queries.contradictions`)."""
        with self._reading() as connection:
            return queries.contradictions(connection, only_open=only_open, limit=limit)

    def scenes(self, *, limit: int | None = None, shown: int = 3) -> list[dict[str, Any]]:
        """Return the scenes there are, the largest first, each with some of its cells (`scenes.scenes`)."""
        with self._reading() as connection:
            return scenes(connection, limit=limit, shown=shown)

    def promotions(self, *, layer: int | None = None, limit: int | None = None, shown: int = 5) -> list[dict[str, Any]]:
        """Return what was promoted, newest epoch first (`queries.promotions`)."""
        with self._reading() as connection:
            return queries.promotions(connection, layer=layer, limit=limit, shown=shown)

    def texts(self, numbers: npt.NDArray[np.integer[Any]]) -> list[str | None]:
        """Return the texts of nodes by number, None where a node has none."""
        with self._reading() as connection:
            return queries.texts(connection, numbers.tolist())

    def history(self, *, agents: Sequence[str] = (), shown: int = 8) -> dict[str, Any]:
        """Return what a report tells of the project: sums and short lists (`history.history`)."""
        with self._reading() as connection:
            return history(connection, agents=agents, shown=shown)

    def search(
        self,
        vector: npt.NDArray[np.float32],
        *,
        limit: int = 10,
        layer: int | None = None,
        type: str | None = None,
        scene: str | None = None,
        since: int | None = None,
    ) -> list[dict[str, Any]]:
        """Return the nodes nearest to a vector (`search.search`)."""
        with self._reading() as connection:
            return search(connection, vector, limit=limit, layer=layer, type=type, scene=scene, since=since)

    def build_indexes(self, progress: Progress | None = None) -> list[str]:
        """Make the pgvector indexes (`search.build_indexes`); return their names."""
        with database_errors():
            return build_indexes(self._database, self._connection, progress)

    def export(self, directory: Path) -> list[Path]:
        """Write every table as Parquet (`export.export`); return the files."""
        with self._reading() as connection:
            return export(connection, directory)

    def embedder_arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return the arrays of the fitted embedder; empty when there is none."""
        return self.known().embedder_arrays()
