"""The ways in which a study is run: by the rule, and with one setting or input changed; each a process of its own."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from experiments import inboxes, studies
from experiments.dataset import load
from experiments.flows import RULES
from experiments.rank import Judged, judge
from experiments.replay import SETTINGS, Variation
from hyphae_gpu.backends.cpu.backend import CpuBackend

REVIEWS, TOUCHES = "reviews", "touches"
STUDIES = {REVIEWS: studies.reviews, TOUCHES: studies.touches}


@dataclass(frozen=True, kw_only=True)
class Way:
    """A way to run a study: what differs from the rule."""

    name: str
    settings: dict[str, Any] = field(default_factory=dict)
    variation: Variation = Variation()
    #: keywords of `studies.reviews`; a way that has some is one of that study only
    study: dict[str, Any] = field(default_factory=dict)


BY_THE_RULE = Way(name="the rule")
WAYS = (
    BY_THE_RULE,
    Way(name="all recencies 1", variation=Variation(flat_recency=True)),
    Way(name="the maker logs no access", variation=Variation(own_access=False)),
    Way(name="authors' accesses left out", study={"authoring": False}),
    Way(name="decay 0.99 a month", settings={"decay_per_day": 0.99 ** (1 / 30)}),
    Way(name="decay 0.99 a day", settings={"decay_per_day": 0.99}),
    Way(name="access unit 1 day", settings={"access_unit_days": 1}),
)


@dataclass(frozen=True, kw_only=True)
class Job:
    """One study run one way, or its inboxes."""

    study: str
    way: Way = BY_THE_RULE
    inboxes: bool = False


def jobs(*, ablations: bool) -> list[Job]:
    """Return what is to be run."""
    ways = WAYS if ablations else WAYS[:1]
    ranked = [Job(study=REVIEWS, way=way) for way in ways]
    ranked += [Job(study=TOUCHES, way=way) for way in ways if not way.study]
    return [*(Job(study=study, inboxes=True) for study in STUDIES), *ranked]


def done(folder: Path, wanted: list[Job], workers: int) -> Iterable[tuple[Job, Any]]:
    """Yield each job with its result (`Judged`, or a list of `inboxes.Opened`), in order."""
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        yield from zip(wanted, pool.map(partial(_run, folder), wanted), strict=True)


def _run(folder: Path, job: Job) -> Judged | list[inboxes.Opened]:
    data = load(folder)
    study = STUDIES[job.study](data, **job.way.study)
    settings = SETTINGS.model_copy(update={"threads": 1} | job.way.settings)
    if job.inboxes:
        with tempfile.TemporaryDirectory(prefix="kep-") as room:
            return inboxes.opened(study, data.vectors, settings, Path(room))
    rules = RULES if job.way == BY_THE_RULE else RULES[:1]
    backend = CpuBackend(threads=1)
    return judge(backend, study, data.vectors, rules=rules, settings=settings, variation=job.way.variation)
