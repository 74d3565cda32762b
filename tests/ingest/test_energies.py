"""The energy that a diff starts with (spec 3.6, 4.1)."""

from __future__ import annotations

import math

import numpy as np
import pytest

from hyphae_gpu.energies import initial_energy, units
from hyphae_gpu.vocabulary import ENERGY_MULTIPLIER


def test_energy_follows_the_papers_formula_bit_for_bit() -> None:
    rng = np.random.default_rng(3)
    saliences = np.concatenate([rng.random(5000, dtype=np.float32), np.array([0, 1, 1e-45, 0.05], np.float32)])
    types = rng.integers(0, 9, len(saliences)).astype(np.int8)
    expected = [
        (10 * math.sqrt(float(s))) * ENERGY_MULTIPLIER[kind] for s, kind in zip(saliences, types.tolist(), strict=True)
    ]
    energies = initial_energy(saliences, types)
    assert energies.dtype == np.float64
    assert energies.tolist() == expected
    assert units(energies).tolist() == [math.floor(1024 * energy) for energy in expected]


def test_units_round_down_and_reach_the_limit() -> None:
    below = np.nextafter(16384.0, 0.0)
    found = units(np.array([0.0, 0.9999 / 1024, 1 / 1024, below]))
    assert found.dtype == np.int32
    assert found.tolist() == [0, 0, 1, 16384 * 1024 - 1]


@pytest.mark.parametrize("energy", [-1e-9, 16384.0, math.inf, math.nan])
def test_energies_out_of_range_are_refused(energy: float) -> None:
    with pytest.raises(ValueError, match="of diff 1 is outside"):
        units(np.array([1.0, energy]))
