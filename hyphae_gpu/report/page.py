"""One self-contained HTML page about a project: who received what and why, what travelled, what it cost."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from hyphae_gpu.report import metrics, plots, wording
from hyphae_gpu.report.record import Record
from hyphae_gpu.report.scene_map import scene_map
from hyphae_gpu.vocabulary import PROMOTION_ENERGY, PROMOTION_NODES, PROMOTION_SALIENCE, PROMOTION_SCENES

#: Rows of the tables of all agents, of scenes, of epochs (the last ones); the others are counted.
_AGENTS_LISTED, _SCENES_LISTED, _EPOCHS_LISTED = 500, 20, 30


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
    environment.filters.update(
        count=_count,
        share=_share,
        short=wording.short,
        counted=_counted,
        reason=wording.reason,
        source=wording.source,
        why_promoted=wording.why_promoted,
        way_up=wording.way_up,
        why_opposed=wording.why_opposed,
        who_heard=wording.who_heard,
        noted_by=wording.noted_by,
    )
    return environment.get_template("page.html").render(_content(record))


def _content(record: Record) -> dict[str, Any]:
    sizes = metrics.fullest(record.sizes)
    scopes = metrics.scopes(record)
    epochs = record.epochs[-_EPOCHS_LISTED:]
    seconds = metrics.stage_seconds(epochs)
    figures = (
        ("Whose inbox filled", plots.inbox_figure(sizes)),
        ("How many hops it took", plots.hops_figure(metrics.hops(record.hops))),
        ("Energy and reach by knowledge type", plots.scope_figure(scopes)),
        ("Where the time went", plots.seconds_figure(seconds, [epoch.epoch for epoch in epochs])),
        ("Rounds of gossip, and sweeps behind them", plots.rounds_figure(metrics.rounds(epochs))),
        ("How well the graph is connected", plots.degree_figure(metrics.degree_counts(record.topology))),
    )
    return {
        "record": record,
        "totals": metrics.totals(record),
        "sizes": sizes[:_AGENTS_LISTED],
        "unlisted": max(0, len(sizes) - _AGENTS_LISTED),
        "scopes": scopes,
        "epochs": epochs,
        "earlier": len(record.epochs) - len(epochs),
        "epoch_seconds": [math.fsum(values[at] for values in seconds.values()) for at in range(len(epochs))],
        "sums": {name: metrics.summed(record.epochs, name) for name in ("sweeps", "lost", "throttled", "repaired")},
        "emerged": record.emerged,
        "map": scene_map(record.emerged),
        "scenes": record.emerged.scenes[:_SCENES_LISTED],
        "contradictions": sum(record.emerged.contradiction_counts.values()),
        "promoted": {layer: _promoted(record, layer) for layer in (1, 2)},
        "met": Markup(plots.met_figure(metrics.met_after(record.epochs))),
        "rules": {
            "nodes": PROMOTION_NODES,
            "scenes": PROMOTION_SCENES,
            "salience": PROMOTION_SALIENCE,
            "energy": PROMOTION_ENERGY,
        },
        "degrees": metrics.spread(record.topology.degrees),
        # Drawn by matplotlib, which escapes every label: the only markup that is not the template's own.
        "figures": [(title, Markup(figure)) for title, figure in figures if figure],
    }


def _promoted(record: Record, layer: int) -> int:
    """Return how many diffs were promoted to a layer."""
    return sum(count for (_, to), count in record.emerged.promoted.items() if to == layer)


def _count(value: Any) -> str:
    """Return a whole number with thin groups, a real one with three significant digits, a dash for none."""
    if value is None:
        return "–"
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    if isinstance(value, float) and abs(value) < 100:
        return f"{value:.3g}"
    return f"{round(value):,}".replace(",", "\u202f") if math.isfinite(value) else str(value)


def _counted(number: int, one: str) -> str:
    """Return a whole number with its noun."""
    return f"{_count(number)} {one if number == 1 else f'{one}s'}"


def _share(value: float | None) -> str:
    """Return a share as per cent."""
    return "–" if value is None else f"{100 * value:.3g} %"
