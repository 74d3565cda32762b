"""Vector search with filters, and the indexes for it."""

from __future__ import annotations

import numpy as np
import pytest

from hyphae_gpu.errors import DatabaseError, UsageError
from tests.store import sample


def filled(opened, count=300, dimension=8, seed=0):
    rng = np.random.default_rng(seed)
    vectors = rng.normal(size=(count, dimension)).astype(np.float32)
    cells = [
        {
            "id": f"c{i}",
            "embedding": vectors[i].tolist(),
            "knowledge_type": i % 9,
            "salience": 0.0 if i % 2 else 0.5,
            "created_at": sample.NOW + i,
        }
        for i in range(count)
    ]
    store = opened()
    store.write_rows(sample.rows(dimension=dimension, cells=cells), diffs=True)
    return store, vectors


def nearest(vectors, query, chosen):
    unit = vectors.astype(np.float64) / np.linalg.norm(vectors.astype(np.float64), axis=1, keepdims=True)
    cosines = unit @ (query / np.linalg.norm(query))
    order = [i for i in np.argsort(-cosines, kind="stable") if chosen(i)]
    return [f"c{i}" for i in order], cosines


@pytest.mark.parametrize("indexed", [False, True])
def test_search_finds_the_nearest_with_and_without_an_index(opened, indexed):
    store, vectors = filled(opened)
    if indexed:
        assert store.build_indexes() == [f"knowledge_nodes_hnsw_{layer}" for layer in range(3)]
    query = np.random.default_rng(1).normal(size=8).astype(np.float32)
    found = store.search(query, limit=10)
    expected, cosines = nearest(vectors, query.astype(np.float64), lambda i: True)
    assert [hit["id"] for hit in found] == expected[:10]
    assert [hit["cosine"] for hit in found] == pytest.approx(sorted(cosines, reverse=True)[:10], abs=1e-6)
    assert 0.0 in [hit["salience"] for hit in found], "decayed cells are found too"


@pytest.mark.parametrize("indexed", [False, True])
def test_filters_leave_the_best_of_what_they_let_through(opened, indexed):
    store, vectors = filled(opened)
    if indexed:
        store.build_indexes()
    query = np.random.default_rng(2).normal(size=8).astype(np.float32)
    found = store.search(query, limit=5, type="risk", layer=0, since=sample.NOW + 100)
    expected, _ = nearest(vectors, query.astype(np.float64), lambda i: i % 9 == 2 and i >= 100)
    assert [hit["id"] for hit in found] == expected[:5]
    assert store.search(query, limit=5, layer=1) == []
    assert store.search(query, limit=5, type="agent") == []


def layered(opened, indexed=False):
    """Three cells about one thing; the first was promoted twice, leads a pattern, and is in a scene with a name."""
    store = opened()
    cells = [{"id": f"c{i}", "text": f"text {i}", "embedding": [1.0, 0.1 * i, 0.0]} for i in range(3)]
    store.write_rows(sample.rows(dimension=3, cells=cells), diffs=True)
    with store._database.connect() as connection:
        for number, name, kind, layer, made_of, vector in (
            (3, "scene-3", "scene", 1, None, "[1,0.2,0.1]"),
            (4, "scene-4", "scene", 1, None, None),
            (5, "promoted-5", "cell", 1, 0, "[1,0,0]"),
            (6, "promoted-6", "cell", 2, 0, "[1,0,0]"),
            (7, "pattern-7", "cell", 0, 0, "[1,0,0.1]"),
        ):
            connection.execute(
                "insert into knowledge_nodes (num, id, type, layer, made_of, embedding, text, knowledge_type, "
                "created_at, last_access) values (%s, %s, %s, %s, %s, %s::vector, %s, %s, now(), now())",
                [
                    *(number, name, kind, layer, made_of, vector),
                    *((None, None) if kind == "scene" else ("text 0", "pattern" if layer == 0 else "fact")),
                ],
            )
        connection.execute("insert into scenes values (3, 'scene-3', 'words', 3, 1, null), (4, 'scene-4', '', 0, 1, 2)")
        connection.execute("update knowledge_nodes set scene = 3 where num in (0, 1)")
    if indexed:
        store.build_indexes()
    return store


