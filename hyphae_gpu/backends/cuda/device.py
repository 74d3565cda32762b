"""Whether this machine can run the CUDA backend, and if not, why: one line that names what to do."""

from __future__ import annotations

import torch

#: The oldest devices that the kernels are compiled for, as (major, minor) compute capability.
OLDEST = (8, 0)
_EXTRA = "pip install 'hyphae-gpu[cuda]'"


def why_not_cuda() -> str | None:
    """Return why the CUDA backend cannot run here; None where it can. Looks at torch, the device, then CuPy."""
    if torch.version.cuda is None:
        return f"PyTorch {torch.__version__} is built without CUDA"
    if not torch.cuda.is_available():
        return f"PyTorch {torch.__version__} finds no CUDA device or driver"
    capability = torch.cuda.get_device_capability()
    if capability < OLDEST:
        name, (major, minor) = torch.cuda.get_device_name(), capability
        return f"{name} has compute capability {major}.{minor}, expected {OLDEST[0]}.{OLDEST[1]} or newer"
    try:
        from cupy.cuda import runtime
    except (ImportError, OSError) as error:  # OSError: it makes its folder for compiled kernels when it loads
        reason = str(error).strip().splitlines()
        return f"CuPy does not load ({reason[0] if reason else 'no reason given'}); {_EXTRA}"
    theirs, ours = torch.version.cuda, runtime.runtimeGetVersion()
    if int(theirs.split(".")[0]) != ours // 1000:
        mine = f"{ours // 1000}.{ours % 1000 // 10}"
        return f"PyTorch is built for CUDA {theirs}, CuPy for CUDA {mine}; install both for one"
    return None
