"""The map shows every scene that has a place, by its size, readable and within its frame."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest

from hyphae_gpu.report.record import Emerged, Scene
from hyphae_gpu.report.scene_map import SceneMap, scene_map
from tests.report.record import scene


def scenes(count: int, *, agents: int = 2) -> list[Scene]:
    rng = np.random.default_rng(count)
    centres = rng.normal(size=(max(1, count // 8), 24))
    return [
        scene(
            f"word{i}, term, more, terms",
            cells=5 + 4000 // (i + 1),
            agents=agents,
            vector=(centres[i % len(centres)] + 0.5 * rng.normal(size=24)).tolist(),
        )
        for i in range(count)
    ]


def mapped(found: Sequence[Scene], links: Sequence[tuple[int, int, float]] = ()) -> SceneMap:
    made = scene_map(Emerged(scenes=found, scene_count=len(found), scene_links=links))
    assert made is not None
    return made


def test_no_scene_with_a_place_is_no_map() -> None:
    assert scene_map(Emerged()) is None
    assert scene_map(Emerged(scenes=[scene(vector=None)], scene_count=1)) is None


@pytest.mark.parametrize("count", [1, 2, 3, 17, 120])
def test_discs_lie_apart_within_the_map(count: int) -> None:
    made = mapped(scenes(count))
    assert len(made.discs) == count
    for disc in made.discs:
        assert disc.r <= disc.x <= made.width - disc.r
        assert disc.r <= disc.y <= made.height - disc.r
    for i, one in enumerate(made.discs):
        for other in made.discs[:i]:
            assert math.hypot(one.x - other.x, one.y - other.y) >= one.r + other.r


def test_a_discs_area_is_by_its_cells() -> None:
    made = mapped([scene(cells=cells, vector=(1.0, cells)) for cells in (900, 400, 100)])
    first, second, third = (disc.r for disc in made.discs)
    assert (first / second, first / third) == pytest.approx((1.5, 3.0), abs=0.05)


def test_equal_centroids_are_moved_apart() -> None:
    made = mapped([scene(vector=(1.0, 0.0)) for _ in range(9)])
    assert len({(disc.x, disc.y) for disc in made.discs}) == 9


def test_a_scene_without_a_place_is_left_out_and_links_still_join_the_right_ones() -> None:
    found = [scene("a", vector=(1.0, 0.0)), scene("b", vector=None), scene("c", vector=(0.0, 1.0))]
    made = mapped(found, [(0, 2, 0.5), (0, 1, 0.5)])
    assert [disc.scene.name for disc in made.discs] == ["a", "c"]
    one, other = made.discs
    assert [link[:4] for link in made.links] == [(one.x, one.y, other.x, other.y)]


def test_each_agent_is_a_mark_at_its_scene() -> None:
    made = mapped([scene(agents=30, vector=(1.0, 0.0)), scene(agents=0, vector=(0.0, 1.0))])
    crowded, lonely = made.discs
    assert (made.agents_a_mark, len(crowded.marks), lonely.marks) == (1, 30, [])
    assert len(set(crowded.marks)) == 30
    for x, y in crowded.marks:
        assert crowded.r < math.hypot(x - crowded.x, y - crowded.y) < crowded.r + 20


def test_a_mark_stands_for_several_of_very_many_agents() -> None:
    made = mapped([scene(agents=100_000, vector=(1.0, 0.0)), scene(agents=1, vector=(0.0, 1.0))])
    assert made.agents_a_mark == math.ceil(100_001 / 400)
    assert [len(disc.marks) for disc in made.discs] == [math.ceil(100_000 / made.agents_a_mark), 1]


def test_the_largest_are_labelled_and_no_label_covers_another() -> None:
    made = mapped(scenes(200, agents=0))
    labelled = [i for i, disc in enumerate(made.discs) if disc.label]
    assert 30 <= len(labelled) <= 60
    assert labelled[0] == 0
    boxes = []
    for disc in made.discs:
        if disc.label:
            half = max(len(line) for _, _, line in disc.label.lines) * disc.label.size * 0.28
            ys = [y for _, y, _ in disc.label.lines]
            boxes.append((disc.label.lines[0][0], half, min(ys), max(ys), disc.label.size / 2))
    for i, (x, half, top, bottom, tall) in enumerate(boxes):
        assert half - 1 <= x <= made.width - half + 1
        for other, its_half, its_top, its_bottom, its_tall in boxes[:i]:
            beside = abs(x - other) >= half + its_half
            assert beside or top - tall >= its_bottom + its_tall or its_top - its_tall >= bottom + tall


def test_a_scene_without_words_has_no_label() -> None:
    (disc,) = mapped([scene("", id="scene-7")]).discs
    assert disc.label is None


def test_the_same_scenes_give_the_same_map() -> None:
    found = scenes(40)
    assert mapped(found) == mapped(found)
