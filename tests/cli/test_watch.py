"""Progress for people: live on a terminal, lines elsewhere, silent when asked."""

from __future__ import annotations

import io
import sys

import pytest

from hyphae_gpu.commands.watch import Watch


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def work(watch: Watch) -> None:
    with watch:
        watch.stage("epoch 1: gossip")
        watch.advance(7)
        watch.note("cpu, 2 threads")
        watch.stage("epoch 1: inboxes")
        watch.advance(1024, 4096)


def test_no_terminal_gets_a_line_a_stage_and_the_notes(monkeypatch):
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    work(Watch(quiet=False))
    assert sys.stderr.getvalue() == "".join(
        f"hyphae-gpu: {line}\n" for line in ("epoch 1: gossip", "cpu, 2 threads", "epoch 1: inboxes")
    )


def test_a_terminal_gets_a_live_line_that_goes_again_and_notes_that_stay(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", Terminal())
    work(Watch(quiet=False))
    shown = sys.stderr.getvalue()
    assert "hyphae-gpu: cpu, 2 threads" in shown
    assert "1,024/4,096" in shown
    assert shown.endswith("\x1b[2K")


@pytest.mark.parametrize("stream", [io.StringIO, Terminal])
def test_quiet_says_nothing(monkeypatch, stream):
    monkeypatch.setattr(sys, "stderr", stream())
    work(Watch(quiet=True))
    assert sys.stderr.getvalue() == ""
