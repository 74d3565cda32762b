"""The page shows what the record holds, as text, in one file that needs nothing else."""

from __future__ import annotations

import re
from functools import cache
from html.parser import HTMLParser
from pathlib import Path

import pytest

from hyphae_gpu.report import Record, render, write_report
from hyphae_gpu.report.record import Inbox, InboxSize
from tests.report.record import HOSTILE, received, record

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
