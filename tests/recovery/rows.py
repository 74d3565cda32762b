"""The rows of the job that tests kill: short made-up sentences, so that the built-in embedder is fitted as well."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

_TOPICS = (
    ("cache", "eviction", "memory", "key", "expiry", "warm", "hit", "stale"),
    ("retry", "backoff", "timeout", "request", "jitter", "server", "limit", "queue"),
    ("index", "query", "vacuum", "table", "column", "join", "planner", "lock"),
    ("deploy", "rollback", "canary", "release", "pipeline", "image", "cluster", "node"),
)
_WORDS = ("slow", "fast", "broken", "safe", "large", "old", "new", "busy", "costs", "needs", "breaks", "helps")
_KINDS = ("decision", "constraint", "risk", "pattern", "lesson", "fact", "preference", "context", "task")
_CELLS, _AGENTS, _LATER = 160, 12, 40


def write(folder: Path) -> None:
    """Write first.jsonl and second.jsonl, the same ones every time."""
    rng = np.random.default_rng(20260101)
    for name, rows in (("first", _first(rng)), ("second", _second(rng))):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def _cell(rng: np.random.Generator, name: str, topic: int, **more: Any) -> dict[str, Any]:
    words = [*rng.choice(_TOPICS[topic], 4), *rng.choice(_WORDS, 2)]
    if rng.random() < 0.5:
        # Some say the opposite of one another in nearly the same words.
        words = [*_TOPICS[topic][:5], str(rng.choice(_WORDS))]
        more["claim"] = {"subject": _TOPICS[topic][0], "value": str(rng.choice(["on", "off"]))}
    return {
        "kind": "cell",
        "id": name,
        "text": " ".join(rng.permutation(words).tolist()),
        "knowledge_type": str(rng.choice(_KINDS)),
        "salience": float(rng.choice([0.3, 0.6, 0.9])),
        "created_at": f"2026-01-0{rng.integers(1, 8)}T00:00:00Z",
        **more,
    }


def _agent_of(rng: np.random.Generator, topic: int) -> str:
    return f"agent {topic + len(_TOPICS) * int(rng.integers(_AGENTS // len(_TOPICS)))}"


def _first(rng: np.random.Generator) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = [
        {"kind": "agent", "id": f"agent {i}", "interests": {str(rng.choice(_KINDS)): 0.5}} for i in range(_AGENTS)
    ]
    for i in range(_CELLS):
        topic = i % len(_TOPICS)
        rows.append(_cell(rng, f"cell {i}", topic, agent=_agent_of(rng, topic)))
    rows += [
        {"kind": "beacon", "id": f"watch {i}", "agent": f"agent {i}", "text": " ".join(_TOPICS[-1 - i][:4])}
        for i in range(len(_TOPICS))
    ]
    rows += [
        {"kind": "access", "agent": _agent_of(rng, i % 4), "cell": f"cell {i}", "at": f"2026-01-08T0{i % 10}:00:00Z"}
        for i in range(0, _CELLS, 3)
    ]
    rows += [
        {"kind": "edge", "src": f"cell {i}", "tgt": f"cell {i + 1}", "type": "causal", "weight": 0.5, "bandwidth": 2}
        for i in range(0, 40, 2)
    ]
    return rows


def _second(rng: np.random.Generator) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = [{"kind": "agent", "id": "late agent"}]
    for i in range(_CELLS, _CELLS + _LATER):
        older = {"supersedes": f"cell {i - _CELLS}"} if i % 10 == 0 else {}
        rows.append(_cell(rng, f"cell {i}", i % len(_TOPICS), agent="late agent", **older))
    rows += [_cell(rng, f"cell {i}", (i + 1) % len(_TOPICS), agent=f"agent {i % _AGENTS}") for i in range(3, 60, 4)]
    rows += [
        {"kind": "access", "agent": f"agent {i % _AGENTS}", "cell": f"cell {i}", "at": "2026-01-11T00:00:00Z"}
        for i in range(0, _CELLS, 5)
    ]
    rows += [
        {"kind": "edge", "src": f"cell {i}", "tgt": f"cell {i + 1}", "type": "causal", "weight": 0.75}
        for i in range(30, 50, 2)
    ]
    return rows
