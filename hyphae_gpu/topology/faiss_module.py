"""The module faiss, which two distributions bring: one for CPUs, one for GPUs. Each writes over the other's files."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from types import ModuleType

from hyphae_gpu.errors import UsageError

#: faiss-cpu comes with the extra `cpu`, faiss-gpu-cuvs with `cuvs`.
DISTRIBUTIONS = ("faiss-cpu", "faiss-gpu-cuvs")


def installed() -> dict[str, str]:
    """Return the version of each distribution of faiss that is installed."""
    found = {}
    for name in DISTRIBUTIONS:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def load_faiss() -> ModuleType:
    """Return the module; raises UsageError where it is not installed, or twice over."""
    if len(installed()) > 1:
        both = " ".join(DISTRIBUTIONS)
        raise UsageError(
            f"{' and '.join(DISTRIBUTIONS)} are both installed and share the files of the module faiss: pip uninstall "
            f"--yes {both}, then pip install 'hyphae-gpu[cpu]' or 'hyphae-gpu[cuvs]'"
        )
    try:
        import faiss  # noqa: PLC0415 - only stages that build an index need it
    except ImportError as error:
        raise UsageError(
            "building the topology needs faiss, which is not installed: pip install 'hyphae-gpu[cpu]'"
        ) from error
    module: ModuleType = faiss
    return module
