"""Places where a test may kill the process, so that every way to die in the middle of a transaction is tried."""

from __future__ import annotations

import os
import signal

#: What is copied in the two transactions; each has a point before and one after its COPY.
_COPIES = (
    "ingest.ids",
    "ingest.nodes",
    "ingest.updates",
    "ingest.accesses",
    "ingest.edges",
    "ingest.embedder",
    "checkpoint.nodes",
    "checkpoint.made",
    "checkpoint.moved",
    "checkpoint.accessed",
    "checkpoint.ended",
    "checkpoint.ids",
    "checkpoint.diffs",
    "checkpoint.removed",
    "checkpoint.written",
    "checkpoint.edges",
    "checkpoint.inbox",
    "checkpoint.index",
    "checkpoint.superseded",
    "checkpoint.contradictions",
    "checkpoint.resolved",
    "checkpoint.scene",
    "checkpoint.scenes",
    "checkpoint.promotions",
)
#: Every point, in the form ``NAME.before`` and ``NAME.after``.
POINTS = tuple(
    f"{name}.{side}" for name in (*_COPIES, "ingest.commit", "checkpoint.commit") for side in ("before", "after")
)

#: ``POINT:COUNT``: the process is killed the COUNT-th time that it reaches POINT. Set by tests only.
armed: str | None = None
_reached: dict[str, int] = {}


def fail_point(name: str) -> None:
    """Mark a place; does nothing unless a test has armed it."""
    if armed is None:
        return
    wanted, _, count = armed.rpartition(":")
    _reached[name] = _reached.get(name, 0) + 1
    if name == wanted and _reached[name] == int(count):
        os.kill(os.getpid(), signal.SIGKILL)
