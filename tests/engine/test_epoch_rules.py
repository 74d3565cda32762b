"""What each rule of an epoch means, one small story a rule (spec 1.2, 1.3, 3.9, 3.11, 3.14, 6.5, 6.6, 8.1)."""

from __future__ import annotations

import pytest

from hyphae_gpu.config import Settings
from hyphae_gpu.engine import run_epochs
from hyphae_gpu.state import Checkpoint
from hyphae_gpu.vocabulary import DiffType
from tests.engine.project import DAY, START, Project, edge_rows

#: Two places so near to each other that every gate between them is open, and one that is far from both.
HERE, BESIDE, ELSEWHERE = [1.0, 0.0, 0.0], [1.0, 0.1, 0.0], [0.0, 0.0, 1.0]


def run(project: Project, epochs: int = 1, *, as_of: int = START, **rules) -> Checkpoint:
    """Run epochs at one time; return the last one's checkpoint."""
    run_epochs(project, Settings(threads=1, device="cpu", **rules), epochs=epochs, as_of=as_of)
    return project.epochs[-1]


def node(project: Project, name: str) -> dict:
    return project.nodes[project.numbers[name]]


@pytest.fixture
def project() -> Project:
    """`ana`, who writes, and `bo`, who is near enough to be reached."""
    made = Project()
    made.agent("ana", HERE)
    made.agent("bo", BESIDE)
    return made


@pytest.mark.parametrize("ttl", [1, 2, 3])
def test_a_diff_lives_for_its_epochs_the_first_included(project, ttl):
    project.cell("news", HERE, by="ana")
    left = []
    for _ in range(5):
        run(project, ttl_epochs=ttl)
        left.append([ttl for _, _, ttl in project.alive()])
    assert left == [[ttl - epoch] if epoch < ttl else [] for epoch in range(1, 6)]
    assert [done.counts["live_diffs"] for done in project.epochs] == [1] * ttl + [0] * (5 - ttl)
    assert [done.counts["deliveries"] > 0 for done in project.epochs] == [True] * ttl + [False] * (5 - ttl)


def test_what_was_delivered_is_not_delivered_again(project):
    project.cell("news", HERE, by="ana")
    run(project, 3)
    assert [len(done.inbox) for done in project.epochs] == [1, 0, 0]
    assert project.epochs[2].counts["deliveries"] == project.epochs[0].counts["deliveries"]
    assert project.received("bo") == [("news", "gossip")]


def test_an_agent_that_joins_later_gets_what_is_still_alive_and_no_more(project):
    project.cell("old", HERE, by="ana")
    run(project, 2)
    project.cell("new", BESIDE, by="ana")
    run(project, 1)
    project.agent("cy", HERE)
    run(project, 1)
    assert project.received("cy") == [("new", "gossip")]
    assert project.received("bo") == [("old", "gossip"), ("new", "gossip")]


def test_no_diff_comes_back_to_its_maker_not_even_through_its_own_beacon(project):
    project.beacon("watch", "ana", HERE)
    project.beacon("lookout", "bo", HERE)
    project.cell("news", HERE, by="ana")
    project.cell("nobody's", BESIDE)
    run(project, 3)
    assert project.received("ana") == [("nobody's", "gossip"), ("nobody's", "watch")]
    assert set(project.received("bo")) == {(c, v) for c in ("news", "nobody's") for v in ("gossip", "lookout")}


def test_new_cells_make_created_diffs_changed_ones_updated_silent_ones_none(project):
    project.cell("told", HERE)
    project.cell("history", HERE, silent=True)
    run(project)
    assert project.alive() == [("told", DiffType.CREATED, 2)]
    project.cell("told", BESIDE)
    project.cell("history", BESIDE)
    run(project)
    assert project.alive() == [("told", DiffType.UPDATED, 2), ("history", DiffType.UPDATED, 2)]
    assert [(diff["origins"], diff["sequence"]) for diff in project.diffs.values()] == [(2, 0), (2, 1), (3, 0)]


