"""One self-contained HTML page about a project: who received what and why, what travelled, what it cost."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from hyphae_gpu.report import metrics, plots
from hyphae_gpu.report.record import Record
from hyphae_gpu.report.wording import reason, short

#: Rows of the table of all agents; the others are counted.
_AGENTS_LISTED = 500


def write_report(record: Record, path: Path) -> Path:
    """Write the page about a record to `path` and return it; an older page is replaced in one step.

    The page needs no other file and no script; whatever texts the record holds are shown as text. Raises OSError where
    the path cannot be written.
    """
    page = render(record)
    draft = path.with_name(f".{path.name[:200]}.{os.getpid()}")
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
    environment.filters.update(count=_count, short=short, share=_share, reason=reason)
    return environment.get_template("page.html").render(_content(record))


def _content(record: Record) -> dict[str, Any]:
    sizes = metrics.fullest(record.sizes)
    scopes = metrics.scopes(record)
    seconds = metrics.stage_seconds(record.epochs)
    figures = (
        ("Whose inbox filled", plots.inbox_figure(sizes)),
        ("How many hops it took", plots.hops_figure(metrics.hops(record.hops))),
        ("Energy and reach by knowledge type", plots.scope_figure(scopes)),
        ("Where the time went", plots.seconds_figure(seconds, [epoch.epoch for epoch in record.epochs])),
        ("How well the graph is connected", plots.degree_figure(metrics.degree_counts(record.topology))),
    )
    return {
        "record": record,
        "totals": metrics.totals(record),
        "sizes": sizes[:_AGENTS_LISTED],
        "unlisted": max(0, len(sizes) - _AGENTS_LISTED),
        "scopes": scopes,
        "epoch_seconds": [math.fsum(values[at] for values in seconds.values()) for at in range(len(record.epochs))],
        "degrees": metrics.spread(record.topology.degrees),
        # Drawn by matplotlib, which escapes every label: the only markup that is not the template's own.
        "figures": [(title, Markup(figure)) for title, figure in figures if figure],
    }


def _count(value: Any) -> str:
    """Return a whole number with thin groups, a real one with three significant digits, a dash for none."""
    if value is None:
        return "–"
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    if isinstance(value, float) and abs(value) < 100:
        return f"{value:.3g}"
    return f"{round(value):,}".replace(",", "\u202f") if math.isfinite(value) else str(value)


def _share(value: float | None) -> str:
    """Return a share as per cent."""
    return "–" if value is None else f"{100 * value:.3g} %"
