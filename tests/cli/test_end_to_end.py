"""The whole way through the real commands: rows in, epochs, inboxes out."""

from __future__ import annotations

import json
import signal
import threading

import pytest

from hyphae_gpu.commands.read import ORIGIN_HOLDS
from hyphae_gpu.store import open_store
from hyphae_gpu.store.embedded import EmbeddedServer
from hyphae_gpu.swarm import FLOW_LAW
from tests.cli.conftest import PATIENCE_SECONDS, ROWS


def test_what_one_agent_wrote_reached_the_other_by_itself(swarm):
    found = swarm.json("inbox", "bo")
    assert found["agent"] == "bo"
    assert [(entry["origin"], entry["via"]) for entry in found["entries"]] == [("c1", "gossip")]
    assert found["entries"][0]["title"] == ROWS[2]["text"]


def test_an_inbox_reads_titles_first_and_why_says_how_it_came(swarm):
    lines = swarm("inbox", "ana", "--why").stdout.splitlines()
    first = next(number for number, line in enumerate(lines) if "Backoff with jitter" in line)
    assert lines[first + 1].split() == ["risk,", "created:", "c3"]
    assert lines[first + 2].strip() == "1 hop: c3 > ana"
    assert "score 0." in lines[first + 3]
    assert "score" not in swarm("inbox", "ana").stdout
    assert max(map(len, lines)) <= 80


def test_resonance_is_shown_as_a_share_of_what_an_origin_holds(swarm):
    entry = swarm.json("inbox", "ana", "--why")["entries"][0]
    assert FLOW_LAW.start == ORIGIN_HOLDS
    assert f"resonance {entry['resonance'] / FLOW_LAW.start:.2g}" in swarm("inbox", "ana", "--why").stdout


def test_a_beacon_passes_on_what_it_hears(swarm):
    entries = swarm.json("inbox", "ana", "--why")["entries"]
    heard = [entry for entry in entries if entry["via"] == "about butter"]
    assert [entry["origin"] for entry in heard] == ["c4"]
    assert heard[0]["score"] > 0.25
    assert {"hop", "energy", "relevance", "parent", "through", "path"} <= set(heard[0])


def test_since_leaves_older_epochs_out(swarm):
    assert swarm.json("inbox", "bo", "--since", "2")["entries"] == []
    assert len(swarm.json("inbox", "bo", "--since", "1")["entries"]) == 1


def test_an_agent_that_is_not_there_is_a_usage_error(swarm):
    done = swarm("inbox", "nobody")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "hyphae-gpu: no agent 'nobody' in the store\n"


def test_status_counts_what_came_in(swarm):
    state = swarm.json("status")
    assert (state["project"], state["epoch"]) == ("default", 2)
    assert state["nodes"] == {"cell": 4, "agent": 2, "scene": 0, "beacon": 1}
    assert state["diffs"] == {"live": 4, "expired": 0}
    assert "cell 4, agent 2, beacon 1" in swarm("status").stdout


def test_progress_is_on_stderr_a_line_a_stage_and_quiet_silences_it(swarm):
    swarm.write("again.jsonl", *ROWS)
    done = swarm("ingest", "again.jsonl", "--project", "progress", "--embed", "lsa", "--json")
    assert json.loads(done.stdout)["cells_created"] == 4
    assert done.stderr.splitlines() == ["hyphae-gpu: reading 1 file", "hyphae-gpu: writing 7 rows"]
    loud = swarm("run", "--project", "progress", "--json")
    assert "hyphae-gpu: epoch 1: gossip" in loud.stderr.splitlines()
    assert "\x1b" not in loud.stderr
    assert swarm("run", "--project", "progress", "--json", "-q").stderr == ""


def test_a_later_run_goes_on_from_the_last_epoch(swarm):
    swarm("ingest", "rows.jsonl", "--project", "later", "--embed", "lsa")
    first = swarm.json("run", "--project", "later", "--as-of", "1767571200")["epochs"]
    second = swarm.json("run", "--project", "later", "--epochs", "2", "--as-of", "2026-01-05T00:00:00Z")["epochs"]
    assert [epoch["epoch"] for epoch in first + second] == [1, 2, 3]
    assert {epoch["as_of"] for epoch in first + second} == {1_767_571_200_000_000}


def test_bad_rows_exit_3_name_each_row_and_write_nothing(swarm):
    swarm.write("bad.jsonl", ROWS[0], {**ROWS[2], "salience": 2}, {**ROWS[3], "knowledge_type": "rumour"})
    done = swarm("ingest", "bad.jsonl", "--project", "bad", "--embed", "lsa")
    assert (done.returncode, done.stdout) == (3, "")
    assert "2 bad rows, nothing was written" in done.stderr
    assert "bad.jsonl row 2: salience is 2" in done.stderr
    assert "bad.jsonl row 3: unknown knowledge_type 'rumour'" in done.stderr
    assert swarm.json("status", "--project", "bad")["nodes"]["agent"] == 0
    assert swarm("ingest", "nowhere.jsonl").returncode == 3


def test_history_loads_without_news(swarm):
    swarm("ingest", "rows.jsonl", "--project", "history", "--embed", "lsa", "--no-diffs")
    assert swarm.json("run", "--project", "history")["epochs"][0]["counts"]["live_diffs"] == 0


def test_a_device_that_is_not_there_exits_5_and_no_epoch_is_run(swarm):
    done = swarm("run", "--device", "cuda")
    assert done.returncode == 5
    assert done.stderr.splitlines()[-1].startswith("hyphae-gpu: device cuda: ")
    assert swarm.json("status")["epoch"] == 2


def test_a_server_that_is_not_there_exits_4(swarm):
    done = swarm("status", DATABASE_URL="postgresql://u:secret@127.0.0.1:1/d")
    assert (done.returncode, done.stdout) == (4, "")
    assert "secret" not in done.stderr


def test_a_second_engine_exits_75_and_says_who_holds_the_project(swarm):
    with open_store(database_url=None, data_dir=swarm.folder / "hyphae-data", project="busy", hold="the first"):
        done = swarm("run", "--project", "busy")
    assert done.returncode == 75
    assert "'the first'" in done.stderr


@pytest.mark.parametrize(("sign", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_run_that_is_stopped_keeps_whole_epochs_and_lets_go(hyphae, embedded_server, sign, code):
    hyphae.write("rows.jsonl", *ROWS)
    assert hyphae("ingest", "rows.jsonl", "--embed", "lsa").returncode == 0
    with hyphae.started("run", "--epochs", "1000000") as process:
        watchdog = threading.Timer(PATIENCE_SECONDS, process.kill)
        watchdog.start()
        for line in process.stderr:
            if "epoch 3: taking in" in line:
                break
        process.send_signal(sign)
        out, err = process.communicate(timeout=PATIENCE_SECONDS)
        watchdog.cancel()
    assert (process.returncode, out) == (code, "")
    assert "Traceback" not in err
    assert [line for line in err.splitlines() if "interrupted" in line] == (
        ["hyphae-gpu: interrupted; what was written before is kept whole"] if code == 130 else []
    )
    reached = hyphae.json("status")["epoch"]
    assert reached >= 2
    assert hyphae.json("run")["epochs"][0]["epoch"] == reached + 1


def test_the_built_in_server_ends_with_the_command(hyphae, embedded_server):
    assert hyphae("status").returncode == 0
    assert not (hyphae.folder / "hyphae-data" / "pg" / "postmaster.pid").exists()
    EmbeddedServer(hyphae.folder / "hyphae-data").close()
