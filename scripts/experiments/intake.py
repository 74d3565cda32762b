"""Rows into a store, as `hyphae-gpu ingest` takes them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hyphae_gpu.ingest import read_rows
from hyphae_gpu.store.project import Store


@dataclass
class Intake:
    """What goes into one store; agents come with the first row that names them."""

    store: Store
    folder: Path
    interests: dict[str, float]
    known: dict[str, None] = field(default_factory=dict)

    def write(self, rows: Iterable[dict[str, Any]], *, silent: bool = False) -> None:
        """Write rows; silently: as history, of which no news spreads."""
        rows = list(rows)
        new = dict.fromkeys(row["agent"] for row in rows if "agent" in row and row["agent"] not in self.known)
        self.known |= new
        declared = {"interests": self.interests} if self.interests else {}
        rows += [{"kind": "agent", "id": name} | declared for name in new]
        if rows:
            file = self.folder / "rows.jsonl"
            file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
            read = read_rows([file], known=self.store.known(), embed=None, kind=None, now=0)
            self.store.write_rows(read, diffs=not silent)
