"""Labelled sentence pairs as cells without claims: which of them gossip brings together, and what a verifier adds."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from experiments.dataset import MissingDataError
from experiments.facts import FactProject, cells
from hyphae_gpu.config import Settings
from hyphae_gpu.engine import run_epochs
from hyphae_gpu.plugins import load_function
from hyphae_gpu.vectors import lengths, quantise

PAIRS, SENTENCES, VECTORS = "breaking_nli.jsonl", "breaking_nli.sentences.json", "breaking_nli.sentences.minilm.npy"
#: Text pairs that a verifier gets at once.
BATCH = 64
#: The verifier that says yes to everything near: what is left is similarity alone.
SIMILAR = f"{__name__}:similar"


def similar(pairs: Sequence[tuple[str, str]]) -> list[float]:
    """Say of every pair that it is a contradiction."""
    return [1.0] * len(pairs)


def measured(folder: Path, verifier: str | None, settings: Settings) -> list[dict[str, Any]]:
    """Run one epoch over all sentences; return precision and recall of contradictions among the labelled pairs.

    One row each for the built-in rules, for similarity alone, for a verifier that knew the labels (the most that
    gossip and `theta_sim` leave to a verifier) and for `verifier`, as MODULE:FUNCTION. Raises MissingDataError where a
    file is missing.
    """
    missing = [name for name in (PAIRS, SENTENCES, VECTORS) if not (folder / name).is_file()]
    if missing:
        raise MissingDataError(f"{folder} lacks {', '.join(missing)}; --data names the folder that has them")
    sentences = json.loads((folder / SENTENCES).read_text("utf-8"))
    vectors = np.load(folder / VECTORS, allow_pickle=False).astype(np.float32)
    rows = [json.loads(line) for line in (folder / PAIRS).read_text("utf-8").splitlines()]
    place = {sentence: number for number, sentence in enumerate(sentences)}
    both = [sorted((place[row["a"]], place[row["b"]])) for row in rows]
    labels = {(a, b): row["label"] == "contradiction" for (a, b), row in zip(both, rows, strict=True)}

    table = cells(vectors, np.zeros(len(vectors), np.int64))
    raised = {}
    for name in (None, SIMILAR):
        project = FactProject(table, sentences)
        project.arrive(len(sentences))
        run_epochs(project, settings.model_copy(update={"verifier": name}), as_of=0)
        raised[name] = set(project.raised(project.done[0])) & labels.keys()
    met = sorted(raised[SIMILAR])
    answers = {
        "claims and stances (no sentence has any)": raised[None],
        "similarity alone": raised[SIMILAR],
        "a verifier that knew the labels": {pair for pair in met if labels[pair]},
    }
    if verifier is not None:
        judge = load_function("verifier", verifier)
        said: list[float] = []
        for start in range(0, len(met), BATCH):
            said += judge([(sentences[a], sentences[b]) for a, b in met[start : start + BATCH]])
        answers[verifier] = {pair for pair, value in zip(met, said, strict=True) if value >= 0.5}
    near = _near(vectors, sorted(labels), settings.theta_sim)
    return [
        {
            "asked": asked,
            "labelled pairs": len(labels),
            "near": len(near),
            "near and met": len(met),
            "raised": len(pairs),
            "precision": sum(labels[pair] for pair in pairs) / len(pairs) if pairs else None,
            "recall": sum(labels[pair] for pair in pairs) / sum(labels.values()),
            "recall of near ones": sum(labels[pair] for pair in pairs) / sum(labels[pair] for pair in near),
        }
        for asked, pairs in answers.items()
    ]


def _near(vectors: Any, pairs: Sequence[tuple[int, int]], theta_sim: float) -> list[tuple[int, int]]:
    images = quantise(vectors)
    long = lengths(images)
    a, b = np.array(pairs).T
    dots = np.einsum("ij,ij->i", images[a].astype(np.int32), images[b].astype(np.int32))
    chosen = np.flatnonzero(dots / (long[a] * long[b]) >= theta_sim)
    return [pairs[row] for row in chosen.tolist()]
