"""A process that dies at any COPY or COMMIT leaves a whole store, and the same command again ends as it would have."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest

from hyphae_gpu.config import Settings
from hyphae_gpu.engine import run_epochs
from hyphae_gpu.ingest import read_rows
from hyphae_gpu.store import copy_in, open_store, project
from hyphae_gpu.store.failpoints import POINTS
from tests.recovery import job
from tests.recovery.conftest import Databases, Undisturbed
from tests.recovery.snapshot import check_whole, differences, snapshot

#: The transaction in which a point is tried: the first with the embedder, else the last of its kind, which does all.
_FIRST_INGEST, _SECOND_INGEST, _LAST_EPOCH = 0, 3, 4
_NOW = 1_768_000_000_000_000


def transaction_of(point: str) -> int:
    if point.startswith("ingest.embedder"):
        return _FIRST_INGEST
    return _SECOND_INGEST if point.startswith("ingest") else _LAST_EPOCH


@pytest.fixture
def database(databases: Databases, request: pytest.FixtureRequest):
    """Makes this test's database as a copy of another."""
    name = f"trial_{abs(hash(request.node.name))}"
    yield lambda of: databases.copy(name, of)
    databases.drop(name)


def test_every_copy_and_commit_of_the_job_stands_between_fail_points(undisturbed, database, monkeypatch):
    trace: list[str] = []
    for module in (copy_in, project):
        monkeypatch.setattr(module, "fail_point", trace.append)
    copying = psycopg.Cursor.copy

    def traced(cursor, statement, *rest, **more):
        text = statement if isinstance(statement, str) else statement.as_string(cursor)
        if "from stdin" in text.lower():
            trace.append("COPY")
        return copying(cursor, statement, *rest, **more)

    monkeypatch.setattr(psycopg.Cursor, "copy", traced)
    folder, url = undisturbed.folder, database("template0")
    with open_store(database_url=url, data_dir=folder, hold="test") as store:
        for name, epochs in (("first", 2), ("second", 1)):
            rows = read_rows([folder / f"{name}.jsonl"], known=store.known(), embed="lsa", kind=None, now=_NOW)
            store.write_rows(rows, diffs=True)
            run_epochs(store, Settings(threads=1, device="cpu"), epochs=epochs, as_of=_NOW)

    copies = [place for place, what in enumerate(trace) if what == "COPY"]
    around = {(trace[place - 1], trace[place + 1]) for place in copies}
    assert {before.removesuffix(".before") for before, _ in around} == {
        after.removesuffix(".after") for _, after in around
    }
    assert all(before.removesuffix(".before") == after.removesuffix(".after") for before, after in around)
    assert {what for what in trace if what != "COPY"} == set(POINTS)
    assert trace.count("ingest.commit.before") == trace.count("ingest.commit.after") == 2
    assert trace.count("checkpoint.commit.before") == trace.count("checkpoint.commit.after") == 3


@pytest.mark.parametrize("point", POINTS)
def test_killed_there_the_store_is_whole_and_the_same_command_ends_as_if_undisturbed(
    point, undisturbed: Undisturbed, database, tmp_path: Path
):
    transaction = transaction_of(point)
    before, after = undisturbed.states[transaction], undisturbed.states[transaction + 1]
    command = [c for step in job.STEPS for c in step.one_by_one()][transaction]
    url = database(f"after_{transaction}")
    with job.started(undisturbed.folder, [command], DATABASE_URL=url, HYPHAE_FAIL_POINT=f"{point}:1") as run:
        assert run.wait() == -9
    found = snapshot(url)
    check_whole(found)
    assert differences(found, after if point.endswith("commit.after") else before) == []
    if point == "checkpoint.commit.after":
        return
    job.done(undisturbed.folder, [command], DATABASE_URL=url)
    assert differences(snapshot(url), after) == []


def test_an_undisturbed_job_in_one_process_ends_as_one_command_after_the_other(undisturbed, database):
    url = database("template0")
    job.done(undisturbed.folder, job.remaining(0, 0), DATABASE_URL=url)
    found = snapshot(url)
    check_whole(found)
    assert differences(found, undisturbed.states[-1]) == []
    assert len(undisturbed.states) == 6
    assert found["inbox"]
    assert any(row["via"] != "gossip" for row in found["inbox"])
    assert {row["status"] for row in found["contradictions"]} == {"open", "resolved"}
