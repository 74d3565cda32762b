"""Inboxes over epochs of 30 days: an agent's first entries, beside what its own memory would have found (spec 3.14).

Both sides choose among the proposals new in the epoch, without those that the agent made, or touched before the epoch's
end; entries of older diffs are left out. What people touched in the epoch is known to both sides; who reviews the
epoch's proposals, to neither.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from experiments.dataset import DAY, SECOND
from experiments.intake import Intake
from experiments.metrics import Interval, bootstrap
from experiments.passive import cosines
from experiments.replay import KNOWLEDGE
from experiments.studies import EARLIER_PROPOSALS, HORIZON, Study
from hyphae_gpu.config import Settings
from hyphae_gpu.engine import run_epochs
from hyphae_gpu.store import open_store

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


@dataclass(frozen=True, kw_only=True)
class Epoch:
    """One epoch: from when to when, the first of its new cells and how many cells there are, and the accesses told."""

    start: int
    end: int
    first: int
    cells: int
    told: int


def epochs(study: Study) -> list[Epoch]:
    """Return a study's epochs in order; who reviews an epoch's proposals is told in the next one."""
    made, end, cells = [], int(study.times[0]) - 1, 0
    while end < int(study.times[-1]):
        start, end, first = end, end + EPOCH, cells
        cells = int(np.searchsorted(study.times, end, side="right"))
        told = int(np.searchsorted(study.at, end if study.told_at_once else start, side="right"))
        made.append(Epoch(start=start, end=end, first=first, cells=cells, told=told))
    return made


def opened(study: Study, vectors: npt.NDArray[np.float32], settings: Settings, folder: Path) -> list[Opened]:
    """Run a study epoch by epoch through the embedded store in a folder and return the epochs that count, in order."""
    every = epochs(study)
    with open_store(database_url=None, data_dir=folder / "data", hold="kep_delivery") as store:
        intake = Intake(store, folder, {})
        told = 0
        for epoch in every:
            intake.write(rows(study, vectors, epoch, told))
            told = epoch.told
            run_epochs(store, settings, as_of=epoch.end)
        cells = {name_of(cell): cell for cell in range(len(study.cells))}
        inbox: dict[int, list[tuple[int, int, int]]] = defaultdict(list)
        for agent, name in enumerate(study.people):
            for entry in store.inbox(name) if name in intake.known else ():
                if entry["origin"] in cells:
                    inbox[entry["epoch"]].append((agent, entry["place"], cells[entry["origin"]]))
    out = []
    for number, epoch in enumerate(every, 1):
        covered = not study.told_at_once or epoch.end + HORIZON <= int(study.at[-1])
        if epoch.first >= EARLIER_PROPOSALS and epoch.cells > epoch.first and covered:
            out.append(_opened(study, vectors, epoch, sorted(inbox[number])))
    return out


def name_of(cell: int) -> str:
    """Return the id of a study's cell in the store."""
    return f"cell {cell}"


def rows(study: Study, vectors: npt.NDArray[np.float32], epoch: Epoch, told: int) -> Iterator[dict[str, Any]]:
    """Yield what an epoch brings: its new cells, and the accesses that were not told before."""
    for cell in range(epoch.first, epoch.cells):
        row = {
            "kind": "cell",
            "id": name_of(cell),
            "embedding": vectors[study.cells[cell]].tolist(),
            "knowledge_type": KNOWLEDGE.name.lower(),
            "created_at": int(study.times[cell]) / SECOND,
        }
        yield row | ({"agent": study.people[study.makers[cell]]} if study.makers[cell] >= 0 else {})
    for place in range(told, epoch.told):
        yield {
            "kind": "access",
            "agent": study.people[study.agents[place]],
            "cell": name_of(int(study.accessed[place])),
            "at": int(study.at[place]) / SECOND,
        }


def _opened(
    study: Study, vectors: npt.NDArray[np.float32], epoch: Epoch, entries: Sequence[tuple[int, int, int]]
) -> Opened:
    """Compare one epoch's entries (agent, place, cell), sorted, with what memories find among its new cells."""
    new = np.arange(epoch.first, epoch.cells)
    known = np.zeros((len(study.people), len(study.cells)), np.bool_)
    known[study.agents[: epoch.told], study.accessed[: epoch.told]] = True
    made = new[study.makers[new] >= 0]
    known[study.makers[made], made] = True
    aside = known.copy()
    aside[study.barred[:, 0], study.barred[:, 1]] = True

    experience = np.bincount(study.deeds[study.deeds[:, 2] <= epoch.start, 0], minlength=len(study.people))
    candidates = np.flatnonzero(experience >= study.history)
    ours: dict[int, list[int]] = {agent: [] for agent in candidates.tolist()}
    for agent, _, cell in entries:
        if agent in ours and cell >= epoch.first and not aside[agent, cell]:
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
        due = not study.told_at_once or epoch.end < at <= epoch.end + HORIZON
        if agent in ours and epoch.first <= cell < epoch.cells and due and not aside[agent, cell]:
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
