"""Deliveries as a file: the columns of interfaces.md, whole or not there at all."""

from __future__ import annotations

import os
import stat
import threading
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from hyphae_gpu.errors import UsageError
from hyphae_gpu.ingest import deliveries as module
from hyphae_gpu.ingest.graph_files import Graph, write_deliveries
from hyphae_gpu.swarm import Deliveries
from tests.ingest.graph_samples import good, read
from tests.ingest.test_graph_files import INT_IDS, with_int_ids


def some(count: int = 3) -> Deliveries:
    rows = torch.arange(count)
    return Deliveries(
        diffs=rows // 2,
        nodes=(rows % 4).int(),
        hops=(rows % 2).int(),
        energies=(1024 * rows + 1).int(),
        scores=rows.double() / 8,
        parents=((rows % 2) - 1).int(),
    )


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    return read(tmp_path, good())


def test_rows_carry_the_ids_of_the_input(graph: Graph, tmp_path: Path) -> None:
    out = tmp_path / "out.parquet"
    write_deliveries(out, graph, some())
    table = pq.read_table(out)
    assert table.schema.names == ["diff", "node", "hop", "energy", "score", "parent"]
    assert table.schema.types == [pa.string(), pa.string(), pa.int32(), pa.float32(), pa.float64(), pa.string()]
    first, second, third = table.to_pylist()
    assert first == {"diff": "d1", "node": "c", "hop": 0, "energy": 1 / 1024, "score": 0.0, "parent": None}
    assert second == {"diff": "d1", "node": "a", "hop": 1, "energy": 1 + 1 / 1024, "score": 0.125, "parent": "c"}
    assert third["diff"] == "d2"


def test_integer_ids_and_resonance_are_written_as_int64(tmp_path: Path) -> None:
    graph = read(tmp_path, with_int_ids(), INT_IDS)
    out = tmp_path / "out.parquet"
    write_deliveries(out, graph, some(), torch.tensor([2**52, 0, 5]))
    table = pq.read_table(out)
    assert table.schema.names[-1] == "resonance"
    assert table["node"].to_pylist() == [2**40, -1, 0]
    assert table["parent"].to_pylist() == [None, 2**40, None]
    assert table["resonance"].to_pylist() == [2**52, 0, 5]


@pytest.mark.parametrize("kind", [pa.large_string(), pa.dictionary(pa.int32(), pa.string())], ids=str)
def test_ids_keep_the_type_they_came_in(kind: pa.DataType, tmp_path: Path) -> None:
    graph = read(tmp_path, good(), {"nodes.id": kind})
    out = tmp_path / "out.parquet"
    write_deliveries(out, graph, some())
    expected = kind if pa.types.is_large_string(kind) else pa.string()
    assert pq.read_schema(out).field("node").type == expected


def test_no_deliveries_make_an_empty_table(graph: Graph, tmp_path: Path) -> None:
    out = tmp_path / "out.parquet"
    write_deliveries(out, graph, some(0))
    assert pq.read_table(out).num_rows == 0


def test_many_row_groups_keep_the_order(graph: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_GROUP_ROWS", 2)
    out = tmp_path / "out.parquet"
    write_deliveries(out, graph, some(5))
    assert pq.read_table(out)["score"].to_pylist() == [0, 0.125, 0.25, 0.375, 0.5]
    assert pq.ParquetFile(out).num_row_groups == 3


def test_a_failure_leaves_the_old_file_and_no_other(
    graph: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "results"
    folder.mkdir()
    out = folder / "out.parquet"
    write_deliveries(out, graph, some())
    before = out.read_bytes()

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(UsageError, match=r"out\.parquet cannot be written: No space left on device"):
        write_deliveries(out, graph, some(1))
    assert out.read_bytes() == before
    assert list(folder.iterdir()) == [out]


def test_a_new_file_is_as_readable_as_others(graph: Graph, tmp_path: Path) -> None:
    out, other = tmp_path / "out.parquet", tmp_path / "other"
    write_deliveries(out, graph, some())
    other.touch()
    assert stat.S_IMODE(out.stat().st_mode) == stat.S_IMODE(other.stat().st_mode)


def test_a_link_keeps_pointing_at_the_file_written(graph: Graph, tmp_path: Path) -> None:
    target, link = tmp_path / "target.parquet", tmp_path / "link.parquet"
    target.touch()
    link.symlink_to(target)
    write_deliveries(link, graph, some())
    assert link.is_symlink()
    assert pq.read_table(target).num_rows == 3


def test_a_pipe_is_written_into_not_replaced(graph: Graph, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    received: list[bytes] = []
    reader = threading.Thread(target=lambda: received.append(pipe.read_bytes()), daemon=True)
    reader.start()
    write_deliveries(pipe, graph, some())
    reader.join(timeout=30)
    assert pq.read_table(pa.BufferReader(received[0])).num_rows == 3
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_a_place_that_cannot_be_written_is_named(graph: Graph, tmp_path: Path) -> None:
    for out in (tmp_path / "no" / "such" / "out.parquet", tmp_path):
        with pytest.raises(UsageError, match="cannot be written"):
            write_deliveries(out, graph, some())
