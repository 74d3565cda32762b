"""A small team with a real store: three topics, a pattern, contradictions open and resolved, losses and sweeps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from hyphae_gpu.config import Settings
from hyphae_gpu.engine import run_epochs
from hyphae_gpu.store import Store
from hyphae_gpu.vocabulary import KnowledgeType
from tests.store import sample

TOPICS = ("queue", "cache", "login")
AGENTS = ("ana", "bo", "cy", "di")
#: What a third of all transmissions do.
LOSS = 0.33


def cell(topic: int, i: int, **given: Any) -> dict[str, Any]:
    """A cell of a topic; the same i stands in the same place."""
    rng = np.random.default_rng([topic, i])
    vector = np.eye(6)[topic] + 0.5 * np.eye(6)[3] + 0.12 * rng.normal(size=6)
    plain = {
        "id": f"{TOPICS[topic]} {i}",
        "text": f"{TOPICS[topic]} {TOPICS[topic]} decision number {i}. And why.",
        "embedding": [float(np.float32(x)) for x in vector],
        "knowledge_type": KnowledgeType.DECISION,
        "salience": 0.9,
        "agent": AGENTS[i % 4],
    }
    return plain | given


def batches() -> list[list[dict[str, Any]]]:
    """The cells of three epochs, in order."""
    first = [cell(topic, i) for topic in range(3) for i in range(8)]
    alike = [
        cell(
            1, 20, id=f"alike {agent}", agent=agent, salience=0.6, text=f"the cache is cold after a start, says {agent}"
        )
        for agent in AGENTS[:3]
    ]
    fact = {"knowledge_type": KnowledgeType.FACT}
    opposed = [
        cell(0, 30, id="port 80", agent="ana", claim_subject="port", claim_value="80", **fact),
        cell(0, 30, id="port 443", agent="bo", claim_subject="port", claim_value="443", **fact),
        cell(2, 31, id="for it", agent="cy", stance=0.8, **fact),
        cell(2, 31, id="against it", agent="di", stance=-0.9, **fact),
    ]
    settling = [
        cell(
            0,
            30,
            id="port 443 it is",
            agent="cy",
            supersedes="port 80",
            claim_subject="port",
            claim_value="443",
            **fact,
        )
    ]
    return [first + alike, opposed, settling]


def run(store: Store, data_dir: Path, **given: Any) -> None:
    """Let a store live through the three epochs."""
    settings = Settings(data_dir=data_dir, threads=1, loss=LOSS, sigma_min=0.1, cos_min=0.0, **given)
    for number, cells in enumerate(batches()):
        agents = [{"id": agent} for agent in AGENTS] if number == 0 else []
        accesses = [{"agent": "di", "cell": "queue 1", "at": sample.NOW}] if number == 0 else []
        store.write_rows(sample.rows(dimension=6, cells=cells, agents=agents, accesses=accesses), diffs=True)
        run_epochs(store, settings, as_of=sample.NOW + number * sample.DAY)
