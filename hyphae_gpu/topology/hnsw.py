"""One layer's HNSW index around faiss, kept as plain arrays between epochs (spec 2.2).

A point's vector is the float32 unit vector of an int8 image (spec 0.4), since cosines of images decide everything else:
equal images are equal points, and the image can be read back from the index exactly. A point's level comes from its
number alone, never from faiss's generator, so an index restored from its arrays grows as the one that lived on would.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from hyphae_gpu.errors import DatabaseError, first_line
from hyphae_gpu.state import IndexArrays
from hyphae_gpu.topology.cagra import KnnGraph, base_table
from hyphae_gpu.topology.faiss_module import load_faiss
from hyphae_gpu.vectors import lengths, quantise

_BLOCK = 65_536


@dataclass(frozen=True)
class HnswShape:
    """M and efConstruction of an index."""

    m: int
    ef_construction: int


#: The indexes of layers 0, 1 and 2 (spec 2.2).
LAYER_SHAPES = (HnswShape(24, 128), HnswShape(16, 100), HnswShape(8, 64))


def point_levels(count: int, m: int, highest: int) -> npt.NDArray[np.int32]:
    """Return the levels of points 0 .. count - 1, int32 [count].

    HNSW wants P(level >= L) = M^-L (Malkov 2018). A point has level >= L where splitmix64(point) < floor(2^64 / M^L):
    integers only, so the levels are the same on every machine. At most `highest`.
    """
    words = splitmix64(np.arange(count, dtype=np.uint64))
    levels = np.zeros(count, np.int32)
    for level in range(1, highest + 1):
        levels += words < np.uint64(2**64 // m**level)
    return levels


def splitmix64(states: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Return the first output of splitmix64 from each state (Steele 2014); of 0: 0xe220a8397b1dcdaf."""
    words = states + np.uint64(0x9E3779B97F4A7C15)
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))


def unit_vectors(images: npt.NDArray[np.int8]) -> npt.NDArray[np.float32]:
    """Return the float32 unit vector of each image, the division in float64."""
    vectors = np.empty(images.shape, np.float32)
    for low in range(0, len(images), _BLOCK):
        block = images[low : low + _BLOCK]
        vectors[low : low + _BLOCK] = block / lengths(block)[:, None]
    return vectors


