"""Texts of an inbox in words, the same for the terminal and the page."""

from __future__ import annotations

from hyphae_gpu.report.record import Received

#: Stations of a way that are named; of a longer one the first and the last.
_STATIONS = 3


def reason(entry: Received) -> str:
    """Return why an entry came: from whom, by which way, over how many hops, and how well it fits."""
    maker = f"from {entry.sent.maker or 'nobody named'}"
    maker = maker if entry.way else f"straight {maker}"
    fit = f"{entry.hop} {'hop' if entry.hop == 1 else 'hops'}, score {entry.score:.2f}"
    return f"{maker}{_way(entry)}; {fit}"


def _way(entry: Received) -> str:
    """Return the stations of a way, and what the receiver has to do with the last."""
    way = list(entry.way)
    if not way:
        return ""
    if len(way) > _STATIONS:
        way[1:-1] = [f"{len(way) - 2} more"]
    named = " and ".join(filter(None, (", ".join(way[:-1]), way[-1])))
    if entry.via is not None:
        return f" past {named}, where the beacon listens"
    return f" by way of {named}, {'which it works with' if entry.own else 'near it in meaning'}"


def short(text: str, limit: int = 160) -> str:
    """Return text on one line, cut to a limit."""
    line = " ".join(str(text).split())
    return line if len(line) <= limit else line[: limit - 1] + "…"
