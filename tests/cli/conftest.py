"""The real command, run as its users run it: a process of its own, in a folder of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from hyphae_gpu.errors import HyphaeError
from hyphae_gpu.store.embedded import EmbeddedServer, find_binaries

CHECKOUT = Path(__file__).parents[2]
COMMAND = (sys.executable, "-W", "error", "-m", "hyphae_gpu")
PATIENCE_SECONDS = 120
#: Python's unbuffered mode loses what a pipe does not take at once, so it would hide errors of writing.
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"} | {
    "PYTHONPATH": str(CHECKOUT),
    "COLUMNS": "80",
}


def _cell(name: str, text: str, knowledge_type: str, agent: str) -> dict[str, Any]:
    return {
        "kind": "cell",
        "id": name,
        "text": text,
        "knowledge_type": knowledge_type,
        "salience": 0.9,
        "agent": agent,
        "created_at": "2026-01-04T00:00:00Z",
    }


#: Two agents, what they know, and a beacon of one of them. `bo` reads what `ana` writes about retries.
ROWS: tuple[dict[str, Any], ...] = (
    {"kind": "agent", "id": "ana", "interests": {"lesson": 0.5, "risk": 0.5}},
    {"kind": "agent", "id": "bo"},
    _cell("c1", "Retry requests with exponential backoff when the server answers 429", "lesson", "ana"),
    _cell("c2", "The server answers 429 when more than ten requests a second arrive", "fact", "bo"),
    _cell("c3", "Backoff with jitter keeps retry requests from arriving together", "risk", "bo"),
    _cell("c4", "Croissants need cold butter and patience", "preference", "bo"),
    {"kind": "beacon", "id": "about butter", "agent": "ana", "text": "cold butter", "interests": {"preference": 1.0}},
)


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

    def write(self, name: str, *rows: dict[str, Any]) -> str:
        """Write JSONL rows into the working directory and return the file's name."""
        (self.folder / name).write_text("".join(json.dumps(row) + "\n" for row in rows))
        return name

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


@pytest.fixture(scope="module")
def swarm(tmp_path_factory: pytest.TempPathFactory, embedded_server: None) -> Iterator[Hyphae]:
    """A small swarm after two epochs, for reading; its server stays up between the commands."""
    command = Hyphae(tmp_path_factory.mktemp("swarm"))
    server = EmbeddedServer(command.folder / "hyphae-data")
    try:
        command.write("rows.jsonl", *ROWS)
        assert command("ingest", "rows.jsonl", "--embed", "lsa").returncode == 0
        assert command("run", "--epochs", "2", "--as-of", "2026-01-05T00:00:00Z").returncode == 0
        yield command
    finally:
        server.close()
