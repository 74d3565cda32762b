"""Plain readings of spec 6.4: scenes by modularity on integers, and their ids from epoch to epoch."""

from __future__ import annotations

from collections import Counter, defaultdict

from hyphae_gpu.vocabulary import EdgeKind
from tests.oracles.cosine import cosine

#: Links of a level, both ways, by their two ends; of a node with itself too.
Links = dict[tuple[int, int], int]

MASK = 2**64 - 1


def splitmix64(state: int) -> int:
    """The first output from this state (Steele 2014)"""
    z = (state + 0x9E3779B97F4A7C15) & MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


def links_of(images: list[list[int]], edges: list[tuple[int, int, int, float]], cells: set[int]) -> Links:
    """Near and copy links among these cells, of edges (source, target, kind, weight), with the weights of spec 3.12"""
    links: Links = {}
    for source, target, kind, weight in edges:
        if source not in cells or target not in cells or kind not in (EdgeKind.NEAR, EdgeKind.COPY):
            continue
        c = max(cosine(images[source], images[target]), 0.05)
        strength = (c * c) * (c * c) if kind == EdgeKind.NEAR else weight
        links[source, target] = links.get((source, target), 0) + max(1, round(4096 * strength))
    return links


def communities(numbers: list[int], links: Links, num: int, den: int) -> dict[int, int]:
    """Each node's community, named by its lowest member"""
    members = {number: [number] for number in numbers}
    while True:
        community = moved(sorted(members), links, num, den)
        parts = connected_parts(sorted(members), links, community)
        if len(parts) == len(members):
            return {cell: number for number, cells in members.items() for cell in cells}
        whole = {node: min(part) for part in parts for node in part}
        merged: dict[int, list[int]] = defaultdict(list)
        for node, cells in members.items():
            merged[whole[node]] += cells
        members = dict(merged)
        summed: Links = defaultdict(int)
        for (a, b), weight in links.items():
            summed[whole[a], whole[b]] += weight
        links = dict(summed)


def moved(numbers: list[int], links: Links, num: int, den: int) -> dict[int, int]:
    """The community of each of a level's nodes, after local moving"""
    k = {node: sum(weight for (a, _), weight in links.items() if a == node) for node in numbers}
    two_m = sum(links.values())
    neighbours = {node: {b: w for (a, b), w in links.items() if a == node and b != node} for node in numbers}
    community = {node: node for node in numbers}
    for i in range(100):
        moves = 0
        for p in range(4):
            before = dict(community)
            total: Counter[int] = Counter()
            for node in numbers:
                total[before[node]] += k[node]
            for node in numbers:
                if splitmix64(1000003 * node + i) % 4 != p:
                    continue

                def gain(c: int, node: int = node, before: dict[int, int] = before, total: Counter[int] = total):
                    k_in = sum(w for other, w in neighbours[node].items() if before[other] == c)
                    s = total[c] - (k[node] if before[node] == c else 0)
                    return float(den * two_m) * float(k_in) - float(num * k[node]) * float(s)

                around = sorted({before[other] for other in neighbours[node]})
                best = max(around, key=lambda c: (gain(c), -c), default=before[node])
                if gain(best) > gain(before[node]):
                    community[node] = best
                    moves += 1
        if moves * 1000 < len(numbers):
            break
    return community


def connected_parts(numbers: list[int], links: Links, community: dict[int, int]) -> list[set[int]]:
    """Every community's connected components"""
    inside = defaultdict(set)
    for a, b in links:
        if community[a] == community[b]:
            inside[a].add(b)
    parts: list[set[int]] = []
    seen: set[int] = set()
    for node in numbers:
        if node in seen:
            continue
        part, waiting = set(), [node]
        while waiting:
            one = waiting.pop()
            if one not in part:
                part.add(one)
                waiting += inside[one]
        seen |= part
        parts.append(part)
    return parts


def scenes(numbers: list[int], links: Links, num: int, den: int) -> list[list[int]]:
    """The cells of each scene, in order of lowest cell: communities of at least five"""
    cells = defaultdict(list)
    for cell, number in communities(numbers, links, num, den).items():
        cells[number].append(cell)
    return [sorted(cells[number]) for number in sorted(cells) if len(cells[number]) >= 5]


def kept_ids(old: dict[int, int], new: list[list[int]], following: int) -> list[int]:
    """The id of each new scene: of the old one it shares most cells with (each once), else the next; old by cell"""
    shared = [
        (-count, former, place)
        for place, cells in enumerate(new)
        for former, count in Counter(old[cell] for cell in cells if cell in old).items()
    ]
    ids: dict[int, int] = {}
    for _, former, place in sorted(shared):
        if place not in ids and former not in ids.values():
            ids[place] = former
    for place in range(len(new)):
        if place not in ids:
            ids[place], following = following, following + 1
    return [ids[place] for place in range(len(new))]


def centroid(cells: list[int], saliences: list[float], images: list[list[int]]) -> list[int]:
    """The integer sum of rint(4096 s) q"""
    weights = [round(4096 * saliences[cell]) for cell in cells]
    return [sum(w * images[cell][j] for w, cell in zip(weights, cells, strict=True)) for j in range(len(images[0]))]


def modularity(links: Links, community: dict[int, int], resolution: float) -> float:
    """Newman's modularity of a partition"""
    two_m = sum(links.values())
    inside: Counter[int] = Counter()
    total: Counter[int] = Counter()
    for (a, b), weight in links.items():
        total[community[a]] += weight
        if community[a] == community[b]:
            inside[community[a]] += weight
    return sum(inside[c] / two_m - resolution * (total[c] / two_m) ** 2 for c in total)
