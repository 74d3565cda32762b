"""One study, one way to run the engine: every ranking judged at every event, summed up over events."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from experiments import active, passive
from experiments.active import AUDIENCE, ask
from experiments.flows import RULES, Rule
from experiments.metrics import Interval, auc, bootstrap, recall_at
from experiments.replay import SETTINGS, Variation, replay
from experiments.studies import Study
from hyphae_gpu.backends.protocol import Backend
from hyphae_gpu.config import Settings

F64 = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

#: By ranking and measure, one value an event.
Figures = dict[str, dict[str, F64]]
MEASURES = {"auc": auc, "recall@10": recall_at}
#: Who is ranked: every candidate, asked; all, but those gossip did not reach last; only those it reached; and every
#: candidate of other experience than the study's.
ASKED, DELIVERED, AMONG_REACHED = "every candidate asked", "unreached last", "among the reached"
VIEWS = (ASKED, DELIVERED, AMONG_REACHED)
EXPERIENCES = (1, 2, 3, 5)


@dataclass(frozen=True, kw_only=True)
class Judged:
    """A study's figures: by view, ranking and measure, one value an event (float64, in order of events).

    An event that has nobody to tell apart in a view is not in it. rules: where every candidate is asked, by flow rule,
    resonance and audience. experiences: the same by least experience. reach float64 [n, 2]: the shares of candidates
    and of those concerned that gossip reached. sizes float64 [n, 2]: how many candidates and concerned there are.
    """

    values: dict[str, Figures]
    rules: dict[str, Figures]
    experiences: dict[str, Figures]
    reach: F64
    sizes: F64


def judge(
    backend: Backend,
    study: Study,
    vectors: npt.NDArray[np.float32],
    *,
    rules: Sequence[Rule] = RULES[:1],
    settings: Settings = SETTINGS,
    variation: Variation | None = None,
) -> Judged:
    """Replay a study and judge every ranking at every event."""
    values, by_rule, by_experience = _nested(), _nested(), _nested()
    reach, sizes = [], []
    for moment in replay(study, vectors, backend, settings=settings, variation=variation):
        for whole in ask(backend, moment, settings, rules):
            waiting = passive.rankings(study, whole.event, vectors)
            for least in EXPERIENCES:
                some = whole.event.experience >= least
                ranked = whole.only(some).rankings() | {name: one[some] for name, one in waiting.items()}
                _add(by_experience[f"experience >= {least}"], ranked, whole.event.concerned[some])
            some = whole.event.experience >= study.history
            asked, told = whole.only(some), {name: one[some] for name, one in waiting.items()}
            hits, reached = asked.event.concerned, asked.reached
            if not 0 < hits.sum() < len(hits):
                continue
            _add(values[ASKED], asked.rankings() | told, hits)
            _add(values[DELIVERED], asked.rankings(among=reached) | told, hits)
            among = asked.only(reached).rankings() | {name: one[reached] for name, one in told.items()}
            _add(values[AMONG_REACHED], among, hits[reached])
            for rule in rules:
                ranked = asked.rankings(rule.name)
                _add(by_rule[rule.name], {name: ranked[name] for name in (active.RESONANCE, AUDIENCE)}, hits)
            reach.append((reached.mean(), reached[hits].mean()))
            sizes.append((len(hits), hits.sum()))
    return Judged(
        values=_arrays(values),
        rules=_arrays(by_rule),
        experiences=_arrays(by_experience),
        reach=np.array(reach, np.float64).reshape(-1, 2),
        sizes=np.array(sizes, np.float64).reshape(-1, 2),
    )


def summary(values: Figures) -> dict[str, dict[str, Interval]]:
    """Return each ranking's mean over events by measure, with its interval."""
    return {
        name: {measure: bootstrap(each) for measure, each in by_measure.items()} for name, by_measure in values.items()
    }


def best(values: Figures, names: Iterable[str], measure: str) -> str:
    """Return which of some rankings has the greatest mean."""
    return max(names, key=lambda name: float(values[name][measure].mean()))


def against_best_passive(values: Figures, ranking: str) -> dict[str, tuple[str, Interval]]:
    """Return by measure the best passive ranking of all events, and the paired difference of a ranking to it."""
    out = {}
    for measure in MEASURES:
        rival = best(values, passive.NAMES, measure)
        out[measure] = (rival, bootstrap(values[ranking][measure] - values[rival][measure]))
    return out


def _nested() -> Any:
    return defaultdict(lambda: defaultdict(lambda: defaultdict(list)))


def _add(into: dict[str, dict[str, list[float]]], ranked: dict[str, F64], hits: Flags) -> None:
    """Judge rankings of one event, where there is anybody to tell apart."""
    if 0 < hits.sum() < len(hits):
        for name, values in ranked.items():
            for measure, of in MEASURES.items():
                into[name][measure].append(of(values, hits))


def _arrays(values: dict[str, dict[str, dict[str, list[float]]]]) -> dict[str, Figures]:
    return {
        view: {name: {measure: np.array(each) for measure, each in one.items()} for name, one in names.items()}
        for view, names in values.items()
    }
