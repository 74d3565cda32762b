"""Which cells oppose each other, and when that is over (spec 6.2)."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hyphae_gpu.backends.cpu.backend import CpuBackend
from hyphae_gpu.emergence import contradictions
from hyphae_gpu.emergence.contradictions import Meetings, could_oppose, no_longer_opposed
from hyphae_gpu.errors import UsageError
from hyphae_gpu.vocabulary import DiffType
from tests.emergence.contradiction_cases import (
    BELOW_HALF,
    CELLS,
    HALF,
    Crowd,
    delivered,
    known_pairs,
    listed,
    met,
)
from tests.oracles import contradictions as oracle

PORT = {"subject": 0, "value": 0}
OTHER_PORT = {"subject": 0, "value": 1}


def says_no(pairs):
    return [float(a != b) for a, b in pairs]


def one_by_one(a: str, b: str) -> float:
    return float(a != b)


@settings(max_examples=60, deadline=None)
@given(
    cells=st.lists(CELLS, min_size=1, max_size=7),
    theta=st.sampled_from([0.8, -1.0, 0.9]),
    verified=st.booleans(),
    data=st.data(),
)
def test_pairs_equal_a_plain_reading_however_deliveries_are_cut_and_shuffled(cells, theta, verified, data):
    crowd = Crowd(*cells)
    numbers = st.integers(0, len(crowd.nodes) - 1)
    sent = data.draw(st.lists(st.tuples(numbers, st.sampled_from([0, 0, 1, 2, 3])), min_size=1, max_size=6))
    rows = st.integers(0, len(sent) - 1)
    arrivals = data.draw(st.lists(st.tuples(rows, numbers), max_size=20))
    known = data.draw(st.sets(st.tuples(st.integers(0, 3), st.integers(4, 6)), max_size=3))
    meetings = crowd.meetings(theta, says_no if verified else None)
    diffs = crowd.diffs(sent)
    cut = data.draw(st.integers(0, len(arrivals)))
    for part in data.draw(st.permutations([arrivals[:cut], arrivals[cut:]])):
        meetings.add(diffs, delivered(data.draw(st.permutations(part))))

    wanted = oracle.opposing(
        crowd.cells,
        [(*sent[row], node) for row, node in arrivals],
        known,
        theta,
        one_by_one if verified else None,
    )
    assert listed(meetings.opposing(known_pairs(known))) == [(*pair, *wanted[pair]) for pair in sorted(wanted)]


@pytest.mark.parametrize(
    ("first", "second", "reason"),
    [
        (PORT, OTHER_PORT, "claim"),
        (PORT, PORT, None),
        (PORT, {"subject": 1, "value": 1}, None),
        (PORT, {"subject": 0, "value": None}, None),
        ({"value": 0}, {"value": 1}, None),
        (PORT, {}, None),
        ({"stance": HALF}, {"stance": -HALF}, "stance"),
        ({"stance": HALF}, {"stance": -BELOW_HALF}, None),
        ({"stance": BELOW_HALF}, {"stance": -HALF}, None),
        ({"stance": 1.0}, {"stance": HALF}, None),
        ({"stance": 1.0}, {"stance": 0.0}, None),
        ({"stance": 1.0}, {}, None),
        (PORT | {"stance": 1.0}, OTHER_PORT | {"stance": -1.0}, "claim"),
    ],
)
def test_what_opposes_is_another_value_of_one_subject_or_the_other_side_taken_firmly(first, second, reason):
    crowd = Crowd(first, second)
    assert met(crowd, (0, 1)) == met(crowd, (1, 0)) == ([(0, 1, 1.0, reason)] if reason else [])


@pytest.mark.parametrize(("theta", "raised"), [(0.8, True), (float(np.nextafter(0.8, 1)), False)])
def test_a_cosine_of_exactly_theta_is_enough(theta, raised):
    crowd = Crowd({"image": [5, 0], **PORT}, {"image": [4, 3], **OTHER_PORT})
    assert met(crowd, (0, 1), theta=theta) == ([(0, 1, 0.8, "claim")] if raised else [])


@pytest.mark.parametrize("diff_type", list(DiffType))
def test_only_created_and_updated_diffs_bring_cells_together(diff_type):
    crowd = Crowd(PORT, OTHER_PORT)
    meetings = crowd.meetings()
    meetings.add(crowd.diffs([(0, diff_type)]), delivered([(0, 1)]))
    assert bool(len(meetings.opposing(known_pairs()))) == (diff_type in (DiffType.CREATED, DiffType.UPDATED))


def test_cells_that_did_not_meet_by_gossip_are_no_contradiction():
    assert met(Crowd(PORT, OTHER_PORT, OTHER_PORT), (0, 0), (0, 1), (1, 2), (0, 4)) == [(0, 1, 1.0, "claim")]


@pytest.mark.parametrize("dead", [0, 1])
def test_a_cell_that_is_not_live_opposes_nothing(dead):
    crowd = Crowd(PORT, OTHER_PORT)
    live = crowd.live.copy()
    live[dead] = False
    assert met(crowd, (0, 1), live=live) == []


def test_a_pair_that_was_raised_before_is_not_raised_again():
    crowd = Crowd(PORT, OTHER_PORT, OTHER_PORT)
    assert met(crowd, (0, 1), (0, 2), known=[(0, 1)]) == [(0, 2, 1.0, "claim")]


def test_the_least_hop_after_which_the_two_met_is_kept():
    crowd = Crowd(PORT, OTHER_PORT, OTHER_PORT)
    meetings = crowd.meetings()
    diffs = crowd.diffs([(0, DiffType.CREATED), (1, DiffType.UPDATED)])
    meetings.add(diffs, delivered([(0, 1), (1, 0), (0, 2)], [4, 2, 6]))
    meetings.add(diffs, delivered([(0, 1), (0, 2)], [3, 5]))
    assert meetings.opposing(known_pairs()).hops.tolist() == [2, 5]


def test_without_anything_to_oppose_no_delivery_is_looked_at(monkeypatch):
    crowd = Crowd(PORT, {"subject": 1, "value": 1}, {"stance": BELOW_HALF}, {}, OTHER_PORT | {"live": False})
    assert not could_oppose(crowd.nodes, crowd.live).any()
    meetings = crowd.meetings()
    meetings.add(None, None)
    assert len(meetings.opposing(known_pairs())) == 0


def test_a_verifier_is_asked_in_batches_about_near_pairs_with_texts_that_nothing_else_decides(monkeypatch):
    monkeypatch.setattr(contradictions, "VERIFIER_BATCH", 2)
    asked = []

    def verifier(pairs):
        asked.append(list(pairs))
        return [0.5 if "no" in pair else np.nextafter(0.5, 0) for pair in pairs]

    crowd = Crowd(
        {"text": "yes", **PORT},
        {"text": "no", **OTHER_PORT},
        {"text": "no"},
        {"text": None},
        {"text": "perhaps"},
        {"text": "far", "image": [0, 127]},
        {"text": "never"},
    )
    found = met(crowd, *((0, node) for node in range(1, 7)), (2, 0), known=[(0, 6)], verifier=verifier)
    assert found == [(0, 1, 1.0, "claim"), (0, 2, 1.0, "verifier")]
    assert asked == [[("yes", "no"), ("yes", "perhaps")]]
    met(crowd, *((0, node) for node in range(1, 7)), verifier=verifier)
    assert [len(batch) for batch in asked] == [2, 2, 1]


@pytest.mark.parametrize("answer", [[0.5, 0.5], [], [[0.5]], [float("nan")], [1.01], [-0.01]])
def test_a_verifier_that_gives_no_probability_for_each_pair_is_refused(answer):
    with pytest.raises(UsageError, match=r"^verifier: it gave .* expected"):
        met(Crowd({"text": "a"}, {"text": "b"}), (0, 1), verifier=lambda pairs: answer)


def test_a_verifier_without_texts_is_a_mistake():
    crowd = Crowd({}, {})
    with pytest.raises(ValueError, match="texts"):
        Meetings(
            crowd.nodes,
            crowd.images,
            crowd.lengths,
            crowd.live,
            theta_sim=0.8,
            backend=CpuBackend(1),
            verifier=says_no,
        )


@pytest.mark.parametrize(
    ("cells", "superseded", "changed", "verifier", "over"),
    [
        ((PORT, OTHER_PORT), {}, [], None, None),
        ((PORT, OTHER_PORT), {0: 2}, [], None, {"cells": [0], "reason": "superseded"}),
        ((PORT, OTHER_PORT), {0: 2, 1: 2}, [1], None, {"cells": [0, 1], "reason": "superseded"}),
        ((PORT, OTHER_PORT), {}, [0, 1], None, None),
        ((PORT, PORT), {}, [1], None, {"cells": [1], "reason": "updated: they no longer oppose each other"}),
        ((PORT, PORT), {}, [], None, None),
        ((PORT, OTHER_PORT | {"image": [0, 127]}), {}, [1], None, {"cells": [1]}),
        ((PORT | {"text": "a"}, {"text": "b"}), {}, [0], says_no, None),
        ((PORT | {"text": "a"}, {"text": "a"}), {}, [0], says_no, {"cells": [0]}),
        ((PORT, OTHER_PORT | {"live": False}), {}, [], None, None),
    ],
)
def test_an_open_contradiction_is_over_when_a_cell_is_superseded_or_no_longer_opposes(
    cells, superseded, changed, verifier, over
):
    crowd = Crowd(*cells, {})
    for loser, winner in superseded.items():
        crowd.nodes.superseded_by[loser] = winner
    marks = np.isin(np.arange(len(crowd.nodes)), changed)

    def resolved(known):
        return no_longer_opposed(
            known,
            crowd.nodes,
            crowd.images,
            crowd.lengths,
            marks,
            theta_sim=0.8,
            backend=CpuBackend(1),
            verifier=verifier,
            texts=crowd.texts,
        )

    found = resolved(known_pairs([(0, 1)]))
    assert list(zip(found.a.tolist(), found.b.tolist(), strict=True)) == ([(0, 1)] if over else [])
    assert all(found.resolutions[0][key] == value for key, value in (over or {}).items())
    assert len(resolved(known_pairs([(0, 1)], unresolved=False))) == 0
