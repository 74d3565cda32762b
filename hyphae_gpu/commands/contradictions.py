"""The command that lists contradictions."""

from __future__ import annotations

from collections.abc import Mapping
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
    app.command(rich_help_panel=PANEL)(contradictions)


@with_settings(*STORE)
def contradictions(
    session: Session,
    only_open: Annotated[bool, typer.Option("--open", help="Only those that nothing has resolved.")] = False,
    limit: Annotated[
        int | None, typer.Option(min=1, max=1_000_000, help="How many at most.", show_default="all")
    ] = None,
) -> None:
    """Show which cells contradict each other, the newest first, and what was decided.

    An open one is settled by a cell that supersedes one of the two, or by an update after which they agree.

    Example:  hyphae-gpu contradictions --open
    """
    with open_session_store(session) as store:
        found = store.contradictions(only_open=only_open, limit=limit)
    session.show({"contradictions": found}, *_lines(found, only_open=only_open))


def _lines(found: list[dict[str, Any]], *, only_open: bool) -> list[RenderableType]:
    from rich.padding import Padding
    from rich.text import Text

    what = "open contradiction" if only_open else "contradiction"
    lines: list[RenderableType] = [Text(counted(len(found), what), style="bold")]
    for row in found:
        lines += ["", Text(_head(row), style="bold")]
        lines += [Padding(Text(_side(row, side)), (0, 0, 0, 2)) for side in ("a", "b")]
        if row["status"] != "open":
            lines.append(Padding(Text(_decision(row), style="dim"), (0, 0, 0, 2)))
    return lines


def _head(row: Mapping[str, Any]) -> str:
    about = f" on {row['a_subject']}" if row["reason"] == "claim" else ""
    return f"epoch {row['epoch']}, {row['status']}: by {row['reason']}{about}, similarity {row['similarity']:.2f}"


def _side(row: Mapping[str, Any], side: str) -> str:
    """Say what one of the two cells holds, and whose it is."""
    said = title_of({"text": row[f"{side}_text"], "origin": row[side]})
    if row["reason"] == "claim":
        said = f"{row[f'{side}_value']}: {said}"
    elif row["reason"] == "stance":
        said = f"{row[f'{side}_stance']:+.2f}: {said}"
    maker = row[f"{side}_agent"]
    return f"{said}  ({row[side]}{f', by {maker}' if maker else ''})"


def _decision(row: Mapping[str, Any]) -> str:
    resolution = row["resolution"] or {}
    reason = resolution.get("reason", "no reason was kept")
    if row["winner"]:
        return f"{resolution['policy']}: {row['winner']} wins: {reason}"
    return f"over: {reason}"
