"""Patterns: what several agents observed alike becomes one cell (spec 6.4)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from hyphae_gpu.arrays import F32, F64, I8, I32, I64, Flags
from hyphae_gpu.backends.protocol import Backend
from hyphae_gpu.emerged import NewNodes
from hyphae_gpu.emergence.contradictions import Texts
from hyphae_gpu.emergence.decay import GRID
from hyphae_gpu.errors import UsageError
from hyphae_gpu.state import EdgeTable, NodeTable
from hyphae_gpu.vocabulary import EdgeKind, KnowledgeType, NodeType

#: Different agents, at least, whose cells make a pattern (spec 6.4).
LEAST_AGENTS = 3
#: Groups, at most, that a summariser gets at once.
SUMMARISER_BATCH = 64

#: From a batch of groups, each the texts of its cells, leader first, to one text a group.
Summariser = Callable[[Sequence[Sequence[str]]], Sequence[str]]


@dataclass(frozen=True, kw_only=True)
class Patterns:
    """An epoch's new patterns, row = pattern, in the order in which their leaders lead (spec 6.4).

    leaders int32 [k]; members int32, those of pattern i at offsets[i] : offsets[i + 1] (int64 [k + 1]): the leader,
    then the cells that it took, ascending; vectors float32 [k, d], unit vectors; saliences float32 [k]; texts: None
    where no summariser was asked, which stands for the leader's text.
    """

    leaders: I32
    offsets: I64
    members: I32
    vectors: F32
    saliences: F32
    texts: list[str | None]

    def __len__(self) -> int:
        return len(self.leaders)


def find_patterns(
    nodes: NodeTable,
    images: I8,
    lengths: F64,
    saliences: F32,
    live: Flags,
    node_scenes: I32,
    near: EdgeTable | tuple[I32, I32],
    *,
    excluded: Flags,
    led: Flags,
    eps: float,
    backend: Backend,
    summariser: Summariser | None = None,
    texts: Texts | None = None,
) -> Patterns:
    """Return the patterns that an epoch's cells make for the first time.

    images int8 [n, d] and lengths float64 [n] of the nodes' vectors, saliences float32 [n] the decayed ones, live bool
    [n]: the live cells; node_scenes int32 [n]: each node's scene, -1 for none; near: edges of any kind, of which the
    near ones count, or sources and targets of near links, in any order. excluded bool [n]: cells that are patterns
    themselves, which neither lead nor join (a pattern would lead a pattern of itself in every epoch); led bool [n]:
    cells that led a pattern before, which lead their groups but make no second one. A group whose weighted sum of
    images is zero has no centroid and makes none either. eps: the least cosine (`pattern_eps`). texts: asked for the
    members of the groups that become patterns, where there is a summariser; a missing one is read as empty. Raises
    UsageError where the summariser's answer is not one text a group.
    """
    if summariser is not None and texts is None:
        raise ValueError("a summariser reads texts: give find_patterns the texts as well")
    may = live & (nodes.types == NodeType.CELL) & (nodes.layers == 0) & (node_scenes >= 0) & ~excluded
    begins, cells = _turns(np.flatnonzero(may).astype(np.int32), node_scenes, saliences, backend)
    offsets, targets = _near_rows(near, len(nodes), backend)
    leader_of = backend.groups(images, lengths, offsets, targets, begins, cells, eps)

    shared = (_agents(leader_of, nodes.makers) >= LEAST_AGENTS) & ~led
    leaders = np.flatnonzero(shared).astype(np.int32)
    leaders = leaders[np.argsort(-saliences[leaders], kind="stable")]
    offsets, members = _members(leader_of, leaders)
    weights = np.rint(float(GRID) * saliences[members].astype(np.float64)).astype(np.int64)
    vectors, placed = backend.centroids(images, offsets, members, weights)
    if not placed.all():
        leaders, vectors = leaders[placed], vectors[placed]
        offsets, members = _members(leader_of, leaders)
    return Patterns(
        leaders=leaders,
        offsets=offsets,
        members=members,
        vectors=vectors,
        saliences=joint_saliences(saliences[members], offsets),
        texts=_summarised(offsets, members, summariser, texts),
    )


def pattern_nodes(found: Patterns) -> NewNodes:
    """Return the cells that patterns become: of layer 0, nobody's, in the order of their leaders."""
    count = len(found)
    return NewNodes(
        types=np.full(count, NodeType.CELL, np.int8),
        layers=np.zeros(count, np.int8),
        vectors=found.vectors,
        knowledge_types=np.full(count, KnowledgeType.PATTERN, np.int8),
        saliences=found.saliences,
        makers=np.full(count, -1, np.int32),
        made_of=found.leaders,
        patterns=np.ones(count, np.bool_),
        texts=found.texts,
        members=[found.members[first:last] for first, last in pairwise(found.offsets.tolist())],
    )


