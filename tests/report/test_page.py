"""The page shows what the record holds, as text, in one file that needs nothing else."""

from __future__ import annotations

import re
from functools import cache
from html.parser import HTMLParser
from pathlib import Path

import pytest

from hyphae_gpu.report import Record, render, write_report
from hyphae_gpu.report.record import Emerged, Epoch, Inbox, InboxSize
from tests.report.record import HOSTILE, contradiction, pattern, promotion, received, record, scene

_VOID = {"meta", "br", "img", "link", "input", "hr"}
_MENTIONS = {"src", "href", "xlink:href", "action", "poster", "data", "srcset"}


class Reader(HTMLParser):
    """Follows a page's tags: what is open, which elements and attributes there are, what a person reads."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes.extend(attrs)
        if tag not in _VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes.extend(attrs)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" not in self.open:
            self.text += data


@cache
def harmless_shape(text: str) -> list[str]:
    """Return the shape of the page of a record that holds a harmless text everywhere."""
    return shape(render(record(text)))


def shape(page: str) -> list[str]:
    """Return the page's elements in order, those of figures aside (their number follows the labels' widths)."""
    return Reader(re.sub(r"<svg.*?</svg>", "", page, flags=re.DOTALL)).tags


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_text_is_shown_and_changes_no_element(text: str) -> None:
    page = render(record(text))
    reader = Reader(page)
    assert reader.open == []
    assert "script" not in reader.tags
    assert "img" not in reader.tags
    assert not [name for name, _ in reader.attributes if name.startswith("on")]
    # An empty `about` has no paragraph; else the same elements in the same order as for a harmless text.
    assert shape(page) == harmless_shape("harmless" if text else "")


def test_text_arrives_as_it_was_written() -> None:
    hostile = "<b>&amp; {{ 7*7 }} 日本語"
    assert hostile in Reader(render(record(hostile))).text


def test_the_page_asks_for_nothing_outside_itself() -> None:
    page = render(record())
    wanted = [value for name, value in Reader(page).attributes if name in _MENTIONS]
    assert wanted
    assert all(str(value).startswith("#") for value in wanted)
    assert not re.findall(r"@import|url\((?!#)", page)
    assert "default-src 'none'" in page


def test_an_empty_store_has_a_page_that_says_what_to_do() -> None:
    reader = Reader(render(Record(project="default")))
    assert reader.open == []
    assert "No epoch has run" in reader.text
    assert "svg" not in reader.tags


def test_a_run_in_which_nothing_arrived_says_so() -> None:
    quiet = Record(project="p", epochs=record().epochs, sizes=[InboxSize(agent="ana")])
    assert "No news came near an agent" in Reader(render(quiet)).text


def test_the_sums_are_those_of_the_record() -> None:
    text = " ".join(Reader(render(record())).text.split())
    assert "1 of 2 pieces of news reached somebody. They put 4 entries into the inboxes of 1 of 2 agents" in text


def test_the_same_record_gives_the_same_bytes() -> None:
    assert render(record()) == render(record())


def test_a_long_list_of_agents_is_cut_and_counted() -> None:
    many = [InboxSize(agent=f"agent {number}", gossip=1) for number in range(1_000)]
    text = Reader(render(Record(project="p", sizes=many))).text
    assert "and 500 more agents" in text


def test_a_beacons_entries_say_whose_they_are() -> None:
    inbox = Inbox(name="the beacon", entries=1, shown=[received("ana", via="the beacon", way=("cell c",))])
    text = Reader(render(Record(project="p", caught=[inbox]))).text
    assert "past cell c, where the beacon listens" in text
    assert "1 catch" in " ".join(text.split())


def test_writing_replaces_the_older_page_and_leaves_no_draft(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_text("old")
    assert write_report(record("\ud800"), path) == path
    assert path.read_text("utf-8").startswith("<!doctype html>")
    assert [found.name for found in tmp_path.iterdir()] == ["report.html"]


def test_a_path_that_cannot_be_written_is_an_error_and_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="nowhere"):
        write_report(record(), tmp_path / "nowhere" / "report.html")
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError, match="folder"):
        write_report(record(), tmp_path / "folder")
    assert [found.name for found in tmp_path.iterdir()] == ["folder"]


def read(page: str) -> str:
    """Return what a person reads, in one line, a table's cells apart."""
    return " ".join(Reader(re.sub("(?=</t[dh]>)", " ", page)).text.split())


def said(emerged: Emerged, **other: object) -> str:
    """Return what a person reads of a page on what emerged in one epoch."""
    values: dict[str, object] = {"project": "p", "epochs": record().epochs, "emerged": emerged}
    return read(render(Record(**(values | other))))  # type: ignore[arg-type]


