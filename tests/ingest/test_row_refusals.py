"""Every reason for which a row is refused, in JSONL: by file, line and reason (interfaces.md)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.ingest.samples import (
    ACCESS,
    AGENT,
    BEACON,
    CELL,
    EDGE,
    GOOD,
    OTHER,
    Store,
    read,
    refused,
    with_field,
    write_lines,
)

#: name -> (lines, number of the bad line, words of the reason)
CASES = {
    "NaN in a vector": (['{"kind":"cell","id":"a","knowledge_type":"fact","embedding":[1,NaN]}'], 1, "NaN"),
    "infinity in a vector": (
        ['{"kind":"cell","id":"a","knowledge_type":"fact","embedding":[1,-Infinity]}'],
        1,
        "Infinity",
    ),
    "number beyond float64 in a vector": ([CELL, json.dumps(OTHER).replace("2.0", "1e999")], 2, "embedding[1] is inf"),
    "number beyond float32 in a vector": ([CELL, with_field(OTHER, embedding=[1, 1e39])], 2, "embedding[1] is 1e+39"),
    "integer beyond float64 in a vector": ([CELL, with_field(OTHER, embedding=[10**400, 1])], 2, "embedding[0] is inf"),
    "bool in a vector": ([CELL, with_field(OTHER, embedding=[True, 1.0])], 2, "embedding[0] is true"),
    "text in a vector": ([CELL, with_field(OTHER, embedding=[1.0, "2"])], 2, "embedding[1] is '2'"),
    "null in a vector": ([CELL, with_field(OTHER, embedding=[1.0, None])], 2, "embedding[1] is null"),
    "vector that is no list": ([CELL, with_field(OTHER, embedding="1,2")], 2, "expected a list of numbers"),
    "nested vector": ([CELL, with_field(OTHER, embedding=[[1.0, 2.0]])], 2, "embedding has 1 numbers"),
    "norm too small": ([CELL, with_field(OTHER, embedding=[0.0, 9e-7])], 2, "norm 9e-07"),
    "zero vector": ([CELL, with_field(OTHER, embedding=[0.0, 0.0])], 2, "norm 0"),
    "norm too large": ([CELL, with_field(OTHER, embedding=[1e6, 1e3])], 2, "norm 1e+06"),
    "other dimension within the input": (
        [CELL, with_field(OTHER, embedding=[1, 2, 3])],
        2,
        "3 numbers, expected 2 as in",
    ),
    "dimension of one": ([with_field(CELL, embedding=[1])], 1, "1 numbers, expected 2 to 16000"),
    "empty vector": ([with_field(CELL, embedding=[])], 1, "0 numbers"),
    "dimension too large": ([with_field(CELL, embedding=[1] * 16_001)], 1, "16001 numbers"),
    "embedding missing on a cell": ([with_field(CELL, embedding=...)], 1, "embedding missing"),
    "embedding null on a cell": ([with_field(CELL, embedding=None)], 1, "embedding missing"),
    "embedding missing on a beacon": ([AGENT, with_field(BEACON, embedding=..., text="x")], 2, "embedding missing"),
    "agent without vector or access": ([with_field(AGENT, embedding=...)], 1, "has no access either"),
    "duplicate id": ([CELL, OTHER, CELL], 3, "id 'c1' is taken by"),
    "duplicate id of another kind": ([AGENT, with_field(CELL, id="ada")], 2, "id 'ada' is taken by"),
    "empty id": ([with_field(CELL, id="")], 1, "id is empty"),
    "id missing": ([with_field(CELL, id=...)], 1, "id missing"),
    "id of a number": ([with_field(CELL, id=7)], 1, "id is 7, expected a text"),
    "id too long for an index": ([with_field(CELL, id="x" * 2001)], 1, "id has 2001 bytes"),
    "unknown kind": ([with_field(CELL, kind="thing")], 1, "unknown kind 'thing'"),
    "kind of a wrong type": ([with_field(CELL, kind=["cell"])], 1, "unknown kind"),
    "kind missing": ([with_field(CELL, kind=...)], 1, "kind missing"),
    "unknown field": ([with_field(CELL, colour="red")], 1, "unknown field 'colour'"),
    "interests on a cell": ([with_field(CELL, interests={"fact": 1})], 1, "interests on cell"),
    "unknown knowledge type": ([with_field(CELL, knowledge_type="rumour")], 1, "unknown knowledge_type 'rumour'"),
    "knowledge type missing": ([with_field(CELL, knowledge_type=...)], 1, "knowledge_type missing"),
    "knowledge type of a number": ([with_field(CELL, knowledge_type=3)], 1, "knowledge_type is 3"),
    "salience above 1": ([with_field(CELL, salience=1.5)], 1, "salience is 1.5, expected [0, 1]"),
    "salience below 0": ([with_field(CELL, salience=-0.1)], 1, "salience is -0.1"),
    "salience just above 1": ([with_field(CELL, salience=1.000000001)], 1, "salience is 1.000000001"),
    "salience a bool": ([with_field(CELL, salience=True)], 1, "salience is true, expected a number"),
    "salience a text": ([with_field(CELL, salience="0.5")], 1, "expected a number"),
    "salience a huge integer": ([with_field(CELL, salience=10**400)], 1, "salience is inf"),
    "salience beyond float64": ([json.dumps(with_field(CELL, salience=7)).replace("7", "1e999")], 1, "salience is inf"),
    "confidence above 1": ([with_field(CELL, confidence=2)], 1, "confidence is 2.0"),
    "stance below -1": ([with_field(CELL, stance=-1.1)], 1, "stance is -1.1, expected [-1, 1]"),
    "trust above 1": ([with_field(AGENT, trust=1.1)], 1, "trust is 1.1"),
    "radius above 1": ([AGENT, with_field(BEACON, radius=1.1)], 2, "radius is 1.1"),
    "interest above 1": ([with_field(AGENT, interests={"fact": 1.1})], 1, "interests of fact is 1.1"),
    "interest below 0": ([with_field(AGENT, interests={"fact": -1})], 1, "interests of fact is -1"),
    "interest a bool": ([with_field(AGENT, interests={"fact": True})], 1, "interests of fact is true"),
    "interest null": ([with_field(AGENT, interests={"fact": None})], 1, "interests of fact is null"),
    "interest in an unknown type": ([with_field(AGENT, interests={"gossip": 1})], 1, "unknown knowledge type 'gossip'"),
    "interests no object": ([with_field(AGENT, interests=["fact"])], 1, "expected an object of knowledge types"),
    "weight 0": ([*GOOD[:5], with_field(EDGE, weight=0)], 6, "weight is 0.0, expected (0, 1]"),
    "weight negative": ([*GOOD[:5], with_field(EDGE, weight=-0.5)], 6, "weight is -0.5"),
    "weight above 1": ([*GOOD[:5], with_field(EDGE, weight=1.5)], 6, "weight is 1.5"),
    "weight NaN": ([*GOOD[:5], json.dumps(EDGE).replace("0.5", "NaN")], 6, "NaN"),
    "weight that rounds to 0": ([*GOOD[:5], with_field(EDGE, weight=1e-60)], 6, "weight is 1e-60"),
    "weight missing": ([*GOOD[:5], with_field(EDGE, weight=...)], 6, "weight missing"),
    "bandwidth 0": ([*GOOD[:5], with_field(EDGE, bandwidth=0)], 6, "bandwidth is 0"),
    "bandwidth no whole number": (
        [*GOOD[:5], with_field(EDGE, bandwidth=1.5)],
        6,
        "bandwidth is 1.5, expected a whole",
    ),
    "bandwidth a bool": ([*GOOD[:5], with_field(EDGE, bandwidth=True)], 6, "bandwidth is true"),
    "bandwidth too large": ([*GOOD[:5], with_field(EDGE, bandwidth=2**31)], 6, "bandwidth is 2147483648"),
    "bandwidth huge": ([*GOOD[:5], with_field(EDGE, bandwidth=10**30)], 6, "bandwidth is"),
    "duplicate edge": ([*GOOD, with_field(EDGE, weight=1)], 7, "the edge (src, tgt, type) is already"),
    "edge from an unknown node": ([*GOOD[:5], with_field(EDGE, src="x")], 6, "src 'x' is unknown"),
    "edge to an unknown node": ([*GOOD[:5], with_field(EDGE, tgt="x")], 6, "tgt 'x' is unknown"),
    "self-loop": ([*GOOD[:5], with_field(EDGE, tgt="c1")], 6, "same node"),
    "edge out of a beacon": ([*GOOD[:5], with_field(EDGE, src="b1")], 6, "src 'b1' is a beacon"),
    "edge of an unknown type": ([*GOOD[:5], with_field(EDGE, type="near")], 6, "unknown type 'near'"),
    "edge of a type that the engine makes": ([*GOOD[:5], with_field(EDGE, type="semantic")], 6, "made by the engine"),
    "agent of a cell unknown": ([with_field(CELL, agent="bob")], 1, "agent 'bob' is unknown"),
    "agent of a cell is a cell": (
        [CELL, with_field(OTHER, agent="c1")],
        2,
        "agent 'c1' is of type cell, expected agent",
    ),
    "agent of a beacon unknown": ([with_field(BEACON, agent="bob")], 1, "agent 'bob' is unknown"),
    "agent of a beacon missing": ([with_field(BEACON, agent=...)], 1, "agent missing"),
    "agent of an access unknown": ([*GOOD[:4], with_field(ACCESS, agent="bob")], 5, "agent 'bob' is unknown"),
    "cell of an access unknown": ([*GOOD[:4], with_field(ACCESS, cell="c9")], 5, "cell 'c9' is unknown"),
    "cell of an access is a beacon": ([*GOOD[:4], with_field(ACCESS, cell="b1")], 5, "of type beacon, expected cell"),
    "superseded cell unknown": ([with_field(CELL, supersedes="c9")], 1, "supersedes 'c9' is unknown"),
    "superseded node an agent": ([AGENT, with_field(CELL, supersedes="ada")], 2, "of type agent, expected cell"),
    "cell superseding itself": ([with_field(CELL, supersedes="c1")], 1, "supersedes itself"),
    "sponsor unknown": ([with_field(AGENT, sponsor="bob")], 1, "sponsor 'bob' is unknown"),
    "sponsor a cell": ([CELL, with_field(AGENT, sponsor="c1")], 2, "sponsor 'c1' is of type cell"),
    "bad UTF-8": ([CELL, b'{"kind":"cell","id":"\xff"}'], 2, "bad UTF-8 at byte 22"),
    "NUL in a text": ([with_field(CELL, text="a\0b")], 1, "NUL in text"),
    "NUL in an id": ([with_field(CELL, id="a\0b")], 1, "NUL in text"),
    "NUL in a claim": ([with_field(CELL, claim={"subject": "\0", "value": "v"})], 1, "NUL in text"),
    "NUL in a payload's key": ([with_field(CELL, payload={"deep": [{"\0": 1}]})], 1, "NUL in text"),
    "raw NUL in a text": ([json.dumps(CELL).replace("water", "wa\0ter")], 1, "no JSON"),
    "half a surrogate pair": ([json.dumps(CELL).replace("water", "\\ud800")], 1, "half a surrogate pair"),
    "claim without value": ([with_field(CELL, claim={"subject": "s"})], 1, "claim value missing"),
    "claim with a number": ([with_field(CELL, claim={"subject": "s", "value": 3})], 1, "claim value is 3"),
    "claim with another field": (
        [with_field(CELL, claim={"subject": "s", "value": "v", "x": 1})],
        1,
        "unknown field 'x'",
    ),
    "claim a text": ([with_field(CELL, claim="sky is blue")], 1, "claim is"),
    "payload a list": ([with_field(CELL, payload=[1])], 1, "payload is [1], expected a JSON object"),
    "payload with NaN": (
        ['{"kind":"cell","id":"a","knowledge_type":"fact","embedding":[1,2],"payload":{"a":NaN}}'],
        1,
        "NaN",
    ),
    "payload with infinity": (
        [json.dumps(with_field(CELL, payload={"a": 7})).replace("7", "1e999")],
        1,
        "out of range",
    ),
    "time without zone": ([with_field(CELL, created_at="2026-01-31T12:00:00")], 1, "has no zone"),
    "date alone": ([with_field(CELL, created_at="2026-01-31")], 1, "has no zone"),
    "time that is none": ([with_field(CELL, created_at="yesterday")], 1, "no ISO 8601 time"),
    "time of the 30th of February": ([with_field(CELL, created_at="2026-02-30T00:00:00Z")], 1, "no ISO 8601 time"),
    "time a bool": ([with_field(CELL, created_at=True)], 1, "created_at true is no time"),
    "time in milliseconds": ([with_field(CELL, created_at=1_700_000_000_000)], 1, "out of range"),
    "time a huge number": ([with_field(CELL, created_at=1e300)], 1, "out of range"),
    "time a huge integer": ([with_field(CELL, created_at=10**400)], 1, "out of range"),
    "time of an access missing": ([*GOOD[:4], with_field(ACCESS, at=...)], 5, "at missing"),
    "key twice": (['{"kind":"cell","id":"a","id":"b"}'], 1, "key 'id' stands twice"),
    "key twice deep in a payload": (
        [json.dumps(CELL)[:-1] + ', "payload": {"a": [{"b": 1, "b": 2}]}}'],
        1,
        "key 'b' stands twice",
    ),
    "line an array": ([CELL, [1, 2]], 2, "[1, 2] is no JSON object"),
    "line a text": ([CELL, '"cell"'], 2, "no JSON object"),
    "line null": ([CELL, "null"], 2, "null is no JSON object"),
    "line cut short": ([CELL, '{"kind": "cell"'], 2, "no JSON"),
    "two objects in a line": ([CELL, "{} {}"], 2, "no JSON"),
    "nested too deeply": ([CELL, "[" * 100_000], 2, "nested too deeply"),
    "number of too many digits": ([CELL, '{"a": ' + "1" * 5000 + "}"], 2, "too many digits"),
}


@pytest.mark.parametrize("name", CASES)
def test_a_bad_line_is_refused_by_file_number_and_reason(name: str, tmp_path: Path) -> None:
    lines, number, reason = CASES[name]
    path = write_lines(tmp_path / "rows.jsonl", lines)
    error = refused(path)
    assert error.count == 1
    assert error.exit_code == 3
    place, said = error.problems[0]
    assert place == f"{path} row {number}"
    assert reason in said
    assert len(said) < 500


def test_the_rows_that_the_cases_break_are_good(tmp_path: Path) -> None:
    assert len(read(write_lines(tmp_path / "rows.jsonl", GOOD))) == len(GOOD)


STORE_CASES = {
    "other dimension than the store's": (
        [with_field(CELL, embedding=[1, 2, 3])],
        {},
        None,
        "expected 2 as in the store",
    ),
    "id that is an agent in the store": ([CELL], {"c1": 1}, None, "is of type agent in the store, cell here"),
    "id that is a scene in the store": ([CELL], {"c1": 2}, None, "is of type scene in the store, cell here"),
    "edge out of the store's beacon": (
        [CELL, with_field(EDGE, src="b", tgt="c1")],
        {"b": 3},
        None,
        "src 'b' is a beacon",
    ),
    "access to the store's agent": (
        [AGENT, with_field(ACCESS, cell="bob")],
        {"bob": 1},
        None,
        "of type agent, expected cell",
    ),
}


@pytest.mark.parametrize("name", STORE_CASES)
def test_a_row_that_does_not_fit_the_store_is_refused(name: str, tmp_path: Path) -> None:
    lines, types, embed, reason = STORE_CASES[name]
    error = refused(write_lines(tmp_path / "rows.jsonl", lines), known=Store(types=types), embed=embed)
    assert error.count == 1
    assert reason in error.problems[0][1]


def test_a_store_of_given_vectors_refuses_an_embedder(tmp_path: Path) -> None:
    error = refused(write_lines(tmp_path / "rows.jsonl", [with_field(CELL, embedding=...)]), known=Store(), embed="lsa")
    assert "another space" in str(error)


def test_an_embedded_store_refuses_given_vectors_and_other_embedders(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "rows.jsonl", [CELL])
    known = Store(embedding_space="sentence-transformers:m")
    assert "embedding given, but vectors are made by" in str(refused(path, known=known))
    assert "another space" in str(refused(path, known=known, embed="lsa"))
    assert "embedding given" in str(refused(path, embed="lsa"))


def test_a_cell_without_text_is_refused_where_an_embedder_needs_it(tmp_path: Path) -> None:
    rows = [with_field(CELL, embedding=..., text=text) for text in ("  ", None)]
    rows[1]["id"] = "c2"
    error = refused(write_lines(tmp_path / "rows.jsonl", rows), embed="lsa")
    assert error.count == 2
    assert all("text missing" in reason for _, reason in error.problems)


def test_every_bad_row_is_reported_in_order_with_all_its_reasons(tmp_path: Path) -> None:
    first = write_lines(tmp_path / "a.jsonl", [with_field(CELL, salience=2, stance=3), OTHER, "nonsense"])
    second = write_lines(
        tmp_path / "b.jsonl", [AGENT, "", with_field(EDGE, tgt="gone"), with_field(OTHER, id="c3", stance=9)]
    )
    error = refused(first, second)
    places = [place for place, _ in error.problems]
    assert places == [f"{first} row 1", f"{first} row 3", f"{second} row 3", f"{second} row 4"]
    assert "salience is 2.0" in error.problems[0][1]
    assert "stance is 3.0" in error.problems[0][1]
    assert error.count == 4


def test_many_bad_rows_show_the_first_twenty_and_the_count(tmp_path: Path) -> None:
    rows = [with_field(CELL, id=f"c{i}", salience=2 if i % 2 else 0.5) for i in range(20_000)]
    rows[1]["supersedes"] = "nobody"
    error = refused(write_lines(tmp_path / "rows.jsonl", rows))
    assert error.count == 10_000
    assert [place.rsplit(" ", 1)[1] for place, _ in error.problems] == [str(2 * i + 2) for i in range(20)]
    assert "salience" in error.problems[0][1]
    assert "nobody" in error.problems[0][1]
    assert "10000 bad rows" in str(error)
    assert "and 9980 more" in str(error)


def test_a_missing_file_is_refused_and_hides_no_other_fault(tmp_path: Path) -> None:
    here = write_lines(
        tmp_path / "rows.jsonl", [with_field(CELL, salience=2), with_field(OTHER, agent="in the missing file")]
    )
    error = refused(tmp_path / "gone.jsonl", here)
    assert error.problems[0] == (str(tmp_path / "gone.jsonl"), "cannot be read: No such file or directory")
    assert error.count == 2


def test_a_directory_is_refused(tmp_path: Path) -> None:
    assert "Is a directory" in str(refused(tmp_path))


@pytest.mark.parametrize("content", [b"", b"\n \n\r\n", b"\xef\xbb\xbf"])
def test_an_input_without_rows_is_refused(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(content)
    assert "no rows" in str(refused(path))
