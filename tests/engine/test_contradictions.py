"""What contradictions do to an epoch, one small story a rule (spec 6.2, 6.3, 6.6)."""

from __future__ import annotations

import sys
from types import ModuleType

import numpy as np
import pytest

from hyphae_gpu.config import Settings
from hyphae_gpu.engine import run_epochs
from hyphae_gpu.errors import UsageError
from hyphae_gpu.state import Checkpoint
from hyphae_gpu.vocabulary import DiffType
from tests.engine.project import DAY, START, Project

HERE, BESIDE, ELSEWHERE = [1.0, 0.0, 0.0], [1.0, 0.1, 0.0], [0.0, 0.0, 1.0]
PORT_80, PORT_8080 = ("port", "80"), ("port", "8080")


def run(project: Project, epochs: int = 1, *, as_of: int = START, **rules) -> Checkpoint:
    """Run epochs at one time; return the last one's checkpoint."""
    run_epochs(project, Settings(threads=1, device="cpu", **rules), epochs=epochs, as_of=as_of)
    return project.epochs[-1]


@pytest.fixture
def project() -> Project:
    """`ana`, who writes, and `bo`, who is near enough to be reached."""
    made = Project()
    made.agent("ana", HERE)
    made.agent("bo", BESIDE)
    return made


@pytest.fixture
def two(project) -> Project:
    """An older cell of `ana` that says one thing, a newer one of `bo` that says another."""
    project.cell("old", HERE, by="ana", claim=PORT_80, at=START - DAY)
    project.cell("new", BESIDE, by="bo", claim=PORT_8080)
    return project


def types_of(project: Project) -> list[tuple[str, DiffType]]:
    return [(origin, DiffType(kind)) for origin, kind, _ in project.alive()]


def test_an_open_contradiction_is_raised_once_and_both_cells_tell_of_it_with_more_energy(two):
    done = run(two, decay_per_day=1.0)
    assert two.raised() == {("old", "new"): (1, True)}
    assert types_of(two) == [
        ("old", DiffType.CREATED),
        ("new", DiffType.CREATED),
        ("old", DiffType.CONTRADICTION),
        ("new", DiffType.CONTRADICTION),
    ]
    energies = [diff["energies"] for diff in two.diffs.values()]
    assert energies[2:] == [pytest.approx(1.5 * energy) for energy in energies[:2]]
    assert done.counts["waves"] == 2
    assert done.counts["met_after"] == {"1": 1}
    assert two.received("bo") == [("old", "gossip"), ("old", "gossip")], "the second wave's diff reaches an inbox too"
    later = run(two, 2)
    assert len(later.contradictions) == 0
    assert types_of(two) == []


def test_three_that_contradict_each_other_send_one_diff_each(project):
    for name, value in (("a", "1"), ("b", "2"), ("c", "3")):
        project.cell(name, HERE, claim=("port", value))
    run(project)
    assert set(project.raised().values()) == {(1, True)}
    assert len(project.raised()) == 3
    sent = [origin for origin, kind in types_of(project) if kind == DiffType.CONTRADICTION]
    assert sent == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("policy", "old", "new", "winner"),
    [
        ("recency", {}, {}, "new"),
        ("salience", {"salience": 0.9}, {"salience": 0.5}, "old"),
        ("vote", {"by": "ana"}, {}, "old"),
    ],
)
def test_a_policy_supersedes_the_loser_at_once_and_the_winner_tells_of_that(project, policy, old, new, winner):
    project.cell("old", HERE, claim=PORT_80, at=START - DAY, **old)
    project.cell("new", BESIDE, claim=PORT_8080, **new)
    loser = {"old": "new", "new": "old"}[winner]
    done = run(project, policy=policy)
    assert project.raised() == {("old", "new"): (1, False)}
    [row] = project.contradictions.values()
    assert row["resolutions"]["policy"] == policy
    assert project.nodes[project.numbers[loser]]["superseded_by"] == project.numbers[winner]
    assert types_of(project) == [(winner, DiffType.CREATED), (winner, DiffType.SUPERSEDED)]
    assert done.counts["live_cells"] == 1
    run(project, policy=policy)
    assert not any(project.numbers[loser] in key[:2] for key in project.topology)
    assert len(project.epochs[-1].resolved) == 0


