"""The command that lists promotions, on a store of its own."""

from __future__ import annotations

import json

import numpy as np
import pytest

from hyphae_gpu.store.embedded import EmbeddedServer
from tests.cli.conftest import Hyphae, _cell

TOPICS = ("limits", "storage", "retries", "queues")


def near(topic: int, i: int, spread: float) -> list[float]:
    """Return a vector near the topic's axis, all of which lie near one another."""
    rng = np.random.default_rng([topic, i])
    return (np.ones(8) + 1.5 * np.eye(8)[topic] + spread * rng.normal(size=8)).tolist()


@pytest.fixture(scope="module")
def agreed(tmp_path_factory, embedded_server):
    """Four topics of ten facts each, and an epoch; a decision that reaches all of them, and an epoch; another."""
    command = Hyphae(tmp_path_factory.mktemp("agreed"))
    server = EmbeddedServer(command.folder / "hyphae-data")
    facts = [{"kind": "agent", "id": name} for name in TOPICS]
    for topic, name in enumerate(TOPICS):
        for i in range(10):
            cell = _cell(f"{name} {i}", f"{name} {name} fact {'abcdefghij'[i] * 3}", "fact", name)
            facts.append(cell | {"embedding": near(topic, i, 0.2)})
    first = _cell("d1", "Every call gets a limit", "decision", "limits") | {"embedding": near(0, 99, 0.1)}
    second = _cell("d2", "Disks are watched", "decision", "storage") | {"embedding": near(1, 99, 0.1)}
    second["payload"] = {"title": "Watch the disks"}
    try:
        for name, rows in (("facts", facts), ("first", [first]), ("second", [second])):
            assert command("ingest", command.write(f"{name}.jsonl", *rows)).returncode == 0
            assert command("run", "--as-of", "2026-01-05T00:00:00Z").returncode == 0
        yield command
    finally:
        server.close()


def test_promotions_tell_what_was_agreed_on_and_where(agreed):
    told = agreed.json("promotions")
    rows = told["promotions"]
    key = ("epoch", "origin", "layer", "knowledge_type", "diff_type", "agent", "title")
    assert [tuple(row[name] for name in key) for row in rows] == [
        (3, "d2", 1, "decision", "created", "storage", "Watch the disks"),
        (3, "d2", 2, "decision", "created", "storage", "Watch the disks"),
        (2, "d1", 1, "decision", "created", "limits", "Every call gets a limit"),
        (2, "d1", 2, "decision", "created", "limits", "Every call gets a limit"),
    ]
    assert told["count"] == 4
    assert agreed.json("status")["promotions"] == {"1": 2, "2": 2}
    scenes = {scene["id"]: scene for scene in agreed.json("scenes")["scenes"]}
    for row in rows:
        assert row["diff"] == f"{row['origin']}#0"
        assert all(scene["name"] == scenes[scene["id"]]["name"] for scene in row["scenes"])
        if row["layer"] == 1:
            [scene] = row["scenes"]
            assert row["agent"] in scenes[scene["id"]]["agents"]
            assert (scene["count"], len(row["carried"])) == (row["carried_count"], 5)
            assert (row["carrier"], row["carried"][0], row["entry"]) == (row["origin"], row["origin"], scene["id"])
        else:
            assert row["carried"] == [scene["id"] for scene in row["scenes"]]
            assert set(row["carried"]) == set(scenes)
    assert rows[3]["entry"] is None
    assert rows[1]["entry"] == rows[3]["node"]


def test_one_layer_and_only_so_many_can_be_asked_for(agreed):
    whole = agreed.json("promotions")["promotions"]
    assert agreed.json("promotions", "--layer", "2") == {"count": 2, "promotions": whole[1::2]}
    assert agreed.json("promotions", "--limit", "1") == {"count": 4, "promotions": whole[:1]}
    for wrong in (("--layer", "0"), ("--layer", "3"), ("--limit", "0")):
        assert agreed("promotions", *wrong).returncode == 2


def test_the_readable_form_says_why_and_how_in_a_narrow_terminal(agreed):
    rows = agreed.json("promotions")["promotions"]
    lines = agreed("promotions", "--limit", "2").stdout.splitlines()
    assert lines[0] == "4 promotions, the newest 2"
    assert [line.rstrip() for line in lines[1:6]] == [
        "",
        "Watch the disks",
        "  epoch 3, to layer 1: decision d2 by storage",
        f"  reached {rows[0]['carried_count']} nodes of {rows[0]['entry']} ({rows[0]['scenes'][0]['name']})",
        f"  became {rows[0]['node']}; went up from d2 to {rows[0]['entry']}",
    ]
    text = " ".join(" ".join(lines[7:]).split())
    named = ", ".join(f"{scene['id']} ({scene['name']})" for scene in rows[1]["scenes"][:3])
    assert f"reached {named}, 1 more became {rows[1]['node']}" in text
    assert "layer 2 was empty then" in agreed("promotions", "--layer", "2").stdout
    assert agreed("promotions", "--layer", "2").stdout.startswith("2 promotions\n")
    assert max(map(len, lines)) <= 80


def test_a_search_finds_topics_by_name_and_what_was_promoted_only_in_its_layer(agreed):
    (agreed.folder / "vector.json").write_text(json.dumps(near(0, 99, 0.1)))

    def hits(*asked):
        return agreed.json("search", "--vector", "vector.json", *asked)["hits"]

    made = {row["node"] for row in agreed.json("promotions")["promotions"]}
    names = {scene["id"]: scene["name"] for scene in agreed.json("scenes")["scenes"]}
    everything = hits("--limit", "1000")
    assert everything[0]["id"] == "d1"
    assert {hit["id"] for hit in everything} & made == set()
    assert {hit["id"]: hit["text"] for hit in everything if hit["type"] == "scene"} == names
    assert {hit["id"] for layer in (1, 2) for hit in hits("--layer", layer)} == made | set(names)
    assert (
        names[hits("--type", "scene")[0]["id"]] in agreed("search", "--vector", "vector.json", "--type", "scene").stdout
    )


def test_a_store_without_promotions_says_so(agreed):
    assert agreed.json("promotions", "--project", "other") == {"count": 0, "promotions": []}
    assert agreed("promotions", "--project", "other").stdout == "0 promotions\n"
