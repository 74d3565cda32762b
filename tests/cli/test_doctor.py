"""The doctor: every finding a line, every problem with its fix, an exit code that scripts can use."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

from hyphae_gpu import doctor
from hyphae_gpu.config import Settings
from hyphae_gpu.doctor import BROKEN, FINE, WARNING, Check, exit_code
from hyphae_gpu.topology import faiss_module


@pytest.fixture(autouse=True)
def _no_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "_store", lambda settings: Check(name="store", state=FINE, found="not tried"))


def found(settings: Settings) -> dict[str, Check]:
    return {check.name: check for check in doctor.examine(settings)}


def test_a_machine_that_has_everything_is_fine(tmp_path):
    checks = doctor.examine(Settings(data_dir=tmp_path))
    assert [check for check in checks if check.state == BROKEN] == []
    assert exit_code(checks) == 0
    names = {check.name for check in checks}
    assert {"python", "platform", "threads", "torch", "numba", "faiss", "psycopg", "device", "store"} <= names


def test_a_missing_library_is_named_with_the_command_that_brings_it(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "sklearn", None)
    check = found(Settings(data_dir=tmp_path))["sklearn"]
    assert check.state == BROKEN
    assert check.fix == "pip install hyphae-gpu"


@pytest.mark.parametrize(
    ("installed", "fix"),
    [
        ({}, "pip install 'hyphae-gpu[cpu]'"),
        # beside it, faiss-cpu would write over its files
        ({"faiss-gpu-cuvs": "1.15.1"}, "pip uninstall --yes faiss-gpu-cuvs, then pip install 'hyphae-gpu[cpu]'"),
    ],
)
def test_a_faiss_that_does_not_load_is_removed_before_another_comes(monkeypatch, tmp_path, installed, fix):
    monkeypatch.setattr(faiss_module, "installed", lambda: installed)
    monkeypatch.setitem(sys.modules, "faiss", None)
    check = found(Settings(data_dir=tmp_path))["faiss"]
    assert (check.state, check.fix) == (BROKEN, fix)


def test_a_device_that_is_not_there_ends_with_5(tmp_path):
    checks = doctor.examine(Settings(data_dir=tmp_path, device="cuda"))
    assert exit_code(checks) == 5


def test_a_data_folder_that_cannot_be_written_ends_with_4(monkeypatch, tmp_path):
    # Root may write anywhere, so the system's answer is replaced.
    monkeypatch.setattr(os, "access", lambda path, mode: path != tmp_path)
    check = found(Settings(data_dir=tmp_path / "a" / "b"))["data folder"]
    assert (check.state, check.exit_code) == (BROKEN, 4)


def test_a_data_folder_inside_a_file_is_broken_and_an_absent_one_is_not_made(tmp_path):
    (tmp_path / "file").write_text("")
    assert found(Settings(data_dir=tmp_path / "file" / "data"))["data folder"].state == BROKEN
    check = found(Settings(data_dir=tmp_path / "new" / "data"))["data folder"]
    assert check.state == FINE
    assert "made at first use" in check.found
    assert not (tmp_path / "new").exists()


def test_little_room_and_little_shared_memory_are_warnings_with_a_fix(monkeypatch, tmp_path):
    usage = shutil.disk_usage(tmp_path)._replace(free=64 << 20)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)
    checks = found(Settings(data_dir=tmp_path))
    assert (checks["data folder"].state, checks["shared memory"].state) == (WARNING, WARNING)
    assert checks["shared memory"].fix == "in Docker: --shm-size=1g"


def test_more_threads_than_cores_is_a_warning(tmp_path):
    assert found(Settings(data_dir=tmp_path, threads=4096))["threads"].state == WARNING


def test_the_command_tries_the_built_in_server_and_leaves_nothing(hyphae, embedded_server):
    shown = hyphae.json("doctor")
    assert shown["fine"] is True
    store = next(check for check in shown["checks"] if check["name"] == "store")
    assert store["found"].startswith("built-in server: PostgreSQL 18")
    assert ", pgvector 0." in store["found"]
    assert list(Path(hyphae.folder).iterdir()) == []


def test_a_server_that_cannot_be_reached_ends_with_4_and_tells_no_password(hyphae):
    done = hyphae("doctor", DATABASE_URL="postgresql://u:secret@127.0.0.1:1/d")
    assert done.returncode == 4
    assert "u:***@127.0.0.1" in done.stdout
    assert "check DATABASE_URL" in done.stdout
    assert "secret" not in done.stdout + done.stderr
