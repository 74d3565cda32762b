"""What is near stays near, without chance, whatever the vectors."""

from __future__ import annotations

import numpy as np
import pytest

from hyphae_gpu.report.placing import places


def topics(groups: int, each: int, dimension: int = 32) -> np.ndarray:
    """Vectors around a few far directions; row i is of group i % groups."""
    rng = np.random.default_rng(0)
    centres = np.linalg.qr(rng.normal(size=(dimension, groups)))[0].T
    return np.concatenate([centres + 0.08 * rng.normal(size=(groups, dimension)) for _ in range(each)])


def test_none_one_and_two() -> None:
    assert places([]).shape == (0, 2)
    assert places([[1.0, 2.0]]).tolist() == [[0.0, 0.0]]
    (one, other) = places([[1.0, 0.0], [0.0, 1.0]])
    assert one[0] == pytest.approx(-other[0])
    assert abs(one[0]) > 0.1
    assert (one[1], other[1]) == pytest.approx((0.0, 0.0), abs=1e-9)


def test_the_nearest_in_meaning_are_the_nearest_in_the_plane() -> None:
    groups = 5
    at = places(topics(groups, 8).tolist())
    apart = np.linalg.norm(at[:, None] - at, axis=2) + np.diag(np.full(len(at), np.inf))
    nearest = apart.argmin(axis=1)
    assert (nearest % groups == np.arange(len(at)) % groups).all()


def test_a_chain_is_laid_out_in_its_order() -> None:
    """Each is near the few before and behind it, and as far from all the rest."""
    count, span = 24, 8
    chain = [[float(i <= place < i + span) for place in range(count + span)] for i in range(count)]
    at = places(chain)
    along = at[:, 0] if at[0, 0] < at[-1, 0] else -at[:, 0]
    assert (np.diff(along) > 0).all()
    assert np.ptp(at[:, 1]) < 0.2 * np.ptp(at[:, 0])


def test_equal_input_gives_equal_places_and_their_order_changes_nothing_else() -> None:
    vectors = topics(4, 5)
    first = places(vectors.tolist())
    assert (places(vectors.tolist()) == first).all()
    order = np.random.default_rng(1).permutation(len(vectors))
    assert places(vectors[order].tolist()) == pytest.approx(first[order], abs=0.05 * np.abs(first).max())


def test_scale_changes_nothing_and_lengths_do_not_count() -> None:
    vectors = topics(3, 4)
    longer = vectors * np.linspace(1, 9, len(vectors))[:, None]
    assert places(longer.tolist()) == pytest.approx(places(vectors.tolist()), abs=1e-6)


@pytest.mark.parametrize(
    "vectors",
    [
        [[1.0, 0.0]] * 7,
        [[0.0, 0.0]] * 3,
        [[0.0, 0.0], [1.0, 0.0], [1.0, 0.0]],
        [[1.0, 0.0], [-1.0, 0.0], [1.0, 0.0], [-1.0, 0.0]],
        np.eye(12).tolist(),
    ],
    ids=["all equal", "all zero", "zero and twins", "opposites", "all at right angles"],
)
def test_what_has_no_shape_has_finite_places(vectors: list[list[float]]) -> None:
    at = places(vectors)
    assert at.shape == (len(vectors), 2)
    assert np.isfinite(at).all()
