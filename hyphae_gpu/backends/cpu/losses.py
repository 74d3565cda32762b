"""Counter-based losses: Philox4x32-10 (Salmon 2011), the same draw on any device and in any order (spec 3.10)."""

from __future__ import annotations

import numpy as np
from numba import njit

_MASK = np.uint64(0xFFFFFFFF)
_SHIFT = np.uint64(32)
_FACTOR_0, _FACTOR_1 = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
_WEYL_0, _WEYL_1 = np.uint64(0x9E3779B9), np.uint64(0xBB67AE85)


@njit(nogil=True, cache=True)
def philox_word(key_0, key_1, counter_0, counter_1, counter_2, counter_3):
    """Return the first of the four 32-bit words, as uint64; all arguments are taken mod 2^32."""
    k0, k1 = np.uint64(key_0) & _MASK, np.uint64(key_1) & _MASK
    c0, c1 = np.uint64(counter_0) & _MASK, np.uint64(counter_1) & _MASK
    c2, c3 = np.uint64(counter_2) & _MASK, np.uint64(counter_3) & _MASK
    for _ in range(10):
        product_0, product_1 = _FACTOR_0 * c0, _FACTOR_1 * c2
        c0 = (product_1 >> _SHIFT) ^ c1 ^ k0
        c1 = product_1 & _MASK
        c2 = (product_0 >> _SHIFT) ^ c3 ^ k1
        c3 = product_0 & _MASK
        k0, k1 = (k0 + _WEYL_0) & _MASK, (k1 + _WEYL_1) & _MASK
    return c0


@njit(nogil=True, cache=True)
def losses(keys, threshold, counters, sources, targets, diffs, out):
    """Mark which transmissions get lost.

    keys uint64 [2], the seed's low and high words; threshold uint64, floor(loss * 2^32); counters int64
    [m], epoch * 4096 + t; sources, targets int32 and diffs int64 [m]; out bool [m].
    """
    for i in range(out.size):
        word = philox_word(keys[0], keys[1], counters[i], sources[i], targets[i], diffs[i])
        out[i] = word < threshold
