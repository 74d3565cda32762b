"""Commands that look at a store: search, report, index, export."""

from __future__ import annotations

import json

import numpy as np
import pyarrow.parquet as pq
import pytest

from hyphae_gpu.commands.read import read_vector
from hyphae_gpu.errors import UsageError


def test_search_in_words_finds_what_is_near_in_meaning(swarm):
    hits = swarm.json("search", "butter for croissants")["hits"]
    assert hits[0]["id"] == "c4"
    assert hits[0]["cosine"] > 0.5 > hits[1]["cosine"]
    lines = swarm("search", "butter for croissants", "--limit", "1").stdout.splitlines()
    assert lines[0].split() == ["cosine", "what", "type", "id"]
    assert "Croissants need cold butter" in lines[1]
    assert len(lines) == 2


def test_search_filters(swarm):
    def found(*filters: str) -> list[str]:
        return [hit["id"] for hit in swarm.json("search", "retry requests", *filters)["hits"]]

    assert found("--type", "risk") == ["c3"]
    assert found("--layer", "1") == []
    assert found("--since", "2026-01-04T00:00:01Z") == []
    assert len(found("--since", "2026-01-04T00:00:00Z")) == 4
    assert len(found("--limit", "2")) == 2


def test_search_by_a_vector_file(swarm):
    vector = np.zeros(256, np.float64)
    vector[0] = 1
    np.save(swarm.folder / "v.npy", vector)
    (swarm.folder / "v.json").write_text(json.dumps(vector.tolist()))
    by_array = swarm.json("search", "--vector", "v.npy")
    assert len(by_array["hits"]) == 4
    assert swarm.json("search", "--vector", "v.json") == by_array


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ((), "give either words to look for or --vector FILE"),
        (("words", "--vector", "rows.jsonl"), "give either words"),
        (("words", "--type", "rumour"), "type 'rumour': expected one of decision, "),
        (("words", "--scene", "nowhere"), "no scene 'nowhere'"),
        (("words", "--since", "today"), "--since 'today' is no ISO 8601 time"),
        (("--vector", "nowhere.npy"), "nowhere.npy: cannot be read: No such file"),
    ],
)
def test_a_search_that_cannot_be_is_a_usage_error(swarm, arguments, reason):
    done = swarm("search", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert reason in done.stderr


@pytest.mark.parametrize("text", ["{}", "[[1], [2]]", '["a"]', "[1, [2]]", "not json", "[true]", "[]"[:1]])
def test_a_vector_file_that_is_no_list_of_numbers_is_refused(tmp_path, text):
    file = tmp_path / "v.json"
    file.write_text(text)
    with pytest.raises(UsageError, match=r"--vector .*v\.json: .*expected "):
        read_vector(file)


def test_a_pickle_in_an_npy_file_is_refused_unread(tmp_path):
    np.save(tmp_path / "v.npy", np.array([object()]), allow_pickle=True)
    with pytest.raises(UsageError, match="allow_pickle=False"):
        read_vector(tmp_path / "v.npy")


def test_the_report_is_a_page_that_names_the_inboxes(swarm):
    shown = swarm.json("report", "--out", "page.html")
    assert shown == {"report": "page.html", "epochs": 2}
    page = (swarm.folder / "page.html").read_text()
    assert "Backoff with jitter" in page
    assert swarm("report", "--out", "nowhere/page.html").returncode == 2


def test_a_report_shows_the_agents_asked_for(swarm):
    swarm("report", "--agent", "bo", "--out", "bo.html")
    page = (swarm.folder / "bo.html").read_text()
    assert "Retry requests with exponential backoff" in page


def test_indexes_are_built_and_named_once(swarm):
    first = swarm.json("index")["indexes"]
    assert first == [f"knowledge_nodes_hnsw_{layer}" for layer in range(3)]
    assert swarm("index", "-q").stdout.splitlines() == first


def test_export_writes_every_table(swarm):
    files = swarm.json("export", "--out", "tables")["files"]
    assert "tables/inbox.parquet" in files
    nodes = pq.read_table(swarm.folder / "tables" / "knowledge_nodes.parquet")
    assert nodes.num_rows == 7
    assert {path.name for path in (swarm.folder / "tables").iterdir()} == {file.split("/")[1] for file in files}
