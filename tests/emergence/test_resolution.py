"""In which turn contradictions are judged, who wins, and what is sent about it (spec 6.2, 6.3, 6.6)."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hyphae_gpu.emerged import Supersessions
from hyphae_gpu.emergence.resolution import (
    contradiction_diffs,
    declared_supersessions,
    in_open_contradiction,
    judge,
    supersede,
    superseded_diffs,
    votes,
    with_raised,
)
from hyphae_gpu.state import PENDING_CREATED, PENDING_SILENT, PENDING_UPDATED, SETTLED, AccessLog, SwarmState
from hyphae_gpu.vocabulary import DiffType, KnowledgeType
from tests.emergence.contradiction_cases import CELLS, Crowd, known_pairs, pairs_of
from tests.engine.project import Project
from tests.oracles import contradictions as oracle

POLICIES = ("flag", "recency", "salience", "vote")


def judged(crowd: Crowd, pairs, policy: str, as_of: int = 0):
    return judge(pairs_of(pairs), crowd.nodes, crowd.saliences, crowd.live, crowd.log, policy=policy, as_of=as_of)


def told(verdict) -> oracle.Verdict:
    """A judgement in the oracle's form."""
    raised, gone = verdict.raised, verdict.superseded
    assert [decision is None for decision in raised.resolutions] == raised.open.tolist()
    pairs = zip(raised.a.tolist(), raised.b.tolist(), strict=True)
    assert gone.losers.tolist() == sorted(set(gone.losers.tolist()))
    return oracle.Verdict(
        raised={
            pair: None if decision is None else decision["winner"]
            for pair, decision in zip(pairs, raised.resolutions, strict=True)
        },
        superseded=dict(zip(gone.losers.tolist(), gone.winners.tolist(), strict=True)),
        speaking=set(verdict.speaking.tolist()),
    )


@settings(max_examples=100, deadline=None)
@given(cells=st.lists(CELLS, min_size=2, max_size=7), policy=st.sampled_from(POLICIES), data=st.data())
def test_judgements_equal_a_plain_reading(cells, policy, data):
    crowd = Crowd(*cells)
    pairs = data.draw(st.sets(st.sampled_from(list(combinations(range(len(cells)), 2))), max_size=12))
    verdict = judged(crowd, pairs, policy)
    assert told(verdict) == oracle.judged(pairs, crowd.cells, policy)
    assert verdict.speaking.tolist() == sorted(verdict.speaking.tolist())


@pytest.mark.parametrize(
    ("policy", "first", "second", "winner", "reason"),
    [
        ("recency", {"created_at": 1}, {"created_at": 2}, 1, "created at"),
        ("recency", {"created_at": 2}, {"created_at": 1}, 0, "created at"),
        ("recency", {}, {}, 1, "a tie, so the newer wins"),
        ("recency", {"created_at": 2**60}, {"created_at": 2**60 - 1}, 0, "microseconds after 1970"),
        ("salience", {"salience": 0.9}, {"salience": 0.1}, 0, "salience 0.9, the other 0.1"),
        ("salience", {"salience": 0.1}, {"salience": 0.9}, 1, "salience 0.9, the other 0.1"),
        ("salience", {"created_at": 1}, {}, 0, "a tie, so the newer wins"),
        ("vote", {"readers": {0, 1}}, {"readers": {0}}, 0, "votes 1, the other 0.5"),
        ("vote", {"readers": {0, 1}}, {"readers": {2}, "salience": 1.0}, 1, "a tie, so the newer wins"),
        ("vote", {"readers": {0, 1}, "created_at": 1}, {"readers": {2}, "salience": 1.0}, 0, "a tie"),
        ("vote", {}, {}, 1, "votes 0, the other 0: a tie, so the newer wins"),
    ],
)
def test_who_wins(policy, first, second, winner, reason):
    crowd = Crowd(first, second)
    verdict = judged(crowd, [(0, 1)], policy)
    [decision] = verdict.raised.resolutions
    assert (decision["policy"], decision["winner"], decision["loser"]) == (policy, winner, 1 - winner)
    assert reason in decision["reason"]
    assert told(verdict) == oracle.Verdict(raised={(0, 1): winner}, superseded={1 - winner: winner}, speaking=set())


