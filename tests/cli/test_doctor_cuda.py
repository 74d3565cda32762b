"""What the doctor says of CUDA: by faking what is found, since most machines have none of it."""

from __future__ import annotations

import ctypes
import importlib.util
from dataclasses import replace

import pytest

from hyphae_gpu import cuda_facts, doctor
from hyphae_gpu.config import Settings
from hyphae_gpu.cuda_facts import CudaFacts, Gpu
from hyphae_gpu.doctor import BROKEN, FINE, WARNING, Check
from hyphae_gpu.topology import faiss_module
from tests.kernels.shim_launcher import missing

H200 = Gpu(name="NVIDIA H200", capability=(9, 0), memory_bytes=139 << 30)
WHOLE = CudaFacts(
    driver="580.65.06",
    driver_cuda=(13, 0),
    gpus=(H200,),
    torch="2.13.0",
    torch_cuda=(13, 0),
    cupy="14.2.0",
    cupy_cuda=(13, 0),
)
NOTHING = CudaFacts(torch="2.13.0+cpu", cupy_problem="No module named 'cupy'")
CHECKS = ("driver", "gpu", "cuda versions", "nvrtc")


@pytest.fixture
def examined(monkeypatch):
    """Return the CUDA checks for facts; the compiler says what `problem` is."""

    def examine(facts: CudaFacts, device: str, *, problem: str | None = None) -> dict[str, Check]:
        monkeypatch.setattr(cuda_facts, "gather", lambda: facts)
        monkeypatch.setattr(cuda_facts, "compile_problem", lambda stem, capability: problem)
        return {check.name: check for check in doctor._cuda(Settings(device=device))}

    return examine


def test_a_whole_machine_is_fine(examined):
    found = examined(WHOLE, "cuda")
    assert tuple(found) == CHECKS
    assert {check.state for check in found.values()} == {FINE}
    assert found["driver"].found == "580.65.06, for CUDA up to 13.0"
    assert found["gpu"].found == "NVIDIA H200, 139 GiB, compute capability 9.0"
    assert found["nvrtc"].found == "compiles kernel losses for compute capability 9.0"


def test_nothing_is_to_mend_where_there_is_none_and_none_is_asked_for(examined):
    assert examined(NOTHING, "cpu") == {}
    found = examined(NOTHING, "auto")
    assert tuple(found) == CHECKS
    assert {(check.state, check.fix) for check in found.values()} == {(FINE, "")}


def test_where_it_is_asked_for_each_part_that_is_missing_is_broken_with_its_fix(examined):
    found = examined(NOTHING, "cuda")
    assert {check.state for check in found.values()} == {BROKEN}
    assert {check.exit_code for check in found.values()} == {5}
    assert "--gpus all" in found["driver"].fix
    assert "PyTorch for CUDA 13" in found["gpu"].fix
    assert found["cuda versions"].fix == "pip install 'hyphae-gpu[cuda]'"


@pytest.mark.parametrize(
    ("change", "name", "found", "fix"),
    [
        ({"driver_cuda": (12, 8)}, "driver", "but PyTorch or CuPy is for CUDA 13.0", "driver for CUDA 13"),
        ({"gpus": (replace(H200, name="T4", capability=(7, 5)),)}, "gpu", "older than the kernels' 8.0", "newer"),
        ({"gpus": ()}, "gpu", "none that PyTorch can use", "CUDA_VISIBLE_DEVICES"),
        ({"torch_cuda": None, "gpus": ()}, "gpu", "PyTorch 2.13.0 is built without CUDA", "PyTorch for CUDA 13"),
        (
            {"cupy": None, "cupy_cuda": None, "cupy_problem": "odd"},
            "cuda versions",
            "CuPy does not load: odd",
            "[cuda]",
        ),
    ],
)
@pytest.mark.parametrize(("device", "state"), [("auto", WARNING), ("cuda", BROKEN)])
def test_a_machine_with_a_driver_hears_what_keeps_it_from_the_gpu(examined, change, name, found, fix, device, state):
    check = examined(replace(WHOLE, **change), device)[name]
    assert check.state == state
    assert found in check.found
    assert fix in check.fix


@pytest.mark.parametrize("device", ["auto", "cuda"])
def test_mixed_versions_stop_with_both_named(examined, device):
    check = examined(replace(WHOLE, torch="2.9.1", torch_cuda=(12, 8)), device)["cuda versions"]
    assert (check.state, check.exit_code) == (BROKEN, 5)
    assert check.found == "PyTorch 2.9.1 for CUDA 12.8, CuPy 14.2.0 for CUDA 13.0"
    assert "CUDA 13" in check.fix


def test_minor_versions_may_differ_and_an_older_driver_of_the_same_major_does(examined):
    found = examined(replace(WHOLE, torch_cuda=(13, 2), cupy_cuda=(13, 5)), "cuda")
    assert {check.state for check in found.values()} == {FINE}


def test_the_compilers_complaint_is_shown(examined):
    check = examined(WHOLE, "cuda", problem="no builtins")["nvrtc"]
    assert check.state == BROKEN
    assert check.found == "kernel losses for compute capability 9.0 does not compile: no builtins"


def test_a_kernel_is_compiled_without_a_gpu():
    if importlib.util.find_spec("cupy") is None:
        missing("CuPy is missing: kernels cannot be compiled (pip install cupy-cuda13x nvidia-cuda-nvrtc)")
    assert cuda_facts.compile_problem("losses", (8, 0)) is None
    refused = cuda_facts.compile_problem("losses", (1, 1))
    assert "architecture" in refused


def test_a_machine_without_a_driver_has_none(monkeypatch):
    def absent(name: str) -> None:
        raise OSError(f"{name}: cannot open shared object file")

    monkeypatch.setattr(ctypes, "CDLL", absent)
    facts = cuda_facts.gather()
    assert (facts.driver, facts.driver_cuda) == (None, None)


def test_the_driver_tells_its_versions(monkeypatch):
    class Driver:
        @staticmethod
        def cuDriverGetVersion(number):  # noqa: N802 - the driver's own name
            number._obj.value = 13020
            return 0

        @staticmethod
        def nvmlInit_v2():  # noqa: N802 - the driver's own name
            return 0

        @staticmethod
        def nvmlSystemGetDriverVersion(text, size):  # noqa: N802 - the driver's own name
            text.value = b"595.10"
            return 0

        @staticmethod
        def nvmlShutdown():  # noqa: N802 - the driver's own name
            return 0

    monkeypatch.setattr(ctypes, "CDLL", lambda name: Driver)
    facts = cuda_facts.gather()
    assert (facts.driver, facts.driver_cuda) == ("595.10", (13, 2))


def test_two_packages_that_bring_faiss_are_broken_with_the_way_out(monkeypatch):
    versions = {"faiss-cpu": "1.15.1", "faiss-gpu-cuvs": "1.15.0"}
    monkeypatch.setattr(faiss_module, "installed", lambda: versions)
    check = doctor._faiss()
    assert check.state == BROKEN
    assert check.found == "faiss-cpu 1.15.1 and faiss-gpu-cuvs 1.15.0 share its files"
    assert check.fix.startswith("pip uninstall --yes faiss-cpu faiss-gpu-cuvs, then")


def test_either_package_that_brings_faiss_will_do(monkeypatch):
    versions = {"faiss-gpu-cuvs": "1.15.0"}
    monkeypatch.setattr(faiss_module, "installed", lambda: versions)
    monkeypatch.setattr(doctor, "_installed", versions.get)
    assert doctor._faiss() == Check(name="faiss", state=FINE, found="1.15.0")
