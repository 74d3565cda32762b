"""What every command has: the settings in force, a place for results (stdout) and one for progress (stderr)."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass
from datetime import date
from inspect import cleandoc
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import typer

from hyphae_gpu.errors import HyphaeError, UsageError

if TYPE_CHECKING:
    from rich.console import RenderableType

    from hyphae_gpu.commands.watch import Watch
    from hyphae_gpu.config import Effective, Settings
    from hyphae_gpu.store import Store

INTERRUPTED = 130
#: Characters of a title at most: two lines of a narrow terminal.
TITLE_LENGTH = 140


@dataclass(frozen=True, kw_only=True)
class Session:
    """One command's settings and outputs."""

    effective: Effective
    as_json: bool
    quiet: bool

    @classmethod
    def begin(cls, flags: Mapping[str, Any], *, config: Path | None, as_json: bool, quiet: bool) -> Session:
        """Gather the settings; raises UsageError where one cannot be met."""
        from hyphae_gpu.config import effective

        gathered = effective(flags, config=config)
        for name in gathered.ignored:
            say(f"warning: {name} is set but is no setting; `hyphae-gpu config` lists them")
        return cls(effective=gathered, as_json=as_json, quiet=quiet)

    @property
    def settings(self) -> Settings:
        """The settings in force."""
        return self.effective.settings

    def show(self, result: Mapping[str, Any], *readable: RenderableType) -> None:
        """Print the result: one JSON object with --json, else the readable form."""
        if self.as_json:
            sys.stdout.write(json.dumps(plain(result), ensure_ascii=False, allow_nan=False) + "\n")
        else:
            from rich.console import Console

            console = Console(highlight=False)
            with console.capture() as captured:
                for part in readable:
                    # A text has its own line breaks; only tables and the like are laid out here.
                    console.print(part, markup=False, soft_wrap=isinstance(part, str))
            sys.stdout.write(captured.get())
        sys.stdout.flush()

    def watch(self) -> Watch:
        """Return a progress that shows on stderr; a context manager."""
        from hyphae_gpu.commands.watch import Watch

        return Watch(quiet=self.quiet)


def plain(value: Any) -> Any:
    """Return a value in the types that JSON has: records as objects, arrays as lists, times and paths as text.

    NaN and infinity, which JSON lacks, become null.
    """
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, float) and not isfinite(value):
        return None
    if isinstance(value, date):
        return value.isoformat()
    return value if value is None or isinstance(value, int | float) else str(value)


def say(message: str) -> None:
    """Write one message to stderr under the program's name; work goes on where nobody listens there any more."""
    try:
        sys.stderr.write(f"hyphae-gpu: {message}\n")
        sys.stderr.flush()
    except OSError:
        forget(sys.stderr)


def forget(stream: TextIO) -> None:
    """Send what is left for a reader who went away (`| head`) nowhere, so that the end of the process is quiet."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


@contextmanager
def guarded() -> Iterator[None]:
    """Turn errors that a user can meet into one message and the exit code that interfaces promise."""
    try:
        yield
    except HyphaeError as error:
        say(str(error))
        raise typer.Exit(error.exit_code) from None
    except BrokenPipeError:
        forget(sys.stdout)
        raise typer.Exit(0) from None
    except OSError as error:
        say(f"{error.filename}: {error.strerror}" if error.filename else str(error))
        raise typer.Exit(1) from None
    except MemoryError:
        say("not enough memory; a smaller --batch-size needs less")
        raise typer.Exit(1) from None
    except KeyboardInterrupt:
        say("interrupted; what was written before is kept whole")
        raise typer.Exit(INTERRUPTED) from None


def open_session_store(session: Session, *, hold: str | None = None) -> Store:
    """Open the store that the settings name; `hold` is the command that takes the project's lock in order to write."""
    from hyphae_gpu.config import fail_point
    from hyphae_gpu.store import failpoints, open_store

    failpoints.armed = fail_point()
    settings = session.settings
    return open_store(
        database_url=settings.database_url, data_dir=settings.data_dir, project=settings.project, hold=hold
    )


def moment(text: str | None, flag: str) -> int | None:
    """Return a time given as ISO 8601 with zone or epoch seconds in microseconds; raises UsageError."""
    if text is None:
        return None
    from hyphae_gpu.ingest.times import microseconds

    try:
        return microseconds(_number(text))
    except ValueError as error:
        raise UsageError(f"{flag} {error}") from None


def _number(text: str) -> str | int | float:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def counted(count: int, one: str, many: str | None = None) -> str:
    """Return a count with its noun, as ``1,024 rows``."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def table(columns: Sequence[str], rows: Iterable[Sequence[Any]], title: str | None = None) -> RenderableType:
    """Return a table that fits 80 columns; numbers stand to the right."""
    from rich.table import Table
    from rich.text import Text

    rows = list(rows)
    shown = Table(title=title, title_justify="left", box=None, pad_edge=False, header_style="bold")
    for place, name in enumerate(columns):
        numbers = bool(rows) and all(isinstance(row[place], int | float) for row in rows)
        shown.add_column(name, justify="right" if numbers else "left", overflow="fold")
    for row in rows:
        shown.add_row(*(Text(f"{cell:,}" if isinstance(cell, int) else str(cell)) for cell in row))
    return shown


def pairs(title: str, values: Mapping[str, Any]) -> RenderableType:
    """Return names and values, one pair a line."""
    return table((title, ""), [(name.replace("_", " "), value) for name, value in values.items()])


def unwrapped(text: str) -> str:
    """Join the lines of each paragraph, so that help pages can wrap them to the terminal."""
    return "\n\n".join(" ".join(paragraph.split("\n")) for paragraph in cleandoc(text).split("\n\n"))


def title_of(row: Mapping[str, Any]) -> str:
    """Return what a person calls a cell: its payload's title, else its text's first line, cut, else its id."""
    payload = row.get("payload") or {}
    title = payload.get("title") if isinstance(payload, Mapping) else None
    words = " ".join(str(title or row.get("text") or row["origin"]).split())
    return words if len(words) <= TITLE_LENGTH else words[: TITLE_LENGTH - 1].rstrip() + "…"


def can_be_written(out: Path) -> None:
    """Refuse a place for results that cannot hold them before the work is done; raises UsageError."""
    if not out.parent.is_dir() or out.is_dir() or not os.access(out.parent, os.W_OK | os.X_OK):
        raise UsageError(f"--out {out}: cannot be written; expected a file in a folder that exists and is yours")
