"""Philox4x32-10 against the vectors published with Random123 (Salmon 2011), and the losses it decides (spec 3.10)."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from hyphae_gpu.backends.cpu.backend import CpuBackend
from hyphae_gpu.backends.cpu.losses import philox_word
from hyphae_gpu.swarm import GossipRules
from tests.oracles import gossip as oracle

PUBLISHED = [
    ((0, 0), (0, 0, 0, 0), 0x6627E8D5),
    ((0xFFFFFFFF, 0xFFFFFFFF), (0xFFFFFFFF,) * 4, 0x408F276D),
    ((0xA4093822, 0x299F31D0), (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344), 0xD16CFE09),
]


@pytest.mark.parametrize(("key", "counter", "word"), PUBLISHED)
def test_draws_the_published_words(key: tuple[int, int], counter: tuple[int, ...], word: int) -> None:
    assert philox_word(*key, *counter) == word
    assert oracle.philox(key, counter) == word


def test_marks_the_losses_the_rule_names() -> None:
    rng = np.random.default_rng(5)
    sources, targets = rng.integers(0, 2**31 - 1, (2, 500)).astype(np.int32)
    diffs = rng.integers(0, 2**40, 500)
    rules = GossipRules(loss=0.37, seed=(0x9E37 << 32) + 5, epoch=3)
    found = CpuBackend().losses(rules, torch.full((500,), 9), *map(torch.from_numpy, (sources, targets, diffs)))
    expected = [
        oracle.lost(rules, 9, *row) for row in zip(sources.tolist(), targets.tolist(), diffs.tolist(), strict=True)
    ]
    assert found.tolist() == expected
    assert 150 < sum(expected) < 220
