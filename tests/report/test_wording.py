"""A reason reads like one."""

from __future__ import annotations

from hyphae_gpu.report.wording import reason, short
from tests.report.record import received, sent


def test_a_reason_names_maker_hops_door_and_fit() -> None:
    entry = received("ana", sent=sent("torch.qr", maker="torch maintainer"), parent="scipy.linalg.qr")
    assert reason(entry) == "from torch maintainer, 2 hops, through scipy.linalg.qr, which it works with, score 0.46"


def test_a_door_that_the_agent_does_not_know_is_near_in_meaning() -> None:
    assert "through cell c, near it in meaning" in reason(received("ana", parent="cell c", own=False))


def test_the_origin_itself_is_no_detour() -> None:
    assert reason(received("ana", parent="ana", hop=1)) == "from ana, 1 hop, straight from it, score 0.46"


def test_what_has_no_maker_and_no_parent_is_told_without() -> None:
    assert reason(received("ana", sent=sent(maker=None), parent=None)) == "from nobody named, 2 hops, score 0.46"


def test_short_texts_are_one_line() -> None:
    assert short("a\n b\t c") == "a b c"
    assert short("x" * 20, 10) == "x" * 9 + "…"
