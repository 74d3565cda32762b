"""Enhancement proposals, the people named in them, and who touched them when (data/README.md)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

PROPOSALS, VECTORS, TOUCHES = "kep.jsonl", "kep.minilm.npy", "kep_access_log.jsonl"
SECOND = 1_000_000
DAY = 86_400 * SECOND


class MissingDataError(Exception):
    """The folder does not hold the data; the message says what was looked for and where."""


@dataclass(frozen=True, kw_only=True)
class Proposal:
    """One proposal; people are hashed handles. `created` is microseconds since 1970 UTC, None where none is given."""

    id: str
    title: str
    summary: str
    sig: str
    other_sigs: tuple[str, ...]
    created: int | None
    authors: tuple[str, ...]
    reviewers: tuple[str, ...]
    approvers: tuple[str, ...]

    @property
    def judges(self) -> tuple[str, ...]:
        """Who reviews or approves it, each once."""
        return tuple(dict.fromkeys(self.reviewers + self.approvers))


@dataclass(frozen=True, kw_only=True)
class Touch:
    """A commit changed a proposal's files; people are hashed git names, another space than handles."""

    person: str
    proposal: int
    at: int


@dataclass(frozen=True, kw_only=True)
class Dataset:
    """All proposals, their unit vectors float32 [n, d] (title and summary), and touches in order of time."""

    proposals: tuple[Proposal, ...]
    vectors: npt.NDArray[np.float32]
    touches: tuple[Touch, ...]


def load(folder: Path) -> Dataset:
    """Read the data; raises MissingDataError where a file is missing."""
    missing = [name for name in (PROPOSALS, VECTORS, TOUCHES) if not (folder / name).is_file()]
    if missing:
        raise MissingDataError(f"{folder} lacks {', '.join(missing)}; --data names the folder that has them")
    rows = list(_lines(folder / PROPOSALS))
    vectors = np.load(folder / VECTORS, allow_pickle=False).astype(np.float32)
    if len(vectors) != len(rows):
        raise MissingDataError(f"{folder}: {len(rows)} proposals but {len(vectors)} vectors; fetch both again")
    numbers = {row["id"]: number for number, row in enumerate(rows)}
    touches = (
        Touch(person=row["agent"], proposal=numbers[row["cell"]], at=row["t"] * SECOND)
        for row in _lines(folder / TOUCHES)
    )
    return Dataset(
        proposals=tuple(map(proposal, rows)),
        vectors=vectors / np.linalg.norm(vectors, axis=1, keepdims=True),
        touches=tuple(sorted(touches, key=lambda touch: (touch.at, touch.proposal, touch.person))),
    )


def proposal(row: dict[str, Any]) -> Proposal:
    """Return a row of the file as a proposal."""
    return Proposal(
        id=row["id"],
        title=row["title"],
        summary=row["summary"],
        sig=row["owning_sig"],
        other_sigs=tuple(row["participating_sigs"]),
        created=midnight(row["created"]),
        authors=tuple(row["authors"]),
        reviewers=tuple(row["reviewers"]),
        approvers=tuple(row["approvers"]),
    )


def midnight(date: str) -> int | None:
    """Return the start of a day written as 2024-2-1 in microseconds since 1970 UTC, None where it is no date."""
    try:
        year, month, day = map(int, date.split("-"))
        return int(datetime(year, month, day, tzinfo=UTC).timestamp()) * SECOND
    except ValueError:
        return None


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8") as lines:
        yield from map(json.loads, lines)
