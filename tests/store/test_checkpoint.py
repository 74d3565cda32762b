"""One transaction an epoch: whole or not at all, whatever kills it, and readers between never."""

from __future__ import annotations

import signal
from pathlib import Path

import numpy as np
import psycopg
import pyarrow.parquet as pq
import pytest

from hyphae_gpu.errors import DatabaseError, UsageError
from hyphae_gpu.state import IndexArrays
from hyphae_gpu.store import arrays, failpoints, open_store
from hyphae_gpu.vocabulary import NodeType
from tests.forks import FORKS
from tests.store import sample
from tests.store.expected import after


def child(url: str, armed: str) -> None:
    """Two ingests and two epochs, every point reached; the parent says where it dies."""
    failpoints.armed = armed
    with open_store(database_url=url, data_dir=Path("unused"), hold="run") as store:
        work(store)


def work(store):
    """Do what is still to do of the whole job; doing it again changes nothing."""
    given = sample.swarm()
    embedder = {"a": np.arange(3)}
    given = type(given)(**{**vars(given), "embedder_arrays": embedder})
    store.write_rows(given, diffs=True)
    while (state := store.load()).epoch < 2:
        store.checkpoint(sample.epoch(state, seed=state.epoch))
    store.write_rows(sample.rows(cells=[{"id": "cell-1 \u00e9\u4e16", "text": "new"}]), diffs=True)


def loaded(store):
    """The state, without the moment at which agents and beacons came: the clock's."""
    state = store.load()
    for times in (state.nodes.created_at, state.nodes.last_access):
        times[state.nodes.types != NodeType.CELL] = 0
    return state


@pytest.fixture(scope="module")
def undisturbed(server, tmp_path_factory):
    """The state that the whole job ends with."""
    with psycopg.connect(server.conninfo, autocommit=True) as connection:
        connection.execute("create database undisturbed template template0")
    url = server.conninfo.replace("dbname=postgres", "dbname=undisturbed")
    with open_store(database_url=url, data_dir=tmp_path_factory.mktemp("unused"), hold="run") as store:
        work(store)
        return loaded(store)


@pytest.mark.parametrize("point", failpoints.POINTS)
def test_killed_at_any_point_the_job_is_taken_up_and_ends_alike(point, database_url, opened, undisturbed):
    killed = FORKS.Process(target=child, args=(database_url, f"{point}:1"))
    killed.start()
    killed.join(60)
    assert killed.exitcode == -signal.SIGKILL, f"{point} was not reached"
    store = opened()
    work(store)
    assert sample.differences(undisturbed, loaded(store)) == []


def test_checkpoints_come_back_epoch_after_epoch(opened):
    store = opened()
    store.write_rows(sample.swarm(), diffs=True)
    expected = store.load()
    for seed in range(5):
        done = sample.epoch(expected, seed)
        store.checkpoint(done)
        expected = after(expected, done)
        assert sample.differences(expected, store.load()) == []


def test_what_live_diffs_reached_and_were_promoted_to_comes_back_until_they_end(opened):
    store = opened()
    store.write_rows(sample.swarm(), diffs=True)
    done = sample.epoch(store.load())
    store.checkpoint(done)

    def keys(table, *names):
        return sorted(zip(*(getattr(table, name).tolist() for name in names), strict=True))

    told, raised = ("agents", "diffs", "vias"), ("diffs", "layers")
    state = store.load()
    assert keys(state.delivered, *told) == keys(done.inbox, *told) != []
    assert keys(state.promoted, *raised) == [(0, 1), (0, 2), (1, 1)]
    later = sample.epoch(state, diffs=0)
    later.ended_diffs = done.new_diffs.numbers[1:]
    store.checkpoint(later)
    state = store.load()
    assert set(state.delivered.diffs) == {0}
    assert keys(state.promoted, *raised) == [(0, 1), (0, 2)]
    later = sample.epoch(state, diffs=0)
    later.ended_diffs = done.new_diffs.numbers
    store.checkpoint(later)
    assert len(store.load().delivered.diffs) == len(store.load().promoted) == 0


def test_a_reader_sees_the_epoch_before_until_the_commit(opened, monkeypatch):
    store, reader = opened(), opened(hold=None)
    store.write_rows(sample.swarm(), diffs=True)
    before = reader.load()
    seen = []
    monkeypatch.setattr(
        "hyphae_gpu.store.project.fail_point",
        lambda name: seen.append((name, reader.status()["epoch"], sample.differences(before, reader.load()) == [])),
    )
    store.checkpoint(sample.epoch(before))
    assert seen == [("checkpoint.commit.before", 0, True), ("checkpoint.commit.after", 1, False)]


def test_an_inbox_entry_is_never_doubled(opened):
    store = opened()
    store.write_rows(sample.swarm(), diffs=True)
    first = sample.epoch(store.load())
    store.checkpoint(first)
    again = sample.epoch(store.load(), diffs=0)
    again.inbox = first.inbox
    before = store.load()
    with pytest.raises(DatabaseError, match="inbox_pkey"):
        store.checkpoint(again)
    assert sample.differences(before, store.load()) == []


def test_an_epoch_out_of_turn_is_refused(opened):
    store = opened()
    store.write_rows(sample.swarm(), diffs=True)
    done = sample.epoch(store.load())
    done.epoch = 2
    with pytest.raises(DatabaseError, match="epoch 2"):
        store.checkpoint(done)


