"""The files of `propagate`: what a graph becomes, and every reason for which it is refused (interfaces.md)."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hyphae_gpu.errors import BadInputError
from hyphae_gpu.ingest.graph_files import read_graph
from hyphae_gpu.vectors import quantise
from hyphae_gpu.vocabulary import DiffType, EdgeKind, EdgeType, KnowledgeType, NodeType
from tests.ingest.graph_samples import good, read, refused, write_graph

INT_IDS = {"nodes.id": pa.int64(), "src": pa.int64(), "tgt": pa.int64(), "origin": pa.int64()}


def with_int_ids() -> dict[str, Any]:
    files = good()
    numbers = {"c": 2**40, "a": -1, "s": 0, "b": 7}
    for file, column in (("nodes", "id"), ("edges", "src"), ("edges", "tgt"), ("diffs", "origin")):
        files[file][column] = [numbers[name] for name in files[file][column]]
    return files


def test_a_graph_becomes_columns_with_its_defaults(tmp_path: Path) -> None:
    graph = read(tmp_path, good())
    nodes, edges, diffs = graph.nodes, graph.edges, graph.diffs
    assert nodes.types.tolist() == [NodeType.CELL, NodeType.AGENT, NodeType.SCENE, NodeType.BEACON]
    assert nodes.layers.tolist() == [0, 0, 1, 0]
    vectors = np.array(good()["nodes"]["embedding"], np.float32)
    assert nodes.images.tolist() == quantise(vectors).tolist()
    assert nodes.lengths.tolist() == [math.sqrt(sum(x * x for x in image)) for image in nodes.images.tolist()]
    assert nodes.interest_rows.tolist() == [-1, 0, -1, 1]
    assert nodes.interests[0, KnowledgeType.FACT] == 0.5
    assert nodes.interests[1, KnowledgeType.RISK] == 1
    assert nodes.interests.sum() == 1.5

    assert edges.sources.tolist() == [0, 1, 0, 2, 0]
    assert edges.targets.tolist() == [1, 0, 3, 0, 2]
    assert edges.types.tolist() == [
        EdgeType.SEMANTIC,
        EdgeType.CAUSAL,
        EdgeType.SUBSCRIPTION,
        EdgeType.PROMOTED,
        EdgeType.SEMANTIC,
    ]
    assert edges.kinds.tolist() == [EdgeKind.NEAR, EdgeKind.DECLARED, EdgeKind.NONE, EdgeKind.NONE, EdgeKind.FAR]
    assert edges.weights.tolist() == [0.5, 1.0, 1.0, 0.25, 0.125]
    assert edges.bandwidths.tolist() == [3, -1, -1, 1, -1]

    assert diffs.numbers.tolist() == [0, 1, 2]
    assert diffs.origins.tolist() == [0, 1, 2]
    assert diffs.types.tolist() == [DiffType.CREATED, DiffType.UPDATED, DiffType.PATTERN]
    assert diffs.knowledge_types.tolist() == [KnowledgeType.FACT, KnowledgeType.DECISION, KnowledgeType.TASK]
    assert diffs.images.tolist() == [nodes.images[0].tolist(), [127, 127], nodes.images[2].tolist()]
    assert diffs.energies.tolist() == [math.floor(1024 * (10 * math.sqrt(0.5) * 1.0)), 20 * 1024, 3584]
    assert diffs.max_hops.tolist() == [64, 2, 64]
    assert graph.node_ids.to_pylist() == ["c", "a", "s", "b"]
    assert graph.diff_ids.to_pylist() == ["d1", "d2", "d3"]


def test_optional_columns_may_be_missing_or_all_null(tmp_path: Path) -> None:
    files = good()
    del files["nodes"]["interests"], files["edges"]["bandwidth"], files["edges"]["kind"]
    del files["diffs"]["embedding"], files["diffs"]["energy"]
    files["diffs"]["max_hops"] = [None] * 3
    graph = read(tmp_path, files, {"max_hops": pa.null()})
    assert graph.nodes.interests.shape == (0, 9)
    assert graph.edges.bandwidths.tolist() == [-1] * 5
    assert graph.edges.kinds.tolist()[-1] == EdgeKind.NEAR
    assert graph.diffs.images.tolist() == graph.nodes.images[:3].tolist()
    assert graph.diffs.max_hops.tolist() == [64] * 3


def test_a_graph_may_have_no_edges_and_no_diffs(tmp_path: Path) -> None:
    files = good()
    files["edges"] = {name: [] for name in files["edges"]}
    files["diffs"] = {name: [] for name in files["diffs"]}
    graph = read(tmp_path, files)
    assert (len(graph.nodes), len(graph.edges), len(graph.diffs)) == (4, 0, 0)
    assert graph.diffs.images.shape == (0, 2)
    files["nodes"] = {name: [] for name in files["nodes"]}
    assert len(read(tmp_path, files).nodes) == 0


@pytest.mark.parametrize(
    "types",
    [
        {"embedding": pa.list_(pa.float64())},
        {"nodes.embedding": pa.list_(pa.float32(), 2)},
        {"embedding": pa.large_list(pa.float32())},
        {"layer": pa.int64(), "bandwidth": pa.int64(), "max_hops": pa.int64(), "weight": pa.float64()},
        {"id": pa.large_string(), "src": pa.dictionary(pa.int32(), pa.string()), "type": pa.large_string()},
        {"type": pa.dictionary(pa.int8(), pa.string()), "kind": pa.dictionary(pa.int8(), pa.string())},
        {"salience": pa.float64(), "energy": pa.float64(), "interests": pa.map_(pa.large_string(), pa.float64())},
    ],
    ids=str,
)
def test_other_arrow_types_of_the_same_values_give_the_same_graph(
    types: dict[str, pa.DataType], tmp_path: Path
) -> None:
    plain, other = read(tmp_path, good()), read(tmp_path, good(), types)
    for name in ("nodes", "edges", "diffs"):
        for column in getattr(plain, name).__dataclass_fields__:
            assert getattr(getattr(plain, name), column).equal(getattr(getattr(other, name), column))


def test_integer_ids_are_kept_as_integers(tmp_path: Path) -> None:
    graph = read(tmp_path, with_int_ids(), INT_IDS)
    assert graph.node_ids.to_pylist() == [2**40, -1, 0, 7]
    assert graph.edges.sources.tolist() == [0, 1, 0, 2, 0]
    assert graph.node_id_type == pa.int64()


#: name -> (file, column, row counted from 0, value, words of the reason, Arrow types)
CASES: dict[str, tuple[str, str, int, Any, str, dict[str, pa.DataType]]] = {
    "duplicate node id": ("nodes", "id", 3, "c", "id 'c' is taken by", {}),
    "empty node id": ("nodes", "id", 2, "", "id is empty", {}),
    "null node id": ("nodes", "id", 2, None, "id missing", {}),
    "unknown node type": ("nodes", "type", 1, "person", "unknown type 'person'", {}),
    "null node type": ("nodes", "type", 0, None, "type missing", {}),
    "layer 3": ("nodes", "layer", 1, 3, "layer is 3, expected a whole number in [0, 2]", {}),
    "layer -1": ("nodes", "layer", 1, -1, "layer is -1", {}),
    "null layer": ("nodes", "layer", 1, None, "layer missing", {}),
    "NaN in a vector": ("nodes", "embedding", 1, [1.0, math.nan], "embedding[1] is nan", {}),
    "null in a vector": ("nodes", "embedding", 1, [None, 1.0], "embedding[0] is null", {}),
    "zero vector": ("nodes", "embedding", 1, [0.0, 0.0], "norm 0", {}),
    "vector of another length": ("nodes", "embedding", 1, [1.0], "embedding has 1 numbers", {}),
    "null vector of a node": ("nodes", "embedding", 1, None, "embedding missing", {}),
    "interests on a cell": ("nodes", "interests", 0, [("fact", 1)], "interests on a cell", {}),
    "interests on a scene": ("nodes", "interests", 2, [("fact", 1)], "interests on a scene", {}),
    "interest above 1": ("nodes", "interests", 1, [("fact", 1.5)], "interests of fact is 1.5", {}),
    "interest in an unknown type": ("nodes", "interests", 1, [("x", 1)], "unknown knowledge type in interests 'x'", {}),
    "edge from an unknown node": ("edges", "src", 1, "z", "src 'z' is no id of the nodes file", {}),
    "edge to an unknown node": ("edges", "tgt", 1, "z", "tgt 'z' is no id of the nodes file", {}),
    "null end of an edge": ("edges", "tgt", 1, None, "tgt missing", {}),
    "duplicate edge": ("edges", "tgt", 4, "a", "the edge (src, tgt, type) is already", {}),
    "self-loop": ("edges", "tgt", 0, "c", "same node", {}),
    "edge out of a beacon": ("edges", "src", 1, "b", "src 'b' is a beacon", {}),
    "unknown edge type": ("edges", "type", 1, "related", "unknown type 'related'", {}),
    "unknown edge kind": ("edges", "kind", 1, "close", "unknown kind 'close'", {}),
    "kind of another type": ("edges", "kind", 1, "near", "kind near of a causal edge, allowed: declared, access", {}),
    "kind where the type has none": ("edges", "kind", 2, "declared", "kind declared of a subscription edge", {}),
    "weight 0": ("edges", "weight", 1, 0.0, "weight is 0.0, expected (0, 1]", {}),
    "weight above 1": ("edges", "weight", 1, 1.5, "weight is 1.5", {}),
    "weight NaN": ("edges", "weight", 1, math.nan, "weight is nan", {}),
    "null weight": ("edges", "weight", 1, None, "weight missing", {}),
    "weight that rounds to 0": ("edges", "weight", 1, 1e-60, "weight is 1e-60", {"weight": pa.float64()}),
    "bandwidth 0": ("edges", "bandwidth", 1, 0, "bandwidth is 0", {}),
    "bandwidth -1": ("edges", "bandwidth", 1, -1, "bandwidth is -1", {}),
    "duplicate diff id": ("diffs", "id", 2, "d1", "id 'd1' is taken by", {}),
    "origin unknown": ("diffs", "origin", 1, "z", "origin 'z' is no id of the nodes file", {}),
    "origin a beacon": ("diffs", "origin", 1, "b", "origin 'b' is a beacon", {}),
    "null origin": ("diffs", "origin", 1, None, "origin missing", {}),
    "unknown diff type": ("diffs", "diff_type", 1, "deleted", "unknown diff_type 'deleted'", {}),
    "unknown knowledge type": ("diffs", "knowledge_type", 1, "rumour", "unknown knowledge_type 'rumour'", {}),
    "salience above 1": ("diffs", "salience", 1, 1.5, "salience is 1.5", {}),
    "salience NaN": ("diffs", "salience", 1, math.nan, "salience is nan", {}),
    "null salience": ("diffs", "salience", 1, None, "salience missing", {}),
    "diff vector of another length": ("diffs", "embedding", 1, [1.0, 2.0, 3.0], "expected 2 as in", {}),
    "diff vector NaN": ("diffs", "embedding", 1, [math.nan, 2.0], "embedding[0] is nan", {}),
    "energy negative": ("diffs", "energy", 1, -0.5, "energy is -0.5, expected [0, 16384)", {}),
    "energy NaN": ("diffs", "energy", 1, math.nan, "energy is nan", {}),
    "energy at the limit": ("diffs", "energy", 1, 16384.0, "energy is 16384.0, expected [0, 16384)", {}),
    "energy that rounds to the limit": (
        "diffs",
        "energy",
        1,
        16383.9999,
        "energy is 16383.9999",
        {"energy": pa.float64()},
    ),
    "energy infinite": ("diffs", "energy", 1, math.inf, "energy is inf", {}),
    "hops beyond int32": ("diffs", "max_hops", 1, 2**31, "max_hops is 2147483648", {"max_hops": pa.int64()}),
}


@pytest.mark.parametrize("name", CASES)
def test_a_bad_row_is_refused_by_file_number_and_reason(name: str, tmp_path: Path) -> None:
    file, column, row, value, reason, types = CASES[name]
    files = good()
    files[file][column][row] = value
    if (file, column) == ("nodes", "id"):
        files["edges"] = {part: [] for part in files["edges"]}
        files["diffs"] = {part: [] for part in files["diffs"]}
    error = refused(tmp_path, files, types)
    assert [place for place, _ in error.problems] == [f"{tmp_path / file}.parquet row {row + 1}"]
    assert reason in error.problems[0][1]


FILE_CASES: dict[str, tuple[str, str, Any, str, dict[str, pa.DataType]]] = {
    "unknown column": ("nodes", "colour", ["red"] * 4, "unknown field 'colour' of nodes", {"colour": pa.string()}),
    "column missing": ("edges", "weight", None, "column weight missing", {}),
    "layer column missing": ("nodes", "layer", None, "column layer missing", {}),
    "interests column of edges": ("edges", "interests", [None] * 5, "interests on edges", {}),
    "ids of reals": ("nodes", "id", [1.0, 2.0, 3.0, 4.0], "expected string or int64", {"nodes.id": pa.float64()}),
    "integers for ends, texts for ids": (
        "edges",
        "src",
        [1, 2, 3, 4, 5],
        "column src has type int64",
        {"src": pa.int64()},
    ),
    "integers for origins, texts for ids": (
        "diffs",
        "origin",
        [1, 2, 3],
        "column origin has type",
        {"origin": pa.int64()},
    ),
    "vectors of texts": (
        "nodes",
        "embedding",
        [["a", "b"]] * 4,
        "expected list<float>",
        {"embedding": pa.list_(pa.string())},
    ),
}


@pytest.mark.parametrize("name", FILE_CASES)
def test_a_file_of_wrong_columns_is_refused(name: str, tmp_path: Path) -> None:
    file, column, values, reason, types = FILE_CASES[name]
    files = good()
    if values is None:
        del files[file][column]
    else:
        files[file][column] = values
    if "nodes.embedding" not in types and "embedding" in types:
        del files["diffs"]["embedding"]
    error = refused(tmp_path, files, types)
    assert error.problems[0][0] == f"{tmp_path / file}.parquet"
    assert reason in error.problems[0][1]


def test_bad_rows_of_all_three_files_are_reported_together(tmp_path: Path) -> None:
    files = good()
    files["nodes"]["layer"][1] = 9
    files["edges"]["weight"] = [2.0] * 5
    files["diffs"]["origin"][0] = "z"
    error = refused(tmp_path, files)
    assert error.count == 7
    assert [place.rsplit("/", 1)[1] for place, _ in error.problems] == [
        "nodes.parquet row 2",
        *[f"edges.parquet row {row}" for row in range(1, 6)],
        "diffs.parquet row 1",
    ]


def test_a_missing_and_a_broken_file_are_refused(tmp_path: Path) -> None:
    nodes, _, diffs = write_graph(tmp_path, good())
    diffs.write_bytes(b"PAR1 not really PAR1")
    with pytest.raises(BadInputError) as caught:
        read_graph(nodes, tmp_path / "gone.parquet", diffs, max_hops=64)
    assert [place for place, _ in caught.value.problems] == [str(tmp_path / "gone.parquet"), str(diffs)]


def test_batches_of_a_large_graph_join_in_order(tmp_path: Path) -> None:
    count = 150_000
    rng = np.random.default_rng(5)
    vectors = rng.standard_normal((count, 3), dtype=np.float32)
    flat = pa.array(vectors.reshape(-1))
    ids = pa.array(np.arange(count)[::-1])
    nodes = pa.table(
        {
            "id": ids,
            "type": pa.array(["cell"] * count),
            "layer": pa.array(np.zeros(count, np.int8)),
            "embedding": pa.FixedSizeListArray.from_arrays(flat, 3),
        }
    )
    edges = pa.table(
        {
            "src": ids,
            "tgt": pa.array(np.roll(np.arange(count)[::-1], 1)),
            "type": pa.array(["semantic"] * count),
            "weight": pa.array(np.linspace(0.1, 1, count, dtype=np.float32)),
        }
    )
    files = [tmp_path / name for name in ("nodes.parquet", "edges.parquet", "diffs.parquet")]
    pq.write_table(nodes, files[0])
    pq.write_table(edges, files[1])
    write_graph(
        tmp_path, {"diffs": {**good()["diffs"], "origin": [5, 6, 7], "embedding": [None] * 3}}, {"origin": pa.int64()}
    )
    graph = read_graph(*files, max_hops=64)
    assert np.array_equal(graph.nodes.images.numpy(), quantise(vectors))
    assert graph.edges.sources.tolist() == list(range(count))
    assert graph.edges.targets.tolist() == [count - 1, *range(count - 1)]
    assert np.array_equal(graph.edges.weights.numpy(), np.linspace(0.1, 1, count, dtype=np.float32))
    assert graph.diffs.origins.tolist() == [count - 6, count - 7, count - 8]
