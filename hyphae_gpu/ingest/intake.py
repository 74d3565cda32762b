"""What the readers fill: checked chunks of rows, one kind each, and the rules that hold across chunks."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hyphae_gpu.ingest.problems import I64, Mask, Problems, quote
from hyphae_gpu.vectors import NORM_RANGE, norms

#: Vector dimensions that can be stored (spec 1.1).
DIMENSIONS = (2, 16_000)


class Dimension:
    """The one length that every vector of an input has: the store's, or that of the first vector with a legal one."""

    def __init__(self, expected: int | None = None, origin: str = "as in the store") -> None:
        self.expected = expected
        self._origin = origin

    def refuse(self, length: int, place: str) -> str | None:
        """Return why a vector of this length is refused, None when it is fine; the first fine one is remembered."""
        low, high = DIMENSIONS
        if not low <= length <= high:
            return f"embedding has {length} numbers, expected {low} to {high}"
        if self.expected is None:
            self.expected = length
            self._origin = f"as in {place}"
        if length != self.expected:
            return f"embedding has {length} numbers, expected {self.expected} {self._origin}"
        return None


@dataclass(frozen=True, kw_only=True)
class Chunk:
    """Some rows of one kind, in input order.

    keys int64: places for messages; rows int64: place in the whole input; columns: Arrow arrays by field name, of the
    types of `rows.schemas`, null where nothing was given or it was refused. `embedding` is missing from columns where
    no row of the chunk has one.
    """

    kind: str
    keys: I64
    rows: I64
    columns: dict[str, pa.Array]


@dataclass(kw_only=True)
class Intake:
    """The state of reading one input."""

    problems: Problems
    dimension: Dimension
    #: the embedder that makes every vector; None when they come with the rows
    embedder: str | None
    #: the kind of files and lines that name none
    kind: str | None
    #: microseconds, for cells that do not say when they were created
    now: int
    rows: int = 0
    chunks: list[Chunk] = field(default_factory=list)

    def number(self, count: int) -> I64:
        """Return the places in the whole input of the next rows."""
        start = self.rows
        self.rows += count
        return np.arange(start, self.rows, dtype=np.int64)


def check_vectors(
    wide: npt.NDArray[np.float32] | npt.NDArray[np.float64], keys: I64, problems: Problems
) -> npt.NDArray[np.float32]:
    """Return vectors [m, d] as float32, rounded once; refuse NaN, infinity and norms out of range (spec 0.1, 0.4)."""
    with np.errstate(over="ignore", invalid="ignore"):
        vectors = wide.astype(np.float32, copy=False)
        sizes = norms(vectors)
    low, high = NORM_RANGE
    bad = ~((sizes >= low) & (sizes <= high))

    def reason(row: int) -> str:
        outside = np.flatnonzero(~np.isfinite(vectors[row]))
        if len(outside):
            return f"embedding[{outside[0]}] is {wide[row, outside[0]]:g}, expected a finite float32"
        return f"embedding has norm {sizes[row]:.3g}, expected {low:g} to {high:g}"

    problems.add_where(keys, bad, reason)
    return vectors


def vector_column(vectors: npt.NDArray[np.float32], present: Mask) -> pa.Array:
    """Return a fixed size list column: the m vectors stand, in order, where `present` is True, null elsewhere."""
    dimension = vectors.shape[1]
    if present.all():
        return pa.FixedSizeListArray.from_arrays(pa.array(vectors.reshape(-1)), dimension)
    spread = np.zeros((len(present), dimension), np.float32)
    spread[present] = vectors
    return pa.FixedSizeListArray.from_arrays(pa.array(spread.reshape(-1)), dimension, mask=pa.array(~present))


def check_embedding_given(kind: str, column: Mask, texts: pa.Array | None, keys: I64, intake: Intake) -> None:
    """Refuse rows whose vector is missing, or given where an embedder makes it.

    `column` is True where the row came with an embedding. Agents may lack one here: accesses place them (spec 1.3).
    """
    problems, embedder = intake.problems, intake.embedder
    if embedder is not None:
        made = f"embedding given, but vectors are made by {quote(embedder)} here: leave it out"
        problems.add_where(keys, column, made)
    if kind == "agent":
        return
    if embedder is None:
        hint = "give one, or use --embed NAME" if intake.dimension.expected is None else "give one"
        problems.add_where(keys, ~column, f"embedding missing: {hint}")
        return
    blank = np.ones(len(keys), np.bool_) if texts is None else _blank(texts)
    problems.add_where(keys, blank, f"text missing: {quote(embedder)} makes the vector from it")


def _blank(texts: pa.Array) -> Mask:
    trimmed = pa.compute.utf8_length(pa.compute.utf8_trim_whitespace(texts)).fill_null(0)
    return np.asarray(trimmed.to_numpy(zero_copy_only=False) == 0)