def test_a_scene_filter_keeps_its_cells(opened):
    store = layered(opened)
    query = np.array([1, 0, 0], np.float32)
    found = store.search(query, limit=9, scene="scene-3")
    assert [(hit["id"], hit["scene"]) for hit in found] == [("c0", "scene-3"), ("c1", "scene-3")]
    with pytest.raises(UsageError, match="no scene 'scene-4'"):
        store.search(query, scene="scene-4")


@pytest.mark.parametrize("indexed", [False, True])
def test_a_scene_is_found_by_its_centroid_and_says_its_name(opened, indexed):
    store = layered(opened, indexed)
    query = np.array([1, 0.2, 0.1], np.float32)
    assert [(hit["id"], hit["text"], hit["layer"]) for hit in store.search(query, limit=1)] == [("scene-3", "words", 1)]
    [hit] = store.search(query, type="scene")
    assert (hit["id"], hit["text"], hit["scene"], hit["knowledge_type"]) == ("scene-3", "words", None, None)


@pytest.mark.parametrize("indexed", [False, True])
def test_the_cell_stands_for_what_was_promoted_of_it_unless_its_layer_is_asked_for(opened, indexed):
    store = layered(opened, indexed)
    query = np.array([1, 0, 0], np.float32)

    def found(**asked):
        return [hit["id"] for hit in store.search(query, limit=9, **asked)]

    assert found() == ["c0", "c1", "pattern-7", "c2", "scene-3"]
    assert found(type="fact") == found(type="fact", layer=0) == ["c0", "c1", "c2"]
    assert found(type="pattern") == ["pattern-7"]
    assert found(layer=1) == ["promoted-5", "scene-3"]
    assert found(layer=2) == ["promoted-6"]


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"vector": np.ones(7, np.float32)}, "8 numbers"),
        ({"vector": np.zeros(8, np.float32)}, "zero"),
        ({"vector": np.full(8, np.nan, np.float32)}, "finite"),
        ({"type": "thing"}, "decision"),
        ({"scene": "none"}, "no scene"),
        ({"limit": 0}, "limit 0"),
    ],
)
def test_what_cannot_be_searched_is_refused(opened, options, word):
    store, _ = filled(opened, count=3)
    vector = options.pop("vector", np.ones(8, np.float32))
    with pytest.raises(UsageError, match=word):
        store.search(vector, **({"limit": 1} | options))


def test_an_empty_store_cannot_be_searched(opened):
    with pytest.raises(DatabaseError, match="ingest"):
        opened().search(np.ones(4, np.float32), limit=1)


def index_uses(store, dimension, cast):
    with store._database.connect() as connection:
        connection.execute("set enable_seqscan = off")
        vector = "[" + ",".join(["1"] * dimension) + "]"
        query = (
            "explain select num from knowledge_nodes n where layer = 0 and embedding is not null "
            f"order by {cast} <=> %s limit 3"
        )
        return "knowledge_nodes_hnsw_0" in str(connection.execute(query, [vector]).fetchall())


def test_from_2001_dimensions_the_index_is_of_half_floats(opened):
    store, vectors = filled(opened, count=40, dimension=2048)
    assert len(store.build_indexes()) == 3
    with store._database.connect() as connection:
        defined = connection.execute(
            "select indexdef from pg_indexes where indexname = 'knowledge_nodes_hnsw_0'"
        ).fetchone()[0]
    assert "halfvec(2048)" in defined
    assert "m='24', ef_construction='128'" in defined
    assert index_uses(store, 2048, "(embedding::halfvec(2048))")
    assert [hit["id"] for hit in store.search(vectors[7], limit=1)] == ["c7"]


def test_from_4001_dimensions_there_is_no_index_and_search_is_exact(opened):
    store, vectors = filled(opened, count=10, dimension=4096)
    assert store.build_indexes() == []
    assert [hit["id"] for hit in store.search(vectors[3], limit=1)] == ["c3"]


def test_an_index_build_reports_its_progress_and_is_made_once(opened):
    store, _ = filled(opened, count=20)
    said = []
    first = store.build_indexes(lambda name, share: said.append((name, share)))
    assert said[0] == (first[0], 0.0)
    assert said[-1] == (first[-1], 1.0)
    assert store.build_indexes() == first
