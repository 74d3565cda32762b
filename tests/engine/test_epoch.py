"""Epochs of random swarms equal the plain reading in tests/oracles/epoch.py, in everything they decide."""

from __future__ import annotations

import math
from dataclasses import asdict, fields
from typing import Any

import numpy as np
import pytest

from hyphae_gpu.backends.cpu.backend import CpuBackend
from hyphae_gpu.config import Settings
from hyphae_gpu.engine import Engine
from hyphae_gpu.state import InboxTable, SwarmState
from hyphae_gpu.vocabulary import EdgeKind, EdgeType, KnowledgeType, names
from tests.engine.project import DAY, START, Project, edge_table, records
from tests.oracles import epoch as oracle
from tests.store.sample import differences

KINDS = names(KnowledgeType)


class Life:
    """A swarm that goes on: before each epoch some rows come in, drawn from a seed."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.project = Project()
        self.now = START
        self.cells: list[str] = []
        self.agents: list[str] = []

    def vector(self) -> list[float]:
        """Mostly near one another, on few places, so that copies and ties happen."""
        if self.rng.random() < 0.1:
            return self.rng.normal(size=3).astype(np.float32).tolist()
        return [1.0, *(self.rng.integers(-2, 3, 2) / 4).tolist()]

    def one_of(self, names: list[str]) -> str:
        return names[int(self.rng.integers(len(names)))]

    def moment(self) -> int:
        """Days ago, or later than the next epoch."""
        return self.now + int(self.rng.choice([-40, -3, -1, 0, 0, 4])) * DAY // 2

    def rows(self) -> None:
        for _ in range(int(self.rng.integers(0, 3)) + (not self.agents)):
            interests = {KINDS[int(self.rng.integers(9))]: float(self.rng.choice([0.5, 1.0]))}
            self.agents.append(f"agent {len(self.agents)}")
            self.project.agent(self.agents[-1], self.vector() if self.rng.random() < 0.3 else None, **interests)
            if self.rng.random() < 0.5:
                kind = KINDS[int(self.rng.integers(9))]
                self.project.beacon(f"beacon of {self.agents[-1]}", self.agents[-1], self.vector(), **{kind: 1.0})
        for _ in range(int(self.rng.integers(0, 5)) + 3 * (not self.cells)):
            self.cell(f"cell {len(self.cells)}")
        if self.rng.random() < 0.6:
            self.cell(self.one_of(self.cells))
        for _ in range(int(self.rng.integers(0, 4))):
            self.project.access(self.one_of(self.agents), self.one_of(self.cells), self.moment())
        if self.rng.random() < 0.5 and len(self.cells) > 1:
            source, target = self.rng.choice(self.cells, 2, replace=False)
            limit = int(self.rng.choice([-1, 1]))
            self.project.edge(str(source), str(target), 0.5, bandwidth=limit, causal=self.rng.random() < 0.7)
        self.now += int(self.rng.choice([0, 1, 1, 30])) * DAY

    def cell(self, name: str) -> None:
        older = [cell for cell in self.cells if cell != name]
        self.project.cell(
            name,
            self.vector(),
            by=self.one_of(self.agents) if self.rng.random() < 0.8 else None,
            kind=KINDS[int(self.rng.integers(9))],
            salience=float(np.float32(self.rng.choice([0.04, 0.06, 0.5, 1.0]))),
            at=self.moment(),
            supersedes=self.one_of(older) if older and self.rng.random() < 0.15 else None,
            silent=self.rng.random() < 0.3,
        )
        if name not in self.cells:
            self.cells.append(name)


def check(project: Project, as_of: int, settings: Settings, engine: Engine) -> None:
    """Run an epoch and compare all that it decided with the oracle's reading."""
    before = project.load()
    done = engine.epoch(as_of)
    project.checkpoint(done)
    graph = edge_table(project.topology | project.declared)
    expected = oracle.epoch(before, graph, as_of, settings)

    after = project.load()
    assert done.counts["live_diffs"] == len(expected.new_diffs) + len(before.diffs) - len(expected.ended)
    assert set(done.ended_diffs.tolist()) == expected.ended
    assert [
        (d.number, d.origin, d.sequence, d.type, d.knowledge_type, d.salience, d.energy, d.max_hops, d.epoch_created)
        for d in expected.new_diffs
    ] == list(
        zip(
            done.new_diffs.numbers.tolist(),
            done.new_diffs.origins.tolist(),
            done.new_diffs.sequence.tolist(),
            done.new_diffs.types.tolist(),
            done.new_diffs.knowledge_types.tolist(),
            done.new_diffs.saliences.tolist(),
            done.new_diffs.units.tolist(),
            done.new_diffs.max_hops.tolist(),
            done.new_diffs.epoch_created.tolist(),
            strict=True,
        )
    )
    assert done.new_diffs.vectors.tolist() == [d.vector for d in expected.new_diffs]
    assert dict(zip(after.diffs.numbers.tolist(), after.diffs.ttl.tolist(), strict=True)) == expected.alive
    assert {
        (t, s): weight
        for (s, t, of_type), (kind, weight, _) in project.topology.items()
        if (of_type, kind) == (EdgeType.CAUSAL, EdgeKind.ACCESS) and after.nodes.types[s] == 0
    } == {
        pair: weight
        for pair, weight in expected.pairs.items()
        if (pair[1], pair[0], EdgeType.CAUSAL) not in project.declared
    }
    for agent, position in expected.positions.items():
        assert after.nodes.vectors[agent].tolist() == position
    untouched = np.setdiff1d(np.arange(len(after.nodes)), list(expected.positions))
    assert (after.nodes.vectors[untouched] == before.nodes.vectors[untouched]).all()

    assert done.counts["deliveries"] == len(expected.deliveries)
    assert [asdict(entry) for entry in expected.inbox.entries] == _entries(done.inbox)
    assert done.counts["cut"] == expected.inbox.cut
    assert after.nodes.last_access.tolist() == expected.last_access
    stands_where_the_store_stands(engine, after)
    assert keys_of(after) == expected.held


