"""The project in memory behind scripts/fact_stream: facts keep their places whatever nodes the epochs make."""

from __future__ import annotations

import importlib
from pathlib import Path

import numpy as np
import pytest

from hyphae_gpu.config import Settings
from hyphae_gpu.vocabulary import NodeType

SCRIPTS = Path(__file__).parents[1] / "scripts"
DAY = 86_400_000_000
TOPICS = ("rivers", "bridges", "towers", "gardens")


@pytest.fixture
def facts(monkeypatch):
    """The script's module, with epochs of twelve facts."""
    monkeypatch.syspath_prepend(str(SCRIPTS))
    module = importlib.import_module("experiments.facts")
    monkeypatch.setattr(module, "EPOCH_FACTS", 12)
    return module


@pytest.fixture
def stream(facts):
    """Thirty-six facts on four topics in turn; of each topic the fifth and ninth contradict the first."""
    rng = np.random.default_rng(3)
    count, topics = 36, len(TOPICS)
    vectors = np.eye(8)[np.arange(count) % topics] + 0.1 * rng.normal(size=(count, 8))
    told = np.arange(count) // topics
    own = np.arange(count)
    return facts.Stream(
        texts=tuple(f"{TOPICS[i % topics]} are {i}" for i in range(count)),
        vectors=vectors.astype(np.float32),
        subjects=np.where(np.isin(told, (0, 4, 8)), own % topics, own + topics).astype(np.int32),
        values=own.astype(np.int32),
        arrived=DAY * (own + 1).astype(np.int64),
        known=frozenset(),
    )


def test_contradictions_are_told_of_the_facts_though_scenes_take_numbers_between_them(facts, stream):
    told = []
    result = facts.streamed(stream, Settings(threads=1, device="cpu"), lambda epoch, of: told.append((epoch, of)))
    wanted = {(a + topic, b + topic) for topic in range(4) for a, b in ((0, 16), (0, 32), (16, 32))}
    assert stream.differing() == wanted
    assert (result["wanted"], result["raised"], result["right"]) == (12, 12, 12)
    assert (result["missed"], result["not wanted"]) == ([], [])
    assert result["in the epoch of the second fact"] == 12
    assert told == [(1, 3), (2, 3), (3, 3)]


def test_texts_are_those_of_the_nodes(facts, stream):
    project = facts.FactProject(facts.cells(stream.vectors, stream.arrived), stream.texts)
    for end in (24, 36):
        project.arrive(end)
        facts.run_epochs(project, Settings(threads=1, device="cpu"), as_of=int(stream.arrived[end - 1]))
    nodes = project.load().nodes
    scenes = np.flatnonzero(nodes.types == NodeType.SCENE)
    assert scenes.tolist()[0] == 24
    assert len(nodes) == 36 + len(scenes)
    cells = np.flatnonzero(nodes.types == NodeType.CELL)
    assert project.texts(cells) == list(stream.texts)
    assert project.texts(scenes) == [None] * len(scenes)
    assert np.array_equal(nodes.vectors[cells], stream.vectors)
    homes = project.load().node_scenes
    for number, name in zip(scenes.tolist(), project.load().scenes.names, strict=True):
        [topic] = {text.split()[0] for text in project.texts(np.flatnonzero(homes == number))}
        assert topic in name
