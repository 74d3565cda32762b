"""One compiled copy of the kernels a session."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from hyphae_gpu.backends.cuda.backend import CudaBackend
from tests.kernels.shim_launcher import ShimLauncher, need_compiler


@pytest.fixture(scope="session")
def shim_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where this session's compiled kernels lie."""
    need_compiler()
    return tmp_path_factory.mktemp("shim")


@pytest.fixture(scope="session")
def on_shim(shim_folder: Path) -> Callable[[int], CudaBackend]:
    """Make a CUDA backend that runs on the shim, its threads in an order that the seed picks."""
    return lambda seed: CudaBackend(ShimLauncher(shim_folder, seed=seed))
