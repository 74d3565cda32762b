"""Work split over threads: a row range each, so that no result depends on the split."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

#: Ranges a thread gets, so that one slow range does not leave the others idle.
_PIECES_A_THREAD = 8
_SMALLEST_PIECE = 64


def over_ranges(total: int, threads: int, call: Callable[[int, int], object]) -> None:
    """Call `call(start, stop)` for ranges that cover [0, total), on up to `threads` threads; an error is raised on."""
    pieces = min(threads * _PIECES_A_THREAD, total // _SMALLEST_PIECE)
    if threads <= 1 or pieces <= 1:
        call(0, total)
        return
    bounds = [total * piece // pieces for piece in range(pieces + 1)]
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(call, bounds[:-1], bounds[1:]))
