"""A base level by CAGRA, with a graph of exact neighbours in the place of the GPU's (spec 2.2)."""

from importlib.metadata import PackageNotFoundError
from types import SimpleNamespace

import faiss
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from hyphae_gpu.backends.cpu.backend import CpuBackend
from hyphae_gpu.errors import UsageError
from hyphae_gpu.topology import cagra, faiss_module
from hyphae_gpu.topology.cagra import base_builder, base_table
from hyphae_gpu.topology.hnsw import HnswIndex, HnswShape, unit_vectors
from hyphae_gpu.topology.points import place
from tests.topology.tables import node_table, refreshed
from tests.topology.test_hnsw import SHAPE, images_of, same

POINTS = 600


class CudaBackend(CpuBackend):
    name = "cuda"


class Config:
    """The attributes of faiss.GpuIndexCagraConfig (1.15.1) that are set; any other is an error."""

    __slots__ = ("device", "graph_degree", "intermediate_graph_degree")


class Cagra:
    """Stands in for faiss.GpuIndexCagra: the exact nearest neighbours."""

    def __init__(self, resources, dimension, metric, config):
        self.dimension, self.config = dimension, config
        assert (metric, config.device) == (faiss.METRIC_L2, 3)
        assert config.intermediate_graph_degree == 2 * config.graph_degree

    def train(self, vectors):
        assert vectors.shape[1] == self.dimension
        self.graph = nearest(vectors, self.config.graph_degree)

    def get_knngraph(self):
        vector = faiss.Int64Vector()
        faiss.copy_array_to_vector(self.graph.ravel(), vector)
        return vector


def nearest(vectors, count):
    _, found = faiss.knn(vectors, vectors, count + 1)
    return found[:, 1:]


@pytest.fixture
def gpu(monkeypatch):
    """A faiss with CAGRA, a device, and a lower bar for taking it."""
    monkeypatch.setattr(faiss, "GpuIndexCagraConfig", Config, raising=False)
    monkeypatch.setattr(faiss, "GpuIndexCagra", Cagra, raising=False)
    monkeypatch.setattr(faiss, "StandardGpuResources", SimpleNamespace, raising=False)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 3)
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: None)
    monkeypatch.setattr(cagra, "LEAST_POINTS", POINTS)
    return CudaBackend()


def grown(images, backend, shape=SHAPE):
    index, founders = HnswIndex(images.shape[1], shape), np.arange(len(images), dtype=np.int32)
    return index, index.add(images, founders, graph=base_builder(backend, len(images)))


def links_above(arrays, m):
    """The links of all levels but the lowest, one after the other."""
    kept = []
    start = 0
    for level in arrays.levels.tolist():
        kept.append(arrays.links[start + 2 * m : start + (level + 2) * m])
        start += (level + 2) * m
    return np.concatenate(kept)


def test_the_base_level_is_the_graphs_and_the_levels_above_are_hnsws(gpu):
    images = images_of(POINTS)
    index, built_by = grown(images, gpu)
    plain, by_hnsw = grown(images, CpuBackend())
    assert (built_by, by_hnsw) == ("cagra", "hnsw")
    offsets, targets = index.base_links()
    width = 2 * SHAPE.m
    assert offsets.tolist() == list(range(0, POINTS * width + 1, width))
    assert np.array_equal(targets.reshape(POINTS, width), nearest(unit_vectors(images), width))
    ours, theirs = index.arrays(), plain.arrays()
    assert ours.max_level > 1
    assert (ours.entry_point, ours.max_level) == (theirs.entry_point, theirs.max_level)
    assert np.array_equal(links_above(ours, SHAPE.m), links_above(theirs, SHAPE.m))


def test_a_search_descends_to_what_is_nearest(gpu):
    images = images_of(2000)
    index, _ = grown(images, gpu, HnswShape(16, 100))
    found = index.search(images[:300], count=5, ef=60, allowed=np.ones(2000, np.bool_))
    expected = np.column_stack([np.arange(300), nearest(unit_vectors(images), 4)[:300]])
    shared = [len(set(a) & set(b)) for a, b in zip(found.tolist(), expected.tolist(), strict=True)]
    assert sum(shared) >= 0.95 * 5 * 300


def test_it_is_stored_restored_and_grows_as_any_other(gpu):
    images = images_of(POINTS + 100)
    lived, _ = grown(images[:POINTS], gpu)
    restored = HnswIndex.from_arrays(lived.arrays(), 12, SHAPE)
    assert same(lived.arrays(), restored.arrays())
    more = np.arange(POINTS, POINTS + 100, dtype=np.int32)
    assert [index.add(images[more], more, graph=base_builder(gpu, 10**6)) for index in (lived, restored)] == [
        "hnsw",
        "hnsw",
    ]
    assert same(lived.arrays(), restored.arrays())
    reached = lived.base_links()[1]
    assert np.isin(more, reached).mean() > 0.9


