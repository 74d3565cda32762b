"""Digests tell different decisions apart and do not see how they were gathered (interfaces, `state_hash`)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from hyphae_gpu.digest import DeliveryDigest, state_hash
from hyphae_gpu.swarm import Deliveries


def deliveries(count: int = 500) -> Deliveries:
    rng = np.random.default_rng(0)
    rows = np.unique(rng.integers(0, 40, (count, 2)), axis=0)
    size = len(rows)
    return Deliveries(
        diffs=torch.from_numpy(rows[:, 0].copy()),
        nodes=torch.from_numpy(rows[:, 1].astype(np.int32)),
        hops=torch.zeros(size, dtype=torch.int32),
        energies=torch.from_numpy(rng.integers(1, 20_000, size).astype(np.int32)),
        scores=torch.zeros(size, dtype=torch.float64),
        parents=torch.full((size,), -1, dtype=torch.int32),
    )


def words(*parts: Deliveries) -> list[int]:
    digest = DeliveryDigest()
    for part in parts:
        digest.add(part)
    return digest.words().tolist()


def test_the_same_for_any_order_and_any_pieces_without_a_warning():
    whole = deliveries()
    shuffled = torch.randperm(len(whole), generator=torch.Generator().manual_seed(0))
    assert words(whole) == words(whole.take(shuffled[:100]), whole.take(shuffled[100:]))
    assert words(whole) != words(whole.take(shuffled[:100]))


def test_hops_parents_and_scores_do_not_count():
    whole = deliveries()
    assert words(whole) == words(
        replace(whole, hops=whole.hops + 1, parents=whole.parents + 1, scores=whole.scores + 0.5)
    )


@pytest.mark.parametrize("name", ["diffs", "nodes", "energies"])
def test_one_other_value_is_another_digest(name):
    whole = deliveries()
    changed = getattr(whole, name).clone()
    changed[7] += 1
    assert words(whole) != words(replace(whole, **{name: changed}))


def test_energies_that_change_places_are_another_digest():
    whole = deliveries()
    swapped = whole.energies.clone()
    swapped[[0, 1]] = swapped[[1, 0]]
    assert whole.energies[0] != whole.energies[1]
    assert words(whole) != words(replace(whole, energies=swapped))


def test_nothing_delivered_is_a_digest_too():
    assert words() == words(deliveries().take(torch.zeros(0, dtype=torch.int64))) == [0, 0]


def test_a_state_hash_sees_values_dtypes_shapes_and_order():
    one, two = np.arange(6, dtype=np.int32), np.zeros(3)
    hashes = [
        state_hash(columns)
        for columns in (
            [one, two],
            [two, one],
            [one.astype(np.int64), two],
            [one.reshape(2, 3), two],
            [np.r_[one[:-1], np.int32(9)], two],
            [one],
        )
    ]
    assert len(set(hashes)) == len(hashes)
    assert state_hash([np.arange(12, dtype=np.int32)[::2]]) == state_hash([np.arange(0, 12, 2, dtype=np.int32)])
