"""Every .cu compiles for every architecture that is promised, without warnings and without contracted multiply-adds."""

from __future__ import annotations

import importlib.util
import re

import pytest

from hyphae_gpu.backends.cuda.sources import COMPILER_OPTIONS, kernel_source, kernel_stems
from tests.kernels.shim_launcher import missing

ARCHITECTURES = ("sm_80", "sm_90", "sm_100")
CONTRACTED = re.compile(r"\b(fma|mad)(\.\w+)*\.f(32|64)\b")


@pytest.fixture(autouse=True)
def need_nvrtc():
    if importlib.util.find_spec("cupy") is None:
        missing("CuPy is missing: kernels cannot be compiled (pip install cupy-cuda13x nvidia-cuda-nvrtc)")


def ptx(source: str, architecture: str, compiler_options: tuple[str, ...] = COMPILER_OPTIONS) -> str:
    """Compile by NVRTC as the backend does; needs no driver. A warning is a failure: it would stand in the log."""
    from cupy.cuda import nvrtc

    program = nvrtc.createProgram(source, "kernel.cu", (), ())
    options = (*compiler_options, f"--gpu-architecture={architecture}")
    try:
        nvrtc.compileProgram(program, options)
    except nvrtc.NVRTCError:
        pytest.fail(nvrtc.getProgramLog(program))
    assert not nvrtc.getProgramLog(program)
    assert nvrtc.getCUBIN(program)
    return nvrtc.getPTX(program).decode()


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("stem", kernel_stems())
def test_compiles_without_warnings_or_contractions(stem, architecture):
    text = ptx(kernel_source(stem), architecture)
    assert f".target {architecture}" in text
    assert not CONTRACTED.search(text)


def test_a_warning_would_be_seen():
    """NVRTC 13.0 knows no option that makes warnings errors."""
    unused = 'extern "C" __global__ void odd(long long *out) { int unused; out[0] = 1; }'
    with pytest.raises(AssertionError, match="unused"):
        ptx(unused, "sm_90")


def test_a_contraction_would_be_seen():
    assert "--fmad=false" in COMPILER_OPTIONS
    assert CONTRACTED.search(ptx(kernel_source("scores"), "sm_90", ("--std=c++17", "--fmad=true")))
