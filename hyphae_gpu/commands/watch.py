"""Progress on stderr: a live line on a terminal, a plain line a stage elsewhere, nothing when quiet."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import TYPE_CHECKING

from hyphae_gpu.commands.session import say

if TYPE_CHECKING:
    from rich.progress import Progress as Bar
    from rich.progress import TaskID


class Watch:
    """A `progress.Progress` for people; used as a context manager."""

    def __init__(self, *, quiet: bool) -> None:
        """Write nothing yet; with `quiet`, notes are all that will be written."""
        self._plain = not quiet and not sys.stderr.isatty()
        self._bar: Bar | None = None
        self._task: TaskID | None = None
        if not quiet and sys.stderr.isatty():
            self._bar = _live()

    def __enter__(self) -> Watch:
        """Begin to show."""
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Leave the terminal as it was."""
        if self._bar is not None:
            self._bar.stop()

    def stage(self, name: str) -> None:
        """Show that a stage begins."""
        if self._plain:
            say(name)
        if self._bar is not None:
            if self._task is not None:
                self._bar.remove_task(self._task)
            self._task = self._bar.add_task(name, total=None, told="")

    def advance(self, done: int, total: int | None = None) -> None:
        """Move the live line; plain output has stages only."""
        if self._bar is not None and self._task is not None:
            told = f"{done:,}" if total is None else f"{done:,}/{total:,}"
            self._bar.update(self._task, completed=done, total=total, told=told)

    def note(self, text: str) -> None:
        """Write a line that stays."""
        if self._bar is not None:
            self._bar.console.print(f"hyphae-gpu: {text}", markup=False, highlight=False)
        elif self._plain:
            say(text)


def _live() -> Bar:
    from rich.console import Console
    from rich.progress import BarColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    return Bar(
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=20),
        TextColumn("{task.fields[told]}"),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
    )
