"""What emerges in an epoch and has to be kept: contradictions, supersessions, scenes, promotions, new nodes.

Columns as in `state`: numpy, node numbers int32, -1 for "none".
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from hyphae_gpu.arrays import F32, F64, I8, I32, I64, Flags

#: Why two cells oppose each other (spec 6.2 a, b, c); a table of contradictions holds the word's place.
REASONS = ("claim", "stance", "verifier")


@dataclass(kw_only=True)
class KnownPairs:
    """Contradictions that were raised before, sorted by (a, b): a pair is raised once, ever (spec 6.2).

    a, b int32 node numbers, a < b; open bool: nobody and nothing has resolved it.
    """

    a: I32 = field(default_factory=lambda: np.zeros(0, np.int32))
    b: I32 = field(default_factory=lambda: np.zeros(0, np.int32))
    open: Flags = field(default_factory=lambda: np.zeros(0, np.bool_))

    def __len__(self) -> int:
        return len(self.a)


@dataclass(kw_only=True)
class ContradictionTable:
    """Contradictions as they were raised, sorted by (a, b) (spec 6.2, 6.3).

    a, b int32 node numbers, a < b; similarities float64; reasons int8, places in `REASONS`; open bool; resolutions: of
    each what a policy decided, as plain values for JSON, None while it is open.
    """

    a: I32 = field(default_factory=lambda: np.zeros(0, np.int32))
    b: I32 = field(default_factory=lambda: np.zeros(0, np.int32))
    similarities: F64 = field(default_factory=lambda: np.zeros(0, np.float64))
    reasons: I8 = field(default_factory=lambda: np.zeros(0, np.int8))
    open: Flags = field(default_factory=lambda: np.zeros(0, np.bool_))
    resolutions: list[dict[str, Any] | None] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.a)

    @staticmethod
    def concat(parts: list[ContradictionTable]) -> ContradictionTable:
        """Return the rows of all parts, one part after the other."""
        parts = [ContradictionTable(), *parts]
        columns = {
            name: np.concatenate([getattr(p, name) for p in parts])
            for name in ("a", "b", "similarities", "reasons", "open")
        }
        return ContradictionTable(**columns, resolutions=[one for p in parts for one in p.resolutions])


@dataclass(kw_only=True)
class Resolved:
    """Known contradictions that are over, and how: a, b int32, a < b; resolutions as in `ContradictionTable`."""

    a: I32 = field(default_factory=lambda: np.zeros(0, np.int32))
    b: I32 = field(default_factory=lambda: np.zeros(0, np.int32))
    resolutions: list[dict[str, Any]] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.a)


@dataclass(kw_only=True)
class Supersessions:
    """Cells that others supersede (spec 6.6): losers, winners int32; a loser is listed once."""

    losers: I32 = field(default_factory=lambda: np.zeros(0, np.int32))
    winners: I32 = field(default_factory=lambda: np.zeros(0, np.int32))

    def __len__(self) -> int:
        return len(self.losers)

    @staticmethod
    def concat(parts: list[Supersessions]) -> Supersessions:
        """Return the rows of all parts (one at least), one part after the other."""
        return Supersessions(
            losers=np.concatenate([p.losers for p in parts]), winners=np.concatenate([p.winners for p in parts])
        )


@dataclass(kw_only=True)
class SceneTable:
    """Scenes (spec 1.4, 6.4), ascending by number: row = scene. By default none.

    numbers int32: the scenes' own nodes; sizes (cells), epochs (the first that had it) int32; names: a few telling
    words, empty where no cell has any.
    """

    numbers: I32 = field(default_factory=lambda: np.zeros(0, np.int32))
    sizes: I32 = field(default_factory=lambda: np.zeros(0, np.int32))
    epochs: I32 = field(default_factory=lambda: np.zeros(0, np.int32))
    names: list[str] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.numbers)


@dataclass(kw_only=True)
class SceneChanges:
    """What an epoch changed of scenes. By default nothing.

    nodes int32: those that are in another scene than before, and scenes int32: in which, -1 for none; written: scenes
    that are new or whose size or name changed; ended int32: numbers of scenes that are no more.
    """

    nodes: I32 = field(default_factory=lambda: np.zeros(0, np.int32))
    scenes: I32 = field(default_factory=lambda: np.zeros(0, np.int32))
    written: SceneTable = field(default_factory=SceneTable)
    ended: I32 = field(default_factory=lambda: np.zeros(0, np.int32))


@dataclass(kw_only=True)
class NewNodes:
    """Nodes that an epoch made: scenes (spec 1.4), promoted nodes (5.2), patterns (6.4). By default none.

    types, layers, knowledge_types (-1 for scenes) int8; vectors float32 [k, d]; saliences float32; makers int32;
    made_of int32: the cell that a promoted node or a pattern was made of; patterns bool; texts: a node's own text, None
    where it has none or that of the cell it was made of; members: of each pattern the cells of its group, else nothing.
    """

    vectors: F32
    types: I8 = field(default_factory=lambda: np.zeros(0, np.int8))
    layers: I8 = field(default_factory=lambda: np.zeros(0, np.int8))
    knowledge_types: I8 = field(default_factory=lambda: np.zeros(0, np.int8))
    saliences: F32 = field(default_factory=lambda: np.zeros(0, np.float32))
    makers: I32 = field(default_factory=lambda: np.zeros(0, np.int32))
    made_of: I32 = field(default_factory=lambda: np.zeros(0, np.int32))
    patterns: Flags = field(default_factory=lambda: np.zeros(0, np.bool_))
    texts: list[str | None] = field(default_factory=list)
    members: list[I32] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.types)

    @staticmethod
    def concat(parts: list[NewNodes]) -> NewNodes:
        """Return the rows of all parts (one at least), one part after the other."""
        names = [spec.name for spec in fields(NewNodes) if spec.name not in ("texts", "members")]
        columns: dict[str, Any] = {name: np.concatenate([getattr(p, name) for p in parts]) for name in names}
        texts, members = ([one for p in parts for one in getattr(p, name)] for name in ("texts", "members"))
        return NewNodes(**columns, texts=texts, members=members)


@dataclass(kw_only=True)
class PromotedKeys:
    """What live diffs were promoted to: diffs int64 diff numbers, layers int8, 1 or 2; in no order."""

    diffs: I64 = field(default_factory=lambda: np.zeros(0, np.int64))
    layers: I8 = field(default_factory=lambda: np.zeros(0, np.int8))

    def __len__(self) -> int:
        return len(self.diffs)

    def take(self, which: Flags) -> PromotedKeys:
        """Return some rows, by mask."""
        return PromotedKeys(diffs=self.diffs[which], layers=self.layers[which])

    @staticmethod
    def concat(parts: list[PromotedKeys]) -> PromotedKeys:
        """Return the rows of all parts (one at least), one part after the other."""
        return PromotedKeys(
            diffs=np.concatenate([p.diffs for p in parts]), layers=np.concatenate([p.layers for p in parts])
        )


@dataclass(kw_only=True)
class PromotionTable:
    """Promotions that were recorded (spec 5.2), by diff, then layer: one row a promotion.

    diffs int64; layers int8: 1 or 2, the one promoted to; cells int32: the diff's origin; nodes int32: the node it
    made; carriers int32: v*, where its energy came from; entries int32: where it went on; scenes: of each the scenes
    that counted, those with most counted nodes first, and counts: how many nodes each had; carried: of each the nodes
    that counted, of the first scene (to layer 1) or the scenes' own (to layer 2), greatest energy first; all int32.
    """

    diffs: I64 = field(default_factory=lambda: np.zeros(0, np.int64))
    layers: I8 = field(default_factory=lambda: np.zeros(0, np.int8))
    cells: I32 = field(default_factory=lambda: np.zeros(0, np.int32))
    nodes: I32 = field(default_factory=lambda: np.zeros(0, np.int32))
    carriers: I32 = field(default_factory=lambda: np.zeros(0, np.int32))
    entries: I32 = field(default_factory=lambda: np.zeros(0, np.int32))
    scenes: list[I32] = field(default_factory=list)
    counts: list[I32] = field(default_factory=list)
    carried: list[I32] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.diffs)

    def keys(self) -> PromotedKeys:
        """Return what was promoted to which layer."""
        return PromotedKeys(diffs=self.diffs, layers=self.layers)
