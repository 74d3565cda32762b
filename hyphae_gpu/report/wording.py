"""Texts of an inbox in words, the same for the terminal and the page."""

from __future__ import annotations

from hyphae_gpu.report.record import Received


def reason(entry: Received) -> str:
    """Return why an entry came: from whom, over how many hops, through what, and how well it fits."""
    parts = [f"from {entry.sent.maker}" if entry.sent.maker else "from nobody named"]
    parts.append(f"{entry.hop} {'hop' if entry.hop == 1 else 'hops'}")
    if entry.parent is not None:
        if entry.parent == entry.sent.subject:
            parts.append("straight from it")
        elif entry.via is not None:
            parts.append(f"past {entry.parent}, where the beacon listens")
        elif entry.own:
            parts.append(f"through {entry.parent}, which it works with")
        else:
            parts.append(f"through {entry.parent}, near it in meaning")
    parts.append(f"score {entry.score:.2f}")
    return ", ".join(parts)


def short(text: str, limit: int = 160) -> str:
    """Return text on one line, cut to a limit."""
    line = " ".join(str(text).split())
    return line if len(line) <= limit else line[: limit - 1] + "…"
