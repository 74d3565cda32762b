"""Good input: what the tables of `rows.Rows` hold, from JSONL and from Parquet."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from hyphae_gpu import rows as contract
from hyphae_gpu.errors import UsageError
from hyphae_gpu.vocabulary import EdgeType, KnowledgeType
from tests.ingest.samples import (
    ACCESS,
    AGENT,
    BEACON,
    CELL,
    EDGE,
    GOOD,
    NOW,
    OTHER,
    Store,
    read,
    with_field,
    write_lines,
    write_parquet,
)

FULL = {
    **CELL,
    "salience": 0.1,
    "confidence": 0.25,
    "agent": "ada",
    "created_at": "2026-01-31T13:00:00.000001+01:00",
    "supersedes": "c2",
    "claim": {"subject": "sky", "value": "blue"},
    "stance": -0.5,
    "payload": {"é": [1, 2.5, None, {"b": "c"}]},
}
FULL_TIME = 1_769_860_800_000_001


def test_every_field_of_every_kind_arrives(tmp_path: Path) -> None:
    lines = [
        {**AGENT, "interests": {"risk": 0.1, "fact": 1}, "trust": 0.75, "sponsor": "ada"},
        FULL,
        OTHER,
        {**BEACON, "text": "all of it", "radius": 0.1, "interests": {"fact": 0.5}},
        ACCESS,
        {**EDGE, "bandwidth": 3},
    ]
    found = read(write_lines(tmp_path / "rows.jsonl", lines))
    assert (found.dimension, found.embedding_space, found.embedder_arrays) == (2, "given", {})
    for kind, table in (
        ("cell", found.cells),
        ("agent", found.agents),
        ("beacon", found.beacons),
        ("access", found.accesses),
        ("edge", found.edges),
    ):
        assert table.schema == contract.schemas(2)[kind]
    cell = found.cells.to_pylist()[0]
    assert json.loads(cell.pop("payload")) == FULL["payload"]
    assert cell == {
        "row": 1,
        "id": "c1",
        "text": "water boils",
        "embedding": [1.0, 2.0],
        "knowledge_type": KnowledgeType.FACT,
        "salience": float(np.float32(0.1)),
        "confidence": 0.25,
        "agent": "ada",
        "created_at": FULL_TIME,
        "supersedes": "c2",
        "claim_subject": "sky",
        "claim_value": "blue",
        "stance": -0.5,
    }
    interests = [0.0] * 9
    interests[KnowledgeType.RISK], interests[KnowledgeType.FACT] = float(np.float32(0.1)), 1.0
    agent = {"row": 0, "id": "ada", "embedding": [0.5, 0.5], "interests": interests, "trust": 0.75, "sponsor": "ada"}
    assert found.agents.to_pylist() == [agent]
    beacon = found.beacons.to_pylist()[0]
    assert (beacon["agent"], beacon["text"], beacon["radius"]) == ("ada", "all of it", 0.1)
    assert found.accesses.to_pylist() == [{"row": 4, "agent": "ada", "cell": "c1", "at": 1_600_000_000_000_000}]
    edge = {"row": 5, "src": "c1", "tgt": "c2", "type": EdgeType.CAUSAL, "weight": 0.5, "bandwidth": 3}
    assert found.edges.to_pylist() == [edge]


def test_what_is_left_out_or_null_takes_its_default(tmp_path: Path) -> None:
    sparse = {**with_field(CELL, text=...), "salience": None, "payload": None, "claim": None}
    cell = read(write_lines(tmp_path / "rows.jsonl", [sparse])).cells.to_pylist()[0]
    assert (cell["salience"], cell["confidence"], cell["created_at"]) == (0.5, 1.0, NOW)
    for name in ("text", "agent", "supersedes", "claim_subject", "claim_value", "stance", "payload"):
        assert cell[name] is None


def test_parquet_gives_the_same_tables_as_jsonl(tmp_path: Path) -> None:
    lines = [{**AGENT, "interests": {"fact": 0.5}}, FULL, OTHER, {**BEACON, "radius": 0.5}, ACCESS, EDGE]
    expected = read(write_lines(tmp_path / "rows.jsonl", lines))
    stored = {**FULL, "created_at": FULL_TIME, "payload": json.dumps(FULL["payload"])}
    arrow = [{**lines[0], "interests": [("fact", 0.5)]}, stored, OTHER, *lines[3:]]
    files = [
        write_parquet(tmp_path / f"{kind}.parquet", [row for row in arrow if row["kind"] == kind])
        for kind in ("agent", "cell", "beacon", "access", "edge")
    ]
    found = read(*files)
    for name in ("cells", "agents", "beacons", "accesses", "edges"):
        assert getattr(found, name).to_pylist() == getattr(expected, name).to_pylist()


@pytest.mark.parametrize(
    "kind",
    [
        pa.list_(pa.float32()),
        pa.list_(pa.float64()),
        pa.list_(pa.float16()),
        pa.list_(pa.int32()),
        pa.large_list(pa.float64()),
        pa.list_(pa.float32(), 2),
        pa.list_(pa.float64(), 2),
    ],
    ids=str,
)
def test_vectors_of_any_list_type_are_read(kind: pa.DataType, tmp_path: Path) -> None:
    agents = [{**AGENT, "embedding": [3, 4]}, {**AGENT, "id": "bob", "embedding": None}, {**AGENT, "id": "eve"}]
    agents[2]["embedding"] = [5, 6]
    extra = write_lines(tmp_path / "rows.jsonl", [CELL, {**ACCESS, "agent": "bob"}])
    found = read(write_parquet(tmp_path / "agents.parquet", agents, embedding=kind), extra).agents
    assert found["embedding"].to_pylist() == [[3.0, 4.0], None, [5.0, 6.0]]


def test_reals_are_rounded_once_to_float32(tmp_path: Path) -> None:
    # Above the middle between two float32 by the last bit of float64: what loses that bit first rounds down.
    number = 1.0 + 2.0**-24 + 2.0**-52
    expected = float(np.float32(number))
    jsonl = write_lines(tmp_path / "rows.jsonl", [{**CELL, "embedding": [number, 0.1]}])
    arrow = write_parquet(
        tmp_path / "rows.parquet", [{**OTHER, "embedding": [number, 0.1]}], embedding=pa.list_(pa.float64())
    )
    for row in read(jsonl, arrow).cells["embedding"].to_pylist():
        assert row == [expected, float(np.float32(0.1))]


@pytest.mark.parametrize(
    ("given", "kind", "expected"),
    [
        (1_700_000_000, pa.int64(), 1_700_000_000_000_000),
        (1.5, pa.float64(), 1_500_000),
        (-1.25, pa.float64(), -1_250_000),
        ("1970-01-01T00:00:01Z", pa.string(), 1_000_000),
        ("1969-12-31 23:59:59.5+00:00", pa.large_string(), -500_000),
        (7, pa.timestamp("s", "UTC"), 7_000_000),
        (7, pa.timestamp("ms", "Europe/Vienna"), 7_000),
        (7_999, pa.timestamp("ns", "UTC"), 7),
    ],
)
def test_times_arrive_in_microseconds(given: Any, kind: pa.DataType, expected: int, tmp_path: Path) -> None:
    arrow = write_parquet(tmp_path / "rows.parquet", [{**CELL, "created_at": given}], created_at=kind)
    assert read(arrow).cells["created_at"].to_pylist() == [expected]
    if not pa.types.is_timestamp(kind):
        lines = write_lines(tmp_path / "rows.jsonl", [{**CELL, "created_at": given}])
        assert read(lines).cells["created_at"].to_pylist() == [expected]


def test_rows_count_through_all_files_and_refer_forwards(tmp_path: Path) -> None:
    first = write_lines(tmp_path / "a.jsonl", [EDGE, {**CELL, "supersedes": "c2", "agent": "ada"}, "", BEACON])
    second = write_parquet(tmp_path / "b.parquet", [OTHER])
    third = write_lines(tmp_path / "c.jsonl", [with_field(AGENT, embedding=...)])
    found = read(first, second, third)
    assert found.edges["row"].to_pylist() == [0]
    assert found.cells["row"].to_pylist() == [1, 3]
    assert found.beacons["row"].to_pylist() == [2]
    assert found.agents.to_pylist()[0]["row"] == 4
    assert found.agents["embedding"].to_pylist() == [None]
    assert len(found) == 5


def test_rows_may_refer_to_the_store_and_update_it(tmp_path: Path) -> None:
    known = Store(types={"ada": 1, "c1": 0, "old": 0, "s": 2}, placed={"ada"})
    lines = [
        {**CELL, "agent": "ada", "supersedes": "old"},
        with_field(AGENT, embedding=...),
        {**ACCESS, "cell": "old"},
        {**EDGE, "src": "old", "tgt": "c1"},
        {**EDGE, "src": "s", "tgt": "c1", "type": "promoted"},
    ]
    assert len(read(write_lines(tmp_path / "rows.jsonl", lines), known=known)) == 5


def test_accesses_alone_keep_the_stores_dimension_and_space(tmp_path: Path) -> None:
    known = Store(dimension=7, types={"ada": 1, "c1": 0})
    found = read(write_lines(tmp_path / "rows.jsonl", [ACCESS]), known=known)
    assert (found.dimension, found.embedding_space) == (7, "given")
    assert found.cells.schema == contract.schemas(7)["cell"]


def test_kind_may_be_given_for_rows_that_name_none(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "rows.jsonl", [with_field(CELL, kind=...), AGENT])
    found = read(path, kind="cell")
    assert (found.cells.num_rows, found.agents.num_rows) == (1, 1)
    with pytest.raises(UsageError, match="--kind thing"):
        read(path, kind="thing")


def test_windows_lines_and_a_byte_order_mark_are_read(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + json.dumps(CELL).encode() + b"\r\n" + json.dumps(OTHER).encode())
    assert read(path).cells.num_rows == 2


def test_texts_beyond_the_basic_plane_survive(tmp_path: Path) -> None:
    text = 'é😀\u2028 "\\u0000" \x1f'
    lines = [{**CELL, "text": text, "payload": {text: text}}]
    cell = read(write_lines(tmp_path / "rows.jsonl", lines)).cells.to_pylist()[0]
    assert cell["text"] == text
    assert json.loads(cell["payload"]) == {text: text}


def test_boundary_values_are_kept(tmp_path: Path) -> None:
    tiny = 1.4e-45
    lines = [
        {**CELL, "salience": 0, "confidence": 1, "stance": -1, "embedding": [1e-6, 1e-6]},
        {**OTHER, "salience": -0.0, "embedding": [7e5, 7e5]},
        {**EDGE, "weight": tiny, "bandwidth": 2**31 - 1},
        {**EDGE, "src": "c2", "tgt": "c1", "weight": 1, "bandwidth": 1},
    ]
    found = read(write_lines(tmp_path / "rows.jsonl", lines))
    assert found.edges["weight"].to_pylist() == [float(np.float32(tiny)), 1.0]
    assert not np.signbit(found.cells["salience"].to_numpy()).any()


def test_the_largest_dimension_is_read(tmp_path: Path) -> None:
    lines = [{**CELL, "id": f"c{i}", "embedding": [1] * 15_999 + [i]} for i in range(30)]
    found = read(write_lines(tmp_path / "rows.jsonl", lines))
    assert found.dimension == 16_000
    assert [vector[-1] for vector in found.cells["embedding"].to_pylist()] == list(range(30))


def test_chunks_of_a_large_input_join_in_order(tmp_path: Path) -> None:
    count = 30_000
    kinds = ("fact", "risk", "task")
    lines = [{**CELL, "id": f"c{i}", "embedding": [1, i], "knowledge_type": kinds[i % 3]} for i in range(count)]
    path = write_lines(tmp_path / "rows.jsonl", lines)
    started = time.perf_counter()
    found = read(path)
    print(f"{count / (time.perf_counter() - started):,.0f} rows/s")
    assert found.cells["id"].to_pylist() == [f"c{i}" for i in range(count)]
    assert found.cells["row"].to_pylist() == list(range(count))
    vectors = np.vstack([chunk.flatten().to_numpy().reshape(-1, 2) for chunk in found.cells["embedding"].chunks])
    assert vectors[:, 1].tolist() == [float(i) for i in range(count)]
    assert len(read(write_lines(tmp_path / "good.jsonl", GOOD))) == len(GOOD)
