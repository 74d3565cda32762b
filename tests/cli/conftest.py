"""The real command, run as its users run it: a process of its own, in a folder of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from hyphae_gpu.errors import HyphaeError
from hyphae_gpu.store.embedded import find_binaries

CHECKOUT = Path(__file__).parents[2]
COMMAND = (sys.executable, "-W", "error", "-m", "hyphae_gpu")
PATIENCE_SECONDS = 120
#: Python's unbuffered mode loses what a pipe does not take at once, so it would hide errors of writing.
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"} | {
    "PYTHONPATH": str(CHECKOUT),
    "COLUMNS": "80",
}


class Hyphae:
    """Runs `hyphae-gpu` in one working directory; stdout and stderr are text and no terminal."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environment = ENVIRONMENT

    def __call__(self, *arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*COMMAND, *map(str, arguments)],
            cwd=self.folder,
            env={**self.environment, **environment},
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
            check=False,
        )

    def json(self, *arguments: object, **environment: str) -> Any:
        """Run with --json; the whole of stdout is one object, on one line."""
        done = self(*arguments, "--json", **environment)
        assert done.returncode == 0, done.stderr
        assert done.stdout.count("\n") == 1
        return json.loads(done.stdout)

    @contextmanager
    def started(self, *arguments: object, **environment: str) -> Iterator[subprocess.Popen[str]]:
        """Start it and go on; killed at the end where it still runs."""
        process = subprocess.Popen(
            [*COMMAND, *map(str, arguments)],
            cwd=self.folder,
            env={**self.environment, **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            yield process
        finally:
            process.kill()
            process.communicate(timeout=PATIENCE_SECONDS)


@pytest.fixture
def hyphae(tmp_path: Path) -> Hyphae:
    return Hyphae(tmp_path)


@pytest.fixture(scope="session")
def embedded_server() -> None:
    """Skip, loudly, where no built-in PostgreSQL is installed."""
    try:
        find_binaries()
    except HyphaeError as error:
        pytest.skip(f"no built-in PostgreSQL here: {error}")


#: Writes JSONL rows into the command's folder and returns the file's name.
WriteRows = Callable[..., str]


@pytest.fixture
def write_rows(tmp_path: Path) -> WriteRows:
    def write(name: str, *rows: dict[str, Any]) -> str:
        (tmp_path / name).write_text("".join(json.dumps(row) + "\n" for row in rows))
        return name

    return write
