"""Plain reading of spec 6.4, patterns: who leads which group, and what a group by three agents becomes."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from tests.oracles.cosine import cosine
from tests.oracles.scenes import centroid


@dataclass
class Cell:
    """A node as patterns see it; scene, maker and text are None where there is none."""

    number: int
    image: list[int]
    salience: float
    scene: int | None
    maker: int | None
    live: bool = True
    layer: int = 0
    is_pattern: bool = False
    led: bool = False
    text: str | None = None


@dataclass
class Pattern:
    """members: the leader first."""

    members: list[int]
    vector: list[float]
    salience: float


def groups(cells: list[Cell], near: Iterable[tuple[int, int]], eps: float) -> list[list[int]]:
    """The groups in the order in which their leaders lead, leader first, then ascending"""
    links = set(near)
    grouped: set[int] = set()
    found = []
    for leader in sorted(cells, key=lambda cell: (-cell.salience, cell.number)):
        if leader.number in grouped or not takes_part(leader):
            continue
        grouped.add(leader.number)
        taken = [
            cell.number
            for cell in sorted(cells, key=lambda cell: cell.number)
            if cell.number not in grouped
            and takes_part(cell)
            and cell.scene == leader.scene
            and (leader.number, cell.number) in links
            and cosine(leader.image, cell.image) >= eps
        ]
        grouped |= set(taken)
        found.append([leader.number, *taken])
    return found


def takes_part(cell: Cell) -> bool:
    return cell.live and cell.layer == 0 and cell.scene is not None and not cell.is_pattern


def patterns(cells: list[Cell], near: Iterable[tuple[int, int]], eps: float) -> list[Pattern]:
    """A group by at least three different agents becomes one pattern, once a leader, where it has a centroid"""
    found = []
    for members in groups(cells, near, eps):
        agents = {cells[number].maker for number in members} - {None}
        vector = unit(centroid(members, [cell.salience for cell in cells], [cell.image for cell in cells]))
        if len(agents) >= 3 and not cells[members[0]].led and any(vector):
            found.append(Pattern(members, vector, salience([cells[number].salience for number in members])))
    return found


def salience(saliences: list[float]) -> float:
    """1 - prod(1 - s_i), in this order, rounded once to float32"""
    product = 1.0
    for one in saliences:
        product *= 1.0 - one
    return float(np.float32(1.0 - product))


def unit(total: list[int]) -> list[float]:
    """The float32 unit vector of integers; zeros stay zeros"""
    square = 0.0
    for value in total:
        square += float(value) * float(value)
    return [float(np.float32(value / math.sqrt(square))) if square else 0.0 for value in total]
