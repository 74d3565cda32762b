"""The command that lists scenes, on a store of its own."""

from __future__ import annotations

import json

import numpy as np
import pytest

from hyphae_gpu.store.embedded import EmbeddedServer
from tests.cli.conftest import Hyphae, _cell

TOPICS = {
    "rate limits": "The api rate limit is {} calls a minute",
    "storage": "Volume {} is full, grow the storage",
    "retries": "Retry {} again with a longer backoff",
}


def near(topic: int, i: int) -> list[float]:
    """Return a vector near the topic's axis."""
    rng = np.random.default_rng([topic, i])
    return (np.eye(6)[topic] + 0.2 * rng.normal(size=6)).tolist()


@pytest.fixture(scope="module")
def topics(tmp_path_factory, embedded_server):
    """Three topics of ten cells each, after one epoch."""
    command = Hyphae(tmp_path_factory.mktemp("topics"))
    server = EmbeddedServer(command.folder / "hyphae-data")
    rows = [{"kind": "agent", "id": name} for name in TOPICS]
    for topic, (name, form) in enumerate(TOPICS.items()):
        for i in range(10):
            cell = _cell(f"{name} {i}", form.format("abcdefghij"[i] * 3), "fact", name)
            rows.append(cell | {"embedding": near(topic, i)})
    try:
        command.write("rows.jsonl", *rows)
        assert command("ingest", "rows.jsonl").returncode == 0
        assert command("run", "--as-of", "2026-01-05T00:00:00Z").returncode == 0
        yield command
    finally:
        server.close()


def test_scenes_have_telling_names_and_show_cells_and_who_is_near(topics):
    found = topics.json("scenes")
    assert found["count"] == len(found["scenes"]) == topics.json("status")["scenes"] == 3
    assert sum(scene["size"] for scene in found["scenes"]) == 30
    for scene in found["scenes"]:
        [agent] = scene["agents"]
        assert {"storage": "storage", "rate limits": "limit", "retries": "backoff"}[agent] in scene["name"]
        assert [cell["id"].rsplit(" ", 1)[0] for cell in scene["cells"]] == [agent] * 3
        assert scene["epoch"] == 1
    lines = topics("scenes", "--limit", "1", "--cells", "1").stdout.splitlines()
    assert lines[0] == "3 scenes, the largest 1"
    assert found["scenes"][0]["name"] in lines[2]
    assert found["scenes"][0]["cells"][0]["title"] in lines[3]
    assert max(map(len, lines)) <= 80


def test_a_search_can_be_kept_to_a_scene(topics):
    scene = next(s for s in topics.json("scenes")["scenes"] if s["agents"] == ["storage"])
    (topics.folder / "vector.json").write_text(json.dumps(near(0, 0)))
    hits = topics.json("search", "--vector", "vector.json", "--scene", scene["id"])["hits"]
    assert len(hits) == 10
    assert all(hit["id"].startswith("storage") and hit["scene"] == scene["id"] for hit in hits)


def test_a_store_without_scenes_says_so(swarm):
    assert swarm.json("scenes") == {"count": 0, "scenes": []}
    assert swarm("scenes").stdout == "0 scenes\n"
