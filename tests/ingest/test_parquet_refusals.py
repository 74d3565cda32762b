"""Every reason for which a row or a file is refused, in Parquet: by file, row and reason (interfaces.md)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.ingest.samples import (
    ACCESS,
    AGENT,
    BEACON,
    CELL,
    EDGE,
    OTHER,
    read,
    refused,
    with_field,
    write_lines,
    write_parquet,
)

DOUBLES = {"embedding": pa.list_(pa.float64())}
MAP = pa.map_(pa.string(), pa.float64())
BROKEN = pa.Array.from_buffers(
    pa.string(), 2, [None, pa.py_buffer(np.array([0, 1, 3], np.int32)), pa.py_buffer(b"\xff\xc3\xa9")]
)

#: name -> (rows, number of the bad row, words of the reason, Arrow types); other rows than cells refer to CELL, OTHER,
#: AGENT and BEACON in a file beside.
ROW_CASES: dict[str, tuple[list[dict[str, Any]], int, str, dict[str, pa.DataType]]] = {
    "NaN in a vector": ([CELL, with_field(OTHER, embedding=[1, float("nan")])], 2, "embedding[1] is nan", {}),
    "infinity in a vector": ([CELL, with_field(OTHER, embedding=[float("-inf"), 1])], 2, "embedding[0] is -inf", {}),
    "number beyond float32": ([CELL, with_field(OTHER, embedding=[1, 1e39])], 2, "embedding[1] is 1e+39", DOUBLES),
    "null in a vector": ([CELL, with_field(OTHER, embedding=[1, None])], 2, "embedding[1] is null", {}),
    "norm too small": ([CELL, with_field(OTHER, embedding=[0, 9e-7])], 2, "norm 9e-07", DOUBLES),
    "norm too large": ([CELL, with_field(OTHER, embedding=[1e6, 1e3])], 2, "norm 1e+06", DOUBLES),
    "other dimension": ([CELL, with_field(OTHER, embedding=[1, 2, 3])], 2, "3 numbers, expected 2 as in", {}),
    "dimension of one": ([with_field(CELL, embedding=[1])], 1, "1 numbers, expected 2 to 16000", {}),
    "empty vector": ([CELL, with_field(OTHER, embedding=[])], 2, "0 numbers", {}),
    "embedding null": ([CELL, with_field(OTHER, embedding=None)], 2, "embedding missing", {}),
    "embedding column missing": ([with_field(CELL, embedding=...)], 1, "embedding missing", {}),
    "agent without vector or access": ([with_field(AGENT, id="bob", embedding=None)], 1, "has no access either", {}),
    "duplicate id": ([CELL, OTHER, CELL], 3, "id 'c1' is taken by", {}),
    "empty id": ([CELL, with_field(OTHER, id="")], 2, "id is empty", {}),
    "id null": ([CELL, with_field(OTHER, id=None)], 2, "id missing", {}),
    "id too long": ([with_field(CELL, id="x" * 2001)], 1, "id has 2001 bytes", {}),
    "NUL in a text": ([CELL, with_field(OTHER, text="a\0b")], 2, "NUL in text", {}),
    "NUL in an id": ([CELL, with_field(OTHER, id="a\0b")], 2, "NUL in text", {}),
    "unknown knowledge type": (
        [CELL, with_field(OTHER, knowledge_type="rumour")],
        2,
        "unknown knowledge_type 'rumour'",
        {},
    ),
    "knowledge type null": ([CELL, with_field(OTHER, knowledge_type=None)], 2, "knowledge_type missing", {}),
    "salience above 1": ([with_field(CELL, salience=1.5)], 1, "salience is 1.5, expected [0, 1]", {}),
    "salience NaN": ([CELL, with_field(OTHER, salience=float("nan"))], 2, "salience is nan", {}),
    "salience an integer above 1": ([with_field(CELL, salience=2)], 1, "salience is 2.0", {"salience": pa.int8()}),
    "confidence below 0": ([with_field(CELL, confidence=-1)], 1, "confidence is -1.0", {}),
    "stance above 1": ([with_field(CELL, stance=1.1)], 1, "stance is 1.1", {}),
    "trust above 1": ([with_field(AGENT, id="bob", trust=2)], 1, "trust is 2.0", {}),
    "interest above 1": (
        [with_field(AGENT, id="bob", interests=[("fact", 2)])],
        1,
        "interests of fact is 2, expected",
        {},
    ),
    "interest NaN": (
        [with_field(AGENT, id="bob", interests=[("fact", float("nan"))])],
        1,
        "interests of fact is nan",
        {},
    ),
    "interest twice": ([with_field(AGENT, id="bob", interests=[("fact", 1), ("fact", 0)])], 1, "type twice", {}),
    "interest in an unknown type": (
        [AGENT | {"id": "bob", "interests": [("gossip", 1)]}],
        1,
        "unknown knowledge type in interests 'gossip'",
        {},
    ),
    "weight 0": ([with_field(EDGE, weight=0)], 1, "weight is 0.0, expected (0, 1]", {}),
    "weight NaN": ([with_field(EDGE, weight=float("nan"))], 1, "weight is nan", {}),
    "weight that rounds to 0": ([with_field(EDGE, weight=1e-60)], 1, "weight is 1e-60", {}),
    "weight above 1": ([with_field(EDGE, weight=1.0000001)], 1, "weight is 1.0000001", {}),
    "bandwidth 0": ([with_field(EDGE, bandwidth=0)], 1, "bandwidth is 0", {}),
    "bandwidth too large": (
        [with_field(EDGE, bandwidth=2**63)],
        1,
        "bandwidth is 9223372036854775807",
        {"bandwidth": pa.uint64()},
    ),
    "duplicate edge": (
        [EDGE, with_field(EDGE, type="promoted"), with_field(EDGE, weight=1)],
        3,
        "the edge (src, tgt, type)",
        {},
    ),
    "edge to an unknown node": ([EDGE, with_field(EDGE, tgt="x")], 2, "tgt 'x' is unknown", {}),
    "self-loop": ([with_field(EDGE, tgt="c1")], 1, "same node", {}),
    "edge out of a beacon": ([with_field(EDGE, src="b1")], 1, "src 'b1' is a beacon", {}),
    "edge that the engine makes": ([with_field(EDGE, type="semantic")], 1, "made by the engine", {}),
    "agent of a cell unknown": ([CELL, with_field(OTHER, agent="bob")], 2, "agent 'bob' is unknown", {}),
    "cell superseding itself": ([CELL, with_field(OTHER, supersedes="c2")], 2, "supersedes itself", {}),
    "cell of an access an agent": ([with_field(ACCESS, cell="ada")], 1, "of type agent, expected cell", {}),
    "claim without subject": ([CELL, with_field(OTHER, claim={"value": "v"})], 2, "claim subject missing", {}),
    "payload no JSON": ([with_field(CELL, payload="{")], 1, "payload no JSON", {}),
    "payload an array": ([with_field(CELL, payload="[1]")], 1, "payload [1] is no JSON object", {}),
    "payload with NaN": ([with_field(CELL, payload='{"a": NaN}')], 1, "NaN is no number of JSON", {}),
    "payload with a key twice": ([with_field(CELL, payload='{"a": 1, "a": 2}')], 1, "stands twice", {}),
    "struct payload with NaN": (
        [with_field(CELL, payload={"a": float("nan")})],
        1,
        "out of range",
        {"payload": pa.struct({"a": pa.float64()})},
    ),
    "text time without zone": (
        [with_field(CELL, created_at="2026-01-31T12:00:00")],
        1,
        "has no zone",
        {"created_at": pa.string()},
    ),
    "seconds out of range": ([with_field(CELL, created_at=2**62)], 1, "out of range", {"created_at": pa.int64()}),
    "seconds NaN": ([with_field(CELL, created_at=float("nan"))], 1, "out of range", {"created_at": pa.float64()}),
    "timestamp out of range": (
        [with_field(CELL, created_at=2**61)],
        1,
        "out of range",
        {"created_at": pa.timestamp("ms", "UTC")},
    ),
    "time of an access null": ([ACCESS, with_field(ACCESS, at=None)], 2, "at missing", {}),
}


@pytest.mark.parametrize("name", ROW_CASES)
def test_a_bad_row_is_refused_by_file_number_and_reason(name: str, tmp_path: Path) -> None:
    rows, number, reason, types = ROW_CASES[name]
    path = write_parquet(tmp_path / "rows.parquet", rows, **types)
    nodes = [AGENT, BEACON, *([] if rows[0]["kind"] == "cell" else [CELL, OTHER])]
    error = refused(write_lines(tmp_path / "nodes.jsonl", nodes), path)
    assert [place for place, _ in error.problems] == [f"{path} row {number}"]
    assert reason in error.problems[0][1]


def test_bad_utf8_is_refused_by_row(tmp_path: Path) -> None:
    ids = pa.array(["a", "b"])
    vectors = pa.array([[1.0, 2.0]] * 2)
    table = pa.table({"id": ids, "text": BROKEN, "knowledge_type": ["fact"] * 2, "embedding": vectors})
    pq.write_table(table.replace_schema_metadata({"kind": "cell"}), tmp_path / "rows.parquet")
    error = refused(tmp_path / "rows.parquet")
    assert error.problems == [(f"{tmp_path / 'rows.parquet'} row 1", "bad UTF-8 in text")]


FILE_CASES: dict[str, tuple[list[dict[str, Any]], str, dict[str, pa.DataType]]] = {
    "needed column missing": ([with_field(CELL, knowledge_type=...)], "column knowledge_type missing", {}),
    "unknown column": ([with_field(CELL, colour="red")], "unknown field 'colour' of cell", {"colour": pa.string()}),
    "interests on cells": ([with_field(CELL, interests=[("fact", 1)])], "interests on cell", {}),
    "bools for numbers": ([with_field(CELL, salience=True)], "expected a number", {"salience": pa.bool_()}),
    "texts for numbers": ([with_field(CELL, salience="1")], "expected a number", {"salience": pa.string()}),
    "bools in vectors": (
        [with_field(CELL, embedding=[True, True])],
        "expected list<float>",
        {"embedding": pa.list_(pa.bool_())},
    ),
    "numbers for ids": ([with_field(CELL, id=1)], "column id has type 'int64', expected string", {"id": pa.int64()}),
    "bytes for texts": ([with_field(CELL, text=b"x")], "expected string", {"text": pa.binary()}),
    "reals for bandwidth": ([with_field(EDGE, bandwidth=1.0)], "expected an integer", {"bandwidth": pa.float64()}),
    "timestamps without zone": (
        [with_field(CELL, created_at=5)],
        "timestamp with zone",
        {"created_at": pa.timestamp("us")},
    ),
    "claims of another shape": (
        [with_field(CELL, claim={"subject": "s"})],
        "expected struct<subject",
        {"claim": pa.struct({"subject": pa.string()})},
    ),
}


@pytest.mark.parametrize("name", FILE_CASES)
def test_a_file_of_wrong_columns_is_refused(name: str, tmp_path: Path) -> None:
    rows, reason, types = FILE_CASES[name]
    path = write_parquet(tmp_path / "rows.parquet", rows, **types)
    error = refused(path)
    assert error.count == 1
    assert error.problems[0][0] == str(path)
    assert reason in error.problems[0][1]


@pytest.mark.parametrize(
    ("stated", "given", "reason"),
    [
        (None, None, "kind missing"),
        ("thing", None, "unknown kind 'thing'"),
        ("cell", "agent", "the file's kind is cell, but --kind is agent"),
    ],
)
def test_a_file_without_one_known_kind_is_refused(
    stated: str | None, given: str | None, reason: str, tmp_path: Path
) -> None:
    path = write_parquet(tmp_path / "rows.parquet", [CELL], kind=stated or "cell")
    if stated is None:
        pq.write_table(pq.read_table(path).replace_schema_metadata(None), path)
    assert reason in str(refused(path, kind=given))


def test_broken_files_are_refused_whole(tmp_path: Path) -> None:
    good = write_parquet(tmp_path / "good.parquet", [CELL, OTHER]).read_bytes()
    hurt = {
        "empty": b"",
        "text": b"no Parquet at all",
        "cut": good[: len(good) // 2],
        "magic": b"PAR1",
        "body": good[:4] + bytes(len(good) // 2) + good[4 + len(good) // 2 :],
    }
    for name, content in hurt.items():
        path = tmp_path / f"{name}.parquet"
        path.write_bytes(content)
        error = refused(path)
        assert error.problems[0][0] == str(path)
        assert "cannot be read as Parquet" in error.problems[0][1]


def test_a_kind_column_may_repeat_the_kind_and_nothing_else(tmp_path: Path) -> None:
    path = write_parquet(tmp_path / "rows.parquet", [CELL, OTHER])
    table = pq.read_table(path)
    pq.write_table(table.append_column("kind", pa.array(["cell", "cell"])), path)
    assert read(path).cells.num_rows == 2
    pq.write_table(table.append_column("kind", pa.array(["cell", "agent"])), path)
    assert refused(path).problems[0][0] == f"{path} row 2"
