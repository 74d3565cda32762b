"""Every .cu compiles for every architecture that is promised, without warnings and without contracted multiply-adds."""

from __future__ import annotations

import importlib.util
import inspect
import re

import pytest

from hyphae_gpu.backends.cuda.sources import COMPILER_OPTIONS, kernel_source, kernel_stems
from tests.kernels.shim_launcher import missing

ARCHITECTURES = ("sm_80", "sm_90", "sm_100")
#: What CuPy adds to a module's options, whatever they are (cupy/cuda/compiler.py).
OF_CUPY = ("-ftz=true", "--device-as-default-execution-space")
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


@pytest.mark.parametrize("stem", kernel_stems())
def test_keeps_tiny_float32s_with_the_options_that_cupy_adds(stem):
    """A salience of 1e-40 is one on every device (spec 0.5)."""
    assert ".ftz" not in ptx(kernel_source(stem), "sm_90", COMPILER_OPTIONS + OF_CUPY)


def test_cupy_still_adds_no_more_than_that():
    from cupy._core import core
    from cupy.cuda import compiler

    source = inspect.getsource(compiler)
    assert all(option in source for option in OF_CUPY)
    given = core.assemble_cupy_compiler_options(COMPILER_OPTIONS)
    assert [option for option in given if not option.startswith("-I")] == list(COMPILER_OPTIONS)


def test_a_warning_would_be_seen():
    """NVRTC 13.0 knows no option that makes warnings errors."""
    unused = 'extern "C" __global__ void odd(long long *out) { int unused; out[0] = 1; }'
    with pytest.raises(AssertionError, match="unused"):
        ptx(unused, "sm_90")


def test_a_contraction_would_be_seen():
    assert "--fmad=false" in COMPILER_OPTIONS
    assert CONTRACTED.search(ptx(kernel_source("scores"), "sm_90", ("--std=c++17", "--fmad=true")))