class HnswIndex:
    """An HNSW index of points; each stands for one distinct image."""

    def __init__(self, dimension: int, shape: HnswShape = LAYER_SHAPES[0], *, threads: int = 1) -> None:
        """Make an empty index; raises UsageError where faiss cannot be used."""
        self._faiss = load_faiss()
        self._index = self._faiss.IndexHNSWFlat(dimension, shape.m, self._faiss.METRIC_INNER_PRODUCT)
        self._index.hnsw.efConstruction = shape.ef_construction
        self.dimension = dimension
        self.shape = shape
        self.threads = threads
        self.founders = np.zeros(0, np.int32)
        self.images = np.zeros((0, dimension), np.int8)

    def __len__(self) -> int:
        return len(self.founders)

    def add(
        self, images: npt.NDArray[np.int8], founders: npt.NDArray[np.int32], *, graph: KnnGraph | None = None
    ) -> str:
        """Add points, in this order: images int8 [k, d], none equal to another or to a point; founders int32 [k].

        graph: what gives the base level of an index that is empty so far; returns whose base level the new points got:
        `cagra` if it did, else `hnsw`, with the reason where it could not.
        """
        if not len(images):
            return ""
        vectors = unit_vectors(images)
        table, built_by = self._base_table(vectors, graph)
        levels = point_levels(len(self) + len(images), self.shape.m, self._highest_level)
        self._faiss.copy_array_to_vector(levels + 1, self._index.hnsw.levels)
        self._index.init_level0 = table is None
        with _threads(self._faiss, self.threads):
            self._index.add(vectors)
        if table is not None:
            self._put_base(table)
        self.founders = np.concatenate([self.founders, founders.astype(np.int32)])
        self.images = np.concatenate([self.images, images])
        return built_by

    def _base_table(
        self, vectors: npt.NDArray[np.float32], graph: KnnGraph | None
    ) -> tuple[npt.NDArray[np.int32] | None, str]:
        """Return the base level's links as faiss keeps them, None where HNSW has to make them, and who made them."""
        if graph is None or len(self):
            return None, "hnsw"
        try:
            return base_table(graph(vectors, 2 * self.shape.m), 2 * self.shape.m), "cagra"
        except (RuntimeError, MemoryError) as error:
            return None, f"hnsw, since CAGRA failed: {first_line(error)}"

    def _put_base(self, table: npt.NDArray[np.int32]) -> None:
        """Write the links of level 0; faiss made those above it."""
        hnsw = self._index.hnsw
        links = self._faiss.vector_to_array(hnsw.neighbors)
        starts = self._faiss.vector_to_array(hnsw.offsets)[:-1].astype(np.int64)
        links[starts[:, None] + np.arange(table.shape[1])] = table
        self._faiss.copy_array_to_vector(links, hnsw.neighbors)
        if hnsw.entry_point < 0:
            # no point has a level above
            hnsw.entry_point, hnsw.max_level = 0, 0

    def base_links(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]:
        """Return the points' links at level 0 as rows: offsets int64 [p + 1], targets int32 (point numbers)."""
        width = 2 * self.shape.m
        starts = self._faiss.vector_to_array(self._index.hnsw.offsets)[:-1].astype(np.int64)
        table = self._faiss.vector_to_array(self._index.hnsw.neighbors)[starts[:, None] + np.arange(width)]
        taken = table >= 0
        offsets = np.zeros(len(self) + 1, np.int64)
        np.cumsum(taken.sum(axis=1), out=offsets[1:])
        return offsets, table[taken]

    def search(
        self, images: npt.NDArray[np.int8], *, count: int, ef: int, allowed: npt.NDArray[np.bool_]
    ) -> npt.NDArray[np.int64]:
        """Return up to `count` allowed points near each image, int64 [k, count], -1 in empty places.

        allowed bool [p]; ef is the length of the search's list (efSearch).
        """
        if not len(self) or not len(images):
            return np.full((len(images), count), -1, np.int64)
        selector = self._faiss.IDSelectorBitmap(np.packbits(allowed, bitorder="little"))
        settings = self._faiss.SearchParametersHNSW(sel=selector, efSearch=max(ef, count))
        with _threads(self._faiss, self.threads):
            _, points = self._index.search(unit_vectors(images), count, params=settings)
        return np.asarray(points, np.int64)

    def arrays(self) -> IndexArrays:
        """Return the whole index as arrays; levels count from 0."""
        hnsw, storage = self._index.hnsw, self._faiss.downcast_index(self._index.storage)
        held = self._faiss.vector_to_array(storage.codes).view(np.float32)
        return IndexArrays(
            founders=self.founders.copy(),
            vectors=held.reshape(len(self), self.dimension),
            levels=self._faiss.vector_to_array(hnsw.levels) - 1,
            links=self._faiss.vector_to_array(hnsw.neighbors),
            entry_point=int(hnsw.entry_point),
            max_level=int(hnsw.max_level),
        )

    @classmethod
    def from_arrays(
        cls, arrays: IndexArrays, dimension: int, shape: HnswShape = LAYER_SHAPES[0], *, threads: int = 1
    ) -> Self:
        """Return the index that `arrays` came from; raises DatabaseError where they do not fit together."""
        index = cls(dimension, shape, threads=threads)
        if not len(arrays):
            return index
        offsets = index._checked_offsets(arrays)
        faiss, hnsw = index._faiss, index._index.hnsw
        faiss.downcast_index(index._index.storage).add(np.ascontiguousarray(arrays.vectors))
        index._index.ntotal = len(arrays)
        faiss.copy_array_to_vector(arrays.levels + 1, hnsw.levels)
        faiss.copy_array_to_vector(offsets.astype(np.uint64), hnsw.offsets)
        faiss.copy_array_to_vector(np.ascontiguousarray(arrays.links), hnsw.neighbors)
        hnsw.entry_point, hnsw.max_level = arrays.entry_point, arrays.max_level
        index.founders = arrays.founders.copy()
        index.images = quantise(arrays.vectors)
        return index

    @property
    def _highest_level(self) -> int:
        """The highest level that faiss has a place in its table for."""
        return int(self._index.hnsw.assign_probas.size()) - 1

    def _checked_offsets(self, arrays: IndexArrays) -> npt.NDArray[np.int64]:
        """Return where each point's links start; faiss follows links unchecked, so check all of them here."""
        points, m = len(arrays), self.shape.m
        offsets = np.append(0, np.cumsum((arrays.levels.astype(np.int64) + 2) * m))
        usable = np.isfinite(arrays.vectors).all() and arrays.vectors.any(axis=-1).all()
        checks = {
            "vectors": arrays.vectors.shape == (points, self.dimension) and bool(usable),
            "levels": len(arrays.levels) == points and _within(arrays.levels, 0, self._highest_level),
            "links": len(arrays.links) == offsets[-1] and _within(arrays.links, -1, points - 1),
        }
        checks["entry point"] = checks["levels"] and (
            0 <= arrays.entry_point < points
            and bool(arrays.levels[arrays.entry_point] == arrays.max_level == arrays.levels.max())
        )
        if all(checks.values()):
            checks["links between levels"] = _levels_fit(arrays, offsets, m)
        wrong = [name for name, fine in checks.items() if not fine]
        if wrong:
            raise DatabaseError(
                f"the stored HNSW index of {points} points is damaged ({', '.join(wrong)}); restore the database "
                "from a backup, or ingest into a new project"
            )
        return offsets


def _within(column: npt.NDArray[np.int32], low: int, high: int) -> bool:
    return bool(((column >= low) & (column <= high)).all())


def _levels_fit(arrays: IndexArrays, offsets: npt.NDArray[np.int64], m: int) -> bool:
    """Return whether every link above level 0 leads to a point that has that level."""
    for level in range(1, int(arrays.max_level) + 1):
        starts = offsets[:-1][arrays.levels >= level] + (level + 1) * m
        targets = arrays.links[starts[:, None] + np.arange(m)]
        if (arrays.levels[targets[targets >= 0]] < level).any():
            return False
    return True


@contextmanager
def _threads(faiss: Any, count: int) -> Iterator[None]:
    """Run a block with this many faiss threads; the setting belongs to the whole process, so put it back."""
    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(count)
    try:
        yield
    finally:
        faiss.omp_set_num_threads(before)