def test_only_changed_chunks_of_an_index_are_written(opened, monkeypatch):
    monkeypatch.setattr(arrays, "CHUNK_BYTES", 64)
    store = opened()
    store.write_rows(sample.swarm(), diffs=True)
    done = sample.epoch(store.load())
    done.indexes = {0: sample.index(40, 4)}
    store.checkpoint(done)
    written = []
    plain = arrays.save_index
    monkeypatch.setattr("hyphae_gpu.store.checkpoint.save_index", lambda *a: written.append(plain(*a)))
    for change, chunks in ((lambda index: None, 0), (lambda index: index.links.__setitem__(3, 77), 1)):
        again = sample.epoch(store.load(), diffs=0)
        again.indexes = {0: sample.index(40, 4)}
        change(again.indexes[0])
        store.checkpoint(again)
        assert written.pop() == chunks
        assert sample.differences(again.indexes[0], store.load().indexes[0]) == []
    shorter = sample.epoch(store.load(), diffs=0)
    shorter.indexes = {0: sample.index(5, 4), 2: sample.index(7, 4, seed=1)}
    store.checkpoint(shorter)
    held = [shorter.indexes[0], IndexArrays.empty(4), shorter.indexes[2]]
    assert sample.differences(held, store.load().indexes) == []


def test_status_adds_up(opened):
    store = opened()
    empty = store.status()
    assert list(empty) == [
        "project", "epoch", "nodes", "live_cells", "edges", "layers", "diffs", "deliveries", "inbox", "cut",
        "contradictions", "scenes", "patterns", "promotions", "throttled", "lost", "repaired", "state_hash",
    ]  # fmt: skip
    assert (empty["epoch"], empty["state_hash"], empty["layers"]) == (0, None, [0, 0, 0])
    assert (empty["scenes"], empty["patterns"], empty["promotions"]) == (0, 0, {"1": 0, "2": 0})
    store.write_rows(sample.swarm(), diffs=True)
    for seed in range(2):
        store.checkpoint(sample.epoch(store.load(), seed))
    status, state = store.status(), store.load()
    # Each epoch makes two scenes, three promoted nodes, of which one of layer 2, and a pattern.
    assert status["nodes"] == {"cell": 12 + 2 * 4, "agent": 3, "scene": 4, "beacon": 2}
    assert status["layers"] == [17 + 2, 2 * (2 + 2), 2]
    assert (status["scenes"], status["patterns"], status["promotions"]) == (3, 2, {"1": 4, "2": 2})
    assert status["epoch"] == 2
    assert status["deliveries"] == 14
    assert status["cut"] == 2
    assert status["live_cells"] == 5
    assert status["diffs"] == {"live": len(state.diffs), "expired": state.next_diff - len(state.diffs)}
    assert sum(sum(kinds.values()) for kinds in status["edges"].values()) == len(state.declared) + len(state.topology)
    assert status["inbox"] == 2 * 3 * 3 * 4
    assert status["state_hash"] == "hash-2"


def test_an_inbox_reads_newest_first_gossip_before_beacons(opened):
    store = opened()
    store.write_rows(sample.swarm(), diffs=True)
    for seed in range(2):
        store.checkpoint(sample.epoch(store.load(), seed))
    entries = store.inbox("agent-1")
    order = [(entry["epoch"], entry["via"], entry["place"]) for entry in entries]
    assert order == [
        (epoch, via, place) for epoch in (2, 1) for via in ("gossip", "beacon-0", "beacon-1") for place in range(4)
    ]
    assert store.inbox("agent-1", since=2) == entries[:12]
    assert store.inbox("agent-1", limit=3) == entries[:3]
    assert entries[0]["origin"].startswith("cell-")
    assert entries[0]["diff"].startswith(entries[0]["origin"] + "#")
    with store._database.connect() as connection:
        assert connection.execute("select count(*) from inbox_view").fetchone() == (72,)
        shown = connection.execute("select status, count(*) from contradictions_view group by 1 order by 1").fetchall()
        assert shown == [("open", 2), ("resolved", 4)]
    with pytest.raises(UsageError, match="no agent 'x'"):
        store.inbox("x")
    with pytest.raises(UsageError, match="is a beacon"):
        store.inbox("beacon-0")


def test_an_export_holds_what_the_tables_hold(opened, tmp_path):
    store = opened()
    store.write_rows(sample.swarm(), diffs=True)
    store.checkpoint(sample.epoch(store.load()))
    state = store.load()
    for _ in range(2):
        files = store.export(tmp_path / "new" / "out")
    tables = {file.stem: pq.read_table(file) for file in files}
    assert sorted(path.name for path in (tmp_path / "new" / "out").iterdir()) == sorted(file.name for file in files)
    nodes = tables["knowledge_nodes"]
    vectors = [v if v is not None else [0.0] * 4 for v in nodes["embedding"].to_pylist()]
    assert vectors == state.nodes.vectors.tolist()
    assert [v is not None for v in nodes["embedding"].to_pylist()] == state.nodes.placed.tolist()
    assert nodes["text"].to_pylist()[0] == "text 0 \U0001f344 'quoted' \\ \t"
    assert nodes["created_at"].cast("int64").to_pylist() == state.nodes.created_at.tolist()
    assert tables["topology_edges"].num_rows == len(state.declared) + len(state.topology)
    assert tables["inbox"]["score"].to_pylist() != []
    assert tables["contradictions"].num_rows == 3
    assert tables["scenes"]["id"].to_pylist() == ["scene-17", "scene-18"]
    assert nodes["id"].to_pylist()[17:] == [
        "scene-17",
        "scene-18",
        "promoted-19",
        "promoted-20",
        "promoted-21",
        "pattern-22",
    ]
    assert tables["promotions"]["node"].to_pylist() == [19, 20, 21]
    assert tables["promotions"]["counts"].to_pylist() == ["{7,5}", "{1,1}", "{9}"]
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="file"):
        store.export(tmp_path / "file")


def test_an_empty_store_can_be_exported(opened, tmp_path: Path):
    assert len(opened().export(tmp_path)) == 10
