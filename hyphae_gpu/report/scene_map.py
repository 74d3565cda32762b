"""The map of scenes: discs, labels and marks as plain values that the page draws as SVG."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hyphae_gpu.report.placing import Floats, places
from hyphae_gpu.report.record import Emerged, Scene
from hyphae_gpu.report.wording import short, terms

_WIDTH = 1000.0
#: Share of the map that discs cover, and the radii between which they stay.
_COVERED, _LEAST_RADIUS, _GREATEST_RADIUS = 0.13, 2.0, 56.0
_GAP, _OVERLAP, _PUSHES = 5.0, 0.5, 250
#: How much more than the other axis one may be scaled; how far few scenes spread, times the root of their number.
_STRETCH, _SPREAD = 1.7, 170.0
#: Marks in all, at most; their distance from the disc and from each other.
_MARKS, _MARK_GAP, _MARK_STEP = 400, 4.0, 6.0
_LABELS, _LABEL_LENGTH = 60, 26
#: Largest scenes that are labelled even where the label covers another disc; what any label may cover of one.
_ALWAYS_LABELLED, _COVERS = 12, 4.0
_LARGE_TYPE, _SMALL_TYPE, _LINE = 13, 11.5, 1.1
#: Discs from this radius on bear their label, term under term.
_BEARING = 15.0
#: left, top, right, bottom
_Box = tuple[float, float, float, float]
_GOLDEN = math.pi * (3 - math.sqrt(5))


@dataclass(frozen=True, kw_only=True)
class Label:
    """A disc's label: where the middle of each line is, and its size of type."""

    size: float
    lines: Sequence[tuple[float, float, str]]


@dataclass(frozen=True, kw_only=True)
class Disc:
    """A scene on the map: its area is by its cells; marks: its agents'; label: None where there is no room."""

    x: float
    y: float
    r: float
    scene: Scene
    marks: Sequence[tuple[float, float]]
    label: Label | None


@dataclass(frozen=True, kw_only=True)
class SceneMap:
    """A map of `width` x `height`: discs, the largest first; links between them as ends and stroke width.

    agents_a_mark: how many agents a mark stands for, at most.
    """

    width: float
    height: float
    discs: Sequence[Disc]
    links: Sequence[tuple[float, float, float, float, float]]
    agents_a_mark: int