def test_a_cell_changed_before_an_epoch_saw_it_is_told_of_once_as_it_is_now(project):
    project.cell("news", HERE)
    project.cell("news", BESIDE, kind="risk")
    run(project)
    [diff] = project.diffs.values()
    assert (diff["types"], diff["sequence"]) == (DiffType.CREATED, 0)
    assert diff["vectors"] == [pytest.approx(x) for x in BESIDE]


def test_an_updated_cell_keeps_created_at_is_accessed_now_and_its_older_diffs_end(project):
    project.cell("news", HERE, by="ana", at=START - 9 * DAY)
    run(project, as_of=START)
    project.cell("news", BESIDE, by="ana", at=START - 1 * DAY)
    done = run(project, as_of=START + 2 * DAY)
    assert node(project, "news")["created_at"] == START - 9 * DAY
    assert node(project, "news")["last_access"] == START + 2 * DAY
    assert done.ended_diffs.tolist() == [0]
    assert project.alive() == [("news", DiffType.UPDATED, 2)]
    assert project.received("bo") == [("news", "gossip"), ("news", "gossip")]


def test_older_diffs_of_a_silently_changed_cell_end_too_and_no_news_of_it_spreads(project):
    project.cell("news", HERE)
    run(project, as_of=START)
    project.cell("news", BESIDE, silent=True)
    touched = node(project, "news")["last_access"]
    project.agent("cy", HERE)
    run(project, as_of=START + DAY)
    assert project.alive() == []
    assert project.received("cy") == []
    assert node(project, "news")["last_access"] == touched


def test_a_superseded_cell_leaves_the_graph_and_its_diffs_end(project):
    project.cell("old", HERE, by="ana")
    project.cell("other", BESIDE)
    run(project)
    assert sorted(project.received("bo")) == [("old", "gossip"), ("other", "gossip")]
    project.cell("new", HERE, by="ana", supersedes="old")
    project.agent("cy", HERE)
    done = run(project)
    old = project.numbers["old"]
    assert done.ended_diffs.tolist() == [0]
    assert not any(old in key[:2] for key in project.topology)
    assert sorted(project.received("cy")) == [("new", "gossip"), ("new", "gossip"), ("other", "gossip")]
    assert ("old", "gossip") in project.received("bo"), "what was delivered stays"
    assert project.alive()[-1] == ("new", DiffType.SUPERSEDED, 2), "the region is told (spec 6.6)"
    assert run(project).new_diffs.numbers.tolist() == [], "once"


def test_a_cell_superseded_before_its_first_epoch_says_nothing(project):
    project.cell("old", HERE)
    project.cell("new", HERE, supersedes="old")
    run(project)
    assert project.alive() == [("new", DiffType.CREATED, 2), ("new", DiffType.SUPERSEDED, 2)]


def test_an_access_restores_a_cell_that_had_decayed_into_silence(project):
    project.cell("news", HERE, at=START)
    late = START + 400 * DAY
    done = run(project, as_of=late)
    assert (done.counts["topology"]["live_cells"], done.counts["silent_diffs"], len(done.inbox)) == (0, 1, 0)
    project.access("ana", "news", late + DAY)
    assert run(project, as_of=late).counts["topology"]["live_cells"] == 0
    done = run(project, as_of=late + 2 * DAY)
    assert (done.counts["topology"]["live_cells"], done.counts["silent_diffs"]) == (1, 0)
    assert project.received("bo") == [("news", "gossip")]
    assert project.alive() == [], "an epoch of silence is an epoch of its life"


def test_delivery_into_an_inbox_is_an_access_of_the_cell_and_being_cut_is_none(project):
    project.cell("near", BESIDE, by="ana", at=START - 5 * DAY)
    project.cell("far", [1.0, -0.8, 0.0], by="ana", at=START - 5 * DAY)
    done = run(project, as_of=START, inbox_limit=1)
    assert (project.received("bo"), done.counts["cut"]) == ([("near", "gossip")], 1)
    assert node(project, "near")["last_access"] == START
    assert node(project, "far")["last_access"] == START - 5 * DAY
    assert not any(agent == project.numbers["bo"] for agent, _, _ in project.accesses), "it moves no agent"
    run(project, as_of=START + DAY, inbox_limit=1)
    assert project.received("bo", epoch=2) == [("far", "gossip")], "what was cut is offered again"
    assert node(project, "far")["last_access"] == START + DAY


