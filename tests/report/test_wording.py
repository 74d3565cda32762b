"""A reason reads like one."""

from __future__ import annotations

import pytest

from hyphae_gpu.report.wording import (
    counted,
    listed,
    noted_by,
    reason,
    short,
    topic,
    way_up,
    who_heard,
    why_opposed,
    why_promoted,
)
from tests.report.record import contradiction, pattern, promotion, received, sent


def test_a_reason_names_maker_way_hops_and_fit() -> None:
    entry = received("ana", sent=sent("torch.qr", maker="torch maintainer"), way=("torch.linalg.qr", "scipy.linalg.qr"))
    assert reason(entry) == (
        "from torch maintainer by way of torch.linalg.qr and scipy.linalg.qr, which it works with; 2 hops, score 0.46"
    )


def test_a_last_station_that_the_agent_does_not_know_is_near_in_meaning() -> None:
    assert "by way of cell c, near it in meaning" in reason(received("ana", way=("cell c",), own=False))


def test_a_long_way_is_told_by_its_ends() -> None:
    entry = received("ana", way=tuple("abcdef"), hop=7)
    assert "by way of a, 4 more and f, which" in reason(entry)
    assert "by way of a, b and c, which" in reason(received("ana", way=tuple("abc")))


def test_the_origin_itself_is_no_detour() -> None:
    assert reason(received("ana", way=(), hop=1)) == "straight from ana; 1 hop, score 0.46"


def test_what_has_no_maker_is_told_without() -> None:
    assert reason(received("ana", sent=sent(maker=None), way=())) == "straight from nobody named; 2 hops, score 0.46"


def test_a_last_station_above_the_receiver_is_where_it_came_down_from() -> None:
    down = {"down": True, "own": False}
    assert reason(received("ana", way=("cell c", "topic “x”"), **down)) == (
        "from ana by way of cell c and down from topic “x”; 2 hops, score 0.46"
    )
    assert "from ana down from topic “x”; 2 hops" in reason(received("ana", way=("topic “x”",), **down))


def test_the_strongest_way_and_the_first_arrival_are_told_apart() -> None:
    assert "; 2 hops, score" in reason(received("ana", hop=2, steps=2))
    assert "; 5 hops, first heard in round 2, score" in reason(received("ana", hop=2, steps=5))
    assert "; 1 hop, first heard in round 9, score" in reason(received("ana", hop=9, steps=1))


def test_a_pattern_comes_from_those_who_noted_it() -> None:
    assert reason(received("ana", sent=sent(maker=None, alike=4), way=())).startswith(
        "straight from what 4 agents noted alike; "
    )


def test_a_promotion_to_layer_1_is_by_the_nodes_of_one_topic() -> None:
    one = promotion(scenes=[("queue, worker, job", 7)], scene_count=1)
    assert why_promoted(one) == "7 cells and agents of “queue, worker” had it"
    two = promotion(scenes=[("queue, worker", 1_007), ("", 5)], scene_count=2)
    assert why_promoted(two) == "1,007 cells and agents of “queue, worker” had it, and enough of 1 other topic"
    assert why_promoted(promotion(scenes=[("", 5)], scene_count=3)) == (
        "5 cells and agents of a topic without words had it, and enough of 2 other topics"
    )


def test_a_promotion_to_layer_2_is_by_topics_and_salience() -> None:
    three = promotion(layer=2, scenes=[("a", 1), ("b", 1), ("", 1)], scene_count=3)
    assert why_promoted(three) == "it reached 3 topics: “a”, “b” and a topic without words; salience 0.90"
    many = promotion(layer=2, scenes=[("a", 1), ("b", 1)], scene_count=1_002)
    assert why_promoted(many) == "it reached 1,002 topics: “a”, “b” and 1,000 more; salience 0.90"


def test_a_way_up_names_where_it_left_and_where_it_went_on() -> None:
    assert way_up(promotion(carrier="bo", entry="topic “x”")) == "up from bo to topic “x”"
    assert (
        way_up(promotion(carrier="", entry="torch.qr, promoted before")) == "straight up to torch.qr, promoted before"
    )
    assert way_up(promotion(layer=2, entry=None)) == "nothing was in layer 2 yet to go on from"


@pytest.mark.parametrize(
    ("cause", "said"),
    [
        ("claim", "both claim something else of “port”; similarity 0.95"),
        ("stance", "they take opposite sides; similarity 0.95"),
        ("verifier", "the verifier says so; similarity 0.95"),
        ("a later rule", "a later rule; similarity 0.95"),
    ],
)
def test_why_two_cells_oppose_each_other(cause: str, said: str) -> None:
    assert why_opposed(contradiction(reason=cause)) == said


def test_who_was_told_of_a_contradiction() -> None:
    assert who_heard(contradiction(told=0, informed=[])) == "no agent was told"
    assert who_heard(contradiction(told=1, informed=["ana"])) == "1 agent told: ana"
    assert who_heard(contradiction(told=12, informed=["ana", "bo"])) == "12 agents told: ana, bo and 10 more"


def test_who_noted_a_pattern() -> None:
    assert noted_by(pattern(agents=3, named=["ana", "bo", "cy"])) == "noted by ana, bo and cy"
    assert noted_by(pattern(agents=9, named=["ana", "bo"])) == "noted by ana, bo and 7 more"


def test_a_topic_is_called_by_its_first_words() -> None:
    assert topic("nn, module, torch, utils") == "“nn, module”"
    assert topic("nn") == "“nn”"
    assert topic("") == topic(" , ") == "a topic without words"


def test_lists_and_numbers_read_like_a_sentence() -> None:
    assert (listed([]), listed(["a"]), listed(["a", "b"]), listed(["a", "b", "c"])) == (
        "",
        "a",
        "a and b",
        "a, b and c",
    )
    assert (counted(0, "cell"), counted(1, "cell"), counted(2_000, "cell")) == ("0 cells", "1 cell", "2,000 cells")


def test_short_texts_are_one_line() -> None:
    assert short("a\n b\t c") == "a b c"


def test_a_cut_falls_between_words_or_within_a_long_one() -> None:
    text = "the cache is cold after a start, says ana"
    for limit in range(12, len(text)):
        cut = short(text, limit)
        assert len(cut) <= limit
        assert cut.endswith("…")
        assert text.startswith(cut[:-1])
        assert text[len(cut) - 1] in " ,"
    assert short(text, len(text)) == text
    assert short("x" * 20, 10) == "x" * 9 + "…"
    assert short("to " + "x" * 50, 10) == "to xxxxxx…"
