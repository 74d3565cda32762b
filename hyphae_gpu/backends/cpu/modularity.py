"""Communities of one level by modularity, on integers: local moving, splitting, merging of links (spec 6.4)."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

from hyphae_gpu.backends.cpu.components import _root
from hyphae_gpu.backends.cpu.prefetch import prefetch

I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]

#: Sub-steps of an iteration, most iterations of a level, and 1 / the share of moves below which it is over (spec 6.4).
SUB_STEPS = 4
ITERATIONS = 100
QUIET = 1000
_HASH_STEP = 1_000_003
_SMALLEST_PIECE = 4096
#: Places in the least table of a node's neighbouring communities; it has at least twice as many as the node has links.
_LEAST_TABLE = 32
_ROWS_AHEAD = 3


def communities(
    offsets: I64, targets: I32, weights: I64, numbers: I64, resolution: tuple[int, int], *, threads: int = 1
) -> I32:
    """Return the community of each of a level's nodes, split into its connected parts, as its first member, int32 [n].

    The level's links by node: offsets int64 [n + 1]; targets int32 and weights int64 >= 1 [m], every link in the rows
    of both its ends with equal weight, a node's with itself once. numbers int64 [n], ascending: the nodes' numbers,
    which decide who moves when. resolution: numerator and denominator. The result does not depend on `threads`.
    """
    count = len(numbers)
    totals = np.zeros(count, np.int64)
    _row_sums(offsets, weights, totals)
    den_two_m = float(resolution[1] * int(totals.sum()))
    community = np.arange(count, dtype=np.int32)
    sums, chosen, order = totals.copy(), np.empty(count, np.int32), np.empty(count, np.int32)
    degree = int(np.diff(offsets).max(initial=0))
    with _ranges(threads, count, degree) as over:
        for iteration in range(ITERATIONS):
            starts = _by_sub_step(numbers, iteration, order)
            moves = 0
            for step in range(SUB_STEPS):
                movers = order[starts[step] : starts[step + 1]]
                level = (offsets, targets, weights, totals, community, sums)
                over(movers, level, (den_two_m, resolution[0]), chosen)
                moves += _apply(movers, chosen, totals, community, sums)
            if not moves or moves * QUIET < count:
                break
    parts = np.arange(count, dtype=np.int32)
    _split(offsets, targets, community, parts)
    return parts


def merged_links(offsets: I64, targets: I32, weights: I64, groups: I32) -> tuple[I64, I32, I64]:
    """Return the links between groups of nodes, summed: offsets, targets, weights as `communities` takes them.

    groups int32 [n] in [0, g): the group of each node, none of them empty. Links within a group become one of the
    group with itself.
    """
    count = int(groups.max()) + 1 if len(groups) else 0
    begins = np.zeros(count + 1, np.int64)
    np.cumsum(np.bincount(groups, minlength=count), out=begins[1:])
    order = np.argsort(groups, kind="stable").astype(np.int32)
    merged_offsets = np.zeros(count + 1, np.int64)
    merged_targets = np.empty(len(targets), np.int32)
    merged_weights = np.empty(len(targets), np.int64)
    size = _merge(
        (offsets, targets, weights), groups, (begins, order), (merged_offsets, merged_targets, merged_weights)
    )
    return merged_offsets, merged_targets[:size].copy(), merged_weights[:size].copy()


@contextmanager
def _ranges(threads, count, degree) -> Iterator[Any]:
    """Give a function that lets `threads` threads choose for ranges of the movers, each with scratch of its own."""
    threads = max(1, min(threads, count // _SMALLEST_PIECE))
    room = _LEAST_TABLE
    while room < 2 * degree:
        room *= 2
    scratches = [
        (np.full(room, -1, np.int32), np.empty(room, np.int64), np.empty(degree, np.int64)) for _ in range(threads)
    ]
    with ThreadPoolExecutor(threads) as pool:

        def over(movers, level, law, chosen):
            bounds = [len(movers) * piece // threads for piece in range(threads + 1)]
            pieces = [movers[first:last] for first, last in pairwise(bounds)]
            list(pool.map(lambda piece, scratch: _choose(piece, level, law, scratch, chosen), pieces, scratches))

        yield over


@njit(nogil=True, cache=True)
def _row_sums(offsets, weights, totals):
    for node in range(totals.size):
        for k in range(offsets[node], offsets[node + 1]):
            totals[node] += weights[k]


@njit(nogil=True, cache=True)
def _splitmix64(state):
    """Return the first output from a state (Steele 2014)."""
    z = state + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@njit(nogil=True, cache=True)
def _by_sub_step(numbers, iteration, order):
    """Put the nodes of each sub-step of an iteration side by side; return where each begins."""
    steps = np.empty(numbers.size, np.uint8)
    starts = np.zeros(SUB_STEPS + 1, np.int64)
    for node in range(numbers.size):
        state = np.uint64(_HASH_STEP) * np.uint64(numbers[node]) + np.uint64(iteration)
        steps[node] = _splitmix64(state) % np.uint64(SUB_STEPS)
        starts[steps[node] + 1] += 1
    for step in range(SUB_STEPS):
        starts[step + 1] += starts[step]
    places = starts.copy()
    for node in range(numbers.size):
        order[places[steps[node]]] = node
        places[steps[node]] += 1
    return starts


@njit(nogil=True, cache=True)
def _choose(movers, level, law, scratch, chosen):
    """Choose for each mover its neighbours' community of greatest gain, or its own where none is greater.

    Fills chosen [n] at the movers' places; nothing that is read here is written, so that ranges do not meet.
    """
    offsets, targets, weights, totals, community, sums = level
    den_two_m, numerator = law
    keys, linked, met = scratch
    for i in range(movers.size):
        if i + _ROWS_AHEAD < movers.size:
            ahead = movers[i + _ROWS_AHEAD]
            for k in range(offsets[ahead], offsets[ahead + 1]):
                prefetch(community, targets[k], 0)
        node = movers[i]
        own, first, last = community[node], offsets[node], offsets[node + 1]
        mask = _LEAST_TABLE
        while mask < 2 * (last - first):
            mask *= 2
        mask -= 1
        linked_own, meeting = 0, 0
        for k in range(first, last):
            c = community[targets[k]]
            if c == own:
                linked_own += 0 if targets[k] == node else weights[k]
                continue
            slot = c & mask
            while keys[slot] >= 0 and keys[slot] != c:
                slot = (slot + 1) & mask
            if keys[slot] < 0:
                keys[slot], linked[slot] = c, 0
                met[meeting] = slot
                meeting += 1
                prefetch(sums, c, 0)
            linked[slot] += weights[k]
        penalty = np.float64(numerator * totals[node])
        best = own
        stay = den_two_m * np.float64(linked_own) - penalty * np.float64(sums[own] - totals[node])
        best_gain = stay
        for j in range(meeting):
            c = keys[met[j]]
            gain = den_two_m * np.float64(linked[met[j]]) - penalty * np.float64(sums[c])
            if gain > best_gain or (gain == best_gain and gain > stay and c < best):
                best, best_gain = c, gain
            keys[met[j]] = -1
        chosen[node] = best


@njit(nogil=True, cache=True)
def _apply(movers, chosen, totals, community, sums):
    """Move all movers at once; return how many went elsewhere."""
    moves = 0
    for node in movers:
        if chosen[node] != community[node]:
            sums[community[node]] -= totals[node]
            sums[chosen[node]] += totals[node]
            community[node] = chosen[node]
            moves += 1
    return moves


@njit(nogil=True, cache=True)
def _split(offsets, targets, community, parts):
    """Give each node the lowest member of its connected part of its community."""
    for node in range(parts.size):
        for k in range(offsets[node], offsets[node + 1]):
            other = targets[k]
            if other < node and community[other] == community[node]:
                a, b = _root(parts, node), _root(parts, other)
                if a < b:
                    parts[b] = a
                elif b < a:
                    parts[a] = b
    for node in range(parts.size):
        parts[node] = _root(parts, node)


@njit(nogil=True, cache=True)
def _merge(links, groups, members, merged):
    """Sum the links of each group's members by the other end's group; return how many links there are."""
    offsets, targets, weights = links
    begins, order = members
    merged_offsets, merged_targets, merged_weights = merged
    count = begins.size - 1
    place_of = np.full(count, -1, np.int64)
    size = 0
    for group in range(count):
        first = size
        for i in range(begins[group], begins[group + 1]):
            node = order[i]
            for k in range(offsets[node], offsets[node + 1]):
                other = groups[targets[k]]
                place = place_of[other]
                if place < first:
                    place = size
                    place_of[other] = place
                    merged_targets[place] = other
                    merged_weights[place] = 0
                    size += 1
                merged_weights[place] += weights[k]
        merged_offsets[group + 1] = size
    return size
