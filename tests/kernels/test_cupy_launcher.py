"""What the launcher hands to CuPy; the rest of a launch needs a device."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch

from hyphae_gpu.errors import DeviceError
from tests.kernels.shim_launcher import missing

try:
    import cupy
except ImportError:
    cupy = None


@pytest.fixture
def launches(monkeypatch: pytest.MonkeyPatch):
    """A launcher on a device that there is not, and what it launched."""
    if cupy is None:
        missing("CuPy is missing (pip install cupy-cuda13x nvidia-cuda-nvrtc)")
    from hyphae_gpu.backends.cuda.cupy_launcher import CupyLauncher

    made, current = [], []

    class Context:
        def __init__(self, what):
            self.what = what

        def __enter__(self):
            current.append(self.what)

        def __exit__(self, *_):
            current.pop()

    class Module:
        def __init__(self, *, code, options, backend):
            made.append(("module", options, backend, "#include" in code))

        def get_function(self, name):
            return lambda grid, block, words, shared_mem: made.append(
                (name, grid, block, words, shared_mem, list(current))
            )

    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _: SimpleNamespace(multi_processor_count=132))
    monkeypatch.setattr(torch.cuda, "current_stream", SimpleStream)
    monkeypatch.setattr(cupy, "RawModule", Module)
    monkeypatch.setattr(cupy.cuda, "Device", Context)
    monkeypatch.setattr(cupy.cuda, "Stream", SimpleNamespace(from_external=lambda stream: Context(stream.handle)))
    return CupyLauncher(torch.device("cuda", 1)), made


def test_passes_pointers_and_numbers_on_torchs_stream_and_compiles_once(launches):
    launcher, made = launches
    column = torch.arange(8)[2:]
    launcher.launch("scores.open_counts", [column, -3, 0.5, True], grid=2)
    launcher.launch("scores.open_counts", [column], grid=1, block=32, shared_bytes=64)
    module, first, second = made
    assert module == ("module", ("--std=c++17", "--fmad=false"), "nvrtc", False)
    where = [1, torch.device("cuda", 1)]
    assert first == ("open_counts", (2,), (256,), (column.data_ptr(), -3, 0.5, 1), 0, where)
    assert second == ("open_counts", (1,), (32,), (column.data_ptr(),), 64, where)
    assert [type(word) for word in first[3]] == [int, int, float, int]


def test_what_torch_holds_without_using_it_is_free(launches, monkeypatch):
    launcher, _ = launches
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda _: (1000, 5000))
    monkeypatch.setattr(torch.cuda, "memory_stats_as_nested_dict", lambda _: {})
    assert launcher.free_bytes() == 1000
    held = {f"{kind}_bytes": {"all": {"current": size}} for kind, size in (("reserved", 300), ("allocated", 200))}
    monkeypatch.setattr(torch.cuda, "memory_stats_as_nested_dict", lambda _: held)
    assert launcher.free_bytes() == 1100


def test_takes_torchs_stream_without_a_copy():
    """CuPy reads the handle from torch's stream itself, the default stream's 0 too."""
    if cupy is None:
        missing("CuPy is missing (pip install cupy-cuda13x nvidia-cuda-nvrtc)")
    assert hasattr(torch.cuda.Stream, "__cuda_stream__")
    for handle in (0, 12345):
        assert cupy.cuda.Stream.from_external(SimpleStream(handle)).ptr == handle


class SimpleStream:
    def __init__(self, handle):
        self.handle = handle

    def __cuda_stream__(self):
        return (0, self.handle)


def test_a_kernel_that_does_not_compile_is_a_device_error_of_one_line(launches, monkeypatch):
    launcher, _ = launches

    def refuse(self, name):
        raise RuntimeError("\nlibnvrtc.so.13: not found\nmore\n")

    monkeypatch.setattr(cupy.RawModule, "get_function", refuse)
    with pytest.raises(
        DeviceError, match=r"^device cuda: kernel losses does not compile or load: libnvrtc\.so\.13: not"
    ):
        launcher.launch("losses", [], grid=1)
