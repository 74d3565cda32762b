"""What the device has no memory for is done on the host, with the same answer."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from hyphae_gpu.backends.cpu.backend import CpuBackend
from hyphae_gpu.backends.cuda.backend import CudaBackend
from hyphae_gpu.vectors import lengths
from tests.kernels.shim_launcher import ShimLauncher

IMAGES = np.random.default_rng(1).integers(1, 128, (20, 8)).astype(np.int8)
ENDS = np.arange(19, dtype=np.int32)
#: a ring of 20, both ways
ROWS = np.arange(0, 41, 2)
NEIGHBOURS = np.array([(node + step) % 20 for node in range(20) for step in (1, 19)], np.int32)
ASKED = {
    "cosines": (IMAGES, lengths(IMAGES), ENDS, ENDS + 1),
    "centroids": (IMAGES, np.array([0, 9, 19]), ENDS, np.arange(19)),
    "nearest_linked": (IMAGES, lengths(IMAGES), np.arange(20, dtype=np.int32), ROWS, NEIGHBOURS, 3),
    "closest_pairs": (IMAGES, lengths(IMAGES), np.arange(20, dtype=np.int32), np.arange(20, dtype=np.int32) // 5),
    "components": (20, ENDS[:9], ENDS[:9] + 1),
    "communities": (ROWS, NEIGHBOURS, np.ones(40, np.int64), np.arange(20), (2, 1)),
}


class Full(ShimLauncher):
    """A device whose memory never suffices."""

    def launch(self, kernel, arguments, **how):
        raise torch.OutOfMemoryError(f"no memory for {kernel}")


@pytest.mark.parametrize("operation", ASKED)
def test_what_the_device_has_no_memory_for_the_host_does(on_cuda, shim_folder, operation: str):
    expected, on_host, on_device = (
        told(getattr(backend, operation)(*ASKED[operation]))
        for backend in (CpuBackend(), CudaBackend(Full(shim_folder)), on_cuda(1))
    )
    assert on_host == expected
    assert on_device == expected


def told(answer) -> list:
    """An array, or several, as lists."""
    return [part.tolist() for part in (answer if isinstance(answer, tuple) else (answer,))]


def test_another_error_is_no_lack_of_memory(shim_folder):
    class Broken(ShimLauncher):
        def launch(self, kernel, arguments, **how):
            raise RuntimeError(f"{kernel} is broken")

    with pytest.raises(RuntimeError, match="cosines is broken"):
        CudaBackend(Broken(shim_folder)).cosines(*ASKED["cosines"])
