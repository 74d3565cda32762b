"""One compiled copy of the kernels a session, and the CUDA backend that runs on it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol

import pytest
import torch

from hyphae_gpu.backends.cuda.backend import CudaBackend
from hyphae_gpu.backends.cuda.dense import GateCosts
from tests.kernels.shim_launcher import ShimLauncher, need_compiler

#: Costs that let a backend compute gates one by one, or all at once.
SPARSE, DENSE = GateCosts(pair=0.0, cell=1.0), GateCosts(pair=1.0, cell=0.0)


class MakeBackend(Protocol):
    """Makes a CUDA backend; on the shim its threads run in an order that the seed picks."""

    def __call__(self, seed: int, **how: Any) -> CudaBackend: ...


@pytest.fixture(scope="session", autouse=True)
def one_thread():
    """On small tensors a second thread only waits."""
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def shim_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where this session's compiled kernels lie."""
    need_compiler()
    return tmp_path_factory.mktemp("shim")


@pytest.fixture(scope="session")
def on_shim(shim_folder: Path) -> MakeBackend:
    """Make a CUDA backend that runs on the shim; gates one by one if nothing else is said."""
    return lambda seed, **how: CudaBackend(ShimLauncher(shim_folder, seed=seed), **({"costs": SPARSE} | how))


@pytest.fixture(scope="session", params=["shim", pytest.param("device", marks=pytest.mark.gpu)])
def on_cuda(request: pytest.FixtureRequest) -> MakeBackend:
    """Make a CUDA backend on the shim and, where there is one, on a device: its test runs on both."""
    if request.param == "shim":
        return request.getfixturevalue("on_shim")
    from hyphae_gpu.backends.cuda.cupy_launcher import CupyLauncher

    return lambda seed, **how: CudaBackend(CupyLauncher(torch.device("cuda", 0)), **({"costs": SPARSE} | how))
