"""Candidates ranked by the engine, for each event of a moment (spec 3.3, 3.5, 3.12, 3.13)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import torch

from experiments.flows import RULES, Rule
from experiments.passive import fused
from experiments.replay import Moment
from experiments.studies import Event
from hyphae_gpu.backends.protocol import Backend
from hyphae_gpu.config import Settings
from hyphae_gpu.gossip.waves import propagate
from hyphae_gpu.swarm import Flow, GossipRules

F64 = npt.NDArray[np.float64]

RESONANCE, SCORE, ENERGY, ACTIVITY = "resonance", "score", "energy", "activity"
#: The fusions of spec 3.13, and what each fuses; the last is the rule's audience.
FUSIONS = {
    "score + activity": (SCORE, ACTIVITY),
    "score + resonance": (SCORE, RESONANCE),
    "resonance + activity": (RESONANCE, ACTIVITY),
    "all three": (SCORE, RESONANCE, ACTIVITY),
}
AUDIENCE = "all three"
NAMES = (RESONANCE, SCORE, ENERGY, ACTIVITY, *FUSIONS)


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What the engine says of an event's candidates, all of them asked, float64 each; energy 0: gossip did not come.

    resonances: by rule name.
    """

    event: Event
    resonances: dict[str, F64]
    score: F64
    energy: F64
    activity: F64

    @property
    def reached(self) -> npt.NDArray[np.bool_]:
        """Whom gossip reached."""
        return self.energy > 0

    def only(self, rows: npt.NDArray[np.bool_]) -> Asked:
        """Return the same of some candidates."""
        event = replace(
            self.event,
            candidates=self.event.candidates[rows],
            experience=self.event.experience[rows],
            concerned=self.event.concerned[rows],
        )
        return Asked(
            event=event,
            resonances={name: values[rows] for name, values in self.resonances.items()},
            score=self.score[rows],
            energy=self.energy[rows],
            activity=self.activity[rows],
        )

    def rankings(self, rule: str = RULES[0].name, *, among: npt.NDArray[np.bool_] | None = None) -> dict[str, F64]:
        """Return each ranking's values; `among` some candidates, the others stand last in every ranking."""
        chosen = np.ones(len(self.score), np.bool_) if among is None else among
        single = {
            RESONANCE: self.resonances[rule],
            SCORE: self.score,
            ENERGY: self.energy,
            ACTIVITY: self.activity,
        }
        parts = {name: values[chosen] for name, values in single.items()}
        parts |= {name: fused([parts[one] for one in ones]) for name, ones in FUSIONS.items()}
        out = {name: np.full(len(chosen), -np.inf) for name in parts}
        for name, values in parts.items():
            out[name][chosen] = values
        return out


def ask(backend: Backend, moment: Moment, settings: Settings, rules: Sequence[Rule] = RULES[:1]) -> Iterator[Asked]:
    """Yield what the engine says of each event of a moment, resonance by each rule."""
    gossip = GossipRules(sigma_min=settings.sigma_min, cos_min=settings.cos_min, fanout=settings.fanout)
    found, _ = propagate(backend, moment.nodes, moment.adjacency, moment.diffs, gossip)
    flows: dict[object, Flow] = {}
    for rule in rules:
        if rule.flow not in flows:
            flows[rule.flow] = rule.flow(backend, moment)
    activity = _activity(moment)
    for row, event in enumerate(moment.events):
        candidates = torch.from_numpy(event.candidates)
        energy = np.zeros(len(moment.nodes))
        mine = found.diffs == row
        energy[found.nodes[mine].numpy()] = found.energies[mine].numpy()
        yield Asked(
            event=event,
            resonances={
                rule.name: _resonance(backend, flows[rule.flow], moment.diffs.origins[row], candidates, rule)
                for rule in rules
            },
            score=backend.scores(
                moment.nodes, moment.diffs, torch.full((len(candidates),), row), candidates.long()
            ).numpy(),
            energy=energy[event.candidates],
            activity=activity[event.candidates],
        )


def _resonance(backend: Backend, flow: Flow, origin: torch.Tensor, nodes: torch.Tensor, rule: Rule) -> F64:
    offsets = torch.tensor([0, len(nodes)])
    values, _ = backend.resonance(flow, origin.reshape(1), offsets, nodes, law=rule.law)
    return values.numpy().astype(np.float64)


def _activity(moment: Moment) -> F64:
    """Return each node's access weights summed as integers (spec 3.13)."""
    weights = np.maximum(1, np.rint(4096.0 * moment.pairs.recencies.astype(np.float64)))
    return np.bincount(moment.pairs.agents, weights, minlength=len(moment.nodes)).astype(np.float64)
