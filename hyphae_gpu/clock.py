"""Seconds by stage."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from hyphae_gpu.progress import Progress


class Clock:
    """Wall-clock seconds by stage, told to whoever watches."""

    def __init__(self, progress: Progress, prefix: str = "") -> None:
        self.seconds: dict[str, float] = {}
        self._progress = progress
        self._prefix = prefix

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Time a block under this name, and say that it begins."""
        self._progress.stage(self._prefix + name)
        with self.part(name):
            yield

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        """Time a block under this name, adding to what it has."""
        start = time.perf_counter()
        yield
        self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - start