def test_a_cell_of_the_future_is_as_salient_as_given_and_its_makers_access_waits(project):
    project.agent("cy")
    project.cell("news", HERE, by="cy", at=START)
    done = run(project, as_of=START - 3 * DAY)
    assert (done.counts["topology"]["live_cells"], done.counts["access_pairs"]) == (1, 0)
    assert not node(project, "cy")["placed"]
    assert project.received("bo") == [("news", "gossip")]
    assert node(project, "news")["last_access"] == START
    assert run(project, as_of=START).counts["access_pairs"] == 1
    assert node(project, "cy")["placed"]


def test_accesses_later_than_the_epoch_wait_for_theirs(project):
    project.cell("here", HERE, silent=True)
    project.cell("elsewhere", ELSEWHERE, silent=True)
    project.access("bo", "here", START)
    project.access("bo", "elsewhere", START + DAY)
    run(project, as_of=START)
    assert node(project, "bo")["vectors"] == HERE
    assert node(project, "elsewhere")["last_access"] == START
    run(project, as_of=START + DAY)
    assert node(project, "bo")["vectors"][2] > 0.5
    assert node(project, "elsewhere")["last_access"] == START + DAY


def test_beacon_entries_stand_apart_from_gossip_with_places_and_a_limit_of_their_own(project):
    project.beacon("watch", "bo", HERE)
    for i in range(4):
        project.cell(f"cell {i}", [1.0, i / 10, 0.0], by="ana")
    done = run(project, inbox_limit=1, beacon_limit=3)
    entries = [(e["vias"], e["places"]) for e in project.inbox.values()]
    assert entries == [(-1, 0), *((project.numbers["watch"], place) for place in range(3))]
    assert done.counts["cut"] == 3 + 1
    assert project.received("bo")[1:] == [(f"cell {i}", "watch") for i in range(3)]


def test_equal_scores_at_a_beacon_stand_in_order_of_their_diffs(project):
    project.beacon("watch", "bo", HERE)
    for name in ("z", "a", "m"):
        project.cell(name, HERE, by="ana")
    run(project, beacon_limit=2)
    assert [origin for origin, via in project.received("bo") if via == "watch"] == ["z", "a"]


def test_a_beacon_hears_no_cell_below_its_radius(project):
    project.beacon("narrow", "bo", HERE, radius=0.999)
    project.beacon("wide", "bo", HERE)
    project.cell("beside", BESIDE, by="ana")
    project.cell("aside", [1.0, 1.0, 0.0], by="ana", silent=True)
    done = run(project)
    heard = {(s, t) for s, t, _ in edge_rows(done.written_edges) if t in (2, 3)}
    assert heard == {(4, 3), (5, 3)}


def test_epochs_without_a_clock_read_it_once_each_and_never_backwards(project):
    project.cell("news", HERE)
    reports = run_epochs(project, Settings(threads=1, device="cpu"), epochs=2)
    assert START < reports[0].as_of <= reports[1].as_of
    assert [done.as_of for done in project.epochs] == [report.as_of for report in reports]


@pytest.mark.parametrize("loss", [0.0, 0.3])
def test_many_epochs_in_one_run_are_as_many_runs_of_one_epoch(loss):
    once, again = crowd(), crowd()
    run(once, 4, loss=loss)
    for _ in range(4):
        run(again, 1, loss=loss)
    assert [done.state_hash for done in once.epochs] == [done.state_hash for done in again.epochs]
    assert [done.counts for done in once.epochs] == [done.counts for done in again.epochs]
    for table in ("nodes", "topology", "diffs", "inbox"):
        assert repr(getattr(once, table)) == repr(getattr(again, table))


def crowd() -> Project:
    made = Project()
    for i in range(5):
        made.agent(f"agent {i}")
        for j in range(6):
            made.cell(f"cell {i} {j}", [1.0, i / 10, j / 10], by=f"agent {i}", silent=j % 2 == 0)
    return made
