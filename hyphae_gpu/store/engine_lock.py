"""One engine a project at a time: an advisory lock for the life of a connection, and a fence for what is written.

The lock keeps others out while this process lives; the server frees it when the connection ends. The fence is a number
that grows with every taking: whoever lost the lock without noticing finds another number in its next transaction.
"""

from __future__ import annotations

import os
import socket
import time
from datetime import UTC, datetime
from typing import Any

import psycopg
from psycopg.types.json import Jsonb

from hyphae_gpu.errors import BusyError
from hyphae_gpu.store.postgres import Connection, Database, database_errors, lock_key

#: How long to wait for a lock whose holder may be just gone: its server process notices a little later.
PATIENCE_SECONDS = 1.0
#: The same when the holder's process is known to be dead: its server process may still finish a statement.
DEAD_HOLDER_SECONDS = 60.0
_TICK = 0.02


class EngineLock:
    """The hold of one process on one project, from construction until `release`; raises BusyError."""

    def __init__(self, database: Database, project: str, command: str) -> None:
        self._project = project
        self._connection = database.connect()
        try:
            with database_errors():
                self._take(lock_key(f"hyphae engine {database.schema}"))
                holder = {
                    "pid": os.getpid(),
                    "host": socket.gethostname(),
                    "command": command,
                    "since": datetime.now(UTC).isoformat(timespec="seconds"),
                }
                row = self._connection.execute(
                    "update meta set value = jsonb_build_object('token', (value->>'token')::bigint + 1, 'holder', "
                    "%s::jsonb) where key = 'fence' returning (value->>'token')::bigint",
                    [Jsonb(holder)],
                ).fetchone()
        except BaseException:
            self._connection.close()
            raise
        assert row is not None
        self.token = int(row[0])

    def _take(self, key: int) -> None:
        start = time.monotonic()
        while self._connection.execute("select pg_try_advisory_lock(%s)", [key]).fetchone() != (True,):
            holder = self._holder()
            patience = DEAD_HOLDER_SECONDS if _is_dead(holder) else PATIENCE_SECONDS
            if time.monotonic() - start > patience:
                raise BusyError(f"project {self._project!r} is in use by {describe(holder)}; try again when it is done")
            time.sleep(_TICK)

    def _holder(self) -> dict[str, Any] | None:
        row = self._connection.execute("select value->'holder' from meta where key = 'fence'").fetchone()
        return row[0] if row else None

    def check(self, connection: Connection) -> None:
        """Raise BusyError unless this hold is still the last one; keeps others from taking over until the commit."""
        row = connection.execute("select value from meta where key = 'fence' for update").fetchone()
        if row is None or row[0]["token"] != self.token:
            holder = row[0].get("holder") if row else None
            raise BusyError(f"project {self._project!r} was taken over by {describe(holder)}; nothing was written")

    def release(self) -> None:
        """Let go; a connection that is already gone has let go by itself."""
        try:
            if not self._connection.closed:
                self._connection.execute(
                    "update meta set value = value - 'holder' where key = 'fence' and (value->>'token')::bigint = %s",
                    [self.token],
                )
        except psycopg.Error:
            pass
        finally:
            self._connection.close()


def describe(holder: dict[str, Any] | None) -> str:
    """Return who holds the project, for people."""
    if not holder:
        return "another process"
    return f"'{holder['command']}' (pid {holder['pid']} on {holder['host']}, since {holder['since']})"


def _is_dead(holder: dict[str, Any] | None) -> bool:
    """Return whether the holder is a process of this machine that no longer runs."""
    if not holder or holder["host"] != socket.gethostname():
        return False
    try:
        os.kill(int(holder["pid"]), 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return False
