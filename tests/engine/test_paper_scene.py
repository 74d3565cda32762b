"""The paper's own scene (its section 5.1), from rows to inboxes: a decision reaches those whom it concerns, unasked.

The notes of a small shipping software are ingested as history. Then an architect decides on API rate limits, and on two
other things, and one epoch runs. Every setting is the default and every vector comes from `--embed lsa`; where an agent
stands follows from the cells that it made and read, nothing else (spec 1.3, 1.5, 6.1).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hyphae_gpu.config import Settings
from hyphae_gpu.engine import run_epochs
from hyphae_gpu.ingest import read_rows
from hyphae_gpu.store import open_store
from hyphae_gpu.store.embedded import EmbeddedServer

Row = dict[str, Any]
Inboxes = dict[str, list[Row]]
Run = Callable[[list[Row], list[Row]], Inboxes]

#: 2026-02-10T09:00:00Z, the epoch's time: the newest of the notes is six hours old, the oldest twenty days.
NOW = 1_770_714_000_000_000
HISTORY = [json.loads(line) for line in Path(__file__).with_name("paper_scene.jsonl").read_text("utf-8").splitlines()]
AGENTS = [row["id"] for row in HISTORY if row["kind"] == "agent"]

#: It asks for decisions (spec 1.6): by its words alone, of cosine 0.32, the rate limit would score 0.28 with it.
BREAKING = {
    "kind": "beacon",
    "id": "breaking change",
    "agent": "review agent",
    "text": "Breaking changes: a change to the public API or its status codes that breaks existing clients.",
    "interests": {"decision": 1.0},
}
DEAF = BREAKING | {"id": "deaf", "radius": 0.9}


def decision(name: str, text: str) -> Row:
    return {
        "kind": "cell",
        "id": name,
        "knowledge_type": "decision",
        "salience": 0.9,
        "agent": "architect",
        "text": text,
    }


RATE_LIMIT = decision(
    "rate limit",
    "We limit API requests to 600 per minute per key. From 1 March on the gateway answers requests over the limit "
    "with 429 and a Retry-After header; for clients that send more today this is a breaking change.",
)
FLAKY_TESTS = decision(
    "flaky tests",
    "Flaky UI tests are taken out of the browser suite the day they are found and run apart at night; a test comes "
    "back after fifty runs without a failure.",
)
CONSOLE = decision(
    "console",
    "The merchant console is rendered on the server for the first page only; the forms and tables after it are "
    "rendered in the browser.",
)
NEWS = [RATE_LIMIT, FLAKY_TESTS, CONSOLE]
#: The same decision as other people would write it down.
OTHER_WORDS = (
    "Limit API requests to 600 per minute per key; clients over it get 429 from 1 March on.",
    "API rate limit: 600 requests per minute and API key. Above that the gateway returns 429 Too Many Requests.",
    "From March on each key may send 600 requests per minute; the rest is refused with status code 429.",
)
#: And as it is written down by one who thinks of what it breaks.
NEARER_WORDS = (
    "Rate limiting is switched on at the gateway on 1 March: 600 calls per key and minute, 429 beyond that. It is a "
    "breaking change for existing API clients."
)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    """A function that lets one epoch run over a history and news, in a project of its own; returns agents' inboxes."""
    folder = tmp_path_factory.mktemp("paper-scene")
    server = EmbeddedServer(folder / "data")
    projects: list[str] = []

    def run_one(history: list[Row], news: list[Row]) -> Inboxes:
        projects.append(f"scene_{len(projects)}")
        with open_store(database_url=server.conninfo, data_dir=folder, project=projects[-1], hold="test") as store:
            for lines, told in ((history, False), (news, True)):
                file = folder / "rows.jsonl"
                file.write_text("".join(json.dumps(row) + "\n" for row in lines), "utf-8")
                rows = read_rows([file], known=store.known(), embed="lsa", kind=None, now=NOW)
                store.write_rows(rows, diffs=told)
            run_epochs(store, Settings(threads=1, device="cpu"), as_of=NOW)
            return {agent: store.inbox(agent) for agent in AGENTS}

    yield run_one
    server.close()


@pytest.fixture(scope="module")
def inboxes(run: Run) -> Inboxes:
    """What the scene brings to whom."""
    return run([*HISTORY, BREAKING, DEAF], NEWS)


