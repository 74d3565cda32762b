import builtins
import dataclasses
import math

import faiss
import numpy as np
import pytest

from hyphae_gpu.errors import DatabaseError, UsageError
from hyphae_gpu.topology import faiss_module
from hyphae_gpu.topology.hnsw import LAYER_SHAPES, HnswIndex, HnswShape, point_levels, splitmix64, unit_vectors
from hyphae_gpu.vectors import quantise

#: A small M makes many levels among few points.
SHAPE = HnswShape(4, 40)


def images_of(count, dimension=12, seed=0):
    """Distinct images as spec 0.4 makes them: the greatest component is 127 or -127."""
    return quantise(np.random.default_rng(seed).normal(size=(count, dimension)).astype(np.float32))


def filled(count, *, threads=1, steps=1, shape=SHAPE):
    images = images_of(count)
    index = HnswIndex(images.shape[1], shape, threads=threads)
    for rows in np.array_split(np.arange(len(images), dtype=np.int32), steps):
        index.add(images[rows], rows)
    return index


def same(left, right):
    for spec in dataclasses.fields(left):
        assert np.array_equal(getattr(left, spec.name), getattr(right, spec.name)), spec.name
    return True


def test_splitmix64_gives_its_published_numbers():
    # Of state 0 the spec names the first (6.4); the next states of a generator from 0 are multiples of the increment.
    states = np.array([0, 0x9E3779B97F4A7C15], np.uint64)
    assert splitmix64(states).tolist() == [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4]


@pytest.mark.parametrize("m", [8, 16, 24])
def test_levels_are_those_of_the_geometric_distribution(m):
    levels = point_levels(200_000, m, 6)
    for level in range(1, 4):
        share, wanted = (levels >= level).mean(), m**-level
        assert abs(share - wanted) < 5 * math.sqrt(wanted / len(levels))
    words = splitmix64(np.arange(2_000, dtype=np.uint64)).tolist()
    assert levels[:2_000].tolist() == [sum(word * m**level < 2**64 for level in range(1, 7)) for word in words]


def test_a_level_does_not_depend_on_how_many_points_there_are():
    assert point_levels(500, 24, 6).tolist() == point_levels(5_000, 24, 6)[:500].tolist()


def test_an_image_is_read_back_from_its_unit_vector():
    images = quantise(np.random.default_rng(1).normal(size=(2_000, 96)).astype(np.float32))
    assert np.array_equal(quantise(unit_vectors(images)), images)


@pytest.mark.parametrize("layer", [0, 1, 2])
def test_each_layer_has_the_m_and_ef_construction_of_the_paper(layer):
    assert (LAYER_SHAPES[layer].m, LAYER_SHAPES[layer].ef_construction) == [(24, 128), (16, 100), (8, 64)][layer]


@pytest.mark.parametrize("count", [0, 1, 2, 31, 32, 33, 600])
def test_an_index_equals_the_one_restored_from_its_arrays(count):
    arrays = filled(count).arrays()
    restored = HnswIndex.from_arrays(arrays, 12, SHAPE)
    assert same(restored.arrays(), arrays)
    assert np.array_equal(restored.images, images_of(count))


def test_an_index_restored_between_two_additions_grows_as_the_one_that_lived_on():
    images = images_of(900)
    rows = np.arange(len(images), dtype=np.int32)
    lived = HnswIndex(12, SHAPE)
    lived.add(images[:500], rows[:500])
    restored = HnswIndex.from_arrays(lived.arrays(), 12, SHAPE)
    for index in (lived, restored):
        index.add(images[500:700], rows[500:700])
        index.add(images[700:], rows[700:])
    assert int(lived.arrays().max_level) >= 3
    assert same(lived.arrays(), restored.arrays())


def test_threads_do_not_change_an_index():
    assert same(filled(2_000, threads=1).arrays(), filled(2_000, threads=3).arrays())


def test_the_process_keeps_its_own_number_of_faiss_threads():
    before = faiss.omp_get_max_threads()
    filled(50, threads=before + 3)
    assert faiss.omp_get_max_threads() == before


def test_base_links_are_the_neighbour_tables_first_places():
    index = filled(300)
    arrays, (offsets, targets) = index.arrays(), index.base_links()
    place = 0
    for point, level in enumerate(arrays.levels.tolist()):
        row = arrays.links[place : place + 2 * SHAPE.m]
        assert targets[offsets[point] : offsets[point + 1]].tolist() == row[row >= 0].tolist()
        place += (2 + level) * SHAPE.m
    assert place == len(arrays.links)
    assert offsets.dtype == np.int64


