"""The exceptions of this package; each carries the exit code that interfaces promise."""

from __future__ import annotations

from collections.abc import Sequence


def first_line(error: BaseException) -> str:
    """Return the first line of an error's text that says something, its type's name where none does."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


class HyphaeError(Exception):
    """Base of every error that a user can meet. The message names the input, what was expected, what to do."""

    exit_code = 1


class UsageError(HyphaeError):
    """A setting or argument that cannot be met."""

    exit_code = 2


class BadInputError(HyphaeError):
    """Input rows that were refused; nothing was written.

    `problems` holds (place, reason) of the rows shown, where place reads like ``cells.jsonl row 7``;
    `count` is how many bad rows there were in all.
    """

    exit_code = 3
    shown = 20

    def __init__(self, problems: Sequence[tuple[str, str]], count: int | None = None) -> None:
        self.count = len(problems) if count is None else count
        self.problems = list(problems[: self.shown])
        lines = [f"{place}: {reason}" for place, reason in self.problems]
        rest = self.count - len(lines)
        if rest > 0:
            lines.append(f"... and {rest} more")
        noun = "row" if self.count == 1 else "rows"
        super().__init__(f"{self.count} bad {noun}, nothing was written:\n" + "\n".join(lines))


class DatabaseError(HyphaeError):
    """The store cannot be reached, is too old, or does not hold what was expected."""

    exit_code = 4


class DeviceError(HyphaeError):
    """The device that was asked for cannot be used."""

    exit_code = 5


class BusyError(HyphaeError):
    """Another engine holds this project, or took it over. Try again."""

    exit_code = 75
