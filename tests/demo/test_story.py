"""The demo's whole path on a few subpackages: run twice, told in words, found again in the store."""

from __future__ import annotations

import io
from datetime import UTC, datetime
from pathlib import Path

import pytest

from hyphae_gpu.config import Settings
from hyphae_gpu.demo.story import PROJECT, Demo, run_demo
from hyphae_gpu.errors import UsageError
from hyphae_gpu.report.metrics import totals
from hyphae_gpu.store import open_store

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
    assert "which it works with" in told
    assert f"{totals(demo.record).arrived:,} of {totals(demo.record).sent:,} pieces of news" in told
    assert str(folder / "report.html") in told
    assert max(len(line) for line in told.splitlines() if str(folder) not in line) <= 100


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