def test_of_a_chain_in_one_epoch_only_neighbours_in_time_meet_under_recency(project):
    for day, value in enumerate("abca"):
        project.cell(f"day {day}", HERE, claim=("port", value), at=START + day)
    run(project, policy="recency")
    assert sorted(project.raised()) == [(f"day {i}", f"day {i + 1}") for i in range(3)]
    assert run(project, policy="recency").counts["live_cells"] == 1


def test_cells_that_gossip_does_not_bring_together_raise_nothing(project):
    project.cell("a", HERE, claim=PORT_80)
    project.cell("b", HERE, claim=PORT_8080)
    run(project, sigma_min=1.0)
    assert project.raised() == {}
    run(project)
    assert project.raised() == {("a", "b"): (2, True)}, "in each epoch of its life a diff is propagated afresh"


def test_far_cells_and_equal_claims_raise_nothing(project):
    project.cell("a", HERE, claim=PORT_80, stance=1.0)
    project.cell("b", BESIDE, claim=PORT_80, stance=0.5)
    project.cell("c", ELSEWHERE, claim=PORT_8080)
    run(project, 2)
    assert project.raised() == {}


def test_a_silent_cell_is_met_by_the_diff_of_the_other(project):
    project.cell("history", HERE, stance=-0.5, silent=True)
    project.cell("news", HERE, stance=0.5)
    run(project)
    assert project.raised() == {("history", "news"): (1, True)}


def test_a_cell_that_supersedes_one_of_the_two_ends_the_contradiction(two):
    run(two)
    two.cell("decision", HERE, by="bo", claim=PORT_80, supersedes="new")
    run(two)
    assert two.raised()["old", "new"] == (1, False)
    assert two.contradictions[two.numbers["old"], two.numbers["new"]]["resolutions"]["reason"] == "superseded"
    assert ("decision", DiffType.SUPERSEDED) in types_of(two)


@pytest.mark.parametrize(("claim", "still_open"), [(PORT_80, False), (("port", "443"), True)])
def test_an_update_ends_the_contradiction_if_the_two_agree_then(two, claim, still_open):
    run(two)
    two.cell("new", BESIDE, by="bo", claim=claim)
    run(two)
    assert two.raised() == {("old", "new"): (1, still_open)}


@pytest.mark.parametrize("policy", ["flag", "recency"])
def test_batches_of_diffs_change_no_contradiction(policy):
    hashes = set()
    for size in (1, 3, 4096):
        made = Project()
        for i in range(12):
            made.cell(f"cell {i}", [1.0, i / 40, 0.0], claim=(f"subject {i % 3}", f"value {i % 4}"), at=START - i)
        done = run(made, 2, policy=policy, batch_size=size)
        hashes.add((done.state_hash, repr(sorted(made.contradictions.items()))))
    assert len(hashes) == 1


def test_a_verifier_judges_texts_and_its_contradictions_are_as_any(project, monkeypatch):
    plugin = ModuleType("a_plugin")
    plugin.judge = lambda pairs: np.array([float("not" in b and "not" not in a) for a, b in pairs])
    monkeypatch.setitem(sys.modules, "a_plugin", plugin)
    project.cell("yes", HERE)
    project.cell("no", HERE)
    project.cell("unsaid", HERE)
    texts = {project.numbers["yes"]: "it works", project.numbers["no"]: "it does not work"}
    monkeypatch.setattr(project, "texts", lambda numbers: [texts.get(number) for number in numbers.tolist()])
    run(project, verifier="a_plugin:judge")
    assert project.raised() == {("yes", "no"): (1, True)}


@pytest.mark.parametrize("entry", ["no_such_module:f", "json:no_such_function"])
def test_a_verifier_that_cannot_be_loaded_is_refused_by_name(project, entry):
    project.cell("a", HERE)
    with pytest.raises(UsageError, match=rf"^verifier = '{entry}'"):
        run(project, verifier=entry)
