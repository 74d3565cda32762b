"""Spec 2.3-2.6 in plain Python, given what the index found: its points, their links, a search's candidates."""

import numpy as np

from tests.oracles.cosine import cosine


def weight(images, a, b):
    return np.float32(min(max(cosine(images[a], images[b]), 0.05), 1.0))


def distinct_images(images, cells):
    """Cells by image, each group ascending, the groups in order of their lowest cell (spec 2.6)."""
    groups = {}
    for cell in sorted(cells):
        groups.setdefault(bytes(np.int8(images[cell])), []).append(cell)
    return sorted(groups.values())


def copy_pairs(images, cells):
    """Every copy hangs on the lowest cell of its image."""
    return {(group[0], copy) for group in distinct_images(images, cells) for copy in group[1:]}


def nearest(images, node, others, count):
    """The `count` of greatest cosine, ties to the lowest number."""
    return sorted(others, key=lambda other: (-cosine(images[node], images[other]), other))[:count]


def near_and_far(images, representatives, links, count=10):
    """Near and far pairs (low, high) of spec 2.3.

    representatives: point -> live node, or None; links: point -> the points it links to at the base level.
    """
    near, far = set(), set()
    for point, node in enumerate(representatives):
        if node is None:
            continue
        reached = set(links[point]) | {second for first in links[point] for second in links[first]}
        others = {representatives[other] for other in reached - {point}} - {None}
        for other in nearest(images, node, others, count):
            near.add((min(node, other), max(node, other)))
        for other in links[point]:
            if representatives[other] is not None:
                far.add((min(node, representatives[other]), max(node, representatives[other])))
    return near, far - near


def components(cells, pairs):
    """Connected components as sorted lists, by lowest member."""
    left, found = set(cells), []
    while left:
        todo, seen = [min(left)], set()
        while todo:
            cell = todo.pop()
            if cell not in seen:
                seen.add(cell)
                todo += [b for a, b in pairs if a == cell] + [a for a, b in pairs if b == cell]
        found.append(sorted(seen))
        left -= seen
    return found


def joining_pairs(images, cells, pairs):
    """The pairs that join every component but the largest to it, in order of lowest member (spec 2.6)."""
    found = components(cells, pairs)
    if not found:
        return set()
    largest = max(found, key=lambda component: (len(component), -component[0]))
    whole, joins = list(largest), set()
    for component in found:
        if component is not largest:
            a, b = min(
                ((a, b) for a in component for b in whole),
                key=lambda pair: (-cosine(images[pair[0]], images[pair[1]]), pair),
            )
            joins.add((min(a, b), max(a, b)))
            whole += component
    return joins


def subscriptions(images, beacon, found, fanin, radius):
    """The cells a beacon listens to, of those the search found (spec 1.5)."""
    return [cell for cell in nearest(images, beacon, found, fanin) if cosine(images[beacon], images[cell]) >= radius]