def test_a_run_in_which_nothing_emerged_says_so_of_contradictions_and_is_silent_on_the_rest() -> None:
    text = said(Emerged())
    assert "Nothing: gossip brought no two cells together" in text
    assert "topics emerged" not in text
    assert "promoted, and why" not in text
    assert "noted alike" not in text
    assert "What contradicts" not in Reader(render(Record(project="p"))).text


@pytest.mark.parametrize("count", [1, 2, 300])
def test_a_map_has_a_disc_and_a_row_for_each_topic_or_says_how_many_it_leaves_out(count: int) -> None:
    scenes = [scene(f"topic{i}, x", cells=500 - i, vector=(1.0, i / 100, (i % 7) / 10)) for i in range(count)]
    emerged = Emerged(scenes=scenes, scene_count=count + 5, scene_links=[(0, count - 1, 0.5)] if count > 1 else [])
    page = render(Record(project="p", emerged=emerged))
    assert page.count('class="scene"') == count
    assert page.count("<line ") == min(1, count - 1)
    text = read(page)
    assert "Not drawn: 5 smaller topics." in text
    assert f"and {count + 5 - min(count, 20)} smaller topics" in text
    assert "topic0, x 500 1 topic0, x" in text


def test_a_topic_without_words_or_place_is_told_by_its_id() -> None:
    text = said(Emerged(scenes=[scene("", id="scene-9", vector=None, agents=7, named=["ana", "bo"])], scene_count=1))
    assert "1 topic:" in text
    assert "scene-9 12 7 ana, bo and 5 more 1" in text


def test_promotions_are_told_with_their_reason_and_counted_by_epoch() -> None:
    ups = [promotion(layer=2, epoch=1, scenes=[("a", 1)], scene_count=4, entry=None), promotion(carrier="bo")]
    text = said(Emerged(promotions=ups, promoted={(1, 1): 1_042, (1, 2): 1}))
    assert "1 042 pieces of news went up to layer 1, 1 to layer 2." in text
    assert "it reached 4 topics: “a” and 3 more; salience 0.90" in text
    assert "nothing was in layer 2 yet" in text
    assert "7 cells and agents of “queue, worker” had it, and enough of 1 other topic" in text
    assert "up from bo to queue, worker, retry, job" in text
    assert "and 1 041 more" in text
    assert "went up in all, first or again 1 2 1 042 1 5" in text


def test_the_rule_of_promotion_is_the_one_in_force() -> None:
    emerged = Emerged(promotions=[promotion()], promoted={(1, 1): 1})
    assert "that reached 5 cells and agents of one topic" in said(emerged)
    assert "that 5 agents who work on one topic have" in said(emerged, settings={"confirm_by": "agents"})


def test_a_pattern_is_told_with_its_agents_and_cells() -> None:
    text = said(Emerged(patterns=[pattern(agents=5, named=["ana", "bo"], members=8)], pattern_count=3))
    assert "3 patterns so far." in text
    assert "noted by ana, bo and 3 more 8 5 0.99 1" in text
    assert "and 2 more" in text


def test_a_contradiction_is_told_with_both_sides_its_reason_and_who_heard_of_it() -> None:
    pairs = [contradiction(), contradiction(open=False, decision="recency: “443” stands", reason="stance", about="")]
    text = said(Emerged(contradictions=pairs, contradiction_counts={"open": 1, "resolved": 30}))
    assert "31 contradictions, 1 open." in text
    assert "Why: both claim something else of “port”; similarity 0.95 1 agent told: port" in text
    assert "Resolved: recency: “443” stands" in text
    assert "and 29 more" in text
    assert "hops until the two met" in text


def test_rounds_are_told_with_and_without_sweeps() -> None:
    text = said(Emerged())
    assert "40 transmissions got lost and 0 had to wait" in text
    assert "they reached or raised 17 receivers" in text
    assert "lost throttled repaired 1 2 6 3 9 40 0 17" in text
    quiet = Epoch(epoch=1, as_of="", seconds={}, counts={"rounds": 6, "sweeps": 0, "lost": 0}, state_hash="")
    assert "no sweep was needed" in said(Emerged(), epochs=[quiet])


def test_of_many_epochs_the_last_are_listed_and_the_sums_are_of_all() -> None:
    epochs = [
        Epoch(epoch=n, as_of=f"day {n}", seconds={"gossip": 1.0}, counts={"rounds": n, "lost": 2}, state_hash="")
        for n in range(1, 101)
    ]
    page = render(Record(project="p", epochs=epochs))
    text = Reader(page).text
    assert text.count("70 epochs before these") == 2
    assert "day 70" not in text
    assert "day 71" in text
    assert "200 transmissions got lost" in text
    assert "epoch 70" not in page
