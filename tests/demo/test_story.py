"""The demo's whole path on a few subpackages: run twice, told in words, found again in the store."""

from __future__ import annotations

import io
from datetime import UTC, datetime
from pathlib import Path

import pytest

from hyphae_gpu.config import Settings
from hyphae_gpu.demo.story import PROJECT, Demo, run_demo, story
from hyphae_gpu.errors import UsageError
from hyphae_gpu.report import Record
from hyphae_gpu.report.metrics import totals
from hyphae_gpu.report.record import Emerged
from hyphae_gpu.report.wording import why_promoted
from hyphae_gpu.store import open_store
from tests.report.record import pattern

SOME = ("numpy.linalg", "scipy.linalg", "torch.linalg", "torch", "sklearn.utils")
AS_OF = datetime(2026, 3, 1, 12, tzinfo=UTC)


class Stages:
    """Progress that remembers what it was told."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def stage(self, name: str) -> None:
        self.names.append(name)

    def advance(self, done: int, total: int | None = None) -> None:
        assert total is None or done <= total

    def note(self, text: str) -> None:
        assert text


@pytest.fixture(scope="module")
def twice(tmp_path_factory: pytest.TempPathFactory) -> tuple[Demo, Demo, str, list[str], Path]:
    folder = tmp_path_factory.mktemp("demo")
    settings = Settings(data_dir=folder / "hyphae-data", threads=2)
    first = run_demo(settings, directory=folder, as_of=AS_OF, subpackages=SOME)
    out, stages = io.StringIO(), Stages()
    second = run_demo(settings, directory=folder, as_of=AS_OF, subpackages=SOME, progress=stages, out=out)
    return first, second, out.getvalue(), stages.names, folder


def test_a_second_run_on_the_same_folder_decides_the_same(twice) -> None:
    first, second, *_ = twice
    assert [epoch.state_hash for epoch in first.record.epochs] == [epoch.state_hash for epoch in second.record.epochs]
    assert len(second.record.epochs) == 3
    assert (first.record.inboxes, first.record.caught) == (second.record.inboxes, second.record.caught)
    assert first.record.emerged == second.record.emerged


def test_news_of_one_library_reaches_the_maintainer_of_another(twice) -> None:
    makers = {
        entry.sent.maker
        for inbox in twice[1].record.inboxes
        if inbox.name == "scipy.linalg maintainer"
        for entry in inbox.shown
    }
    assert makers & {"torch.linalg maintainer", "torch maintainer", "numpy.linalg maintainer"}
    assert "scipy.linalg maintainer" not in makers


def test_the_deprecations_beacon_catches_deprecations(twice) -> None:
    (caught,) = [inbox for inbox in twice[1].record.caught if inbox.name == "deprecations beacon"]
    assert caught.entries
    assert "deprecated" in caught.shown[0].sent.title
    assert {entry.agent for entry in caught.shown} == {"sklearn.utils maintainer"}


def test_the_story_tells_what_reached_whom_and_why(twice) -> None:
    _, demo, told, _, folder = twice
    assert "of news reached the scipy.linalg maintainer:" in told
    assert "nobody named" not in told
    assert "which it works with" in told
    assert f"{totals(demo.record).arrived:,} of {totals(demo.record).sent:,} pieces of news" in told
    assert str(folder / "report.html") in told
    assert max(len(line) for line in told.splitlines() if str(folder) not in line) <= 100


def test_the_story_tells_what_was_promoted_and_why_in_three_examples_at_most(twice) -> None:
    _, demo, told, *_ = twice
    promoted = demo.record.emerged.promoted
    up = [sum(count for (_, layer), count in promoted.items() if layer == to) for to in (1, 2)]
    assert up[0] > 0
    assert f"By itself the swarm promoted {up[0]:,} pieces of news" in told
    assert f"and {up[1]:,} of them again" in " ".join(told.split())
    examples = [line for line in told.splitlines() if line.startswith("  to layer ")]
    assert 1 <= len(examples) <= 3
    told_of = {f"  to layer {one.layer}  {one.sent.subject}": one for one in demo.record.emerged.promotions}
    for line in examples:
        assert why_promoted(told_of[line]) in " ".join(told.split())


def test_the_story_tells_patterns_by_how_many_noted_them(tmp_path: Path) -> None:
    patterns = [pattern(f"thing {number}", agents=3 + number, members=9) for number in range(5)]
    record = Record(project=PROJECT, emerged=Emerged(patterns=patterns, pattern_count=1_234))
    lines = list(story(Demo(record=record, report=tmp_path / "report.html", seconds=1.0)))
    start = lines.index("It found 1,234 patterns, which several maintainers noted alike:")
    assert [line for line in lines[start:] if line.startswith("  pattern ")] == [
        "  pattern     thing 0",
        "  pattern     thing 1",
    ]
    assert lines[start + 3] == " " * 14 + "(9 cells of 3 maintainers)"


def test_the_news_is_counted_by_how_it_came_to_be(tmp_path: Path) -> None:
    record = Record(project=PROJECT, told={"created": 1_519, "pattern": 23, "contradiction": 2})
    told = " ".join(story(Demo(record=record, report=tmp_path / "report.html", seconds=1.0)))
    assert "pieces of news (1,519 noted, 2 on contradictions, 23 of patterns) reached" in told
    plain = Record(project=PROJECT, told={"created": 3})
    assert "pieces of news reached" in " ".join(story(Demo(record=plain, report=tmp_path / "r.html", seconds=1.0)))


def test_a_story_in_which_nothing_emerged_is_silent_about_it(tmp_path: Path) -> None:
    lines = list(story(Demo(record=Record(project=PROJECT), report=tmp_path / "report.html", seconds=1.0)))
    assert not [line for line in lines if "promoted" in line or "pattern" in line]
    assert "In all, 0 of 0 pieces of news reached 0 of 0 maintainers, in 0 epochs; 1 s with everything." in lines


def test_the_page_shows_the_same_inboxes(twice) -> None:
    page = twice[1].report.read_text("utf-8")
    for inbox in twice[1].record.inboxes:
        assert inbox.name in page


def test_progress_hears_of_every_step(twice) -> None:
    steps = " ".join(twice[3])
    for step in ("documentation", "ingesting history.jsonl", "epoch 1: gossip", "epoch 3: checkpoint", "report"):
        assert step in steps


def test_the_store_can_be_asked_afterwards(twice) -> None:
    with open_store(database_url=None, data_dir=twice[4] / "hyphae-data", project=PROJECT, hold=None) as store:
        assert store.status()["inbox"] == totals(twice[1].record).entries
        assert store.inbox("scipy.linalg maintainer")[0]["text"]


def test_a_place_that_cannot_be_written_is_said_before_any_work(tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path / "hyphae-data")
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="cannot be written"):
        run_demo(settings, directory=tmp_path / "file", as_of=AS_OF, subpackages=["joblib"])
    (tmp_path / "taken" / "report.html").mkdir(parents=True)
    with pytest.raises(UsageError, match="is a folder"):
        run_demo(settings, directory=tmp_path / "taken", as_of=AS_OF, subpackages=["joblib"])
    assert not (tmp_path / "hyphae-data").exists()
