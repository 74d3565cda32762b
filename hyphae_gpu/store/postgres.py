"""Connections to the store's PostgreSQL, by DATABASE_URL or embedded, with pgvector and the project's schema there."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from psycopg import sql

from hyphae_gpu.errors import DatabaseError, UsageError
from hyphae_gpu.store import migrations

Connection = psycopg.Connection[Any]

#: The first pgvector without CVE-2026-3172.
PGVECTOR_FLOOR = (0, 8, 2)
_PROJECT = re.compile(r"[a-z0-9_]{1,40}")
#: A server that dies without a word is noticed after about a minute.
_KEEPALIVES: dict[str, Any] = {"keepalives": 1, "keepalives_idle": 30, "keepalives_interval": 10, "keepalives_count": 3}


def schema_of(project: str) -> str:
    """Return the schema that holds the project's tables; raises UsageError for a name that cannot be one."""
    if not _PROJECT.fullmatch(project):
        raise UsageError(f"project {project!r}: expected 1 to 40 of the characters a-z, 0-9 and _")
    return f"hyphae_{project}"


def lock_key(name: str) -> int:
    """Return the advisory lock's key that stands for a name; int64."""
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "big", signed=True)


class Database:
    """Where the store is, and how to reach it: `connect` gives a connection that sees the project's tables."""

    def __init__(self, conninfo: str, project: str, *, embedded: bool) -> None:
        self.schema = schema_of(project)
        self._conninfo = conninfo
        self._embedded = embedded
        self._path = self.schema
        with self._connect() as connection, database_errors():
            self._prepare(connection)

    def connect(self) -> Connection:
        """Open a connection in autocommit mode; transactions are explicit. Raises DatabaseError."""
        connection = self._connect()
        with database_errors():
            connection.execute("select set_config('search_path', %s, false)", [self._path])
        return connection

    def _connect(self) -> Connection:
        try:
            return psycopg.connect(
                self._conninfo, autocommit=True, application_name="hyphae-gpu", connect_timeout=10, **_KEEPALIVES
            )
        except psycopg.ProgrammingError:
            # The parser's message quotes pieces of the string, perhaps the password.
            raise DatabaseError(
                "DATABASE_URL cannot be read; expected postgresql://USER:PASSWORD@HOST:PORT/NAME"
            ) from None
        except psycopg.Error as problem:
            raise DatabaseError(f"cannot reach the database: {self._say(problem)}") from None
        except ValueError:
            raise DatabaseError("DATABASE_URL cannot be read: it holds a character that is not allowed") from None

    def _say(self, problem: psycopg.Error) -> str:
        """Return the error's last line without the password."""
        lines = [line.strip() for line in str(problem).splitlines() if line.strip()] or [type(problem).__name__]
        text = "; ".join(lines)
        password = psycopg.conninfo.conninfo_to_dict(self._conninfo).get("password")
        return text.replace(str(password), "***") if password else text

    def _prepare(self, connection: Connection) -> None:
        """Have pgvector and the project's schema in place; nothing is written where both are."""
        if _vector(connection) is None:
            self._create_vector(connection)
        home = self._checked_vector(connection)
        self._path = sql.SQL(", ").join([sql.Identifier(self.schema), sql.Identifier(home)]).as_string(connection)
        connection.execute("select set_config('search_path', %s, false)", [self._path])
        if migrations.version_of(connection, self.schema) == migrations.VERSION:
            return
        with connection.transaction():
            connection.execute("select pg_advisory_xact_lock(%s)", [lock_key("hyphae schemas")])
            connection.execute(sql.SQL("create schema if not exists {}").format(sql.Identifier(self.schema)))
            migrations.bring_up(connection, self.schema, migrations.version_of(connection, self.schema))

    def _create_vector(self, connection: Connection) -> None:
        try:
            with connection.transaction():
                connection.execute("select pg_advisory_xact_lock(%s)", [lock_key("hyphae schemas")])
                connection.execute("create extension if not exists vector")
        except (psycopg.errors.UndefinedFile, psycopg.errors.FeatureNotSupported):
            raise DatabaseError(
                "the server has no pgvector: install pgvector 0.8.2 or newer there "
                "(Debian and Ubuntu: apt-get install postgresql-MAJOR-pgvector)"
            ) from None
        except psycopg.errors.InsufficientPrivilege:
            raise DatabaseError(
                "this user may not create the extension: let an administrator run 'CREATE EXTENSION vector;' "
                "in this database"
            ) from None

    def _checked_vector(self, connection: Connection) -> str:
        """Return the schema of pgvector; an old one is updated where the server is ours, else refused."""
        home, version, newest = vector_version(connection)
        if _parts(version) < PGVECTOR_FLOOR and self._embedded and _parts(newest) >= PGVECTOR_FLOOR:
            connection.execute("alter extension vector update")
            home, version, newest = vector_version(connection)
        if _parts(version) >= PGVECTOR_FLOOR:
            return home
        floor = ".".join(map(str, PGVECTOR_FLOOR))
        todo = "run 'ALTER EXTENSION vector UPDATE;' in this database"
        if _parts(newest) < PGVECTOR_FLOOR:
            todo = (
                f"install pgvector {floor} or newer on the server "
                f"(Debian and Ubuntu: apt-get install --only-upgrade postgresql-MAJOR-pgvector), then {todo}"
            )
        raise DatabaseError(
            f"pgvector {version} has a security hole (CVE-2026-3172), {floor} or newer is needed: {todo}"
        )


def _vector(connection: Connection) -> Any:
    return connection.execute("select 1 from pg_extension where extname = 'vector'").fetchone()


def vector_version(connection: Connection) -> tuple[str, str, str]:
    """Return pgvector's schema, its version in this database and the newest that the server offers."""
    row = connection.execute(
        "select n.nspname, e.extversion, a.default_version from pg_extension e "
        "join pg_namespace n on n.oid = e.extnamespace left join pg_available_extensions a on a.name = e.extname "
        "where e.extname = 'vector'"
    ).fetchone()
    assert row is not None
    return str(row[0]), str(row[1]), str(row[2] or row[1])


def _parts(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version)[:3])


@contextmanager
def database_errors() -> Iterator[None]:
    """Turn the driver's errors into DatabaseError, in one line."""
    try:
        yield
    except psycopg.Error as problem:
        said = [problem.diag.message_primary or str(problem).partition("\n")[0] or type(problem).__name__]
        if isinstance(problem, psycopg.DataError):
            said += [more for more in (problem.diag.message_detail, problem.diag.context) if more]
        raise DatabaseError(f"the database refused: {' '.join(' '.join(said).split())}") from problem
