"""What README shows is true: its Python runs, its rows are taken, its commands exist."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from hyphae_gpu.cli import app
from hyphae_gpu.ingest import read_rows
from hyphae_gpu.rows import NothingKnown

README = (Path(__file__).parents[1] / "README.md").read_text("utf-8")


def block(language: str) -> str:
    """The first block of code in a language."""
    found = re.search(rf"```{language}\n(.*?)```", README, re.DOTALL)
    assert found, f"README has no block of {language}"
    return found[1]


def test_its_python_runs(capsys: pytest.CaptureFixture[str]) -> None:
    exec(compile(block("python"), "README.md", "exec"), {})
    assert "deliveries=" in capsys.readouterr().out


def test_its_rows_are_taken(tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_text(block("json"), "utf-8")
    rows = read_rows([file], known=NothingKnown(), embed="lsa", kind=None, now=1_800_000_000_000_000)
    assert len(rows) == len([json.loads(line) for line in block("json").splitlines()])


def test_its_commands_exist() -> None:
    known = {command.name or command.callback.__name__ for command in app.registered_commands if command.callback}
    shown = set(re.findall(r"hyphae-gpu ([a-z]+)", README))
    assert {"ingest", "run", "inbox", "search", "propagate", "index", "config"} <= shown <= known
