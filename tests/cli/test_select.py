"""Which device is taken, and what is said about it."""

from __future__ import annotations

import subprocess
import sys
import types

import pytest
import torch

from hyphae_gpu.backends.cuda.device import why_not_cuda
from hyphae_gpu.backends.select import select
from hyphae_gpu.errors import DeviceError


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch):
    """Make torch and CuPy say what they would say on some machine; by default one that has all."""

    def make(*, built="13.0", device=True, capability=(9, 0), cupy: int | None = 13000):
        monkeypatch.setattr(torch.version, "cuda", built)
        monkeypatch.setattr(torch.cuda, "is_available", lambda: device)
        monkeypatch.setattr(torch.cuda, "get_device_capability", lambda: capability)
        monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "Some GPU")
        runtime = types.SimpleNamespace(runtimeGetVersion=lambda: cupy)
        monkeypatch.setitem(sys.modules, "cupy.cuda", types.SimpleNamespace(runtime=runtime) if cupy else None)

    return make


NO_TORCH, NO_DEVICE = "is built without CUDA", "finds no CUDA device or driver"


@pytest.mark.parametrize(
    ("what", "why"),
    [
        ({"built": None}, NO_TORCH),
        ({"device": False}, NO_DEVICE),
        ({"capability": (7, 5)}, "Some GPU has compute capability 7.5, expected 8.0 or newer"),
        ({"cupy": None}, r"CuPy does not load \(.+\); pip install 'hyphae-gpu\[cuda\]'"),
        ({"cupy": 12090}, "PyTorch is built for CUDA 13.0, CuPy for CUDA 12.9; install both for one"),
    ],
)
def test_what_is_missing_is_named(machine, what, why):
    """An explicit cuda is refused and never replaced; auto takes the CPU and records why."""
    machine(**what)
    with pytest.raises(DeviceError, match=f"^device cuda: .*{why}; use --device cpu or --device auto$") as refused:
        select("cuda", 1)
    assert refused.value.exit_code == 5
    assert "\n" not in str(refused.value)
    taken = select("auto", 2)
    assert taken.backend.name == "cpu"
    assert taken.why == f"cpu, 2 threads (CUDA not taken: {why_not_cuda()})"


def test_a_cupy_that_cannot_make_its_cache_is_named(machine, monkeypatch):
    class Unwritable:
        def __getattr__(self, name):
            raise PermissionError(13, "Permission denied", "/home/.cupy")

    machine()
    monkeypatch.setitem(sys.modules, "cupy.cuda", Unwritable())
    assert why_not_cuda().startswith("CuPy does not load ([Errno 13] Permission denied: '/home/.cupy')")


def test_a_machine_that_has_all_gets_cuda(machine):
    machine()
    assert why_not_cuda() is None


def test_an_explicit_cpu_is_kept(machine):
    machine()
    assert select("cpu", 1).why == "cpu, 1 thread (asked for)"


def test_another_word_is_refused():
    with pytest.raises(ValueError, match="'tpu', expected auto, cpu or cuda"):
        select("tpu", 1)


def test_neither_the_package_nor_a_refusal_needs_cupy_or_faiss():
    """On any machine: nothing of the kind is imported for `import hyphae_gpu`, `select("cpu")` or `select("auto")`."""
    code = """
import sys
class Barred:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("cupy", "cupy_backends", "faiss"):
            raise ImportError(f"{name} is barred")
sys.meta_path.insert(0, Barred())
import hyphae_gpu
from hyphae_gpu.backends.select import select
print(select("cpu", 1).backend.name, select("auto", 1).backend.name)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout == "cpu cpu\n", done.stderr