def test_flag_leaves_it_open_and_both_cells_speak():
    verdict = judged(Crowd({}, {}, {}), [(0, 1), (1, 2)], "flag")
    assert told(verdict) == oracle.Verdict(raised={(0, 1): None, (1, 2): None}, superseded={}, speaking={0, 1, 2})


def test_a_cell_that_lost_earlier_in_the_order_raises_nothing():
    crowd = Crowd({"created_at": 3}, {"created_at": 1}, {"created_at": 2})
    verdict = judged(crowd, [(0, 1), (0, 2), (1, 2)], "recency")
    assert told(verdict) == oracle.Verdict(raised={(1, 2): 2, (0, 2): 0}, superseded={1: 2, 2: 0}, speaking=set())
    crowd = Crowd({"salience": 0.9}, {"salience": 0.2}, {"salience": 0.5})
    verdict = judged(crowd, [(0, 1), (1, 2), (0, 2)], "salience")
    assert told(verdict).raised == {(0, 1): 0, (0, 2): 0}
    assert verdict.hops.tolist() == [0, 1]


def test_pairs_of_equal_newer_cells_are_taken_by_the_olders_number():
    crowd = Crowd({"salience": 0.1}, {"salience": 0.9}, {"salience": 0.5})
    assert told(judged(crowd, [(1, 2), (0, 2)], "salience")).superseded == {0: 2, 2: 1}


def test_an_unknown_policy_is_refused():
    with pytest.raises(ValueError, match="majority"):
        judged(Crowd({}, {}), [(0, 1)], "majority")


def test_votes_count_every_agent_once_and_only_accesses_whose_time_has_come():
    log = AccessLog(
        agents=np.array([3, 3, 4, 5, 3], np.int32),
        cells=np.array([0, 0, 0, 0, 1], np.int32),
        at=np.array([1, 2, 5, 6, 5], np.int64),
    )
    saliences = np.array([0.25, 0.5, 1, 0, 0, 0], np.float32)
    assert votes(log, saliences, as_of=5).tolist() == [0.5, 0.5, 0, 0, 0, 0]


def test_raised_pairs_are_known_from_then_on_and_open_ones_mark_their_cells():
    crowd = Crowd({}, {}, {}, {})
    known = with_raised(known_pairs([(0, 3)], unresolved=False), judged(crowd, [(0, 2), (1, 2)], "flag").raised)
    assert (known.a.tolist(), known.b.tolist(), known.open.tolist()) == ([0, 0, 1], [2, 3, 2], [True, False, True])
    assert in_open_contradiction(known, 5).tolist() == [True, True, True, False, False]


@pytest.fixture
def state() -> SwarmState:
    """Four cells, of which the first has made diffs 0 and 1, the second diff 2."""
    project = Project()
    for name, kind, salience in (("a", "decision", 1.0), ("b", "fact", 0.25), ("c", "risk", 0.0), ("d", "task", 1.0)):
        project.cell(name, [1.0, 0.0, len(project.nodes)], kind=kind, salience=salience)
    made = project.load()
    made.epoch, made.next_diff = 6, 40
    made.sequences[:] = [2, 1, 0, 0]
    return made


def gone(*pairs: tuple[int, int]) -> Supersessions:
    columns = np.array(pairs, np.int32).reshape(-1, 2)
    return Supersessions(losers=columns[:, 0].copy(), winners=columns[:, 1].copy())


