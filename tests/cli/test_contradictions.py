"""The command that lists contradictions, on a store of its own."""

from __future__ import annotations

import pytest

from hyphae_gpu.store.embedded import EmbeddedServer
from tests.cli.conftest import Hyphae, _cell


@pytest.fixture(scope="module")
def disagreeing(tmp_path_factory, embedded_server):
    """Two pairs that disagree, by claim and by stance, one settled after an epoch; and a cell that fits in."""
    command = Hyphae(tmp_path_factory.mktemp("disagreeing"))
    server = EmbeddedServer(command.folder / "hyphae-data")

    def cell(name, text, agent, place, **more):
        return _cell(name, text, "decision", agent) | {"embedding": [1.0, place, 0.0]} | more

    first = (
        {"kind": "agent", "id": "ana"},
        {"kind": "agent", "id": "bo"},
        cell("p1", "The limit is 100 calls", "ana", 0.0, claim={"subject": "rate limit", "value": "100"}),
        cell("p2", "The limit is 50 calls", "bo", 0.1, claim={"subject": "rate limit", "value": "50"}),
        cell("s1", "Retries are good", "ana", 2.0, stance=0.9),
        cell("s2", "Retries are bad", "bo", 2.1, stance=-0.5),
        cell("x", "Limits are fine", "bo", 0.05, claim={"subject": "rate limit", "value": "50"}),
    )
    second = (cell("p3", "It is 50", "ana", 0.0, claim={"subject": "rate limit", "value": "50"}, supersedes="p1"),)
    try:
        for name, rows in (("first", first), ("second", second)):
            assert command("ingest", command.write(f"{name}.jsonl", *rows)).returncode == 0
            assert command("run", "--as-of", "2026-01-05T00:00:00Z").returncode == 0
        yield command
    finally:
        server.close()


def test_contradictions_tell_who_says_what_and_what_became_of_it(disagreeing):
    found = {(row["a"], row["b"]): row for row in disagreeing.json("contradictions")["contradictions"]}
    assert {pair: row["status"] for pair, row in found.items()} == {
        ("p1", "p2"): "resolved",
        ("p1", "x"): "resolved",
        ("s1", "s2"): "open",
    }
    row = found["p1", "p2"]
    told = ("a_agent", "a_subject", "a_value", "b_value", "b_text", "reason", "epoch", "winner")
    assert [row[name] for name in told] == ["ana", "rate limit", "100", "50", "The limit is 50 calls", "claim", 1, None]
    assert row["resolution"]["reason"] == "superseded"
    assert 0.8 <= row["similarity"] <= 1
    assert (found["s1", "s2"]["reason"], found["s1", "s2"]["b_stance"]) == ("stance", -0.5)
    assert disagreeing.json("status")["contradictions"] == {"open": 1, "resolved": 2}


def test_only_open_ones_and_only_so_many_can_be_asked_for(disagreeing):
    [row] = disagreeing.json("contradictions", "--open")["contradictions"]
    assert (row["a"], row["b"]) == ("s1", "s2")
    assert len(disagreeing.json("contradictions", "--limit", "2")["contradictions"]) == 2
    assert disagreeing("contradictions", "--limit", "0").returncode == 2


def test_the_readable_form_shows_both_sides_in_a_narrow_terminal(disagreeing):
    lines = disagreeing("contradictions").stdout.splitlines()
    assert lines[0] == "3 contradictions"
    text = "\n".join(lines)
    assert "100: The limit is 100 calls  (p1, by ana)" in text
    assert "by claim on rate limit" in text
    assert "-0.50: Retries are bad  (s2, by bo)" in text
    assert "over: superseded" in text
    assert max(map(len, lines)) <= 80
    assert disagreeing("contradictions", "--open").stdout.splitlines()[0] == "1 open contradiction"
