"""`propagate` on files: what it writes, what it counts, what it refuses."""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

FILES = ("--nodes", "nodes.parquet", "--edges", "edges.parquet", "--diffs", "diffs.parquet", "--out", "out.parquet")


@pytest.fixture
def chain(hyphae):
    """Write a graph a -> b -> c of nodes that point the same way, and a diff at a."""
    nodes = {
        "id": ["a", "b", "c"],
        "type": ["cell", "cell", "agent"],
        "layer": [0, 0, 0],
        "embedding": [[1.0, 0.5]] * 3,
    }
    types = [("id", pa.string()), ("type", pa.string()), ("layer", pa.int8()), ("embedding", pa.list_(pa.float32()))]
    pq.write_table(pa.table(nodes, schema=pa.schema(types)), hyphae.folder / "nodes.parquet")
    edges = {
        "src": ["a", "b"],
        "tgt": ["b", "c"],
        "type": ["semantic"] * 2,
        "weight": pa.array([1.0, 0.5], pa.float32()),
    }
    pq.write_table(pa.table(edges), hyphae.folder / "edges.parquet")
    diffs = {"id": ["d"], "origin": ["a"], "diff_type": ["created"], "knowledge_type": ["fact"]}
    pq.write_table(pa.table({**diffs, "salience": pa.array([1.0], pa.float32())}), hyphae.folder / "diffs.parquet")
    return hyphae


def test_deliveries_are_written_and_counted(chain):
    shown = chain.json("propagate", *FILES)
    assert {name: shown[name] for name in ("diffs", "deliveries", "throttled", "lost")} == {
        "diffs": 1,
        "deliveries": 3,
        "throttled": 0,
        "lost": 0,
    }
    assert list(shown["seconds"]) == ["read", "build", "gossip", "write"]
    rows = pq.read_table(chain.folder / "out.parquet").to_pylist()
    assert [(row["node"], row["hop"], row["energy"], row["parent"]) for row in rows] == [
        ("a", 0, 10.0, None),
        ("b", 1, 9.0, "a"),
        ("c", 2, 7.0, "b"),
    ]


def test_resonance_is_added_on_request(chain):
    shown = chain.json("propagate", *FILES, "--resonance")
    assert "resonance" in shown["seconds"]
    rows = pq.read_table(chain.folder / "out.parquet")
    assert rows.column_names[-1] == "resonance"
    assert rows["resonance"].to_pylist()[0] == 0
    assert rows["resonance"].to_pylist()[1] > 0


def test_flags_and_settings_reach_the_rounds(chain):
    assert chain.json("propagate", *FILES, "--max-hops", "2")["deliveries"] == 2
    assert chain.json("propagate", *FILES, HYPHAE_MAX_HOPS="1")["deliveries"] == 1
    assert chain.json("propagate", *FILES, "--sigma-min", "1")["deliveries"] == 1
    assert chain.json("propagate", *FILES, "--loss", "0.999999")["lost"] == 1


def test_a_bad_graph_exits_3_and_leaves_no_file(chain):
    edges = {"src": ["a"], "tgt": ["x"], "type": ["semantic"], "weight": pa.array([2.0], pa.float32())}
    pq.write_table(pa.table(edges), chain.folder / "edges.parquet")
    done = chain("propagate", *FILES)
    assert (done.returncode, done.stdout) == (3, "")
    assert "edges.parquet row 1" in done.stderr
    assert not (chain.folder / "out.parquet").exists()


def test_results_that_could_not_be_kept_are_refused_before_the_work(chain):
    done = chain("propagate", *FILES[:-1], "nowhere/out.parquet")
    assert done.returncode == 2
    reason = "--out nowhere/out.parquet: cannot be written; expected a file in a folder that exists and is yours"
    assert done.stderr == f"hyphae-gpu: {reason}\n"


def test_a_device_that_is_not_there_exits_5(chain):
    assert chain("propagate", *FILES, "--device", "cuda").returncode == 5


def test_people_read_a_table_and_machines_one_object(chain):
    shown = chain("propagate", *FILES)
    assert ["deliveries", "3"] in [line.split() for line in shown.stdout.splitlines()]
    assert json.loads(chain("propagate", *FILES, "--json").stdout)["deliveries"] == 3