def test_a_contradiction_diff_is_its_cell_with_one_and_a_half_times_the_energy(state):
    saliences = np.array([1.0, 0.25, 0.0, 0.04], np.float32)
    made = contradiction_diffs(state, np.array([3, 0, 1, 2], np.int32), saliences, ttl_epochs=3, max_hops=64)
    assert made.numbers.tolist() == [40, 41, 42, 43]
    assert made.origins.tolist() == [0, 1, 2, 3]
    assert made.sequence.tolist() == [2, 1, 0, 0]
    assert set(made.types.tolist()) == {DiffType.CONTRADICTION}
    assert made.knowledge_types.tolist() == [KnowledgeType[k] for k in ("DECISION", "FACT", "RISK", "TASK")]
    assert made.saliences.tolist() == saliences.tolist()
    assert made.units.tolist() == [int(1024 * 1.5 * e) for e in (20, 5, 0)] + [int(1024 * (1.5 * (10 * 0.2 * 0.3)))]
    assert made.energies[:3].tolist() == [30.0, 7.5, 0.0]
    assert np.array_equal(made.vectors, state.nodes.vectors)
    assert (set(made.ttl), set(made.max_hops), set(made.epoch_created)) == ({3}, {64}, {7})
    assert state.next_diff == 40
    assert state.sequences.tolist() == [2, 1, 0, 0]


def test_a_superseded_diff_comes_from_the_winner_and_is_about_the_loser(state):
    saliences = np.array([1.0, 0.25, 1.0, 0.16], np.float32)
    made = superseded_diffs(state, gone((3, 0), (1, 0)), saliences, ttl_epochs=2, max_hops=5)
    assert made.numbers.tolist() == [40, 41]
    assert made.origins.tolist() == [0, 0]
    assert made.sequence.tolist() == [2, 3]
    assert set(made.types.tolist()) == {DiffType.SUPERSEDED}
    assert made.knowledge_types.tolist() == [KnowledgeType.FACT, KnowledgeType.TASK]
    assert made.saliences.tolist() == saliences[[1, 3]].tolist()
    assert made.units.tolist() == [5 * 1024, int(1024 * (10 * float(np.sqrt(np.float64(saliences[3]))) * 0.3))]
    assert np.array_equal(made.vectors, state.nodes.vectors[[1, 3]])


def test_a_winner_that_lost_in_its_turn_tells_of_nothing(state):
    lost = gone((1, 2), (2, 3))
    supersede(state, lost)
    made = superseded_diffs(state, lost, state.nodes.saliences, ttl_epochs=3, max_hops=64)
    assert (made.origins.tolist(), made.knowledge_types.tolist()) == ([3], [KnowledgeType.RISK])


def test_superseded_cells_are_marked_and_their_diffs_end(state):
    state.diffs = replace(
        contradiction_diffs(state, np.array([0, 1, 3], np.int32), state.nodes.saliences, ttl_epochs=3, max_hops=9)
    )
    assert supersede(state, gone((1, 0), (2, 0))).tolist() == [41]
    assert state.nodes.superseded_by.tolist() == state.nodes.told_superseded.tolist() == [-1, 0, 0, -1]


@pytest.mark.parametrize(
    ("pending", "aloud"),
    [(PENDING_CREATED, True), (PENDING_UPDATED, True), (SETTLED, True), (PENDING_SILENT, False)],
)
def test_what_rows_superseded_is_news_once_and_silent_rows_say_nothing(state, pending, aloud):
    nodes = state.nodes
    nodes.superseded_by[1] = 3
    nodes.pending[3] = pending
    news, spoken = declared_supersessions(nodes)
    assert (news.losers.tolist(), news.winners.tolist(), spoken.tolist()) == ([1], [3], [aloud])
    supersede(state, news)
    assert len(declared_supersessions(nodes)[0]) == 0
    nodes.superseded_by[1] = 2
    assert declared_supersessions(nodes)[0].winners.tolist() == [2]
    nodes.superseded_by[1] = -1
    assert len(declared_supersessions(nodes)[0]) == 0
