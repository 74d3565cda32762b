"""What small graphs hide (spec 0.5): threads and a kill between two additions, on 27,000 real sentence vectors."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from hyphae_gpu.topology.hnsw import HnswIndex
from hyphae_gpu.vocabulary import NodeType
from tests.topology.tables import node_table, refreshed

DATA = Path(__file__).parents[2].parent / "shared" / "data"
FILES = ("banking77", "kep_fact_stream", "kep", "breaking_nli.sentences")
AGENTS, LATE, MOVED = 200, 1_500, 300


@pytest.fixture(scope="module")
def swarm():
    """All vectors; the last nodes are agents; the last cells come, and some cells move, in the second epoch."""
    missing = [name for name in FILES if not (DATA / f"{name}.minilm.npy").is_file()]
    if missing:
        pytest.skip(f"the shared data lacks {', '.join(missing)} under {DATA}: 25,000 real vectors go untested")
    vectors = np.concatenate([np.load(DATA / f"{name}.minilm.npy") for name in FILES]).astype(np.float32)
    assert len(vectors) >= 25_000
    types = np.full(len(vectors), NodeType.CELL, np.int8)
    types[-AGENTS:] = NodeType.AGENT
    return node_table(vectors, types)


def first_epoch(nodes, threads):
    live = nodes.types == NodeType.CELL
    live[-AGENTS - LATE :] = False
    return refreshed(nodes, live, threads=threads)


def second_epoch(nodes, index, threads):
    """Cells arrive, others get the vector of a distant cell plus their own."""
    vectors = nodes.vectors.copy()
    vectors[:MOVED] += vectors[5_000 : 5_000 + MOVED]
    later = dataclasses.replace(nodes, vectors=vectors)
    return refreshed(later, nodes.types == NodeType.CELL, index=index, threads=threads)


def same(left, right):
    for spec in dataclasses.fields(left):
        assert np.array_equal(getattr(left, spec.name), getattr(right, spec.name)), spec.name


def test_threads_and_a_kill_between_two_epochs_leave_the_same_graph(swarm):
    lived = first_epoch(swarm, threads=2)
    between = lived.index.arrays()
    one_thread = first_epoch(swarm, threads=1)
    same(one_thread.index.arrays(), between)
    same(one_thread.edges, lived.edges)
    assert lived.facts == one_thread.facts
    # Real sentences repeat, and still every cell is reached.
    assert lived.facts["duplicates"] > 100
    assert lived.facts["reachability"] > 0.99

    after = second_epoch(swarm, lived.index, threads=2)
    restored = second_epoch(swarm, HnswIndex.from_arrays(between, 384, threads=1), threads=1)
    assert after.facts["points"] > len(between) + LATE // 2
    same(restored.index.arrays(), after.index.arrays())
    same(restored.edges, after.edges)
    assert all(
        np.array_equal(getattr(restored.adjacency, name), getattr(after.adjacency, name))
        for name in ("offsets", "targets", "costs", "types", "kinds", "weights")
    )
