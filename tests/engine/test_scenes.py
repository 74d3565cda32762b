"""Scenes from epoch to epoch: numbers and names kept, the same when a project is taken up again (spec 6.4, 8.3)."""

from __future__ import annotations

from typing import Any

import numpy as np

from hyphae_gpu.config import Settings
from hyphae_gpu.engine import run_epochs
from tests.engine.project import START, Project

TOPICS = ("alpha", "beta", "gamma")
#: Scenes are nodes: the first is numbered after the agent and the cells.
FIRST = 31


class Topics(Project):
    """Ten cells a topic, each with its topic as text; notes whose texts were read."""

    def __init__(self) -> None:
        super().__init__(dimension=6)
        self.asked: list[int] = []
        self.words: dict[int, str] = {}
        self.agent("ana", self.near(0))
        for topic in range(len(TOPICS)):
            for i in range(10):
                self.add(topic, i)

    @staticmethod
    def near(topic: int, i: int = 0) -> list[float]:
        rng = np.random.default_rng([topic, i])
        return (np.eye(6)[topic] + 0.2 * rng.normal(size=6)).tolist()

    def add(self, topic: int, i: int) -> None:
        number = self.cell(f"{TOPICS[topic]} {i}", self.near(topic, i))
        self.words[number] = TOPICS[topic]

    def texts(self, numbers: np.ndarray) -> list[str | None]:
        self.asked += numbers.tolist()
        return [self.words[number] for number in numbers.tolist()]

    def run(self, epochs: int = 1, **given: Any) -> None:
        run_epochs(self, Settings(threads=2, **given), epochs=epochs, as_of=START)

    def named(self) -> dict[int, str]:
        return {number: row["names"] for number, row in sorted(self.scenes.items()) if not row["ended"]}


def test_topics_become_scenes_named_by_their_words_and_agents_belong_to_the_nearest() -> None:
    project = Topics()
    project.run()
    assert project.named() == dict(enumerate(TOPICS, start=FIRST))
    assert [project.home[project.numbers[f"{topic} 4"]] for topic in TOPICS] == [FIRST, FIRST + 1, FIRST + 2]
    assert project.home[project.numbers["ana"]] == FIRST
    assert project.epochs[0].counts["scenes"] == 3


def test_an_epoch_without_change_writes_nothing_of_scenes_and_reads_no_text() -> None:
    project = Topics()
    project.run()
    project.asked.clear()
    project.run()
    changes = project.epochs[1].scenes
    assert len(changes.nodes) == len(changes.written) == len(changes.ended) == 0
    assert project.asked == []


def test_a_scene_that_grows_keeps_its_number_and_only_it_is_written() -> None:
    project = Topics()
    project.run()
    project.add(1, 10)
    project.run()
    changes = project.epochs[1].scenes
    assert changes.nodes.tolist() == [project.numbers["beta 10"]]
    assert changes.scenes.tolist() == changes.written.numbers.tolist() == [FIRST + 1]
    assert (changes.written.sizes.tolist(), changes.written.epochs.tolist()) == ([11], [1])


def test_a_topic_that_fades_ends_its_scene_and_a_new_one_gets_a_new_number() -> None:
    project = Topics()
    project.run()
    for i in range(10):
        project.cell(f"alpha {i}", project.near(4, i))
        project.words[project.numbers[f"alpha {i}"]] = "delta"
    for i in range(10):
        project.cell(f"gamma {i}", project.near(2, i), salience=0.01)
    project.run()
    assert project.named() == {FIRST: "delta", FIRST + 1: "beta"}
    assert project.epochs[1].scenes.ended.tolist() == [FIRST + 2]
    for i in range(10):
        project.cell(f"gamma {i}", project.near(2, i), salience=0.9)
    project.run()
    assert project.named() == {FIRST: "delta", FIRST + 1: "beta", FIRST + 3: "gamma"}


def test_taken_up_again_a_project_has_the_scenes_of_one_that_ran_on() -> None:
    whole, pieces = Topics(), Topics()
    whole.run(3)
    for _ in range(3):
        pieces.run()
    assert [done.state_hash for done in whole.epochs] == [done.state_hash for done in pieces.epochs]
    assert whole.scenes == pieces.scenes


def test_an_ended_scene_hashes_the_same_when_the_project_is_taken_up_again() -> None:
    """spec 8.3: its node has no place any more, neither in memory nor in the store"""
    whole, pieces = Topics(), Topics()
    for project in (whole, pieces):
        project.run()
        for i in range(10):
            project.cell(f"gamma {i}", project.near(2, i), salience=0.01)
    whole.run(2)
    for _ in range(2):
        pieces.run()
    assert whole.epochs[1].scenes.ended.tolist() == [FIRST + 2]
    assert [done.state_hash for done in whole.epochs] == [done.state_hash for done in pieces.epochs]


def test_the_state_hash_covers_scenes() -> None:
    fine, coarse = Topics(), Topics()
    fine.run(resolution="40/1")
    coarse.run(resolution="1/10")
    assert len(fine.named()) != len(coarse.named())
    assert fine.epochs[0].state_hash != coarse.epochs[0].state_hash
