"""The suite's own manners: a loud header, and GPU tests that skip, or fail when a GPU was asked for."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from hyphae_gpu.backends.cuda.device import why_not_cuda
from hyphae_gpu.backends.select import select
from hyphae_gpu.errors import DeviceError
from tests.cli.conftest import ENVIRONMENT, PATIENCE_SECONDS

CONFTEST = Path(__file__).parents[1] / "conftest.py"
GPU_TEST = """
import pytest
@pytest.mark.gpu
def test_on_the_gpu(): ...
"""


def has_cuda() -> bool:
    try:
        select("cuda", 1)
    except DeviceError:
        return False
    return True


def run_gpu_test(folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    (folder / "conftest.py").write_text(CONFTEST.read_text())
    (folder / "test_gpu.py").write_text(GPU_TEST)
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-rs", "-p", "no:cacheprovider", "--strict-markers", "test_gpu.py"],
        cwd=folder,
        env=ENVIRONMENT | environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )


@pytest.mark.skipif(has_cuda(), reason="there is a GPU")
def test_a_gpu_test_is_skipped_with_the_reason_and_the_header_says_what_runs(tmp_path):
    done = run_gpu_test(tmp_path, HYPHAE_REQUIRE_GPU="0")
    assert done.returncode == 0
    assert "1 skipped" in done.stdout
    assert (why_not_cuda() or "no reason") in done.stdout
    header = [line for line in done.stdout.splitlines() if line.startswith("hyphae-gpu ")]
    assert "backend: cpu, " in header[0]
    assert "HYPHAE_REQUIRE_GPU=0" in header[1]
    assert "threads: " in header[2]
    assert "seed: 0" in header[2]


@pytest.mark.skipif(has_cuda(), reason="there is a GPU")
def test_a_required_gpu_that_is_not_there_fails_the_test(tmp_path):
    done = run_gpu_test(tmp_path, HYPHAE_REQUIRE_GPU="1")
    assert done.returncode == 1
    assert f"HYPHAE_REQUIRE_GPU=1, but device cuda: {why_not_cuda()}" in done.stdout


def test_the_tests_see_no_settings_from_outside(tmp_path):
    (tmp_path / "conftest.py").write_text(CONFTEST.read_text())
    (tmp_path / "test_env.py").write_text(
        "import os\ndef test_none():\n"
        "    assert [n for n in os.environ if n.startswith('HYPHAE_') or n == 'DATABASE_URL'] == ['HYPHAE_TEST_X']\n"
    )
    outside = {"DATABASE_URL": "postgresql://h/d", "HYPHAE_FANOUT": "3", "HYPHAE_TEST_X": "1"}
    inside = {name: value for name, value in ENVIRONMENT.items() if not name.startswith("HYPHAE_")}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_env.py"],
        cwd=tmp_path,
        env=inside | outside,
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stdout
