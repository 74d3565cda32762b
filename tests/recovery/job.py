"""A job that tests kill: rows in, two epochs, more rows in, one more epoch, by the real commands in one process."""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path

import faiss  # noqa: F401 - imported before the fork
import sklearn.decomposition
import sklearn.feature_extraction.text  # noqa: F401

import hyphae_gpu.backends.cpu.backend
import hyphae_gpu.commands.watch
import hyphae_gpu.engine
import hyphae_gpu.ingest
import hyphae_gpu.store  # noqa: F401
from hyphae_gpu import cli
from tests.forks import FORKS

PATIENCE_SECONDS = 120.0


@dataclass(frozen=True)
class Step:
    """One command of the job; `epoch` is where the store stands after it."""

    command: tuple[str, ...]
    epoch: int
    transactions: int = 1

    def one_by_one(self) -> list[tuple[str, ...]]:
        """The same in commands of one transaction each."""
        return [self.command] * self.transactions


STEPS = (
    Step(("ingest", "first.jsonl", "--embed", "lsa"), 0),
    Step(("run", "--as-of", "2026-01-10T00:00:00Z"), 2, transactions=2),
    Step(("ingest", "second.jsonl"), 2),
    Step(("run", "--as-of", "2026-01-12T12:00:00Z", "--policy", "recency"), 3),
)


def remaining(step: int, epoch: int) -> list[tuple[str, ...]]:
    """What is left to do from this step on, in a store that has seen so many epochs."""
    commands = []
    for todo in STEPS[step:]:
        if todo.command[0] == "ingest":
            commands.append(todo.command)
        elif todo.epoch > epoch:
            commands.append((*todo.command, "--epochs", str(todo.epoch - epoch)))
        epoch = max(epoch, todo.epoch)
    return commands


@dataclass
class Run:
    """A job's process: what it has begun so far (numbers of commands) and how it ended."""

    process: multiprocessing.process.BaseProcess
    _told: Connection
    begun: list[int] = field(default_factory=list)

    def listen(self, seconds: float) -> bool:
        """Wait so long at most for the next command to begin; return whether one did."""
        try:
            if self._told.poll(seconds):
                self.begun.append(self._told.recv())
                return True
        except EOFError:
            self.process.join(seconds)
        return False

    def wait(self) -> int:
        """Wait for the end; return the exit code, -9 for a process that was killed."""
        self.process.join(PATIENCE_SECONDS)
        while self.listen(0):
            pass
        assert self.process.exitcode is not None, f"still running after {PATIENCE_SECONDS} s"
        return self.process.exitcode


@contextmanager
def started(folder: Path, commands: list[tuple[str, ...]], **environment: str) -> Iterator[Run]:
    """Begin the commands in a process of their own, in this working directory; it does not outlive the block."""
    mine, its = FORKS.Pipe(duplex=False)
    process = FORKS.Process(target=_work, args=(folder, commands, environment, its))
    process.start()
    its.close()
    try:
        yield Run(process, mine)
    finally:
        process.kill()
        process.join(PATIENCE_SECONDS)
        mine.close()


def done(folder: Path, commands: list[tuple[str, ...]], **environment: str) -> None:
    """Run the commands to their end."""
    with started(folder, commands, **environment) as run:
        code = run.wait()
        assert code == 0, (folder / "log").read_text()


def _work(folder: Path, commands: list[tuple[str, ...]], environment: dict[str, str], tell: Connection) -> None:
    os.chdir(folder)
    for name in [name for name in os.environ if name == "DATABASE_URL" or name.startswith("HYPHAE_")]:
        del os.environ[name]
    os.environ.update(environment)
    log = os.open("log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(log, 1)
    os.dup2(log, 2)
    for number, command in enumerate(commands):
        tell.send(number)
        sys.argv = ["hyphae-gpu", *command]
        try:
            cli.main()
        except SystemExit as end:
            if end.code:
                raise
