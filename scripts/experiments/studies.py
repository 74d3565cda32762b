"""The two questions, as events in time order: what was known at each moment, whom it concerned afterwards.

Settled before any result was seen, the same for both questions:
- a moment is a time at which proposals appear; an event needs `EARLIER_PROPOSALS` proposals before its moment, and at
  least one candidate whom it concerned and one whom it did not;
- known at a moment are accesses of earlier times, and that a proposal's maker made it;
- candidates have earlier experience of what is asked, at least `Study.history` times, and did not make or touch the
  proposal yet.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from experiments.dataset import DAY, Dataset

EARLIER_PROPOSALS = 150
#: Proposals reviewed or approved before that make a person a candidate of the first question; touched, of the second.
REVIEWS_BEFORE, TOUCHES_BEFORE = 2, 1
HORIZON = 365 * DAY

I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class Event:
    """A proposal appears: its cell number and the time.

    candidates int32, agent numbers, ascending, of any experience; experience int64: the proposals they judged or
    touched before; concerned bool: whom it concerned afterwards.
    """

    cell: int
    at: int
    candidates: I32
    experience: I64
    concerned: npt.NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True)
class Study:
    """One question. Agents and cells are numbered apart; cells in order of time.

    cells int64 [c]: each cell's proposal; times int64 [c]; makers int32 [c], an agent or -1; and the accesses sorted by
    time: agents, accessed int32 (agent, cell), at int64. A row counts from the moment *after* its time, so an event
    never sees what happened at its own moment, apart from the maker's access. history: the experience that makes
    a candidate; deeds int64 [k, 3] (agent, cell, time), what experience counts and what is foreseen; barred int64
    [m, 2]: (agent, cell) that are no candidates ever; told_at_once: whether a deed is known at its time and concerns
    people for a year, or else belongs to the proposal from its first day and is known later; events in order of time.
    """

    name: str
    history: int
    people: tuple[str, ...]
    cells: I64
    times: I64
    makers: I32
    agents: I32
    accessed: I32
    at: I64
    deeds: I64
    barred: I64
    told_at_once: bool
    events: tuple[Event, ...]


def reviews(data: Dataset, *, earlier: int = EARLIER_PROPOSALS, authoring: bool = True) -> Study:
    """Who reviews or approves a proposal, at the day it was created.

    Accesses: every role (author, reviewer, approver) in a proposal, at its day; without `authoring` no author's. The
    maker is the first author; no author is a candidate. Proposals without a date are left out.
    """
    dated = [(one.created, number) for number, one in enumerate(data.proposals) if one.created is not None]
    order = [number for _, number in sorted(dated)]
    times = [at for at, _ in sorted(dated)]
    chosen = [data.proposals[number] for number in order]
    people = tuple(sorted({person for one in chosen for person in (*one.authors, *one.judges)}))
    numbers = {person: number for number, person in enumerate(people)}
    rows = [
        (at, numbers[person], cell)
        for cell, (at, one) in enumerate(zip(times, chosen, strict=True))
        for person in dict.fromkeys((*(one.authors if authoring else ()), *one.judges))
    ]
    judged: dict[int, list[int]] = defaultdict(list)
    for at, one in zip(times, chosen, strict=True):
        for person in one.judges:
            judged[numbers[person]].append(at)
    events = []
    for cell, (at, one) in enumerate(zip(times, chosen, strict=True)):
        authors = {numbers[person] for person in one.authors}
        before = {person: bisect_left(when, at) for person, when in judged.items() if person not in authors}
        events.append((cell, at, before, {numbers[person] for person in one.judges}))
    makers = [numbers[one.authors[0]] if one.authors and authoring else -1 for one in chosen]
    study = _study("who reviews or approves", REVIEWS_BEFORE, people, order, times, makers, rows, events, earlier)
    deeds = [(numbers[person], cell, times[cell]) for cell, one in enumerate(chosen) for person in one.judges]
    barred = [(numbers[person], cell) for cell, one in enumerate(chosen) for person in one.authors]
    return replace(study, deeds=_table(deeds, 3), barred=_table(barred, 2), told_at_once=False)


def touches(data: Dataset, *, earlier: int = EARLIER_PROPOSALS) -> Study:
    """Who touches a proposal for the first time within a year after its own first touch.

    Accesses: the log. The maker is who touched it first. Events whose year the log does not cover are left out.
    """
    people = tuple(sorted({touch.person for touch in data.touches}))
    numbers = {person: number for number, person in enumerate(people)}
    firsts: dict[int, int] = {}
    makers: dict[int, int] = {}
    for touch in data.touches:
        if touch.proposal not in firsts:
            firsts[touch.proposal] = touch.at
            makers[touch.proposal] = numbers[touch.person]
    order = sorted(firsts, key=lambda number: (firsts[number], number))
    times = [firsts[number] for number in order]
    place = {number: cell for cell, number in enumerate(order)}
    rows = [(touch.at, numbers[touch.person], place[touch.proposal]) for touch in data.touches]
    first_touch: dict[int, dict[int, int]] = defaultdict(dict)
    touched: dict[int, list[int]] = defaultdict(list)
    for at, person, cell in rows:
        if person not in first_touch[cell]:
            first_touch[cell][person] = at
            touched[person].append(at)
    events = []
    for cell, at in enumerate(times):
        if at + HORIZON > rows[-1][0]:
            break
        already = {person for person, t in first_touch[cell].items() if t <= at}
        before = {person: bisect_left(when, at) for person, when in touched.items() if person not in already}
        newly = {person for person, t in first_touch[cell].items() if at < t <= at + HORIZON}
        events.append((cell, at, before, newly))
    name, makers_of = "who newly touches it within a year", [makers[number] for number in order]
    study = _study(name, TOUCHES_BEFORE, people, order, times, makers_of, rows, events, earlier)
    deeds = [(person, cell, at) for cell, one in first_touch.items() for person, at in one.items()]
    return replace(study, deeds=_table(deeds, 3))


def _study(
    name: str,
    history: int,
    people: tuple[str, ...],
    order: list[int],
    times: list[int],
    makers: list[int],
    rows: list[tuple[int, int, int]],
    events: Iterable[tuple[int, int, dict[int, int], set[int]]],
    earlier: int,
) -> Study:
    when = np.array(times, np.int64)
    log = _table(sorted(rows), 3)
    made = []
    for cell, at, before, concerned in events:
        candidates = np.array(sorted(person for person, times_before in before.items() if times_before), np.int32)
        hits = np.isin(candidates, list(concerned))
        if int(np.searchsorted(when, at)) >= earlier and 0 < hits.sum() < len(hits):
            experience = np.array([before[person] for person in candidates.tolist()], np.int64)
            made.append(Event(cell=cell, at=at, candidates=candidates, experience=experience, concerned=hits))
    return Study(
        name=name,
        history=history,
        people=people,
        cells=np.array(order, np.int64),
        times=when,
        makers=np.array(makers, np.int32),
        agents=log[:, 1].astype(np.int32),
        accessed=log[:, 2].astype(np.int32),
        at=log[:, 0],
        deeds=_table([], 3),
        barred=_table([], 2),
        told_at_once=True,
        events=tuple(made),
    )


def _table(rows: Sequence[tuple[int, ...]], width: int) -> I64:
    return np.array(rows, np.int64).reshape(-1, width)
