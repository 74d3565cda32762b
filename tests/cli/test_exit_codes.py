"""Exit codes and streams, as interfaces.md promises, wherever no store is needed."""

from __future__ import annotations

import json
import shlex
import signal
import subprocess
import sys
import textwrap
import time

import pytest

from tests.cli.conftest import COMMAND, ENVIRONMENT, PATIENCE_SECONDS


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("nonsense",), "No such command 'nonsense'"),
        (("run", "--epochs", "0"), "--epochs"),
        (("run", "--epochs", "many"), "--epochs"),
        (("run", "--nonsense"), "No such option"),
        (("propagate", "--nodes", "n"), "Missing option"),
        (("ingest",), "Missing argument"),
        (("config", "--fanout", "-1"), "fanout = -1 (flag --fanout)"),
        (("config", "--config", "nowhere.toml"), "nowhere.toml: cannot be read"),
        (("run", "--as-of", "yesterday"), "--as-of 'yesterday' is no ISO 8601 time"),
        (("run", "--as-of", "2026-01-01T00:00:00"), "has no zone"),
        (("run", "--as-of", "nan"), "out of range"),
    ],
)
def test_usage_errors_exit_2_with_the_reason_on_stderr(hyphae, arguments, reason):
    done = hyphae(*arguments)
    assert done.returncode == 2
    assert reason in " ".join(done.stderr.replace("│", " ").split())
    assert done.stdout == ""
    assert "Traceback" not in done.stderr


def test_no_arguments_show_the_help_page(hyphae):
    done = hyphae()
    assert "Usage: hyphae-gpu" in done.stdout + done.stderr
    assert done.returncode in (0, 2)


def test_the_version_is_the_packages(hyphae):
    done = hyphae("--version")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("hyphae-gpu 0.")


def test_config_shows_value_and_source_and_masks_the_password(hyphae):
    (hyphae.folder / "hyphae.toml").write_text("seed = 5\n")
    shown = hyphae.json(
        "config", "--loss", "0.5", HYPHAE_FANOUT="20", DATABASE_URL="postgresql://u:secret@h/d", HYPHAE_THREADS="1"
    )
    assert shown["loss"] == {"value": 0.5, "source": "flag --loss"}
    assert shown["fanout"] == {"value": 20, "source": "environment HYPHAE_FANOUT"}
    assert shown["seed"] == {"value": 5, "source": "hyphae.toml"}
    assert shown["max_hops"] == {"value": 64, "source": "default"}
    assert shown["database_url"]["value"] == "postgresql://u:***@h/d"
    table = hyphae("config", HYPHAE_FANOUT="20").stdout
    assert any(line.split() == ["fanout", "20", "environment", "HYPHAE_FANOUT"] for line in table.splitlines())


def test_a_variable_that_is_no_setting_is_named_on_stderr(hyphae):
    done = hyphae("config", "--json", HYPHAE_FAN_OUT="20")
    assert (
        done.stderr == "hyphae-gpu: warning: HYPHAE_FAN_OUT is set but is no setting; `hyphae-gpu config` lists them\n"
    )
    assert json.loads(done.stdout)["fanout"]["value"] == 10


PRELUDE = """
import sys, time
from hyphae_gpu import cli, doctor, errors
def body(settings):
    print("begun", flush=True)
    {body}
doctor.examine = body
sys.argv = ["hyphae-gpu", "doctor"]
cli.main()
"""


def run_with_body(body: str, *, send: signal.Signals | None = None) -> subprocess.CompletedProcess[str]:
    """Run a command whose body is replaced, through the real `main`; send it a signal once it has begun."""
    script = PRELUDE.format(body=body)
    process = subprocess.Popen(
        [sys.executable, "-W", "error", "-c", script],
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    process.stdout.readline()
    if send is not None:
        time.sleep(0.1)
        process.send_signal(send)
    out, err = process.communicate(timeout=PATIENCE_SECONDS)
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


@pytest.mark.parametrize(
    ("body", "code", "message"),
    [
        ("raise errors.UsageError('a')", 2, "hyphae-gpu: a\n"),
        ("raise errors.BadInputError([('f row 7', 'b')])", 3, "1 bad row, nothing was written:\nf row 7: b\n"),
        ("raise errors.DatabaseError('c')", 4, "hyphae-gpu: c\n"),
        ("raise errors.DeviceError('d')", 5, "hyphae-gpu: d\n"),
        ("raise errors.BusyError('e')", 75, "hyphae-gpu: e\n"),
        ("raise OSError(28, 'No space left on device', 'report.html')", 1, "report.html: No space left on device\n"),
        ("raise MemoryError", 1, "hyphae-gpu: not enough memory; a smaller --batch-size needs less\n"),
    ],
)
def test_errors_that_a_user_can_meet_are_a_message_and_their_code(body, code, message):
    done = run_with_body(body)
    assert done.returncode == code
    assert done.stderr.endswith(message)
    assert "Traceback" not in done.stderr


def test_control_c_is_one_line_and_130():
    done = run_with_body("time.sleep(60)", send=signal.SIGINT)
    assert done.returncode == 130
    assert done.stderr == "hyphae-gpu: interrupted; what was written before is kept whole\n"


def test_a_polite_kill_leaves_through_the_exits_that_close_things():
    body = "exec('try: time.sleep(60)\\nfinally: print(\"closed\", flush=True)')"
    done = run_with_body(body, send=signal.SIGTERM)
    assert done.returncode == 128 + signal.SIGTERM
    assert done.stdout == "closed\n"
    assert done.stderr == ""


@pytest.mark.parametrize("arguments", [(), ("--json",)])
def test_a_reader_that_goes_away_is_no_error(arguments):
    script = textwrap.dedent(
        """
        import sys
        from hyphae_gpu import cli
        from hyphae_gpu.config import Effective
        Effective.rows = lambda self: [(f"name{i}", "x" * 70, "y") for i in range(5000)]
        sys.argv = ["hyphae-gpu", "config", *sys.argv[1:]]
        cli.main()
        """
    )
    process = subprocess.Popen(
        [sys.executable, "-W", "error", "-c", script, *arguments],
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process.stdout, process.stderr:
        process.stdout.read(10)
        process.stdout.close()
        assert process.stderr.read() == ""
        assert process.wait(timeout=PATIENCE_SECONDS) == 0


def test_work_goes_on_when_nobody_reads_its_progress():
    body = "from hyphae_gpu.commands.session import say; [say('x' * 70) for _ in range(5000)]; print('done'); return []"
    script = PRELUDE.format(body=body)
    process = subprocess.Popen(
        [sys.executable, "-c", script], env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    with process.stdout, process.stderr:
        process.stderr.read(10)
        process.stderr.close()
        assert "done" in process.stdout.read()
        assert process.wait(timeout=PATIENCE_SECONDS) == 0


@pytest.mark.parametrize("closed", [">&-", "2>&-"])
def test_closed_streams_are_no_error(hyphae, closed):
    command = f"{shlex.join(COMMAND)} config --json {closed}"
    done = subprocess.run(
        ["sh", "-c", command], cwd=hyphae.folder, env=ENVIRONMENT, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
