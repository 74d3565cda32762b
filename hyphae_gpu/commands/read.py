"""Commands that read the store: inbox, status."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hyphae_gpu.commands.options import STORE, with_settings
from hyphae_gpu.commands.session import Session, counted, open_session_store, pairs, title_of

if TYPE_CHECKING:
    from rich.console import RenderableType

#: The panel of the help page that these commands stand in.
PANEL = "Look at what happened"
#: What an entry always tells, and what --why adds.
_WHAT = ("epoch", "place", "title", "text", "knowledge_type", "diff_type", "via", "origin", "diff")
_WHY = ("hop", "energy", "score", "resonance", "relevance", "parent")


def register(app: typer.Typer) -> None:
    """Add these commands to the command line."""
    for function in (inbox, status):
        app.command(rich_help_panel=PANEL)(function)


@with_settings(*STORE)
def inbox(
    session: Session,
    agent: Annotated[str, typer.Argument(help="Whose inbox.", metavar="AGENT", show_default=False)],
    since: Annotated[int | None, typer.Option(min=0, help="Only epochs from this one on.", show_default="all")] = None,
    why: Annotated[bool, typer.Option("--why", help="Say of each entry how and why it came.")] = False,
) -> None:
    """Show what reached an agent, newest epoch first, the most relevant first.

    Example:  hyphae-gpu inbox ana --why
    """
    with open_session_store(session) as store:
        found = store.inbox(agent, since)
    entries = [entry | {"title": title_of(entry)} for entry in found]
    fields = (*_WHAT, *_WHY) if why else _WHAT
    shown = [{name: entry[name] for name in fields} for entry in entries]
    session.show({"agent": agent, "entries": shown}, *_inbox_lines(agent, entries, why=why))


def _inbox_lines(agent: str, entries: list[dict[str, Any]], *, why: bool) -> list[RenderableType]:
    from rich.padding import Padding
    from rich.table import Column, Table
    from rich.text import Text

    lines: list[RenderableType] = [
        Text(f"{counted(len(entries), 'entry', 'entries')} in the inbox of {agent}", style="bold")
    ]
    for (epoch, via), group in groupby(entries, key=lambda entry: (entry["epoch"], entry["via"])):
        source = "by gossip" if via == "gossip" else f"through beacon {via}"
        lines += ["", Text(f"epoch {epoch}, {source}", style="bold")]
        for entry in group:
            title = Table.grid(Column(width=3, justify="right"), Column(), padding=(0, 2, 0, 0))
            title.add_row(Text(str(entry["place"] + 1), style="dim"), Text(entry["title"]))
            lines.append(title)
            lines.append(Padding(Text(_about(entry), style="dim"), (0, 0, 0, 5)))
            if why:
                lines.append(Padding(Text(_reason(entry), style="dim"), (0, 0, 0, 5)))
    return lines


def _about(entry: Mapping[str, Any]) -> str:
    return f"{entry['knowledge_type']}, {entry['diff_type']}: {entry['origin']}"


def _reason(entry: Mapping[str, Any]) -> str:
    """Say by which way a diff came, and what it still weighed."""
    steps = [str(entry["origin"])]
    between = entry["hop"] - 1 if entry["parent"] in (None, entry["origin"]) else entry["hop"] - 2
    if between > 0:
        steps.append(counted(between, "node"))
    if entry["parent"] not in (None, entry["origin"]):
        steps.append(str(entry["parent"]))
    way = " > ".join([*steps, "here"])
    return f"{counted(entry['hop'], 'hop')}: {way}; score {entry['score']:.2f}, energy left {entry['energy']:.2f}"


@with_settings(*STORE)
def status(session: Session) -> None:
    """Show what the store holds: nodes, edges, diffs, inboxes and the last epoch's digest.

    Example:  hyphae-gpu status --json
    """
    with open_session_store(session) as store:
        state = store.status()
    session.show(state, pairs("status", {name.replace("_", " "): _said(value) for name, value in state.items()}))


def _said(value: Any) -> Any:
    """Return counts in words: ``cell 4, agent 2``."""
    if isinstance(value, Mapping):
        parts = [f"{name} {_inner(count)}" for name, count in value.items() if count]
        return ", ".join(parts) or "none"
    if isinstance(value, list):
        return ", ".join(f"{item:,}" for item in value)
    return "-" if value is None else value


def _inner(count: Any) -> str:
    if isinstance(count, Mapping):
        return "(" + ", ".join(f"{name} {number:,}" for name, number in count.items()) + ")"
    return f"{count:,}"
