"""Results as text, a table a question."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from experiments import active, passive
from experiments.inboxes import judged as judged_inboxes
from experiments.metrics import Interval
from experiments.rank import ASKED, MEASURES, Figures, Judged, against_best_passive, summary

Rows = list[dict[str, Any]]


def rankings(values: Figures) -> Rows:
    """Return each ranking's figures in one view, the engine's first."""
    figures = summary(values)
    return [{"ranking": name} | figures[name] for name in (*active.NAMES, *passive.NAMES)]


def differences(judged: Judged, view: str = ASKED) -> Rows:
    """Return the paired difference of each fusion to the best passive ranking of each measure."""
    rows = []
    for name in active.FUSIONS:
        row: dict[str, Any] = {"fusion less best passive": name}
        for measure, (rival, difference) in against_best_passive(judged.values[view], name).items():
            row[measure] = difference
            row[f"to ({measure})"] = rival
        rows.append(row)
    return rows


def two(values: Figures, names: Sequence[str]) -> dict[str, Interval]:
    """Return two rankings' figures as one row."""
    figures = summary({name: values[name] for name in names})
    return {f"{name} {measure}": figures[name][measure] for name in names for measure in MEASURES}


def changed(by_name: Mapping[str, Figures], names: Sequence[str], head: str) -> Rows:
    """Return one row a change: figures of some rankings, and the audience's paired lead over the best passive one."""
    return [
        {head: name}
        | two(values, names)
        | {f"lead, {measure}": lead for measure, (_, lead) in against_best_passive(values, active.AUDIENCE).items()}
        for name, values in by_name.items()
    ]


def inboxes(epochs: Any) -> Rows:
    """Return the figures of inboxes, one row a side and k."""
    return [
        {"first": k, "side": side} | figures
        for k, sides in judged_inboxes(epochs).items()
        for side, figures in sides.items()
    ]


def text(rows: Rows) -> str:
    """Return rows as text under a head; numbers to the right."""
    heads = list(dict.fromkeys(head for row in rows for head in row))
    lines = [heads, *([_cell(row.get(head, "")) for head in heads] for row in rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(heads))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
    )


def _cell(value: Any) -> str:
    return f"{value:.3f}" if isinstance(value, float) else str(value)


def plain(value: Any) -> Any:
    """Return a result in the types that JSON has; what is not a number becomes null."""
    if isinstance(value, Interval):
        return plain(vars(value))
    if isinstance(value, Mapping):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
