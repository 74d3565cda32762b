"""Whatever bytes come, ingest accepts them or refuses them by row; nothing else is ever raised."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from hyphae_gpu.errors import BadInputError
from hyphae_gpu.ingest.fields import FIELDS
from tests.ingest.samples import GOOD, read, write_parquet

SETTINGS = settings(
    max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)

WORDS = st.sampled_from(
    ["c1", "c2", "ada", "b1", "fact", "causal", "promoted", "2026-01-01T00:00:00Z", "", "\0", "\ud800"]
)
LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | WORDS
VALUES = st.recursive(
    LEAVES | st.lists(st.floats(width=32), max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3) | WORDS, inner, max_size=3),
    max_leaves=6,
)
NAMES = sorted({name for fields in FIELDS.values() for name in fields} | {"kind", "colour"})


@st.composite
def rows(draw: st.DrawFn) -> dict[str, Any]:
    row = dict(draw(st.sampled_from(GOOD)))
    row.update(draw(st.dictionaries(st.sampled_from(NAMES), VALUES, max_size=3)))
    return row


def refusal(path: Path, **options: Any) -> BadInputError | None:
    try:
        read(path, **options)
    except BadInputError as error:
        return error
    return None


def judged(path: Path, **options: Any) -> None:
    """Read a file; a refusal must be the one kind of error, with a place and a printable reason a row."""
    error = refusal(path, **options)
    if error is not None:
        assert error.count >= len(error.problems) > 0
        for place, reason in error.problems:
            assert place.startswith(str(path))
            assert reason
            reason.encode()
            assert "\n" not in reason


@SETTINGS
@given(st.binary(max_size=300))
@example(b"\xff\xfe{\x00}\x00")
@example(b'{"kind":"cell"' * 3)
@example(b"\n".join([b"{}", b"[", b"0", b'"\\ud800"']))
@example(b'{"\\ud800": 1, "kind": "cell"}')
@example(b"PAR1")
def test_any_bytes_are_judged(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(content)
    judged(path)


@SETTINGS
@given(st.lists(rows(), min_size=1, max_size=6), st.sampled_from([None, "lsa"]))
def test_any_fields_are_judged(tmp_path: Path, lines: list[dict[str, Any]], embed: str | None) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)))
    judged(path, embed=embed)


@SETTINGS
@given(st.integers(0, 60), st.binary(min_size=1, max_size=3), st.data())
def test_any_bytes_within_good_lines_are_judged(tmp_path: Path, at: int, junk: bytes, data: st.DataObject) -> None:
    good = "\n".join(map(json.dumps, GOOD)).encode()
    place = data.draw(st.integers(0, len(good)))
    path = tmp_path / "rows.jsonl"
    path.write_bytes(good[:place] + junk + good[place + at :])
    judged(path)


@pytest.mark.filterwarnings("ignore")
@SETTINGS
@given(st.data())
def test_any_damage_to_a_parquet_file_is_judged(tmp_path: Path, data: st.DataObject) -> None:
    source = tmp_path / "good.parquet"
    if not source.exists():
        write_parquet(source, [GOOD[1], GOOD[2]])
    content = bytearray(source.read_bytes())
    # The footer is left alone: a length claimed there may ask for any amount of memory.
    at = data.draw(st.integers(4, len(content) // 4))
    content[at] ^= data.draw(st.integers(1, 255))
    path = tmp_path / "rows.parquet"
    path.write_bytes(bytes(content))
    judged(path)
