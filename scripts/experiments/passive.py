"""Memories that wait to be asked: candidates ranked by what they accessed before, without any graph."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from experiments.replay import SETTINGS, days_between
from experiments.studies import Event, Study
from hyphae_gpu.emergence.drift import RECENCY_RATE

F64 = npt.NDArray[np.float64]

CENTROID, RECENT_CENTROID, BEST_CELL = "profile centroid", "centroid, recency", "best own cell"
POPULARITY, RECENT, FUSED = "popularity", "recent activity", "centroid + recent activity"
NAMES = (CENTROID, RECENT_CENTROID, BEST_CELL, POPULARITY, RECENT, FUSED)


def rankings(study: Study, event: Event, vectors: npt.NDArray[np.float32]) -> dict[str, F64]:
    """Return each ranking's values for an event's candidates, float64; from accesses before the event alone.

    `vectors` float32 [proposals, d], unit vectors. A cell counts once, with the recency of its newest access, as it
    does for the engine (spec 1.3); popularity is how many cells were accessed.
    """
    before = int(np.searchsorted(study.at, event.at))
    place = np.full(len(study.people), -1)
    place[event.candidates] = np.arange(len(event.candidates))
    rows = place[study.agents[:before]]
    rows, cells, at = rows[rows >= 0], study.accessed[:before][rows >= 0], study.at[:before][rows >= 0]
    recency = _recency(days_between(event.at, at))
    newest = np.zeros((len(event.candidates), len(study.cells)))
    np.maximum.at(newest, (rows, cells), recency)
    texts = vectors[study.cells].astype(np.float64)
    asked = texts[event.cell : event.cell + 1]
    values = {
        CENTROID: cosines((newest > 0) @ texts, asked)[:, 0],
        RECENT_CENTROID: cosines(newest @ texts, asked)[:, 0],
        BEST_CELL: np.where(newest > 0, texts @ asked[0], -1.0).max(axis=1),
        POPULARITY: (newest > 0).sum(axis=1).astype(np.float64),
        RECENT: newest.sum(axis=1),
    }
    return values | {FUSED: fused([values[CENTROID], values[RECENT]])}


def fused(values: list[F64]) -> F64:
    """Return the sum of 1 / (20 + rank), a rank being how many are strictly greater (spec 3.13)."""
    ranks = (len(one) - np.searchsorted(np.sort(one), one, side="right") for one in values)
    total: F64 = np.sum([1.0 / (20 + rank) for rank in ranks], axis=0)
    return total


def _recency(days: F64) -> F64:
    rate = RECENCY_RATE / SETTINGS.access_unit_days
    return np.array([math.exp(-rate * day) for day in days.tolist()], np.float64)


def cosines(sums: F64, texts: F64) -> F64:
    """Return the cosine of each row of sums float64 [n, d] with unit vectors [m, d]; 0 where a sum is zero."""
    sizes = np.linalg.norm(sums, axis=1, keepdims=True)
    return np.asarray((sums @ texts.T) / np.where(sizes > 0, sizes, 1.0), np.float64)