def scene_map(emerged: Emerged) -> SceneMap | None:
    """Return the map of the scenes that have a place, None where none has.

    Near scenes stand near each other (`placing.places`), moved apart where their discs would overlap. Directions mean
    nothing. The same scenes give the same map.
    """
    kept = [(row, scene) for row, scene in enumerate(emerged.scenes) if scene.vector is not None]
    if not kept:
        return None
    scenes = [scene for _, scene in kept]
    height = min(680.0, 170.0 + 45.0 * math.sqrt(len(scenes)))
    radii = _radii(scenes, height)
    a_mark = max(1, -(-sum(scene.agents for scene in scenes) // _MARKS))
    marks = [-(-scene.agents // a_mark) for scene in scenes]
    rooms = np.array([_room(radius, count) for radius, count in zip(radii, marks, strict=True)])
    vectors = [scene.vector for scene in scenes if scene.vector is not None]
    at = _apart(_fitted(places(vectors), rooms, height), rooms, height)
    labels = _labels(scenes, at, radii, rooms, height)
    place_of = {row: place for place, (row, _) in enumerate(kept)}
    return SceneMap(
        width=_WIDTH,
        height=_tidy(height),
        discs=[
            Disc(
                x=_tidy(at[i, 0]),
                y=_tidy(at[i, 1]),
                r=_tidy(radii[i]),
                scene=scene,
                marks=_marks(at[i], float(radii[i]), marks[i]),
                label=labels.get(i),
            )
            for i, scene in enumerate(scenes)
        ],
        links=[
            _link(at[place_of[one]], at[place_of[other]], weight)
            for one, other, weight in emerged.scene_links
            if one in place_of and other in place_of
        ],
        agents_a_mark=a_mark,
    )


def _link(one: Floats, other: Floats, weight: float) -> tuple[float, float, float, float, float]:
    """Return a link's ends and its stroke width."""
    width = 0.6 + 2.4 * max(0.0, min(1.0, weight))
    return _tidy(one[0]), _tidy(one[1]), _tidy(other[0]), _tidy(other[1]), _tidy(width)


def _radii(scenes: Sequence[Scene], height: float) -> Floats:
    """Return radii such that areas are by cells."""
    roots = np.sqrt(np.array([max(scene.cells, 1) for scene in scenes], np.float64))
    scale = math.sqrt(_COVERED * _WIDTH * height / (math.pi * float((roots**2).sum())))
    radii: Floats = np.maximum(roots * min(scale, _GREATEST_RADIUS / float(roots.max())), _LEAST_RADIUS)
    return radii


def _room(radius: float, marks: int) -> float:
    """Return the radius that a disc needs with its rings of marks."""
    ring = radius + _MARK_GAP
    while marks > 0:
        marks -= _on_ring(ring)
        ring += _MARK_STEP
    return ring - _MARK_GAP


def _on_ring(radius: float) -> int:
    return max(1, int(2 * math.pi * radius / _MARK_STEP))


def _marks(at: Floats, radius: float, count: int) -> list[tuple[float, float]]:
    """Return the places of marks in rings around a disc, from the top on."""
    found: list[tuple[float, float]] = []
    ring = radius + _MARK_GAP
    while count > 0:
        here = min(count, _on_ring(ring))
        for i in range(here):
            angle = i * _MARK_STEP / ring - math.pi / 2 - (here - 1) * _MARK_STEP / ring / 2
            found.append((_tidy(at[0] + ring * math.cos(angle)), _tidy(at[1] + ring * math.sin(angle))))
        count -= here
        ring += _MARK_STEP
    return found


def _fitted(at: Floats, rooms: Floats, height: float) -> Floats:
    """Return places scaled to fill the map, around its middle; one axis may be stretched a little to do so."""
    size = np.array([_WIDTH, height])
    inner = np.clip(size - 2 * (float(rooms.max()) + _GAP), 1.0, _SPREAD * math.sqrt(len(at)))
    low, high = at.min(axis=0), at.max(axis=0)
    wide = high > low
    if not wide.any():
        return np.broadcast_to(size / 2, at.shape).copy()
    scales = np.divide(inner, high - low, out=np.full(2, np.inf), where=wide)
    scales = np.minimum(scales, _STRETCH * float(scales.min()))
    fitted: Floats = size / 2 + (at - (low + high) / 2) * scales
    return fitted


def _apart(at: Floats, rooms: Floats, height: float) -> Floats:
    """Move discs that overlap apart, step by step, the smaller more, within the map."""
    x, y = at[:, 0].copy(), at[:, 1].copy()
    needed = rooms[:, None] + rooms[None] + _GAP
    np.fill_diagonal(needed, 0.0)
    nearer = np.maximum(needed - _OVERLAP, 0.0) ** 2
    share = 0.5 * rooms[None] ** 2 / (rooms[:, None] ** 2 + rooms[None] ** 2)
    # Twins have no direction of their own: each pair gets one, and its other half the opposite.
    turns = _GOLDEN * np.arange(len(at))
    edge = np.minimum(rooms + _GAP, height / 2)
    for _ in range(_PUSHES):
        one, other = np.nonzero((x[:, None] - x) ** 2 + (y[:, None] - y) ** 2 < nearer)
        if not len(one):
            break
        across, up = x[one] - x[other], y[one] - y[other]
        overlap = needed[one, other] - np.hypot(across, up)
        same = np.hypot(across, up) < 1e-9
        across = np.where(same, np.cos(turns[one]) - np.cos(turns[other]), across)
        up = np.where(same, np.sin(turns[one]) - np.sin(turns[other]), up)
        push = overlap * share[one, other] / np.hypot(across, up)
        x = np.clip(x + np.bincount(one, across * push, len(x)), edge, _WIDTH - edge)
        y = np.clip(y + np.bincount(one, up * push, len(y)), edge, height - edge)
    return np.stack([x, y], axis=1)


def _labels(scenes: Sequence[Scene], at: Floats, radii: Floats, rooms: Floats, height: float) -> dict[int, Label]:
    """Return labels by disc, the largest discs' first, each where it covers no other label and, if it can, no disc."""
    found: dict[int, Label] = {}
    taken: list[_Box] = []
    for i, scene in enumerate(scenes):
        words = [short(term, _LABEL_LENGTH) for term in terms(scene.name)]
        if not words or len(found) >= _LABELS:
            continue
        large = i < _ALWAYS_LABELLED
        size = _LARGE_TYPE if large else _SMALL_TYPE
        others = np.arange(len(scenes)) != i
        for x, y, lines in _spots(at[i], float(radii[i]), float(rooms[i]), words, size):
            half, tall = max(map(_wide, lines)) * size / 2 + 2, _LINE * size * len(lines) / 2 + 1
            box = (x - half, y - tall, x + half, y + tall)
            within = box[0] >= 0 and box[1] >= 0 and box[2] <= _WIDTH and box[3] <= height
            if not within or any(_cross(box, other) for other in taken):
                continue
            if not large and _covers(box, at[others], rooms[others]):
                continue
            taken.append(box)
            middles = [y + _LINE * size * (row - (len(lines) - 1) / 2) for row in range(len(lines))]
            placed = [(_tidy(x), _tidy(middle), line) for middle, line in zip(middles, lines, strict=True)]
            found[i] = Label(size=size, lines=placed)
            break
    return found


def _spots(
    at: Floats, radius: float, room: float, words: list[str], size: float
) -> list[tuple[float, float, list[str]]]:
    """Return where a label may have its middle, and its lines: on its disc, or at its sides; the best first."""
    x, y = float(at[0]), float(at[1])
    stacked = [f"{word}," for word in words[:-1]] + words[-1:]
    line = [short(", ".join(words), _LABEL_LENGTH)]
    half, tall = _wide(line[0]) * size / 2 + 2, _LINE * size / 2 + 1
    sides = [(x, y + room + tall), (x, y - room - tall), (x + room + half, y), (x - room - half, y)]
    bearing = [(x, y, stacked)] if radius >= _BEARING else []
    return [*bearing, *((side, up, line) for side, up in sides), (x, y, line)]


def _cross(one: _Box, other: _Box) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def _covers(box: _Box, at: Floats, rooms: Floats) -> bool:
    """Say whether a box covers more than the edge of any disc."""
    nearest = np.clip(at, box[:2], box[2:])
    return bool((np.linalg.norm(at - nearest, axis=1) < rooms - _COVERS).any())


def _wide(text: str) -> float:
    """Return about how wide a text is, in its size of type."""
    return sum(1.0 if unicodedata.east_asian_width(sign) in "WF" else 0.56 for sign in text)


def _tidy(value: float) -> float:
    """Return a coordinate as short as it is sharp."""
    return round(float(value), 1)
