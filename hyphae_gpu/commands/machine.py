"""Commands about this machine: config, doctor."""

from __future__ import annotations

import typer

from hyphae_gpu.commands.options import DEVICE, EPOCH, GOSSIP, STORE, with_settings
from hyphae_gpu.commands.session import Session, table

#: The panel of the help page that these commands stand in.
PANEL = "This machine"


def register(app: typer.Typer) -> None:
    """Add these commands to the command line."""
    for function in (config, doctor):
        app.command(rich_help_panel=PANEL)(function)


@with_settings(*STORE, "embed", *GOSSIP, *EPOCH, *DEVICE)
def config(session: Session) -> None:
    """Show the settings in force and where each comes from.

    A flag wins over the environment (HYPHAE_FANOUT=20; the store: DATABASE_URL), that over the TOML file
    (fanout = 20 in ./hyphae.toml or --config FILE), that over the default.

    Example:  HYPHAE_FANOUT=20 hyphae-gpu config
    """
    rows = session.effective.rows()
    readable = table(
        ("setting", "value", "from"), [(name, "-" if value is None else value, source) for name, value, source in rows]
    )
    session.show({name: {"value": value, "source": source} for name, value, source in rows}, readable)


@with_settings(*STORE, *DEVICE)
def doctor(session: Session) -> None:
    """Check what this machine can do, and say how to mend what it cannot.

    Example:  hyphae-gpu doctor
    """
    from hyphae_gpu.doctor import MARKS, examine, exit_code

    checks = examine(session.settings)
    code = exit_code(checks)
    shown = [(MARKS[check.state], check.name, check.found) for check in checks]
    mend = [(check.name, check.fix) for check in checks if check.fix]
    readable = [table(("", "what", "found"), shown)]
    if mend:
        readable += ["", table(("to mend", ""), mend)]
    session.show({"fine": code == 0, "checks": checks}, *readable)
    if code:
        raise typer.Exit(code)
