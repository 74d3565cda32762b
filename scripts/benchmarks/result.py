"""A benchmark's result: the JSON that is written and the table that is printed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


class DifferentError(Exception):
    """A peer came to another result, so that comparing times would mean nothing."""


@dataclass(frozen=True)
class Column:
    """A column of the printed table: its head, where its value lies in a row, how it is written."""

    head: str
    path: str
    form: str
    factor: float = 1.0

    def cell(self, row: dict[str, Any]) -> str:
        """Return the value of one row as text, a dash where the row has none."""
        value: Any = row
        for key in self.path.split("."):
            value = value[int(key)] if isinstance(value, list) else value.get(key)
            if value is None:
                return "-"
        if isinstance(value, bool):
            return "yes" if value else "NO"
        return format(value if self.factor == 1 else value * self.factor, self.form)


def table(rows: Sequence[dict[str, Any]], columns: Sequence[Column]) -> str:
    """Return the rows as text, one line each under a head; columns that no row has are left out."""
    lines = [[column.head for column in columns], *([column.cell(row) for column in columns] for row in rows)]
    held = [i for i in range(len(columns)) if any(line[i] != "-" for line in lines[1:])]
    widths = {i: max(len(line[i]) for line in lines) for i in held}
    return "\n".join("  ".join(line[i].rjust(widths[i]) for i in held) for line in lines)
