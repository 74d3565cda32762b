"""A reason reads like one."""

from __future__ import annotations

from hyphae_gpu.report.wording import reason, short
from tests.report.record import received, sent


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


def test_short_texts_are_one_line() -> None:
    assert short("a\n b\t c") == "a b c"
    assert short("x" * 20, 10) == "x" * 9 + "…"
