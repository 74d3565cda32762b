"""One self-contained HTML page about a project: who received what and why, what travelled, what it cost."""

from __future__ import annotations

import math
import os
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from hyphae_gpu.report import metrics, plots
from hyphae_gpu.report.record import Received, Record, Sent
from hyphae_gpu.report.wording import reason

#: Agents whose inboxes are shown, and entries of each.
_AGENTS_SHOWN = 6
_ENTRIES_SHOWN = 6
_FARTHEST_SHOWN = 10


@dataclass(frozen=True, kw_only=True)
class Line:
    """An inbox entry as the page shows it."""

    entry: Received
    sent: Sent
    why: str


@dataclass(frozen=True, kw_only=True)
class Inbox:
    """One agent's inbox as the page shows it: the best entries first, how many there are in all."""

    agent: str
    lines: list[Line]
    entries: int


def write_report(record: Record, path: Path) -> Path:
    """Write the page about a record to `path` and return it; an older page is replaced in one step.

    The page needs no other file and no script; whatever texts the record holds are shown as text. Raises OSError where
    the path cannot be written.
    """
    page = render(record)
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        draft.write_text(page, encoding="utf-8", errors="replace")
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
    return path


def render(record: Record) -> str:
    """Return the page's HTML."""
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(count=_count, short=_short, share=_share)
    return environment.get_template("page.html").render(_content(record))


def _content(record: Record) -> dict[str, Any]:
    sizes = metrics.inbox_sizes(record)
    reaches = metrics.reaches(record)
    scopes = metrics.scopes(record)
    seconds = metrics.stage_seconds(record.epochs)
    figures = (
        ("Whose inbox filled", plots.inbox_figure(sizes)),
        ("How many hops it took", plots.hops_figure(metrics.hops(record.received))),
        ("Energy and reach by knowledge type", plots.scope_figure(scopes)),
        ("Where the time went", plots.seconds_figure(seconds, [epoch.epoch for epoch in record.epochs])),
        ("How well the graph is connected", plots.degree_figure(metrics.degree_counts(record.topology))),
    )
    return {
        "record": record,
        "sizes": sizes,
        "inboxes": inboxes(record, sizes),
        "caught": caught(record),
        "farthest": [reach for reach in reaches if reach.agents][:_FARTHEST_SHOWN],
        "arrived": sum(1 for reach in reaches if reach.agents),
        "reached": sum(1 for size in sizes if size.entries),
        "scopes": scopes,
        "seconds": seconds,
        "totals": [math.fsum(values[at] for values in seconds.values()) for at in range(len(record.epochs))],
        "rounds": metrics.rounds(record.epochs),
        "degrees": metrics.spread(record.topology.degrees),
        "inbox_spread": metrics.spread(Counter(size.entries for size in sizes)),
        "open_shares": sorted(record.open_shares.items(), key=lambda item: (-item[1], item[0])),
        # Drawn by matplotlib, which escapes every label: the only markup that is not the template's own.
        "figures": [(title, Markup(figure)) for title, figure in figures if figure],
    }


def inboxes(record: Record, sizes: Sequence[metrics.InboxSize]) -> list[Inbox]:
    """Return the featured agents' inboxes, or the fullest: what gossip brought, newest epoch and best place first."""
    sent = {diff.number: diff for diff in record.sent}
    by_agent: defaultdict[str, list[Received]] = defaultdict(list)
    for entry in record.received:
        if entry.diff in sent:
            by_agent[entry.agent].append(entry)
    chosen = list(record.featured) or [size.agent for size in sizes[:_AGENTS_SHOWN]]
    found = []
    for agent in chosen:
        entries = sorted(by_agent[agent], key=lambda entry: (entry.via or "", entry.place, -entry.epoch, entry.diff))
        lines = [Line(entry=entry, sent=sent[entry.diff], why=reason(entry, sent[entry.diff])) for entry in entries]
        if lines:
            found.append(Inbox(agent=agent, lines=lines[:_ENTRIES_SHOWN], entries=len(lines)))
    return found


def caught(record: Record) -> list[Inbox]:
    """Return what each beacon caught, the fullest first (ties: by name); `agent` is then the beacon's id."""
    sent = {diff.number: diff for diff in record.sent}
    by_beacon: defaultdict[str, list[Received]] = defaultdict(list)
    for entry in record.received:
        if entry.via is not None and entry.diff in sent:
            by_beacon[entry.via].append(entry)
    found = []
    for beacon, entries in by_beacon.items():
        entries.sort(key=lambda entry: (-entry.score, entry.diff))
        lines = [Line(entry=entry, sent=sent[entry.diff], why=reason(entry, sent[entry.diff])) for entry in entries]
        found.append(Inbox(agent=beacon, lines=lines[:_ENTRIES_SHOWN], entries=len(lines)))
    return sorted(found, key=lambda inbox: (-inbox.entries, inbox.agent))


def _count(value: Any) -> str:
    """Return a whole number with thin groups, a real one with three significant digits, a dash for none."""
    if value is None:
        return "–"
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    return f"{value:,}".replace(",", "\u202f") if isinstance(value, int) else f"{value:.3g}"


def _share(value: float | None) -> str:
    """Return a share as per cent."""
    return "–" if value is None else f"{100 * value:.3g} %"


def _short(text: str, limit: int = 160) -> str:
    """Return text cut to a limit, on one line."""
    line = " ".join(str(text).split())
    return line if len(line) <= limit else line[: limit - 1] + "…"
