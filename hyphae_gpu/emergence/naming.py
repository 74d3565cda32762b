"""Names of scenes: the terms that tell each from the others, by class-based TF-IDF (spec 6.4)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS, CountVectorizer, TfidfTransformer

from hyphae_gpu.arrays import I32, I64, Flags
from hyphae_gpu.emergence.contradictions import Texts

#: Terms of a name.
TERMS = 4
#: Cells of a scene that is named, and of one that keeps its name, whose texts are read, at most.
CELLS_READ, CELLS_COMPARED = 64, 4
_CHARACTERS_READ = 2000
_TEXTS_AT_ONCE = 4096
_DIGITS = 9
#: A word of two to thirty characters that begins with a letter and stands by itself.
_WORD = r"(?u)\b[^\W\d_][\w-]{0,28}\w\b"
#: What is left of contractions once their apostrophe splits them.
_FRAGMENTS = frozenset(
    {
        *("ain", "aren", "couldn", "didn", "doesn", "don", "hadn", "hasn", "haven", "isn", "ll"),
        *("mightn", "mustn", "needn", "shan", "shouldn", "ve", "wasn", "weren", "won", "wouldn"),
    }
)


def name_scenes(offsets: I64, cells: I32, wanted: Flags, texts: Texts) -> list[str]:
    """Return a name for each wanted scene, in order; empty where its texts hold no word.

    Scene s has the cells at offsets[s] : offsets[s + 1]; offsets int64 [k + 1], cells int32; wanted bool [k]. The texts
    of at most 64 cells of a wanted scene are asked for, and of 4 of any other, to compare with; none where none is
    wanted.
    """
    if not wanted.any():
        return []
    rows = [
        _spread(int(offsets[s]), int(offsets[s + 1]), CELLS_READ if wanted[s] else CELLS_COMPARED)
        for s in range(len(wanted))
    ]
    scene = np.repeat(np.arange(len(rows)), [len(some) for some in rows])
    asked = cells[np.concatenate(rows)]
    said = [
        (text or "")[:_CHARACTERS_READ]
        for first in range(0, len(asked), _TEXTS_AT_ONCE)
        for text in texts(asked[first : first + _TEXTS_AT_ONCE])
    ]
    return terms_of(said, scene, np.flatnonzero(wanted), len(wanted))


def terms_of(texts: Sequence[str], scene: npt.NDArray[Any], wanted: npt.NDArray[Any], count: int) -> list[str]:
    """Return the top terms of each wanted scene, joined by commas.

    scene: which of the `count` scenes each text belongs to. A scene is one document; a term counts once a text, so that
    no long text speaks for all. Ties go to the alphabet; of a word and its plural the better one stays.
    """
    vectorizer = CountVectorizer(
        token_pattern=_WORD, stop_words=sorted(ENGLISH_STOP_WORDS | _FRAGMENTS), binary=True, dtype=np.int64
    )
    try:
        counts = vectorizer.fit_transform(texts)
    except ValueError:  # no text holds a word
        return [""] * len(wanted)
    rows = csr_matrix((np.ones(len(texts), np.int64), (scene, np.arange(len(texts)))), shape=(count, len(texts)))
    weights = TfidfTransformer(norm=None).fit_transform(rows @ counts)
    terms = vectorizer.get_feature_names_out()
    names = []
    for row in wanted.tolist():
        span = slice(weights.indptr[row], weights.indptr[row + 1])
        # Rounded: the last digits of a logarithm are not the same on every machine.
        worth = np.round(weights.data[span], _DIGITS)
        order = np.lexsort((weights.indices[span], -worth))
        names.append(", ".join(_distinct(terms[weights.indices[span][order]].tolist())))
    return names


def _spread(first: int, last: int, most: int) -> npt.NDArray[np.int64]:
    """Return up to `most` places of [first, last), evenly spread."""
    size = last - first
    return first + np.arange(min(size, most)) * size // max(1, min(size, most))


def _distinct(terms: Sequence[str]) -> list[str]:
    """Return the first terms that are not singular or plural of one before."""
    kept: list[str] = []
    stems: set[str] = set()
    for term in terms:
        stem = term.removesuffix("s")
        if stem not in stems:
            stems.add(stem)
            kept.append(term)
        if len(kept) == TERMS:
            break
    return kept