def test_points_that_all_stay_on_the_lowest_level_have_an_entry(gpu, monkeypatch):
    monkeypatch.setattr(cagra, "LEAST_POINTS", 2)
    images = images_of(3)
    index, built_by = grown(images, gpu, HnswShape(1024, 10))
    assert (built_by, index.arrays().max_level) == ("cagra", 0)
    assert index.search(images, count=1, ef=8, allowed=np.ones(3, np.bool_)).tolist() == [[0], [1], [2]]


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (RuntimeError("no memory\nat all"), "no memory"),
        (RuntimeError(""), "RuntimeError"),
        # faiss's wrapper makes one of std::bad_alloc, which RMM's are
        (MemoryError("std::bad_alloc"), "std::bad_alloc"),
    ],
)
def test_where_the_gpu_fails_hnsw_builds_and_the_reason_is_told(gpu, monkeypatch, error, told):
    def train(self, vectors):
        raise error

    monkeypatch.setattr(Cagra, "train", train)
    images = images_of(POINTS)
    index, built_by = grown(images, gpu)
    assert built_by == f"hnsw, since CAGRA failed: {told}"
    assert same(index.arrays(), grown(images, CpuBackend())[0].arrays())


@pytest.mark.parametrize("links", [0, POINTS - 1, 7 * POINTS + 1])
def test_a_graph_that_is_not_as_wide_for_each_point_is_none(gpu, monkeypatch, links):
    def train(self, vectors):
        self.graph = np.zeros(links, np.int64)

    monkeypatch.setattr(Cagra, "train", train)
    _, built_by = grown(images_of(POINTS), gpu)
    assert built_by == f"hnsw, since CAGRA failed: its graph has {links} links, expected as many for each of 600 points"


def test_few_points_a_cpu_and_a_faiss_without_it_leave_the_index_to_hnsw(gpu, monkeypatch):
    assert callable(base_builder(gpu, POINTS))
    assert base_builder(gpu, POINTS - 1) is None
    assert base_builder(CpuBackend(), POINTS) is None
    monkeypatch.delattr(faiss, "GpuIndexCagra")
    assert base_builder(gpu, POINTS) is None


def test_a_rebuilt_index_is_built_by_it_too(gpu):
    images = images_of(3 * POINTS)
    standing = place(HnswIndex(12, SHAPE), images, np.arange(3 * POINTS, dtype=np.int32), gpu)
    kept = np.arange(0, 3 * POINTS, 2, dtype=np.int32)
    again = place(standing.index, images, kept, gpu)
    assert (standing.built_by, again.built_by, again.rebuilt) == ("cagra", "cagra", True)
    assert place(again.index, images, kept, gpu).built_by == ""


def test_the_run_records_who_built_the_graph(gpu, monkeypatch):
    monkeypatch.setattr("tests.topology.tables.CpuBackend", CudaBackend)
    images = images_of(POINTS).astype(np.float32)
    assert refreshed(node_table(images), np.ones(POINTS)).facts["built_by"] == "cagra"
    monkeypatch.setattr(cagra, "LEAST_POINTS", POINTS + 1)
    assert refreshed(node_table(images), np.ones(POINTS)).facts["built_by"] == "hnsw"


@given(st.integers(0, 6), st.integers(1, 7), st.integers(1, 9), st.integers(0, 2**32 - 1))
def test_a_table_holds_each_rows_usable_links_once_in_order(points, degree, width, seed):
    graph = np.random.default_rng(seed).integers(-1, points + 2, (points, degree))
    expected = []
    for point, row in enumerate(graph.tolist()):
        kept = []
        for target in row:
            if 0 <= target < points and target != point and target not in kept:
                kept.append(target)
        expected.append((kept + [-1] * width)[:width])
    table = base_table(graph, width)
    assert table.dtype == np.int32
    assert table.tolist() == expected


def test_a_table_does_not_depend_on_the_blocks_it_is_made_in(monkeypatch):
    graph = np.random.default_rng(1).integers(-1, 50, (40, 9))
    whole = base_table(graph, 6)
    monkeypatch.setattr(cagra, "_BLOCK", 7)
    assert np.array_equal(base_table(graph, 6), whole)


@pytest.mark.parametrize("other", ["faiss-gpu-cuvs", "faiss-gpu", "faiss-gpu-cu12"])
def test_two_packages_of_faiss_together_are_refused_at_the_start(monkeypatch, other):
    def version(name):
        if name in ("faiss-cpu", other):
            return "1.15.1"
        raise PackageNotFoundError(name)

    monkeypatch.setattr(faiss_module, "version", version)
    told = f"^faiss-cpu 1.15.1 and {other} 1.15.1 are installed together.*pip uninstall --yes faiss-cpu {other}, then"
    with pytest.raises(UsageError, match=told):
        HnswIndex(3)
