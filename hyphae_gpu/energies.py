"""The energy a diff starts with (spec 3.6, 4.1): one formula, shared by every stage that needs it."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from hyphae_gpu.vocabulary import ENERGY_BASE, ENERGY_LIMIT, ENERGY_MULTIPLIER, ENERGY_UNITS


def initial_energy(
    saliences: npt.NDArray[np.float32], knowledge_types: npt.NDArray[np.int8]
) -> npt.NDArray[np.float64]:
    """Return E = (10 * sqrt(s)) * mu(type) in float64, not rounded between (spec 3.6, 4.1); shape [b].

    `saliences` is float32 [b] in [0, 1], `knowledge_types` int8 [b] (`KnowledgeType`). The unit is the paper's.
    """
    multipliers = np.array(ENERGY_MULTIPLIER, np.float64)[knowledge_types]
    return (ENERGY_BASE * np.sqrt(saliences.astype(np.float64))) * multipliers


def units(energies: npt.NDArray[np.float64]) -> npt.NDArray[np.int32]:
    """Return E0 = floor(1024 * E), energies as integers in units of 1/1024 (spec 3.6); int32 [b].

    `energies` is float64 [b] in the paper's unit. Raises ValueError unless every one lies in [0, 16384); NaN does not.
    """
    fine = (energies >= 0) & (energies < ENERGY_LIMIT)
    if not fine.all():
        row = int(np.flatnonzero(~fine)[0])
        raise ValueError(f"energy {energies[row]} of diff {row} is outside [0, {ENERGY_LIMIT:g}): refused by spec 3.6")
    return np.floor(ENERGY_UNITS * energies).astype(np.int32)
