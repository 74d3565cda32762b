"""The choice of a row's best targets (spec 3.4) beside a sort."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hyphae_gpu.backends.cpu import fanout as kernel

#: numba's stubs know no argument lists.
last_within: Any = kernel.last_within

#: A score, few enough for ties, or None for an edge that is not semantic.
rows_of = st.lists(st.one_of(st.none(), st.sampled_from([-0.4, 0.0, 0.2, 0.25, 0.7])), min_size=2, max_size=80)


def kept(scores: np.ndarray[Any, Any], targets: np.ndarray[Any, Any], fanout: int) -> list[int]:
    score, node = last_within(scores, targets, fanout)
    within = (scores > score) | ((scores == score) & (targets <= node))
    found: list[int] = targets[within & (scores > -np.inf)].tolist()
    return sorted(found)


def best(scores: np.ndarray[Any, Any], targets: np.ndarray[Any, Any], fanout: int) -> list[int]:
    pairs = zip((-scores).tolist(), targets.tolist(), strict=True)
    return sorted(target for _, target in sorted(pairs)[:fanout])


@settings(max_examples=500, deadline=None)
@given(rows_of, st.integers(1, 12), st.integers(0, 2**32 - 1))
def test_keeps_the_highest_scores_and_of_equal_ones_the_lowest_nodes(
    row: list[float | None], fanout: int, seed: int
) -> None:
    scores = np.array([-np.inf if score is None else score for score in row])
    targets = np.random.default_rng(seed).permutation(1000)[: len(row)].astype(np.int32)
    if (scores > -np.inf).sum() > fanout:
        assert kept(scores, targets, fanout) == best(scores, targets, fanout)


@pytest.mark.parametrize("size", [2, 3, 31, 32, 33, 1000])
@pytest.mark.parametrize("order", ["rising", "falling", "equal", "mixed"])
def test_takes_any_fanout_below_the_row(size: int, order: str) -> None:
    rng = np.random.default_rng(size)
    rising = np.sort(rng.random(size))
    scores = {"rising": rising, "falling": rising[::-1].copy(), "equal": np.ones(size), "mixed": rng.random(size)}[
        order
    ]
    targets = rng.permutation(size).astype(np.int32)
    for fanout in {1, 2, 10, size // 2, size - 1} & set(range(1, size)):
        assert kept(scores, targets, fanout) == best(scores, targets, fanout)
