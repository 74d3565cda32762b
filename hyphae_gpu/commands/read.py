"""Commands that read the store: inbox, search, status."""

from __future__ import annotations

import typer

from hyphae_gpu.commands.options import STORE, with_settings
from hyphae_gpu.commands.session import Session, open_session_store, pairs

#: The panel of the help page that these commands stand in.
PANEL = "Look at what happened"


def register(app: typer.Typer) -> None:
    """Add these commands to the command line."""
    for function in (status,):
        app.command(rich_help_panel=PANEL)(function)


@with_settings(*STORE)
def status(session: Session) -> None:
    """Show what the store holds.

    Example:  hyphae-gpu status --json
    """
    with open_session_store(session, hold=False) as store:
        state = store.status()
    session.show(state, pairs("Status", state))
