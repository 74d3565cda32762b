"""Vectors made from texts: one space a store, the same bytes each time, nothing unknown is near anything."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from hyphae_gpu.errors import DatabaseError, UsageError
from hyphae_gpu.ingest import embed_texts
from hyphae_gpu.ingest.embed import LSA_DIMENSION, fit
from tests.ingest.samples import ACCESS, AGENT, BEACON, CELL, EDGE, OTHER, Store, read, with_field, write_lines

TEXTS = [
    "the kettle boils water for tea",
    "tea is made with boiling water",
    "a kettle heats water",
    "graph kernels relax edges in rounds",
    "edges of the graph are relaxed by kernels",
    "rounds of gossip cross the edges",
]


def cells(texts: list[str]) -> list[dict[str, Any]]:
    return [{**with_field(CELL, embedding=...), "id": f"c{i}", "text": text} for i, text in enumerate(texts)]


def vectors_of(column: Any) -> np.ndarray:
    return np.array(column.to_pylist(), np.float32)


def test_texts_on_one_subject_are_nearer_than_others() -> None:
    arrays = fit(TEXTS, space="lsa")
    found = embed_texts(TEXTS, space="lsa", arrays=arrays)
    cosines = found @ found.T
    assert found.shape == (6, LSA_DIMENSION)
    assert found.dtype == np.float32
    assert np.abs(np.linalg.norm(found, axis=1) - 1).max() < 1e-6
    assert cosines[0, 1] > 0.2 > cosines[0, 3]
    assert cosines[3, 4] > 0.2 > cosines[2, 4]


def test_ingest_fits_once_and_later_input_lives_in_the_same_space(tmp_path: Path) -> None:
    beacon = {**with_field(BEACON, embedding=...), "text": TEXTS[3]}
    agent = with_field(AGENT, embedding=...)
    lines = [*cells(TEXTS), beacon, agent, {**ACCESS, "cell": "c0"}, {**EDGE, "src": "c0", "tgt": "c1"}]
    first = read(write_lines(tmp_path / "a.jsonl", lines), embed="lsa")
    assert (first.dimension, first.embedding_space) == (LSA_DIMENSION, "lsa")
    assert sorted(first.embedder_arrays) == ["components", "idf", "vocabulary"]
    assert first.beacons["embedding"].to_pylist() == [first.cells["embedding"].to_pylist()[3]]
    assert first.agents["embedding"].to_pylist() == [None]

    known = Store(dimension=LSA_DIMENSION, embedding_space="lsa", arrays=first.embedder_arrays)
    for embed in ("lsa", None):
        later = read(write_lines(tmp_path / "b.jsonl", cells(TEXTS[::-1])), known=known, embed=embed)
        assert later.embedder_arrays == {}
        assert later.embedding_space == "lsa"
        assert np.array_equal(vectors_of(later.cells["embedding"])[::-1], vectors_of(first.cells["embedding"]))


def test_a_text_without_known_terms_finds_its_equal_and_is_near_nothing_else() -> None:
    arrays = fit(TEXTS, space="lsa")
    unknown = ["zymurgy", "the", "", "quokka quokka"]
    found = embed_texts([*TEXTS, *unknown, *unknown], space="lsa", arrays=arrays)
    assert np.array_equal(found[6:10], found[10:])
    cosines = found[:10] @ found[:10].T - np.eye(10)
    assert np.abs(cosines[6:]).max() < 0.3


LONG = " ".join(f"term{i}" for i in range(300))


@pytest.mark.parametrize(
    "texts",
    [["tea"], ["the"], ["tea", "tea"], ["tea", "graph"], ["", "tea and water"], [LONG], [LONG] * 3, [LONG, "tea"]],
    ids=lambda texts: str(texts)[:30],
)
def test_tiny_corpora_make_usable_vectors(texts: list[str]) -> None:
    arrays = fit(texts, space="lsa")
    found = embed_texts([*texts, "something else"], space="lsa", arrays=arrays)
    assert np.abs(np.linalg.norm(found, axis=1) - 1).max() < 1e-6
    assert np.array_equal(found[:1], embed_texts(texts[:1], space="lsa", arrays=arrays))


def test_a_fit_gives_the_same_bytes_whatever_the_threads() -> None:
    script = (
        "import hashlib\nfrom hyphae_gpu.ingest.embed import embed_texts, fit\n"
        "texts = [f'{w} word{i % 97} term{i % 89} thing{i % 83}' for i in range(1500) for w in ('a1', 'b2')]\n"
        "arrays = fit(texts, space='lsa')\nvectors = embed_texts(texts, space='lsa', arrays=arrays)\n"
        "print(hashlib.sha256(vectors.tobytes() + arrays['components'].tobytes()).hexdigest())"
    )
    seen = set()
    for threads in ("1", "2"):
        environment = {**os.environ, "OMP_NUM_THREADS": threads, "OPENBLAS_NUM_THREADS": threads}
        done = subprocess.run(
            [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True
        )
        seen.add(done.stdout)
    assert len(seen) == 1


def test_names_that_are_no_embedder_are_refused(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "rows.jsonl", cells(TEXTS))
    for name in ("word2vec", "sentence-transformers:", ""):
        with pytest.raises(UsageError, match="expected lsa or sentence-transformers:NAME"):
            read(path, embed=name)


def test_text_cannot_be_turned_into_vectors_that_came_with_rows() -> None:
    with pytest.raises(UsageError, match="give a vector"):
        embed_texts(["tea"], space="given", arrays={})


def test_a_store_that_lost_its_embedder_says_so() -> None:
    with pytest.raises(DatabaseError, match="lacks the embedder's vocabulary, idf, components"):
        embed_texts(["tea"], space="lsa", arrays={})


def test_a_missing_model_package_is_named_with_its_command(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(UsageError, match="pip install sentence-transformers"):
        read(write_lines(tmp_path / "rows.jsonl", cells(TEXTS)), embed="sentence-transformers:any")


def test_a_model_makes_the_vectors_and_the_store_keeps_its_name(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    class Model:
        def __init__(self, name: str) -> None:
            if name != "mini":
                raise OSError("no such model")

        def encode(self, texts: list[str], **_: Any) -> np.ndarray:
            return np.array([[len(text), 1.0, 2.0] for text in texts])

    package = ModuleType("sentence_transformers")
    package.SentenceTransformer = Model  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "sentence_transformers", package)
    path = write_lines(tmp_path / "rows.jsonl", cells(["tea", "water"]))
    found = read(path, embed="sentence-transformers:mini")
    assert (found.dimension, found.embedding_space) == (3, "sentence-transformers:mini")
    assert found.cells["embedding"].to_pylist() == [[3.0, 1.0, 2.0], [5.0, 1.0, 2.0]]
    assert found.embedder_arrays == {}
    with pytest.raises(UsageError, match="cannot be loaded: no such model"):
        read(path, embed="sentence-transformers:maxi")


def test_other_cells_than_the_first_make_no_new_fit(tmp_path: Path) -> None:
    arrays = fit(TEXTS, space="lsa")
    known = Store(dimension=LSA_DIMENSION, embedding_space="lsa", arrays=arrays)
    found = read(write_lines(tmp_path / "rows.jsonl", [with_field(OTHER, embedding=...)]), known=known)
    expected = embed_texts(["water boils"], space="lsa", arrays=arrays)
    assert np.array_equal(vectors_of(found.cells["embedding"]), expected)
