"""What is left of reStructuredText is what a person would read aloud."""

from __future__ import annotations

import pytest

from hyphae_gpu.demo.prose import clipped, paragraphs, plain, sentences


@pytest.mark.parametrize(
    ("markup", "read"),
    [
        (":func:`~torch.linalg.qr` is *better* than ``torch.qr``", "torch.linalg.qr is better than torch.qr"),
        ("code during func:`torch.jit.load`.", "code during torch.jit.load."),
        ("see `the guide <https://example.org/a_b>`_ first", "see the guide first"),
        (":ref:`the notes <random-quick-start>` say", "the notes say"),
        ("as in [1]_ and [Knuth98]_, so", "as in and, so"),
        (r"scaled by :math:`\frac{1}{1-p}`, :math:`x \in \mathbb{R}`", "scaled by 1/1-p, x ∈ R"),
        ("**strong** words, 2 * 3 * 4 and *args", "strong words, 2 * 3 * 4 and *args"),
        ("spread\n   over  lines", "spread over lines"),
        ("", ""),
    ],
)
def test_inline_markup_becomes_words(markup: str, read: str) -> None:
    assert plain(markup) == read


def test_code_tables_targets_and_footnotes_are_left_out() -> None:
    body = """\
First, do this::

    x = 1

>>> x
1

Then that.

===== =====
.. _a link: https://example.org
.. [1] A. Author, "A book".
   2nd edition.

Last.""".splitlines()
    assert paragraphs(body) == ["First, do this:", "Then that.", "Last."]


def test_list_items_are_paragraphs_of_their_own() -> None:
    assert paragraphs(["- one thing", "  goes on", "- another", "1. third one"]) == [
        "one thing goes on",
        "another",
        "third one",
    ]


def test_sentences_end_where_they_should() -> None:
    assert sentences("Use it, e.g. Here. Not 1.5 times. (Really.)") == [
        "Use it, e.g. Here.",
        "Not 1.5 times.",
        "(Really.)",
    ]


def test_clipping_keeps_whole_sentences_and_never_passes_the_limit() -> None:
    text = "One is here. Two is here too. " + "X" * 50
    assert clipped(text, 30) == "One is here. Two is here too."
    assert clipped("word " * 20, 12) == "word word…"
    assert clipped("x" * 50, 10) == "x" * 9 + "…"
    for limit in range(2, 90):
        assert len(clipped(text, limit)) <= limit
