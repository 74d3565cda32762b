"""The module faiss, which several distributions bring, for CPUs or GPUs. Each writes over the others' files."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from types import ModuleType

from hyphae_gpu.errors import UsageError

#: faiss-cpu comes with the extra `cpu`, faiss-gpu-cuvs with `cuvs`; others may be there already.
DISTRIBUTIONS = (
    "faiss-cpu",
    "faiss-gpu-cuvs",
    *("faiss-gpu", "faiss-gpu-cu11", "faiss-gpu-cu12", "faiss-gpu-cu12-cuvs", "faiss-gpu-cu13-cuvs", "faiss-cuda"),
)
_INSTALL = "pip install 'hyphae-gpu[cpu]'"


def installed() -> dict[str, str]:
    """Return the version of each distribution of faiss that is installed."""
    found = {}
    for name in DISTRIBUTIONS:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def remedy() -> str:
    """Return how to come to a faiss that loads: whatever brings one now goes first, for the next shares its files."""
    found = installed()
    if not found:
        return _INSTALL
    either = f"{_INSTALL} or 'hyphae-gpu[cuvs]'" if len(found) > 1 else _INSTALL
    return f"pip uninstall --yes {' '.join(found)}, then {either}"


def load_faiss() -> ModuleType:
    """Return the module; raises UsageError where it is not installed, does not load, or is installed twice over."""
    found = installed()
    named = " and ".join(f"{name} {its}" for name, its in found.items())
    if len(found) > 1:
        raise UsageError(f"{named} are installed together and share the files of the module faiss: {remedy()}")
    try:
        import faiss  # noqa: PLC0415 - only stages that build an index need it
    except (ImportError, OSError) as error:  # OSError: a library of CUDA's that it loads by itself
        what = f"{named} does not load ({error})" if found else "which is not installed"
        raise UsageError(f"building the topology needs faiss, {what}: {remedy()}") from error
    module: ModuleType = faiss
    return module
