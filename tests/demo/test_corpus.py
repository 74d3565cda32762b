"""Documentation becomes typed cells, the same ones every time, in rows that ingest takes."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from hyphae_gpu.demo.batches import BEACONS, write_corpus
from hyphae_gpu.demo.corpus import TEXT_LIMIT, Cell, cells_of, resolved
from hyphae_gpu.demo.libraries import Documented, documented
from hyphae_gpu.ingest import read_rows
from hyphae_gpu.rows import NothingKnown
from hyphae_gpu.vocabulary import KnowledgeType, names

SOME = ("numpy.linalg", "numpy.random", "scipy.io", "sklearn.utils", "joblib")
AS_OF = datetime(2026, 3, 1, 12, tzinfo=UTC)


def cells(docstring: str, name: str = "lib.sub.solve") -> list[Cell]:
    return cells_of(Documented(name=name, subpackage="lib.sub", docstring=docstring))


def test_each_section_gets_the_type_that_the_table_says() -> None:
    found = cells(
        "Solves a system.\n\nRaises\n------\nValueError\n    If it is empty.\n\n"
        "Warnings\n--------\nIt is slow for big ones."
        "\n\nNotes\n-----\nLAPACK does the work.\n\nExamples\n--------\nA system of two equations is solved like this, "
        "in two lines of code:\n\n>>> 1\n\n.. versionchanged:: 2.0\n   Takes stacks of matrices."
    )
    assert {cell.section: cell.knowledge_type for cell in found} == {
        "summary": "fact",
        "raises": "constraint",
        "warning": "risk",
        "note": "context",
        "example": "lesson",
        "changed": "decision",
    }
    assert found[1].text == "lib.sub.solve raises: ValueError: If it is empty."


def test_a_short_note_that_recommends_is_a_preference() -> None:
    assert (
        cells("Solves.\n\nIt does so.\n\n.. note:: It is recommended to use lstsq.")[1].knowledge_type == "preference"
    )


@pytest.mark.parametrize(
    ("deprecation", "supersedes"),
    [
        (".. deprecated:: 1.0\n   Use lstsq instead.", "lib.sub.solve"),
        (".. warning::\n   :func:`lib.sub.solve` is deprecated in favor of lstsq.", "lib.sub.solve"),
        (".. warning::\n   This function is deprecated and will be removed.", "lib.sub.solve"),
        (".. deprecated:: 1.0\n   The `mode` argument is deprecated.", None),
        (".. warning::\n   mode=False is deprecated and will be removed.", None),
        ("Parameters\n----------\nmode : str\n    How.\n\n    .. deprecated:: 1.0\n        Use kind instead.", None),
    ],
)
def test_a_deprecation_is_a_decision_that_supersedes_what_it_is_about(deprecation: str, supersedes: str | None) -> None:
    summary, decision = cells(f"Solves a system.\n\n{deprecation}\n")
    assert (summary.supersedes, decision.knowledge_type, decision.supersedes) == (None, "decision", supersedes)


def test_a_title_is_whole_sentences_without_an_announcement_of_code() -> None:
    (summary, decision) = cells(
        "Solves a system.\n\n.. deprecated:: 1.0\n   Use lstsq. Like this:\n\n   .. code::\n\n      lstsq(a)"
    )
    assert (summary.title, decision.title) == ("Solves a system.", "Use lstsq.")


def test_a_parameters_section_is_called_by_both_names() -> None:
    _, decision = cells(
        "Solves a system.\n\nParameters\n----------\nmode : str\n\n    .. deprecated:: 1.0\n        Use kind instead."
    )
    assert (decision.thing, decision.of) == ("lib.sub.solve", "lib.sub.solve(mode)")
    assert decision.text == "lib.sub.solve mode deprecated 1.0: Use kind instead."


def test_the_ids_of_one_thing_differ() -> None:
    found = cells("Solves a system.\n\n.. note:: This is the first.\n\n.. note:: This is the second.\n")
    assert [cell.id for cell in found] == ["lib.sub.solve", "lib.sub.solve (note)", "lib.sub.solve (note)-2"]


def test_a_thing_without_words_has_no_cells() -> None:
    for silent in ("", "solve(a, b)", ".. note:: This note stands alone.", ">>> 1\n1"):
        assert cells(silent) == []


def test_printed_sets_are_put_in_order() -> None:
    one, other = (
        cells(f"Solves a system.\n\n.. deprecated:: 1.0\n   Use of argument(s) {{{words}}} by position is deprecated.")
        for words in ("'b', 'a'", "'a', 'b'")
    )
    assert one == other


def test_see_also_names_are_found_from_the_inside_outwards() -> None:
    (cell,) = cells(
        "Solves a system.\n\nSee Also\n--------\nlstsq, lib.top : Two.\n:func:`~other.thing` : One.\nnowhere\n"
    )
    known = {"lib.sub.solve", "lib.sub.lstsq", "lib.lstsq", "lib.top", "lib.moved"}
    assert resolved(cell.names, cell, known, {"other.thing": "lib.moved"}) == ["lib.sub.lstsq", "lib.top", "lib.moved"]


def test_a_library_that_is_not_there_is_passed_over() -> None:
    things, _ = documented(["no_such_library.at_all", "numpy.fft"])
    assert {thing.subpackage for thing in things} == {"numpy.fft"}


def test_a_thing_shown_twice_belongs_to_the_first_that_shows_it() -> None:
    things, aliases = documented(["numpy.linalg", "numpy.testing", "numpy"])
    named = [thing.name for thing in things]
    assert len(named) == len(set(named))
    assert all(known in named for known in aliases.values())


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("corpus")
    write_corpus(made, AS_OF, SOME)
    return made


def rows(folder: Path, name: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in (folder / f"{name}.jsonl").read_text("utf-8").splitlines()]


def test_another_process_writes_the_same_bytes(folder: Path, tmp_path: Path) -> None:
    code = (
        "import sys; from datetime import datetime; from pathlib import Path\n"
        "from hyphae_gpu.demo.batches import write_corpus\n"
        "write_corpus(Path(sys.argv[1]), datetime.fromisoformat(sys.argv[2]), sys.argv[3:])"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path), AS_OF.isoformat(), *SOME], check=True, timeout=120)
    names_here = sorted(path.name for path in folder.iterdir())
    assert names_here == ["history.jsonl", "news-monday.jsonl", "news-thursday.jsonl"]
    for name in names_here:
        assert (tmp_path / name).read_bytes() == (folder / name).read_bytes()


def test_ingest_takes_every_row(folder: Path) -> None:
    files = [folder / f"{name}.jsonl" for name in ("history", "news-monday", "news-thursday")]
    taken = read_rows(files, known=NothingKnown(), embed="lsa", kind=None, now=int(AS_OF.timestamp() * 1e6))
    assert len(taken) == sum(len(file.read_text("utf-8").splitlines()) for file in files)
    assert taken.agents.num_rows == len(SOME)
    assert taken.beacons.num_rows == len(BEACONS)
    assert taken.cells.num_rows > 300


def test_news_is_newer_than_history_and_of_the_types_that_travel(folder: Path) -> None:
    history = [row for row in rows(folder, "history") if row["kind"] == "cell"]
    monday, thursday = (
        [row for row in rows(folder, f"news-{day}") if row["kind"] == "cell"] for day in ("monday", "thursday")
    )
    assert {row["knowledge_type"] for row in monday + thursday} <= {"decision", "risk", "preference"}
    assert monday
    assert thursday
    assert max(str(row["created_at"]) for row in history) < min(str(row["created_at"]) for row in monday)
    assert max(str(row["created_at"]) for row in monday) < min(str(row["created_at"]) for row in thursday)
    assert max(str(row["created_at"]) for row in thursday) < AS_OF.isoformat()


def test_texts_are_short_and_types_are_the_vocabularys(folder: Path) -> None:
    for name in ("history", "news-monday", "news-thursday"):
        for row in rows(folder, name):
            if row["kind"] == "cell":
                assert row["knowledge_type"] in names(KnowledgeType)
                assert len(str(row["text"])) <= TEXT_LIMIT + len(str(row["id"])) + 40


def test_a_time_without_a_zone_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="expected a time with a zone"):
        write_corpus(tmp_path, datetime(2026, 3, 1), SOME)
