"""How well a ranking puts those whom an event concerns first, over events, with intervals."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

F64 = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

RESAMPLES, SEED = 4_000, 20_260


def auc(values: npt.NDArray[np.generic], hits: Flags) -> float:
    """Return the chance that a hit has a greater value than another candidate, ties counted half."""
    ours = np.sort(values[~hits])
    below = np.searchsorted(ours, values[hits], side="left")
    upto = np.searchsorted(ours, values[hits], side="right")
    return float((below + upto).mean() / (2 * len(ours)))


def recall_at(values: npt.NDArray[np.generic], hits: Flags, k: int = 10) -> float:
    """Return the share of hits among the k greatest values; ties share the places that are left for them evenly."""
    ordered = np.sort(values)
    if k >= len(ordered):
        return 1.0
    edge = ordered[-k]
    above, tied = values > edge, values == edge
    share = (k - above.sum()) / tied.sum()
    return float(((above & hits).sum() + share * (tied & hits).sum()) / hits.sum())


@dataclass(frozen=True, kw_only=True)
class Interval:
    """A mean with its 95 % bootstrap interval."""

    mean: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.mean:.3f} [{self.low:.3f}, {self.high:.3f}]"


def bootstrap(sums: F64, counts: F64 | None = None) -> Interval:
    """Return the mean of sums over counts with its 95 % percentile interval over resampled rows (events, epochs).

    sums float64 [n]; counts float64 [n], 1 each where left out. The same rows are drawn for every input of n rows, so
    differences of two results taken row by row are paired.
    """
    n = len(sums)
    counts = np.ones(n) if counts is None else counts
    if not n or not counts.sum():
        return Interval(mean=float("nan"), low=float("nan"), high=float("nan"))
    draws = np.random.default_rng(SEED).integers(0, n, (RESAMPLES, n))
    below = counts[draws].sum(axis=1)
    means = sums[draws].sum(axis=1)[below > 0] / below[below > 0]
    low, high = np.percentile(means, (2.5, 97.5))
    return Interval(mean=float(sums.sum() / counts.sum()), low=float(low), high=float(high))
