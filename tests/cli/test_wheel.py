"""The wheel holds all that the package reads at run time, and nothing else."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.cli.conftest import CHECKOUT

BUILD = "import sys; from setuptools import build_meta; build_meta.build_wheel(sys.argv[1])"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    """Build the wheel from a copy, so that nothing is left in the checkout."""
    folder = tmp_path_factory.mktemp("wheel")
    source, out = folder / "source", folder / "out"
    out.mkdir()
    shutil.copytree(CHECKOUT / "hyphae_gpu", source / "hyphae_gpu", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(CHECKOUT / name, source)
    built = subprocess.run(
        [sys.executable, "-c", BUILD, str(out)], cwd=source, capture_output=True, text=True, timeout=120, check=False
    )
    assert built.returncode == 0, built.stderr
    return zipfile.ZipFile(next(out.glob("*.whl")))


def test_every_file_of_the_package_is_in_the_wheel(wheel):
    package = CHECKOUT / "hyphae_gpu"
    files = {path for path in package.rglob("*") if path.is_file() and not {"__pycache__", "kernels"} & set(path.parts)}
    kernels = {f"hyphae_gpu/kernels/{path.name}" for path in (CHECKOUT / "kernels").glob("*.cu*")}
    expected = {path.relative_to(CHECKOUT).as_posix() for path in files} | kernels
    assert "hyphae_gpu/kernels/common.cuh" in kernels
    assert {name for name in wheel.namelist() if name.startswith("hyphae_gpu/")} == expected
    assert {"hyphae_gpu/py.typed", "hyphae_gpu/store/schema.sql", "hyphae_gpu/report/page.html"} <= expected


def test_the_wheel_brings_the_command_the_licence_and_no_tests(wheel):
    about = next(name for name in wheel.namelist() if name.endswith("/entry_points.txt"))
    assert "hyphae-gpu = hyphae_gpu.cli:main" in wheel.read(about).decode()
    tops = {Path(name).parts[0] for name in wheel.namelist()}
    assert tops == {"hyphae_gpu", Path(about).parts[0]}
    assert any(name.endswith("/LICENSE") for name in wheel.namelist())
