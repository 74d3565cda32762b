"""The command that lists scenes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from hyphae_gpu.commands.options import STORE, with_settings
from hyphae_gpu.commands.session import Session, counted, open_session_store, title_of

if TYPE_CHECKING:
    from rich.console import RenderableType

#: The panel of the help page that this command stands in.
PANEL = "Look at what happened"


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command(rich_help_panel=PANEL)(scenes)


@with_settings(*STORE)
def scenes(
    session: Session,
    limit: Annotated[int, typer.Option(min=1, max=1_000_000, help="How many at most, the largest first.")] = 20,
    cells: Annotated[int, typer.Option(min=0, max=1000, help="Cells shown of each, the most salient first.")] = 3,
) -> None:
    """Show the topics that knowledge has gathered in, the largest first.

    A scene keeps its id while most of its cells stay together; `search --scene ID` looks inside.

    Example:  hyphae-gpu scenes --limit 5
    """
    with open_session_store(session) as store:
        found = store.scenes(limit=limit, shown=cells)
        count = store.status()["scenes"]
    rows = [{**scene, "cells": [_cell(cell) for cell in scene["cells"]]} for scene in found]
    session.show({"count": count, "scenes": rows}, *_lines(rows, count))


def _cell(cell: dict[str, Any]) -> dict[str, Any]:
    return {"id": cell["id"], "title": title_of(cell | {"origin": cell["id"]})}


def _lines(rows: list[dict[str, Any]], count: int) -> list[RenderableType]:
    from rich.padding import Padding
    from rich.text import Text

    of_all = f", the largest {len(rows):,}" if len(rows) < count else ""
    lines: list[RenderableType] = [Text(counted(count, "scene") + of_all, style="bold")]
    for row in rows:
        head = Text(row["name"] or "(no words)", style="bold")
        head.append(f"  {row['id']}, {counted(row['size'], 'cell')}, since epoch {row['epoch']}", style="not bold dim")
        lines += ["", head]
        lines += [Padding(Text(cell["title"]), (0, 0, 0, 2)) for cell in row["cells"]]
        if row["agents"]:
            lines.append(Padding(Text(f"near: {', '.join(row['agents'])}", style="dim"), (0, 0, 0, 2)))
    return lines
