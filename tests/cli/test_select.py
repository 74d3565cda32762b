"""Which device is taken, and what is said about it."""

from __future__ import annotations

import pytest

from hyphae_gpu.backends.select import select
from hyphae_gpu.errors import DeviceError


def test_auto_takes_the_cpu_and_records_why_not_cuda():
    taken = select("auto", 2)
    assert taken.backend.name == "cpu"
    assert taken.why == "cpu, 2 threads (CUDA not taken: this version of hyphae-gpu has no CUDA backend yet)"


def test_an_explicit_cpu_is_kept():
    assert select("cpu", 1).why == "cpu, 1 thread (asked for)"


def test_an_explicit_cuda_is_refused_and_never_replaced():
    with pytest.raises(DeviceError, match="this version of hyphae-gpu has no CUDA backend yet; use --device cpu"):
        select("cuda", 1)


def test_another_word_is_refused():
    with pytest.raises(ValueError, match="'tpu', expected auto, cpu or cuda"):
        select("tpu", 1)
