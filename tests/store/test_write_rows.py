"""Rows in: numbers, updates, references, what makes a diff and what does not."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pytest

from hyphae_gpu.errors import BadInputError, DatabaseError
from hyphae_gpu.rows import NothingKnown
from hyphae_gpu.state import PENDING_CREATED, PENDING_SILENT, PENDING_UPDATED, SETTLED
from hyphae_gpu.vocabulary import KnowledgeType
from tests.store import sample
from tests.store.expected import edge_dict

CELL = {"id": "c", "text": "t", "created_at": sample.NOW, "agent": "a"}
AGENT = {"id": "a", "embedding": [0.0, 1.0, 0.0, 0.0]}


def settle(store):
    """Let an epoch that changes nothing else take the new nodes in."""
    state = store.load()
    done = sample.epoch(state, diffs=0, emerging=False)
    none = np.zeros(0, np.int32)
    done.moved, done.moved_vectors = none, np.zeros((0, state.dimension), np.float32)
    done.accessed, done.accessed_at = none, np.zeros(0, np.int64)
    done.written_edges = done.removed_edges = sample.edges([])
    store.checkpoint(done)


def test_numbers_follow_the_order_of_rows_over_all_kinds(opened):
    store = opened()
    given = sample.rows(
        agents=[{"id": "a"}],
        cells=[{"id": "x"}, {"id": "y"}],
        beacons=[{"id": "b", "agent": "a", "embedding": [1.0] * 4}],
    )
    order = {"cell": [4, 1], "agent": [2], "beacon": [3]}
    given = type(given)(
        **{
            **vars(given),
            **{
                f"{kind}s": getattr(given, f"{kind}s").set_column(0, given.cells.schema.field("row"), pa.array(places))
                for kind, places in order.items()
            },
        }
    )
    store.write_rows(given, diffs=True)
    store.write_rows(sample.rows(cells=[{"id": "later"}]), diffs=True)
    with store._database.connect() as connection:
        ids = [row[0] for row in connection.execute("select id from knowledge_nodes order by num")]
    assert ids == ["y", "a", "b", "x", "later"]
    assert store.load().nodes.makers.tolist() == [-1, -1, 1, -1, -1]


def test_a_cell_given_again_alike_is_unchanged(opened):
    store = opened()
    given = sample.swarm()
    store.write_rows(given, diffs=True)
    before = store.load()
    counts = store.write_rows(given, diffs=True)
    assert (counts["cells_created"], counts["cells_updated"], counts["cells_unchanged"]) == (0, 0, 12)
    assert counts["accesses"] == 0
    assert sample.differences(before, store.load()) == []


@pytest.mark.parametrize(
    "change",
    [
        {"text": "other"}, {"text": None}, {"embedding": [1.0, 1.0, 1.0, 1.5]}, {"knowledge_type": 0},
        {"salience": 0.25}, {"confidence": 0.5}, {"agent": None}, {"supersedes": "old"},
        {"claim_subject": "s", "claim_value": "v"},
        {"stance": 0.0}, {"payload": "{}"},
    ],
)  # fmt: skip
def test_a_cell_given_with_other_content_is_updated_and_keeps_created_at(opened, change):
    store = opened()
    store.write_rows(sample.rows(agents=[AGENT], cells=[{"id": "old"}, CELL]), diffs=True)
    settle(store)
    counts = store.write_rows(sample.rows(cells=[CELL | change | {"created_at": sample.NOW + 5}]), diffs=True)
    assert (counts["cells_updated"], counts["cells_unchanged"]) == (1, 0)
    nodes = store.load().nodes
    assert nodes.pending.tolist() == [SETTLED, PENDING_UPDATED, SETTLED]
    assert nodes.created_at[1] == nodes.last_access[1] == sample.NOW
    assert nodes.vectors[1].tolist() == change.get("embedding", [1.0] * 4)
    assert nodes.saliences[1] == change.get("salience", 0.5)
    again = store.write_rows(sample.rows(cells=[CELL | change]), diffs=True)
    assert again["cells_unchanged"] == 1


def test_created_at_alone_is_no_change(opened):
    store = opened()
    store.write_rows(sample.rows(agents=[AGENT], cells=[CELL]), diffs=True)
    counts = store.write_rows(sample.rows(cells=[CELL | {"created_at": sample.NOW + 9}]), diffs=True)
    assert counts["cells_unchanged"] == 1
    assert store.load().accesses.at.tolist() == [sample.NOW]


@pytest.mark.parametrize(
    ("first", "settled", "then", "pending"),
    [
        (True, False, True, PENDING_CREATED),
        (True, False, False, PENDING_CREATED),
        (False, False, False, PENDING_SILENT),
        (False, False, True, PENDING_UPDATED),
        (True, True, True, PENDING_UPDATED),
        (True, True, False, PENDING_SILENT),
    ],
)
def test_a_diff_that_waits_is_neither_lost_nor_doubled(opened, first, settled, then, pending):
    store = opened()
    store.write_rows(sample.rows(cells=[{"id": "c"}]), diffs=first)
    if settled:
        settle(store)
    store.write_rows(sample.rows(cells=[{"id": "c", "text": "new"}]), diffs=then)
    assert store.load().nodes.pending.tolist() == [pending]


def test_a_silent_change_keeps_an_update_that_waits(opened):
    store = opened()
    store.write_rows(sample.rows(cells=[{"id": "c"}]), diffs=False)
    settle(store)
    store.write_rows(sample.rows(cells=[{"id": "c", "text": "one"}]), diffs=True)
    store.write_rows(sample.rows(cells=[{"id": "c", "text": "two"}]), diffs=False)
    assert store.load().nodes.pending.tolist() == [PENDING_UPDATED]


def test_a_new_and_a_changed_cell_log_an_access_by_their_agent(opened):
    store = opened()
    store.write_rows(sample.rows(agents=[AGENT], cells=[CELL]), diffs=True)
    store.write_rows(sample.rows(cells=[CELL | {"text": "new", "created_at": sample.NOW + 7}]), diffs=True)
    log = store.load().accesses
    assert sorted(zip(log.agents.tolist(), log.cells.tolist(), log.at.tolist(), strict=True)) == [
        (1, 0, sample.NOW),
        (1, 0, sample.NOW + 7),
    ]


def test_an_access_is_logged_once(opened):
    store = opened()
    access = {"agent": "a", "cell": "c", "at": sample.NOW + 1}
    first = store.write_rows(sample.rows(agents=[AGENT], cells=[CELL], accesses=[access, access]), diffs=True)
    assert first["accesses"] == 2
    assert store.write_rows(sample.rows(accesses=[access]), diffs=True)["accesses"] == 0


def test_the_superseded_cell_knows_by_whom_until_it_is_taken_back(opened):
    store = opened()
    store.write_rows(
        sample.rows(cells=[{"id": "old"}, {"id": "new", "supersedes": "old"}, {"id": "newer", "supersedes": "old"}]),
        diffs=True,
    )
    assert store.load().nodes.superseded_by.tolist() == [1, -1, -1]
    store.write_rows(sample.rows(cells=[{"id": "new"}]), diffs=True)
    assert store.load().nodes.superseded_by.tolist() == [2, -1, -1]
    store.write_rows(sample.rows(cells=[{"id": "newer", "supersedes": "new"}]), diffs=True)
    assert store.load().nodes.superseded_by.tolist() == [-1, 2, -1]


def test_an_agent_given_again_takes_the_new_row_but_keeps_its_position(opened):
    store = opened()
    interests = [0.0, 0.25] + [0.0] * 7
    store.write_rows(sample.rows(agents=[AGENT | {"interests": interests, "trust": 0.5}]), diffs=True)
    store.write_rows(sample.rows(agents=[{"id": "a"}]), diffs=True)
    nodes = store.load().nodes
    assert nodes.vectors.tolist() == [AGENT["embedding"]]
    assert nodes.interests.any() == np.False_
    store.write_rows(
        sample.rows(agents=[AGENT | {"embedding": [0.0, 0.0, 2.0, 0.0], "interests": interests}]), diffs=True
    )
    nodes = store.load().nodes
    assert nodes.vectors.tolist() == [[0.0, 0.0, 2.0, 0.0]]
    assert nodes.interests.tolist() == [interests]


def test_an_agent_given_again_alike_stays_where_it_has_drifted_to(opened):
    store = opened()
    store.write_rows(sample.rows(cells=[CELL], agents=[AGENT]), diffs=True)
    done = sample.epoch(store.load(), diffs=0, emerging=False)
    store.checkpoint(done)
    before = store.load()
    store.write_rows(sample.rows(agents=[AGENT]), diffs=True)
    assert sample.differences(before, store.load()) == []
    store.write_rows(sample.rows(agents=[AGENT | {"embedding": [5.0] * 4}]), diffs=True)
    assert store.load().nodes.vectors[1].tolist() == [5.0] * 4


def test_agents_without_a_position_may_come_before_any_vector(opened):
    store = opened()
    store.write_rows(sample.rows(dimension=0, agents=[{"id": "a"}]), diffs=True)
    assert store.known().dimension is None
    with pytest.raises(DatabaseError, match="ingest"):
        store.load()
    store.write_rows(sample.rows(cells=[CELL]), diffs=True)
    nodes = store.load().nodes
    assert nodes.types.tolist() == [1, 0]
    assert nodes.placed.tolist() == [False, True]
    assert nodes.makers.tolist() == [-1, 0]


def test_an_edge_given_again_takes_the_new_weight(opened):
    store = opened()
    edge = {"src": "x", "tgt": "y", "type": 1, "weight": 0.5}
    store.write_rows(sample.rows(cells=[{"id": "x"}, {"id": "y"}], edges=[edge]), diffs=True)
    store.write_rows(sample.rows(edges=[edge | {"weight": 0.25, "bandwidth": 2}]), diffs=True)
    state = store.load()
    assert edge_dict(state.declared) == {(0, 1, 1): [6, 0.25, 2]}
    assert len(state.topology) == 0


def test_a_declared_edge_and_the_epochs_own_stand_side_by_side(opened):
    store = opened()
    edge = {"src": "x", "tgt": "y", "type": 1, "weight": 0.5}
    store.write_rows(sample.rows(cells=[{"id": "x"}, {"id": "y"}], edges=[edge]), diffs=True)
    done = sample.epoch(store.load(), diffs=0, emerging=False)
    done.written_edges, done.removed_edges = sample.edges([(0, 1, 1)], weight=0.75), sample.edges([])
    store.checkpoint(done)
    state = store.load()
    assert edge_dict(state.declared) == {(0, 1, 1): [6, 0.5, -1]}
    assert edge_dict(state.topology) == {(0, 1, 1): [5, 0.75, -1]}
    done = sample.epoch(state, diffs=0, emerging=False)
    done.written_edges, done.removed_edges = sample.edges([]), sample.edges([(0, 1, 1)])
    store.checkpoint(done)
    state = store.load()
    assert len(state.topology) == 0
    assert len(state.declared) == 1


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ({"cells": [{"id": "c"}, {"id": "c"}]}, "given before"),
        ({"cells": [{"id": "there"}, {"id": "c", "agent": "nobody"}]}, "'nobody'"),
        ({"cells": [{"id": "c", "supersedes": "nothing"}]}, "'nothing'"),
        ({"agents": [{"id": "there", "embedding": [1.0] * 4}]}, "is cell in the store, agent here"),
        ({"accesses": [{"agent": "who", "cell": "there", "at": 1}]}, "'who'"),
        ({"edges": [{"src": "there", "tgt": "away", "type": 1, "weight": 1.0}]}, "'away'"),
        ({"cells": [{"id": "c"}], "space": "lsa"}, "'given' with dimension 4"),
        ({"cells": [{"id": "c"}], "dimension": 5}, "dimension 5"),
        ({"cells": [{"id": "c", "text": "a\0b"}]}, "0x00"),
        ({"cells": [{"id": "c", "payload": '{"a": "\\u0000"}'}]}, "u0000"),
        ({"cells": [{"id": "c", "payload": "{"}]}, "json"),
        ({"cells": [{"id": "c", "salience": 1.5}]}, "salience"),
        ({"agents": [{"id": "a"}], "beacons": [{"id": "gossip", "agent": "a", "embedding": [1.0] * 4}]}, "gossip"),
    ],
)
def test_rows_that_do_not_fit_leave_the_store_as_it_was(opened, rows, words):
    store = opened()
    store.write_rows(sample.rows(cells=[{"id": "there"}]), diffs=True)
    before = store.load()
    with pytest.raises(BadInputError, match=words):
        store.write_rows(sample.rows(**rows), diffs=True)
    assert sample.differences(before, store.load()) == []


def promoted(opened):
    """A store in which nodes 19 to 21 are promoted ones, a row that gives one of them alike, and its cell."""
    store = opened()
    store.write_rows(sample.swarm(), diffs=True)
    store.checkpoint(sample.epoch(store.load()))
    with store._database.connect() as connection:
        text, confidence, payload, made_of, agent, kind = connection.execute(
            "select n.text, n.confidence, n.payload, c.id, a.id, n.knowledge_type from knowledge_nodes n "
            "join knowledge_nodes c on c.num = n.made_of left join knowledge_nodes a on a.num = n.agent "
            "where n.id = 'promoted-20'"
        ).fetchone()
    nodes = store.load().nodes
    alike = {
        "id": "promoted-20",
        "text": text,
        "confidence": confidence,
        "payload": payload and json.dumps(payload),
        "agent": agent,
        "knowledge_type": KnowledgeType[kind.upper()],
        "salience": float(nodes.saliences[20]),
        "embedding": nodes.vectors[20].tolist(),
    }
    return store, alike, made_of


@pytest.mark.parametrize("change", [{"text": "other"}, {"salience": 0.125}, {"embedding": [1.0] * 4}, {"stance": 0.5}])
def test_a_row_that_would_change_what_was_promoted_is_refused_by_its_id(opened, change):
    store, alike, made_of = promoted(opened)
    before = store.load()
    given = sample.rows(cells=[{"id": "new"}, alike | change])
    with pytest.raises(BadInputError) as refused:
        store.write_rows(given, diffs=True)
    [(place, reason)] = refused.value.problems
    assert place == "row 1"
    assert "'promoted-20' is a node promoted to layer 2" in reason
    assert repr(made_of) in reason
    assert sample.differences(before, store.load()) == []


def test_every_row_that_would_change_what_was_promoted_is_named(opened):
    store, alike, _ = promoted(opened)
    rows = [alike | {"id": name, "text": "other"} for name in ("promoted-21", "promoted-19")]
    with pytest.raises(BadInputError) as refused:
        store.write_rows(sample.rows(cells=rows), diffs=False)
    assert [place for place, _ in refused.value.problems] == ["row 0", "row 1"]
    assert [reason.split("'")[1] for _, reason in refused.value.problems] == ["promoted-21", "promoted-19"]


def test_what_was_promoted_given_again_alike_is_unchanged(opened):
    store, alike, _ = promoted(opened)
    before = store.load()
    counts = store.write_rows(sample.rows(cells=[alike]), diffs=True)
    assert (counts["cells_updated"], counts["cells_unchanged"]) == (0, 1)
    assert sample.differences(before, store.load()) == []


def test_a_pattern_can_be_given_another_content(opened):
    store, _, _ = promoted(opened)
    store.write_rows(sample.rows(cells=[{"id": "pattern-22", "text": "better words"}]), diffs=True)
    nodes = store.load().nodes
    assert (nodes.pending[22], nodes.made_of[22] >= 0) == (PENDING_UPDATED, True)
    assert store.texts(np.array([22])) == ["better words"]


def test_a_dimension_that_pgvector_cannot_hold_is_refused(opened):
    with pytest.raises(BadInputError, match="2 to 16000"):
        opened().write_rows(sample.rows(dimension=1, cells=[{"id": "c"}]), diffs=True)


def test_no_rows_change_nothing(opened):
    store = opened()
    counts = store.write_rows(sample.rows(), diffs=True)
    assert set(counts.values()) == {0}
    assert store.status()["nodes"] == {"cell": 0, "agent": 0, "scene": 0, "beacon": 0}


def test_the_store_answers_what_ingest_asks(opened):
    store = opened()
    known = store.known()
    nothing = NothingKnown()
    assert (known.dimension, known.embedding_space) == (nothing.dimension, nothing.embedding_space)
    ids = pa.array(["c", "a", "b", "missing", "a"])
    assert known.types_of(ids).tolist() == nothing.types_of(ids).tolist()
    assert known.accessed(ids).tolist() == [False] * 5
    store.write_rows(
        sample.rows(agents=[{"id": "a"}, AGENT | {"id": "b"}, {"id": "d"}], cells=[CELL], space="lsa"), diffs=True
    )
    assert (known.dimension, known.embedding_space) == (4, "lsa")
    assert known.types_of(ids).tolist() == [0, 1, 1, -1, 1]
    assert known.accessed(pa.array(["a", "b", "d", "missing"])).tolist() == [True, True, False, False]
    assert known.types_of(pa.array([], pa.string())).tolist() == []


def test_an_embedders_arrays_come_back_bit_by_bit(opened):
    store = opened()
    arrays = {
        "components": np.random.default_rng(0).normal(size=(3, 5)).astype(np.float32).T,
        "words": np.array(["é", "naïve", ""]),
        "big": np.arange(3, dtype=">i8"),
        "one": np.array(2.5),
        "none": np.zeros((0, 4), np.int8),
        "flags": np.array([True, False]),
    }
    store.write_rows(sample.rows(cells=[{"id": "c"}], embedder=arrays), diffs=True)
    back = store.embedder_arrays()
    assert back.keys() == arrays.keys()
    for name, array in arrays.items():
        assert back[name].shape == array.shape
        assert back[name].tolist() == array.tolist()
        assert back[name].flags.writeable
    assert back["components"].dtype == np.float32


def test_an_embedder_array_of_objects_is_refused(opened):
    with pytest.raises(ValueError, match="plain bytes"):
        opened().write_rows(sample.rows(cells=[{"id": "c"}], embedder={"bad": np.array([json], object)}), diffs=True)
