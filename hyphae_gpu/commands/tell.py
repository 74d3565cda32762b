"""Commands that tell what happened as a whole: demo, report."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hyphae_gpu.commands.options import DEVICE, EPOCH, GOSSIP, STORE, with_settings
from hyphae_gpu.commands.session import Session, can_be_written, counted, open_session_store

#: The panel of the help page that this command stands in, before all others.
FIRST_PANEL = "Begin here"
PANEL = "Look at what happened"


def register_demo(app: typer.Typer) -> None:
    """Add the demo to the command line."""
    app.command(rich_help_panel=FIRST_PANEL)(demo)


def register(app: typer.Typer) -> None:
    """Add the other commands to the command line."""
    app.command(rich_help_panel=PANEL)(report)


@with_settings("data_dir", *GOSSIP, *EPOCH, *DEVICE)
def demo(
    session: Session,
    out: Annotated[Path, typer.Option(help="Folder for report.html and the rows.")] = Path(),
) -> None:
    """Watch the news of your installed Python libraries reach whom it concerns.

    Reads the documentation of numpy, scipy, torch and others as knowledge of their maintainers, lets it travel, prints
    what reached whom, and writes report.html. Uses the built-in PostgreSQL, project 'demo', begun anew each time.

    Example:  hyphae-gpu demo
    """
    from hyphae_gpu.demo.story import run_demo, story

    with session.watch() as progress:
        made = run_demo(session.settings, directory=out, progress=progress)
    record = made.record
    told = {"seconds": made.seconds, "epochs": record.epochs, "inboxes": record.inboxes, "caught": record.caught}
    session.show({"report": made.report, **told}, "\n".join(story(made)))


@with_settings(*STORE)
def report(
    session: Session,
    out: Annotated[Path, typer.Option(help="The page to write.")] = Path("report.html"),
    agents: Annotated[
        list[str] | None,
        typer.Option("--agent", help="Show this agent's inbox; may be repeated.", show_default="the fullest"),
    ] = None,
) -> None:
    """Write one HTML page on what travelled: inboxes, reach, the graph, where the time went.

    Example:  hyphae-gpu report --agent ana --agent bo
    """
    from hyphae_gpu.chronicle import record_of
    from hyphae_gpu.report import write_report

    can_be_written(out)
    with session.watch() as progress, open_session_store(session) as store:
        progress.stage("reading what happened")
        record = record_of(store, featured=agents or (), settings=session.settings.rules())
    written = write_report(record, out)
    session.show(
        {"report": written, "epochs": len(record.epochs)}, f"{written}: {counted(len(record.epochs), 'epoch')}"
    )
