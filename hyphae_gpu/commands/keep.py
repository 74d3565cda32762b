"""Commands about the store as a whole: status, index, export."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from hyphae_gpu.commands.options import STORE, with_settings
from hyphae_gpu.commands.session import Session, counted, open_session_store, pairs

#: The panel of the help page that these commands stand in.
PANEL = "Look after the store"


def register(app: typer.Typer) -> None:
    """Add these commands to the command line."""
    for function in (status, index, export):
        app.command(rich_help_panel=PANEL)(function)


@with_settings(*STORE)
def status(session: Session) -> None:
    """Show what the store holds: nodes, edges, diffs, inboxes and the last epoch's digest.

    Example:  hyphae-gpu status --json
    """
    with open_session_store(session) as store:
        state = store.status()
    session.show(state, pairs("status", {name: _said(value) for name, value in state.items()}))


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


@with_settings(*STORE)
def index(session: Session) -> None:
    """Build pgvector's indexes, which make search fast in a large store.

    Example:  hyphae-gpu index
    """
    with session.watch() as progress, open_session_store(session) as store:
        progress.stage("building indexes")
        built = store.build_indexes(lambda name, share: progress.advance(round(100 * share), 100))
    told = "\n".join(built) or "none: pgvector indexes vectors of at most 4,000 numbers, search is exact here"
    session.show({"indexes": built}, told)


@with_settings(*STORE)
def export(
    session: Session,
    out: Annotated[Path, typer.Option(help="Folder to write to.")] = Path("hyphae-export"),
) -> None:
    """Write every table of the store as a Parquet file.

    Example:  hyphae-gpu export --out backup
    """
    with session.watch() as progress, open_session_store(session) as store:
        progress.stage("writing tables")
        files = store.export(out)
    session.show({"files": files}, f"{counted(len(files), 'table')} in {out}")