def keys_of(state: SwarmState) -> set[tuple[int, int, int]]:
    held = state.delivered
    return set(zip(held.agents.tolist(), held.diffs.tolist(), held.vias.tolist(), strict=True))


def stands_where_the_store_stands(engine: Engine, stored: SwarmState) -> None:
    """What an engine goes on from in memory is what it would load (spec 8.3)."""
    for spec in fields(SwarmState):
        if spec.name not in ("accesses", "delivered"):
            assert differences(getattr(engine.state, spec.name), getattr(stored, spec.name), spec.name) == []
    assert len(engine.state.delivered.agents) == len(stored.delivered.agents)
    assert keys_of(engine.state) == keys_of(stored)


def _entries(inbox: InboxTable) -> list[dict[str, Any]]:
    """The written entries in the oracle's words."""
    return [
        {
            "agent": row["agents"],
            "diff": row["diffs"],
            "via": row["vias"],
            "hop": row["hops"],
            "energy": row["energies"] * 1024,
            "score": row["scores"],
            "resonance": row["resonances"],
            "relevance": None if math.isnan(row["relevances"]) else row["relevances"],
            "parent": row["parents"],
            "place": row["places"],
        }
        for row in records(inbox)
    ]


def settings_of(seed: int) -> Settings:
    rng = np.random.default_rng(seed + 1000)
    choices = {
        "fanout": [0, 2, 10],
        "loss": [0.0, 0.0, 0.3],
        "ttl_epochs": [1, 2, 3],
        "inbox_limit": [1, 2, 50],
        "beacon_limit": [1, 50],
        "audience_limit": [None, None, 1, 2],
        "decay_per_day": [0.9, 0.99, 1.0],
        "access_unit_days": [1.0, 30.0],
        "batch_size": [1, 3, 4096],
        "max_hops": [0, 2, 64, 64],
    }
    return Settings(
        threads=1, device="cpu", **{name: values[int(rng.integers(len(values)))] for name, values in choices.items()}
    )


@pytest.mark.parametrize("seed", range(40))
def test_every_epoch_decides_what_the_plain_reading_decides(seed):
    settings = settings_of(seed)
    life = Life(seed)
    for _ in range(5):
        life.rows()
        engine = Engine(life.project.load(), CpuBackend(1), settings)
        check(life.project, life.now, settings, engine)


@pytest.mark.parametrize("seed", range(4))
def test_an_engine_that_goes_on_decides_as_one_that_loads_again(seed):
    """Between two checkpoints of one run nothing is read back: what is kept in memory has to be what was stored."""
    settings = Settings(threads=1, device="cpu", inbox_limit=2, loss=0.1)
    life = Life(seed)
    for _ in range(3):
        life.rows()
    engine = Engine(life.project.load(), CpuBackend(1), settings)
    for days in (0, 1, 2, 40):
        check(life.project, life.now + days * DAY, settings, engine)
