"""The command `hyphae-gpu`: arguments -> settings -> engine. Nothing heavy is imported before a command runs."""

from __future__ import annotations

import os
import signal
import sys
from io import TextIOWrapper
from types import FrameType
from typing import TextIO

import typer

from hyphae_gpu.commands import contradictions, keep, machine, promotions, read, scenes, tell, work
from hyphae_gpu.commands.session import INTERRUPTED, say, unwrapped

_ABOUT = """Memory that travels through a swarm of agents by itself.

Agents write down what they learn. hyphae-gpu places each piece by its meaning, links it to its neighbours, and lets
news of it spread from link to link as far as its importance carries. What reaches an agent lands in that agent's inbox:
nobody has to ask. Nothing else is needed: a PostgreSQL is built in (./hyphae-data); DATABASE_URL names one of yours.
"""

_EXAMPLES = """[bold]Try it:[/]  hyphae-gpu demo

[bold]Use it:[/]  hyphae-gpu ingest rows.jsonl --embed lsa   (put knowledge in)
         hyphae-gpu run                             (let it travel, one epoch)
         hyphae-gpu inbox ana                       (read what reached ana)
"""

app = typer.Typer(
    name="hyphae-gpu",
    help=unwrapped(_ABOUT),
    epilog=_EXAMPLES,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
tell.register_demo(app)
for commands in (work, read, contradictions, scenes, promotions, tell, keep, machine):
    commands.register(app)


@app.callback(invoke_without_command=True)
def _top(
    version: bool = typer.Option(False, "--version", help="Print the version and stop."),
) -> None:
    if version:
        from importlib.metadata import version as installed

        sys.stdout.write(f"hyphae-gpu {installed('hyphae-gpu')}\n")
        raise typer.Exit


def main() -> None:
    """Run the command line and exit with the code that interfaces promise."""
    for stop in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(stop) is signal.SIG_DFL:
            signal.signal(stop, _leave)
    # Python leaves None where a stream was closed (`>&-`).
    sys.stdout = sys.stdout or _nowhere()
    sys.stderr = sys.stderr or _nowhere()
    if isinstance(sys.stdout, TextIOWrapper):
        # A terminal that lacks a character shows its code: no result is lost to an encoding.
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        app(prog_name="hyphae-gpu")
    except KeyboardInterrupt:
        say("interrupted")
        sys.exit(INTERRUPTED)


def _nowhere() -> TextIO:
    return open(os.open(os.devnull, os.O_WRONLY), "w", encoding="utf-8", closefd=False)


def _leave(number: int, frame: FrameType | None) -> None:
    """Leave as by an exception, so that what is open is closed: transactions, locks, the built-in server."""
    sys.exit(128 + number)
