"""Digests of what an epoch decided: equal on every device, batch size and thread count, or something is wrong."""

from __future__ import annotations

import hashlib

import numpy as np
import numpy.typing as npt

from hyphae_gpu.swarm import Deliveries

_WORD = np.uint64


class DeliveryDigest:
    """A digest of a multiset of (diff, node, energy): deliveries may be added in any order and any pieces."""

    def __init__(self) -> None:
        self._sums = np.zeros(2, _WORD)

    def add(self, found: Deliveries) -> None:
        """Add some deliveries; their hops, parents and scores do not count (interfaces, `state_hash`)."""
        pairs = _mixed(found.diffs.numpy().astype(_WORD) * _WORD(1 << 32) + found.nodes.numpy().astype(_WORD))
        for i, salt in enumerate((0x9E3779B97F4A7C15, 0xD1B54A32D192ED03)):
            words = _mixed(pairs ^ _mixed(found.energies.numpy().astype(_WORD) + _WORD(salt)))
            # A slice: arrays wrap round, scalars warn.
            self._sums[i : i + 1] += words.sum(dtype=_WORD)

    def words(self) -> npt.NDArray[np.uint64]:
        """Return the digest's two words."""
        return self._sums.copy()


def state_hash(columns: list[npt.NDArray[np.generic]]) -> str:
    """Return the SHA-256 of columns, their dtypes and shapes, in the order given."""
    digest = hashlib.sha256()
    for column in columns:
        digest.update(f"{column.dtype.str}{column.shape}".encode())
        digest.update(np.ascontiguousarray(column).data)
    return digest.hexdigest()


def _mixed(words: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Return each word's splitmix64 output (Steele 2014)."""
    words = words + _WORD(0x9E3779B97F4A7C15)
    words = (words ^ (words >> _WORD(30))) * _WORD(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> _WORD(27))) * _WORD(0x94D049BB133111EB)
    return words ^ (words >> _WORD(31))