def received(inboxes: Inboxes, agent: str) -> list[tuple[str, str]]:
    return sorted((entry["origin"], entry["via"]) for entry in inboxes[agent])


def working_elsewhere(agent: str, topic: str) -> list[Row]:
    """The history as it would be had nobody in particular done the agent's work, while it read the notes on a topic."""
    cells = [row for row in HISTORY if row["kind"] == "cell"]
    return [
        *(row for row in HISTORY if row.get("agent") != agent),
        *({name: row[name] for name in row if name != "agent"} for row in cells if row["agent"] == agent),
        *(
            {"kind": "access", "agent": agent, "cell": row["id"], "at": row["created_at"]}
            for row in cells
            if row["id"].startswith(topic)
        ),
    ]


def test_no_agent_declared_an_interest_or_a_place_and_no_note_has_a_vector() -> None:
    assert {tuple(sorted(row)) for row in HISTORY if row["kind"] == "agent"} == {("id", "kind")}
    assert {row["kind"] for row in HISTORY} == {"agent", "cell", "access"}
    assert not any("embedding" in row for row in (*HISTORY, *NEWS, BREAKING))


def test_the_decision_reaches_the_code_agent_by_gossip(inboxes: Inboxes) -> None:
    [entry] = inboxes["code agent"]
    assert (entry["origin"], entry["via"], entry["epoch"]) == ("rate limit", "gossip", 1)
    assert (entry["path"][0], entry["path"][-1]) == ("rate limit", "code agent")
    assert entry["score"] >= Settings().sigma_min
    assert entry["resonance"] > 0


def test_the_decision_reaches_the_review_agent_through_its_beacon_and_no_other_way(inboxes: Inboxes) -> None:
    [entry] = inboxes["review agent"]
    assert (entry["origin"], entry["via"]) == ("rate limit", "breaking change")
    assert (entry["path"][0], entry["path"][-1]) == ("rate limit", "breaking change")


def test_the_test_agent_gets_the_decision_on_its_own_topic_and_not_the_one_far_away(inboxes: Inboxes) -> None:
    assert received(inboxes, "test agent") == [("flaky tests", "gossip")]


def test_the_other_agents_get_what_concerns_them_and_nothing_else(inboxes: Inboxes) -> None:
    assert received(inboxes, "front agent") == [("console", "gossip")]
    assert [received(inboxes, agent) for agent in ("architect", "data agent", "release agent", "docs agent")] == [
        []
    ] * 4


@pytest.mark.parametrize("text", OTHER_WORDS)
def test_the_code_agent_gets_it_in_other_words_too_and_the_test_agent_does_not(run: Run, text: str) -> None:
    inboxes = run([*HISTORY, BREAKING], [RATE_LIMIT | {"text": text}, FLAKY_TESTS])
    assert received(inboxes, "code agent") == [("rate limit", "gossip")]
    assert received(inboxes, "test agent") == [("flaky tests", "gossip")]


def test_a_code_agent_that_works_elsewhere_gets_what_concerns_it_there(run: Run) -> None:
    inboxes = run([*working_elsewhere("code agent", "frontend"), BREAKING], NEWS)
    assert received(inboxes, "code agent") == [("console", "gossip")]
    assert received(inboxes, "review agent") == [("rate limit", "breaking change")]


def test_a_beacon_that_asks_for_no_type_hears_only_what_its_words_are_near_to(run: Run) -> None:
    asks_nothing = {name: value for name, value in BREAKING.items() if name != "interests"}
    missed = run([*HISTORY, asks_nothing], NEWS)
    heard = run([*HISTORY, asks_nothing], [RATE_LIMIT | {"text": NEARER_WORDS}, FLAKY_TESTS])
    assert received(missed, "review agent") == []
    assert received(heard, "review agent") == [("rate limit", "breaking change")]
    for inboxes in (missed, heard):
        assert received(inboxes, "code agent") == [("rate limit", "gossip")]
        assert received(inboxes, "test agent") == [("flaky tests", "gossip")]


def test_a_beacon_whose_radius_covers_no_cell_hears_nothing(run: Run) -> None:
    inboxes = run([*HISTORY, DEAF], NEWS)
    assert received(inboxes, "review agent") == []
    assert received(inboxes, "code agent") == [("rate limit", "gossip")]
