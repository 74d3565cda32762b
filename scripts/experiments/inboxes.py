"""Inboxes over epochs of 30 days: an agent's first entries, beside what its own memory would have found (spec 3.14).

Both sides choose among the proposals new in the epoch, without those that the agent made, or touched before the epoch's
end; entries of older diffs are left out. What people touched in the epoch is known to both sides; who reviews the
epoch's proposals, to neither.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from experiments.dataset import DAY
from experiments.memory import MemoryProject
from experiments.metrics import Interval, bootstrap
from experiments.passive import cosines
from experiments.studies import EARLIER_PROPOSALS, HORIZON, Study
from hyphae_gpu.config import Settings
from hyphae_gpu.engine import run_epochs

EPOCH = 30 * DAY
FIRST = (5, 10)
INBOX, PASSIVE, EQUAL = "inbox", "passive top k", "passive, as many as the inbox holds"
SIDES = (INBOX, PASSIVE, EQUAL)


@dataclass(frozen=True, kw_only=True)
class Opened:
    """One epoch, by candidate agent: cells that each side offers, best first, and the cells that concern the agent."""

    ours: dict[int, list[int]]
    theirs: dict[int, list[int]]
    concerning: dict[int, set[int]]


def opened(study: Study, vectors: npt.NDArray[np.float32], settings: Settings) -> Iterator[Opened]:
    """Run a study epoch by epoch through the whole engine and yield the epochs that count, in order."""
    project = MemoryProject(study, vectors)
    told, end = 0, int(study.times[0])
    while end < int(study.times[-1]):
        start, end = end, end + EPOCH
        first, cells = project.cells, int(np.searchsorted(study.times, end, side="right"))
        rows = int(np.searchsorted(study.at, end if study.told_at_once else start, side="right"))
        project.take_in(cells, study.agents[told:rows], study.accessed[told:rows], study.at[told:rows])
        told = rows
        run_epochs(project, settings, as_of=end)
        covered = not study.told_at_once or end + HORIZON <= int(study.at[-1])
        if first >= EARLIER_PROPOSALS and cells > first and covered:
            yield _opened(study, vectors, project, first, rows, (start, end))


def _opened(
    study: Study,
    vectors: npt.NDArray[np.float32],
    project: MemoryProject,
    first: int,
    rows: int,
    epoch: tuple[int, int],
) -> Opened:
    start, end = epoch
    new = np.arange(first, project.cells)
    known = np.zeros((len(study.people), len(study.cells)), np.bool_)
    known[study.agents[:rows], study.accessed[:rows]] = True
    made = new[study.makers[new] >= 0]
    known[study.makers[made], made] = True
    aside = known.copy()
    aside[study.barred[:, 0], study.barred[:, 1]] = True

    experience = np.bincount(study.deeds[study.deeds[:, 2] <= start, 0], minlength=len(study.people))
    candidates = np.flatnonzero(experience >= study.history)
    ours: dict[int, list[int]] = {agent: [] for agent in candidates.tolist()}
    receivers, cells, places = project.entries()
    for row in np.lexsort((places, receivers)).tolist():
        agent, cell = int(receivers[row]), int(cells[row])
        if agent in ours and cell >= first and not aside[agent, cell]:
            ours[agent].append(cell)

    texts = vectors[study.cells].astype(np.float64)
    likeness = cosines(known[candidates] @ texts, texts[new])
    order = np.argsort(-likeness, axis=1, kind="stable")
    theirs = {
        agent: [cell for cell in new[places].tolist() if not aside[agent, cell]]
        for agent, places in zip(candidates.tolist(), order, strict=True)
    }
    concerning: dict[int, set[int]] = defaultdict(set)
    for agent, cell, at in study.deeds.tolist():
        due = not study.told_at_once or end < at <= end + HORIZON
        if agent in ours and first <= cell < project.cells and due and not aside[agent, cell]:
            concerning[agent].add(cell)
    return Opened(ours=ours, theirs=theirs, concerning=dict(concerning))


def tally(epoch: Opened, k: int) -> dict[str, tuple[int, int, int]]:
    """Return for each side, over all candidates: hits among the first k, how many were shown, how many concern."""
    sums = {side: np.zeros(3, np.int64) for side in SIDES}
    for agent, ours in epoch.ours.items():
        concerning = epoch.concerning.get(agent, set())
        offered = {INBOX: ours[:k], PASSIVE: epoch.theirs[agent][:k]}
        offered[EQUAL] = epoch.theirs[agent][: len(offered[INBOX])]
        for side, cells in offered.items():
            sums[side] += (len(concerning.intersection(cells)), len(cells), len(concerning))
    return {side: (int(one[0]), int(one[1]), int(one[2])) for side, one in sums.items()}


def judged(epochs: list[Opened]) -> dict[int, dict[str, dict[str, Interval]]]:
    """Return by k and side the precision and recall over all agents and epochs, with intervals over epochs.

    `difference` of the inbox to as many passive entries is in the shown share (precision) and found share (recall).
    """
    out: dict[int, dict[str, dict[str, Interval]]] = {}
    for k in FIRST:
        rows = [tally(epoch, k) for epoch in epochs]
        sums = {side: np.array([row[side] for row in rows], np.float64).reshape(-1, 3) for side in SIDES}
        out[k] = {
            side: {
                "precision": bootstrap(one[:, 0], one[:, 1]),
                "recall": bootstrap(one[:, 0], one[:, 2]),
                "shown": bootstrap(one[:, 1]),
            }
            for side, one in sums.items()
        }
        more = sums[INBOX][:, 0] - sums[EQUAL][:, 0]
        out[k]["inbox less equal passive"] = {
            "precision": bootstrap(more, sums[INBOX][:, 1]),
            "recall": bootstrap(more, sums[INBOX][:, 2]),
            "shown": bootstrap(sums[INBOX][:, 1] - sums[EQUAL][:, 1]),
        }
    return out