def test_a_search_gives_allowed_points_only():
    index = filled(400)
    allowed = np.random.default_rng(2).random(len(index)) < 0.5
    found = index.search(index.images[:20], count=10, ef=200, allowed=allowed)
    assert found.shape == (20, 10)
    assert allowed[found].all()
    own = index.search(index.images[:20], count=1, ef=200, allowed=np.ones(len(index), np.bool_))
    assert own[:, 0].tolist() == list(range(20))


def test_a_search_for_more_than_there_is_leaves_places_empty():
    index = filled(5)
    found = index.search(index.images[:1], count=8, ef=200, allowed=np.arange(5) != 2)
    assert sorted(found[0].tolist()) == [-1, -1, -1, -1, 0, 1, 3, 4]


def test_an_empty_index_finds_nothing():
    index = HnswIndex(12, SHAPE)
    assert index.search(images_of(3), count=2, ef=200, allowed=np.zeros(0, np.bool_)).tolist() == [[-1, -1]] * 3
    assert [len(part) for part in index.base_links()] == [1, 0]


def damaged(name, value):
    return dataclasses.replace(filled(300).arrays(), **{name: value(getattr(filled(300).arrays(), name))})


def set_first(where, value):
    def change(column):
        column = column.copy()
        column[np.flatnonzero(where(column))[0]] = value
        return column

    return change


@pytest.mark.parametrize(
    ("name", "change", "named"),
    [
        ("links", set_first(lambda links: links >= 0, 300), "links"),
        ("links", set_first(lambda links: links >= 0, -2), "links"),
        ("links", lambda links: links[:-1], "links"),
        ("levels", set_first(lambda levels: levels == 0, 1), "links"),
        ("levels", set_first(lambda levels: levels == 0, -1), "levels"),
        ("levels", set_first(lambda levels: levels == 0, 400), "levels"),
        ("levels", lambda levels: levels[:-1], "levels"),
        ("entry_point", lambda _: 300, "entry point"),
        ("entry_point", lambda _: -1, "entry point"),
        ("max_level", lambda level: level + 1, "entry point"),
        ("vectors", lambda vectors: vectors[:, :-1], "vectors"),
        ("vectors", np.zeros_like, "vectors"),
        ("vectors", lambda vectors: np.full_like(vectors, np.nan), "vectors"),
    ],
)
def test_stored_arrays_that_do_not_fit_together_are_refused(name, change, named):
    with pytest.raises(DatabaseError, match=named):
        HnswIndex.from_arrays(damaged(name, change), 12, SHAPE)


def test_a_link_above_a_points_level_is_refused():
    arrays = filled(300).arrays()
    offsets = np.append(0, np.cumsum((arrays.levels + 2) * SHAPE.m))
    links = arrays.links.copy()
    upper = offsets[arrays.entry_point] + 2 * SHAPE.m
    links[upper] = int(np.flatnonzero(arrays.levels == 0)[0])
    with pytest.raises(DatabaseError, match="links between levels"):
        HnswIndex.from_arrays(dataclasses.replace(arrays, links=links), 12, SHAPE)


@pytest.mark.parametrize(
    ("error", "installed", "told"),
    [
        (ImportError("faiss"), {}, r"faiss, which is not installed: pip install 'hyphae-gpu\[cpu\]'$"),
        (
            ImportError("libcuvs.so: no such file"),
            {"faiss-gpu-cuvs": "1.15.1"},
            r"faiss, faiss-gpu-cuvs 1.15.1 does not load \(libcuvs.so: no such file\): "
            r"pip uninstall --yes faiss-gpu-cuvs, then pip install 'hyphae-gpu\[cpu\]'$",
        ),
        (OSError("libcublas.so.13"), {"faiss-cpu": "1.15.1"}, r"faiss-cpu 1.15.1 does not load \(libcublas.so.13\): "),
    ],
)
def test_a_faiss_that_does_not_load_is_named_with_the_way_to_one_that_does(monkeypatch, error, installed, told):
    real = builtins.__import__

    def without_faiss(name, *arguments, **named):
        if name == "faiss":
            raise error
        return real(name, *arguments, **named)

    monkeypatch.setattr(faiss_module, "installed", lambda: installed)
    monkeypatch.setattr(builtins, "__import__", without_faiss)
    with pytest.raises(UsageError, match=told):
        HnswIndex(3)