def joint_saliences(saliences: F32, offsets: I64) -> F32:
    """Return 1 - prod(1 - s_i) of each group, float32 [k] (spec 6.4).

    saliences float32, those of group i at offsets[i] : offsets[i + 1] (int64 [k + 1]). Factors are multiplied in this
    order in float64, the result is rounded once.
    """
    factors = 1.0 - saliences.astype(np.float64)
    products = np.ones(len(offsets) - 1)
    sizes = np.diff(offsets)
    place, having = 0, np.flatnonzero(sizes > 0)
    while len(having):  # one member of every group at a time: a segmented product of numpy's promises no order
        products[having] *= factors[offsets[having] + place]
        place += 1
        having = having[sizes[having] > place]
    joint: F32 = (1.0 - products).astype(np.float32)
    return joint


def summaries(summariser: Summariser, groups: Sequence[Sequence[str]]) -> list[str]:
    """Return a summariser's text for each group; raises UsageError unless each is there, not empty, and storable."""
    said = summariser(groups)
    if isinstance(said, str) or not isinstance(said, Sequence):
        raise UsageError(f"summariser: it gave {type(said).__name__}, expected a list of one text a group")
    if len(said) != len(groups):
        raise UsageError(f"summariser: it gave {len(said)} texts for {len(groups)} groups, expected one a group")
    for place, text in enumerate(said):
        if not isinstance(text, str):
            raise UsageError(f"summariser: it gave {type(text).__name__} for group {place}, expected a text (str)")
        if not text.strip():
            raise UsageError(f"summariser: it gave {text!r} for group {place}, expected a text that is not empty")
        if "\0" in text or text != text.encode(errors="ignore").decode():
            raise UsageError(
                f"summariser: it gave {text[:60]!r} for group {place}, expected a text that UTF-8 can store: no NUL, "
                "no half of a surrogate pair"
            )
    return [str(text) for text in said]


def _turns(cells: I32, node_scenes: I32, saliences: F32, backend: Backend) -> tuple[I64, I32]:
    """Return the cells of each scene in the order in which they lead: offsets int64 and cells int32, scene by scene."""
    numbers, scenes = np.unique(node_scenes[cells], return_inverse=True)
    # The bits of floats that are not negative ascend with them. A zero has no weight, so -0 may come last.
    bits = saliences[cells].view(np.int32).astype(np.int64)
    begins, order = backend.order_rows(len(numbers), scenes.astype(np.int32), -bits)
    return begins, cells[order]


def _near_rows(near: EdgeTable | tuple[I32, I32], count: int, backend: Backend) -> tuple[I64, I32]:
    """Return the near links by source: offsets int64 [n + 1], targets int32."""
    if isinstance(near, EdgeTable):
        edges = np.flatnonzero(near.kinds == EdgeKind.NEAR)
        sources, targets = near.sources[edges], near.targets[edges]
    else:
        sources, targets = near
    if (sources[1:] < sources[:-1]).any():
        offsets, order = backend.order_rows(count, sources, targets.astype(np.int64))
        return offsets, targets[order]
    offsets = np.zeros(count + 1, np.int64)
    np.cumsum(np.bincount(sources, minlength=count), out=offsets[1:])
    return offsets, targets


def _agents(leader_of: I32, makers: I32) -> I64:
    """Return by how many different agents the group of each leader is, int64 [n]; 0 for nodes that lead none."""
    cells = np.flatnonzero((leader_of >= 0) & (makers >= 0))
    pairs = np.unique((leader_of[cells].astype(np.int64) << 32) | makers[cells])
    return np.bincount(pairs >> 32, minlength=len(leader_of))


def _members(leader_of: I32, leaders: I32) -> tuple[I64, I32]:
    """Return the cells of each leader's group, leader first, then ascending: offsets int64 [k + 1], members int32."""
    place_of = np.full(len(leader_of), -1, np.int64)
    place_of[leaders] = np.arange(len(leaders))
    cells = np.flatnonzero(leader_of >= 0).astype(np.int32)
    places = place_of[leader_of[cells]]
    cells, places = cells[places >= 0], places[places >= 0]
    offsets = np.zeros(len(leaders) + 1, np.int64)
    np.cumsum(np.bincount(places, minlength=len(leaders)), out=offsets[1:])
    return offsets, cells[np.lexsort((cells != leader_of[cells], places))]


def _summarised(offsets: I64, members: I32, summariser: Summariser | None, texts: Texts | None) -> list[str | None]:
    """Return the summariser's text of each group; None, which stands for the leader's, where there is no summariser."""
    count = len(offsets) - 1
    if summariser is None or texts is None:
        return [None] * count
    said: list[str | None] = []
    for first in range(0, count, SUMMARISER_BATCH):
        bounds = offsets[first : first + SUMMARISER_BATCH + 1]
        read = [text or "" for text in texts(members[bounds[0] : bounds[-1]])]
        steps = (bounds - bounds[0]).tolist()
        said += summaries(summariser, [read[start:stop] for start, stop in pairwise(steps)])
    return said
