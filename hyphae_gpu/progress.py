"""How long work tells what it is doing: the seam between the stages and whoever watches."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """Receives what a long piece of work is doing; must be cheap and must not raise."""

    def stage(self, name: str) -> None:
        """Say that a stage begins, as ``epoch 3: gossip``; it ends where the next begins."""

    def advance(self, done: int, total: int | None = None) -> None:
        """Say how much of the current stage is done, in pieces of its own (diffs, rows), and of how many."""

    def note(self, text: str) -> None:
        """Say something worth a line of its own, as why a device was not taken."""


class Silent:
    """Progress that nobody watches."""

    def stage(self, name: str) -> None:
        """Say nothing."""

    def advance(self, done: int, total: int | None = None) -> None:
        """Say nothing."""

    def note(self, text: str) -> None:
        """Say nothing."""
