"""Where the kernels' sources are, and the one text that a kernel is compiled from."""

from __future__ import annotations

import re
from pathlib import Path

#: How NVRTC compiles every kernel. No contraction of multiply-adds, so that every device decides alike (spec 0.1).
COMPILER_OPTIONS = ("--std=c++17", "--fmad=false")

_INCLUDE = re.compile(r'^#include "([\w.]+)"$', re.MULTILINE)
_ONCE = re.compile(r"^#pragma once\n", re.MULTILINE)
_ENTRY = re.compile(r'extern "C" __global__ void\s+(?:__launch_bounds__\([^)]*\)\s*)?(\w+)\s*\(')


def kernel_folder() -> Path:
    """Return the folder that holds the .cu files: the package's own, else the checkout's.

    An installed package brings a copy; in a checkout `hyphae_gpu/kernels` is a link to `kernels`, which some file
    systems lose. Raises FileNotFoundError where there is neither.
    """
    package = Path(__file__).parents[2]
    places = (package / "kernels", package.parent / "kernels")
    for place in places:
        if (place / "common.cuh").is_file():
            return place
    raise FileNotFoundError(f"no kernels at {places[0]} nor at {places[1]}; install hyphae-gpu again")


def kernel_stems() -> list[str]:
    """Return the stems of all .cu files, sorted."""
    return sorted(path.stem for path in kernel_folder().glob("*.cu"))


def kernel_source(stem: str, folder: Path | None = None) -> str:
    """Return `stem`.cu with its own includes put in, each once: compilers' caches then see every change.

    `folder` is by default `kernel_folder()`; what is not there is looked for in `kernel_folder()`.
    """
    folders = [kernel_folder()] if folder is None else [folder, kernel_folder()]
    return _text(f"{stem}.cu", folders, set())


def entries(source: str) -> list[str]:
    """Return the names of a source's kernels, in order."""
    return _ENTRY.findall(source)


def _text(name: str, folders: list[Path], seen: set[str]) -> str:
    seen.add(name)
    path = next((folder / name for folder in folders if (folder / name).is_file()), None)
    if path is None:
        raise FileNotFoundError(f"no kernel source {name} in {folders[0]}")

    def included(match: re.Match[str]) -> str:
        return "" if match[1] in seen else _text(match[1], folders, seen)

    return _INCLUDE.sub(included, _ONCE.sub("", path.read_text(encoding="utf-8")))
