"""Figures are what a person counts in the same record by hand."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from hyphae_gpu.report.metrics import (
    degree_counts,
    fullest,
    hops,
    met_after,
    rounds,
    scopes,
    spread,
    stage_seconds,
    summed,
    totals,
)
from hyphae_gpu.report.record import Epoch, InboxSize, Record, Topology, TypeTotal


def epoch(number: int, seconds: dict[str, float], counts: dict[str, object] | None = None) -> Epoch:
    return Epoch(epoch=number, as_of="", seconds=seconds, counts=counts or {}, state_hash="")


def total(name: str, **other: float) -> TypeTotal:
    values = {"diffs": 4, "energy": 19.0, "arrived": 3, "agents": 2.5} | other
    return TypeTotal(knowledge_type=name, **values)  # type: ignore[arg-type]


def test_totals_add_up_types_and_inboxes() -> None:
    record = Record(
        project="p",
        types=[total("risk"), total("fact", diffs=1, arrived=0)],
        sizes=[InboxSize(agent="a", gossip=2, beacons=3), InboxSize(agent="b")],
    )
    found = totals(record)
    assert (found.sent, found.arrived, found.entries, found.agents, found.reached) == (5, 3, 5, 2, 1)


def test_the_fullest_inbox_comes_first_and_ties_go_by_name() -> None:
    sizes = [InboxSize(agent="b", gossip=1), InboxSize(agent="a", beacons=1), InboxSize(agent="c", gossip=1, beacons=1)]
    assert [size.agent for size in fullest(sizes)] == ["c", "a", "b"]


def test_hops_that_did_not_occur_are_there_with_none() -> None:
    assert hops({1: 2, 3: 1}) == {0: 0, 1: 2, 2: 0, 3: 1}
    assert hops({}) == {}


def test_scopes_join_the_epochs_figures_weighted_by_their_diffs() -> None:
    parts = [
        {"risk": {"diffs": 1, "reach_mean": 10.0, "hops_max": 3, "hop_bound": 13.4, "node_bound": 6.0}},
        {"risk": {"diffs": 3, "reach_mean": 30.0, "hops_max": 7, "hop_bound": 13.0, "node_bound": 6.5}},
        {},
    ]
    record = Record(
        project="p",
        types=[total("risk"), total("decision"), total("omen")],
        epochs=[epoch(number, {}, {"by_type": part}) for number, part in enumerate(parts)],
    )
    decision, risk, omen = scopes(record)
    assert [scope.knowledge_type for scope in (decision, risk, omen)] == ["decision", "risk", "omen"]
    assert (risk.nodes, risk.hops, risk.hop_bound, risk.node_bound) == (25.0, 7, 13.4, 6.5)
    assert (decision.nodes, decision.hops, decision.hop_bound) == (None, None, None)


def test_stages_keep_their_order_and_parts_are_left_to_their_stage() -> None:
    epochs = [epoch(1, {"taking in": 1.0, "topology": 2.0, "topology.hnsw": 1.5}), epoch(2, {"gossip": 3.0})]
    assert stage_seconds(epochs) == {"taking in": [1.0, 0.0], "topology": [2.0, 0.0], "gossip": [0.0, 3.0]}
    assert list(stage_seconds(epochs)) == ["taking in", "topology", "gossip"]


@given(st.lists(st.integers(0, 40), min_size=1))
def test_spread_is_the_nearest_rank_of_the_sorted_list(values: list[int]) -> None:
    ordered, found = sorted(values), spread(Counter(values))
    assert found is not None
    for share, value in ((0.25, found.lower), (0.5, found.median), (0.75, found.upper)):
        below = sum(one < value for one in ordered) / len(ordered)
        upto = sum(one <= value for one in ordered) / len(ordered)
        assert below < share <= upto
    assert (found.least, found.greatest) == (ordered[0], ordered[-1])
    assert abs(found.mean - sum(values) / len(values)) < 1e-9


def test_nothing_has_no_spread() -> None:
    assert spread({}) is None


@given(st.dictionaries(st.integers(0, 5_000), st.integers(1, 9), max_size=30), st.integers(1, 30))
def test_every_node_is_in_one_bin_of_equal_width(degrees: dict[int, int], bins: int) -> None:
    found = degree_counts(Topology(degrees=degrees), bins)
    assert sum(nodes for _, _, nodes in found) == sum(degrees.values())
    assert len(found) <= bins
    assert len({end - start for start, end, _ in found}) <= 1
    for (_, end, _), (start, _, _) in pairwise(found):
        assert start == end + 1
    for start, end, nodes in found:
        assert nodes == sum(times for degree, times in degrees.items() if start <= degree <= end)


def test_meetings_of_all_epochs_add_up_by_hop() -> None:
    epochs = [epoch(1, {}, {"met_after": {"1": 2, "4": 1}}), epoch(2, {}, {}), epoch(3, {}, {"met_after": {"1": 1}})]
    assert met_after(epochs) == {0: 0, 1: 3, 2: 0, 3: 0, 4: 1}
    assert met_after([]) == met_after(epochs[1:2]) == {}


def test_rounds_and_sweeps_stand_by_their_epoch() -> None:
    epochs = [epoch(4, {}, {"rounds": 12, "sweeps": 9, "lost": 3}), epoch(5, {}, {"lost": 4}), epoch(6, {}, {})]
    assert rounds(epochs) == {4: (12, 9), 5: (0, 0), 6: (0, 0)}
    assert (summed(epochs, "lost"), summed(epochs, "repaired")) == (7, 0)
