"""Bad rows gathered in any order are told in the order of the input, however many there are."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hyphae_gpu.errors import BadInputError
from hyphae_gpu.ingest.problems import Problems, place_key, place_keys, quote

ADDS = st.lists(
    st.tuples(st.integers(0, 2), st.lists(st.integers(1, 60), min_size=1, max_size=80), st.sampled_from("xyz")),
    min_size=1,
    max_size=12,
)


def raised(problems: Problems) -> BadInputError:
    try:
        problems.raise_if_any()
    except BadInputError as error:
        return error
    raise AssertionError("nothing was refused")


@given(ADDS)
def test_the_first_rows_of_the_input_are_shown_with_every_reason(adds: list[tuple[int, list[int], str]]) -> None:
    problems = Problems([Path("a"), Path("b"), Path("c")])
    expected: dict[tuple[int, int], list[str]] = {}
    for file, rows, reason in adds:
        if len(rows) == 1:
            problems.add_one(place_key(file, rows[0]), reason)
        else:
            problems.add(place_keys(file, rows), lambda _, reason=reason: reason)
        for row in rows:
            said = expected.setdefault((file, row), [])
            if reason not in said:
                said.append(reason)
    error = raised(problems)
    assert error.count == len(expected)
    shown = sorted(expected)[:20]
    assert error.problems == [(f"{'abc'[file]} row {row}", "; ".join(expected[file, row])) for file, row in shown]


def test_reasons_are_asked_by_the_position_in_the_rows_checked() -> None:
    problems = Problems([Path("a")])
    bad = np.array([False, True, False, True])
    problems.add_where(place_keys(0, [10, 20, 30, 40]), bad, lambda at: f"value {at}")
    assert raised(problems).problems == [("a row 20", "value 1"), ("a row 40", "value 3")]


def test_no_bad_row_raises_nothing() -> None:
    problems = Problems([Path("a")])
    problems.add_where(place_keys(0, [1]), np.array([False]), "never")
    problems.raise_if_any()
    assert not problems.any


def test_names_and_values_are_printable_whatever_they_hold() -> None:
    problems = Problems([Path(os.fsdecode(b"\xff.jsonl"))])
    problems.add_file(0, "gone")
    assert raised(problems).problems[0][0].encode()
    for value in ("\ud800\n", "x" * 1000, {"a": float("nan")}, [0] * 1000, {1, 2}, None):
        said = quote(value)
        assert said.encode()
        assert "\n" not in said
        assert len(said) < 80
