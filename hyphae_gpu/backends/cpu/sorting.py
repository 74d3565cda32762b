"""Sorting node numbers, which are small: by digits, in time that follows their number."""

from __future__ import annotations

import numpy as np
from numba import njit

_DIGIT_BITS = 11


@njit(nogil=True, cache=True)
def radix_sort(values, count, spare, bits):
    """Sort the first `count` of `values`, int32 in [0, 2^bits); return the array, of the two, that holds the result."""
    digit = (1 << _DIGIT_BITS) - 1
    starts = np.empty((1 << _DIGIT_BITS) + 1, np.int64)
    for shift in range(0, bits, _DIGIT_BITS):
        starts[:] = 0
        for i in range(count):
            starts[((values[i] >> shift) & digit) + 1] += 1
        for i in range(1, starts.size):
            starts[i] += starts[i - 1]
        for i in range(count):
            bucket = (values[i] >> shift) & digit
            spare[starts[bucket]] = values[i]
            starts[bucket] += 1
        values, spare = spare, values
    return values
