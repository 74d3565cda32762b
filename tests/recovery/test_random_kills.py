"""Thirty kills at random moments: the store is whole each time, and the job, finished, ends as if undisturbed.

Each kill strikes a process that works on an embedded server of its own folder, so the server has to go as well.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import psycopg
import pytest

from hyphae_gpu.store import warden
from hyphae_gpu.store.embedded import EmbeddedServer
from tests.conftest import SEED
from tests.recovery import job, rows
from tests.recovery.snapshot import check_whole, differences, snapshot

#: How many of the thirty kills strike in each of the job's commands: rows in, two epochs, more rows in, an epoch.
KILLS = (8, 10, 4, 8)
#: Of the first command's, so many in a folder where no server ever ran.
FIRST_STARTS = 4
SERVER_GOES_SECONDS = 60.0


def postmasters_of(home: Path) -> list[int]:
    """Return the processes that are a postgres over this folder's cluster."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if words[0].endswith(b"postgres") and str(home / "pg").encode() in words:
            found.append(int(entry.name))
    return found


def server_is_gone(home: Path) -> bool:
    seen = warden.postmaster(home / "pg")
    held = home.exists() and any(warden.is_held(home / f"{name}.lock") for name in ("warden", "server"))
    return seen is None and not held and not postmasters_of(home)


def await_no_server(home: Path) -> None:
    deadline = time.monotonic() + SERVER_GOES_SECONDS
    while not server_is_gone(home):
        assert time.monotonic() < deadline, f"a server is left over {home}: {postmasters_of(home)}"
        time.sleep(0.02)


def strike(folder: Path, step: int, after_seconds: float) -> int | None:
    """Kill the job so long after this command began; return the command it was at, None where it had ended."""
    with job.started(folder, job.remaining(0, 0)) as run:
        while not run.begun or run.begun[-1] < step:
            assert run.listen(job.PATIENCE_SECONDS), (folder / "log").read_text()
        deadline = time.monotonic() + after_seconds
        while (left := deadline - time.monotonic()) > 0 and run.process.exitcode is None:
            run.listen(left)
        run.process.kill()
        code = run.wait()
    assert code in (-9, 0), (folder / "log").read_text()
    return run.begun[-1] if code else None


@contextmanager
def served(home: Path) -> Iterator[str]:
    """Hold the folder's server; the project is emptied in the end, so that the next job begins at the beginning."""
    server = EmbeddedServer(home)
    try:
        yield server.conninfo
        with psycopg.connect(server.conninfo, autocommit=True) as connection:
            connection.execute("drop schema if exists hyphae_default cascade")
    finally:
        server.close()


def finish_and_compare(folder: Path, step: int, undisturbed) -> None:
    """Look at the store that the kill left, finish the job, and compare with the undisturbed one's."""
    home = folder / "hyphae-data"
    await_no_server(home)
    with served(home) as conninfo:
        found = snapshot(conninfo)
        check_whole(found)
        assert any(differences(found, state) == [] for state in undisturbed.states), "between two transactions"
        job.done(folder, job.remaining(step, len(found["epochs"])))
        ended = snapshot(conninfo)
        check_whole(ended)
        assert differences(ended, undisturbed.states[-1]) == []
    assert server_is_gone(home)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the job's rows, whose server has run before."""
    folder = tmp_path_factory.mktemp("killed")
    rows.write(folder)
    return folder


@pytest.fixture(scope="module")
def paces(place: Path, undisturbed) -> list[float]:
    """How many seconds each command of the job takes when nobody disturbs it."""
    begun = []
    with served(place / "hyphae-data"):
        pass
    with job.started(place, job.remaining(0, 0)) as run:
        while run.process.exitcode is None:
            if run.listen(job.PATIENCE_SECONDS):
                begun.append(time.monotonic())
        assert run.wait() == 0
    begun.append(time.monotonic())
    with served(place / "hyphae-data"):
        pass
    assert len(begun) == len(job.STEPS) + 1
    return [after - before for before, after in pairwise(begun)]


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("step", range(len(job.STEPS)))
def test_whenever_it_is_killed_nothing_is_lost_doubled_or_left_running(step, place, paces, undisturbed, tmp_path):
    draw = random.Random(SEED + step)
    for kill in range(KILLS[step]):
        folder = place
        if step == 0 and kill < FIRST_STARTS:
            folder = tmp_path / f"fresh {kill}"
            folder.mkdir()
            rows.write(folder)
        # The first strikes as the command begins: before the second ingest that is between the two.
        after_seconds = paces[step] * (kill + draw.random()) / KILLS[step] if kill else 0.0
        while (struck := strike(folder, step, after_seconds)) is None:
            # The last command was faster than when it was measured, and nothing was killed.
            after_seconds *= 0.7
            finish_and_compare(folder, len(job.STEPS), undisturbed)
        assert struck >= step
        finish_and_compare(folder, struck, undisturbed)
