"""Near pairs that oppose each other: the shim, the CPU backend and the plain reading agree with == (spec 6.2)."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hyphae_gpu.backends.cpu.backend import CpuBackend
from hyphae_gpu.backends.cuda import opposing as orchestration
from hyphae_gpu.swarm import Sides
from hyphae_gpu.vectors import lengths
from tests.emergence.contradiction_cases import BELOW_HALF, HALF
from tests.oracles.contradictions import Cell, why
from tests.oracles.cosine import cosine

seeds = st.integers(0, 2**32 - 1)
STANCES = [np.nan, HALF, -HALF, BELOW_HALF, -BELOW_HALF, 0.0, -0.0, 1.0, -1.0]


def made(seed: int, count: int, dimension: int, pairs: int):
    """Images, sides, and pairs of which many oppose."""
    rng = np.random.default_rng(seed)
    images = rng.integers(-127, 128, (count, dimension)).astype(np.int8)
    images[:, 0] = 127
    sides = Sides(
        subjects=rng.integers(-1, 2, count).astype(np.int32),
        values=rng.integers(-1, 2, count).astype(np.int32),
        stances=rng.choice(STANCES, count).astype(np.float32),
    )
    left, right = rng.integers(0, count, (2, pairs)).astype(np.int32)
    return images, sides, left, right


def plain(images, sides, left, right, least):
    """The places and cosines of the pairs that oppose each other, read from the spec."""
    cells = [
        Cell(
            number=i,
            image=images[i].tolist(),
            live=True,
            created_at=0,
            salience=0.5,
            subject=None if sides is None or sides.subjects[i] < 0 else int(sides.subjects[i]),
            value=None if sides is None or sides.values[i] < 0 else int(sides.values[i]),
            stance=None if sides is None or np.isnan(sides.stances[i]) else float(sides.stances[i]),
        )
        for i in range(len(images))
    ]
    places, cosines = [], []
    for i, (a, b) in enumerate(zip(left.tolist(), right.tolist(), strict=True)):
        near = cosine(cells[a].image, cells[b].image)
        if near >= least and (sides is None or why(cells[a], cells[b]) is not None):
            places.append(i)
            cosines.append(near)
    return places, cosines


def listed(found):
    places, cosines = found
    assert (places.dtype, cosines.dtype) == (np.int64, np.float64)
    return places.tolist(), cosines.tolist()


@settings(max_examples=40, deadline=None)
@given(
    seeds,
    st.sampled_from([2, 3, 16, 17, 33, 64, 65, 400]),
    st.sampled_from([1, 2, 9, 40]),
    st.sampled_from([0, 1, 5, 31, 32, 33, 300]),
    st.sampled_from([-1.0, 0.0, 0.3, 1.0]),
    st.booleans(),
)
def test_pairs_equal_the_cpu_backends_and_the_plain_reading(on_cuda, seed, dimension, count, pairs, least, by_rule):
    images, sides, left, right = made(seed, count, dimension, pairs)
    asked = (images, lengths(images), sides if by_rule else None, left, right, least)
    on_cpu = listed(CpuBackend().opposing(*asked))
    assert listed(on_cuda(seed).opposing(*asked)) == on_cpu
    some = (images, sides if by_rule else None, left[:40], right[:40], least)
    assert listed(CpuBackend().opposing(images, lengths(images), some[1], *some[2:])) == plain(*some)


def test_a_pair_at_the_very_threshold_counts(on_cuda):
    images = np.array([[127, 0], [4, 3], [3, 4]], np.int8)
    sides = Sides(
        subjects=np.zeros(3, np.int32), values=np.arange(3, dtype=np.int32), stances=np.full(3, np.nan, np.float32)
    )
    left, right = np.array([0, 0, 1], np.int32), np.array([1, 2, 2], np.int32)
    for backend in (on_cuda(1), CpuBackend()):
        assert listed(backend.opposing(images, lengths(images), sides, left, right, 0.8)) == ([0, 2], [0.8, 0.96])


def test_the_pieces_that_pairs_are_cut_into_do_not_show(on_shim, monkeypatch: pytest.MonkeyPatch):
    images, sides, left, right = made(3, 30, 24, 200)
    asked = (images, lengths(images), sides, left, right, 0.0)
    whole = listed(on_shim(3).opposing(*asked))
    assert len(whole[0]) > 10
    monkeypatch.setattr(orchestration, "_PAIRS_AT_ONCE", 33)
    assert listed(on_shim(3).opposing(*asked)) == whole


def test_threads_do_not_change_pairs():
    images, sides, left, right = made(5, 90, 24, 5_000)
    asked = (images, lengths(images), sides, left, right, 0.1)
    assert listed(CpuBackend(1).opposing(*asked)) == listed(CpuBackend(3).opposing(*asked))
