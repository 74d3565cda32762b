"""Figures take their colours and type from the page, and draw whatever the labels say."""

from __future__ import annotations

import re

import pytest

from hyphae_gpu.report import plots
from hyphae_gpu.report.metrics import Scope
from hyphae_gpu.report.record import InboxSize
from tests.report.record import HOSTILE


def every_figure(label: str) -> list[str]:
    scope = Scope(
        knowledge_type=label, diffs=3, energy=19.0, agents=2.5, hops=None, nodes=None, hop_bound=None, node_bound=None
    )
    return [
        plots.inbox_figure([InboxSize(agent=label, gossip=3, beacons=1), InboxSize(agent="other", gossip=1)]),
        plots.hops_figure({0: 0, 1: 5}),
        plots.scope_figure([scope]),
        plots.seconds_figure({label: [1.0, 2.0], "gossip": [0.0, 1.0]}, [1, 2]),
        plots.degree_figure([(0, 4, 7), (5, 9, 1)]),
        plots.met_figure({0: 0, 1: 5, 2: 1}),
        plots.rounds_figure({1: (12, 9), 2: (7, 0)}),
    ]


def test_nothing_to_draw_is_no_figure() -> None:
    assert plots.inbox_figure([InboxSize(agent="ana")]) == ""
    assert plots.hops_figure({}) == plots.scope_figure([]) == plots.degree_figure([]) == ""
    assert plots.met_figure({}) == plots.rounds_figure({}) == plots.rounds_figure({1: (12, 0)}) == ""
    assert plots.seconds_figure({}, []) == plots.seconds_figure({"gossip": [1.0]}, []) == ""


def test_every_colour_is_one_of_the_pages() -> None:
    for figure in every_figure("ana"):
        used = re.findall(r"(?:fill|stroke): ?([^;\"]+)", figure)
        assert used
        assert {
            colour for colour in used if not re.fullmatch(r"none|currentColor|var\(--(line|c\d)\)", colour)
        } == set()


def test_a_figure_says_what_it_shows_and_scales_with_the_page() -> None:
    for figure in every_figure("ana"):
        assert re.match(r'<svg viewBox="0 0 [\d.]+ [\d.]+" role="img" aria-label="[^"]+">', figure)
        assert figure.rstrip().endswith("</svg>")
        assert "<style" not in figure


@pytest.mark.parametrize("label", HOSTILE, ids=range(len(HOSTILE)))
def test_any_label_can_be_drawn_and_stays_text(label: str) -> None:
    for figure in every_figure(label):
        for element in ("<script", "<img", "<b>", "</svg><"):
            assert element not in figure


def test_many_stages_are_drawn_as_few_colours() -> None:
    figure = plots.seconds_figure({f"stage {number}": [float(number)] for number in range(1, 20)}, [1])
    assert "other stages" in figure
    assert "stage 19" in figure
    assert "stage 3<" not in figure
