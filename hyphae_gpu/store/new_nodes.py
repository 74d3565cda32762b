"""Nodes that an epoch made, and what was promoted: written with the epoch (spec 1.4, 5.2, 6.4)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from hyphae_gpu.arrays import I32, I64
from hyphae_gpu.emerged import NewNodes, PromotionTable
from hyphae_gpu.errors import DatabaseError
from hyphae_gpu.store import copy
from hyphae_gpu.store.copy_in import copy_in, slices
from hyphae_gpu.store.numbering import next_number
from hyphae_gpu.store.postgres import Connection
from hyphae_gpu.vocabulary import KnowledgeType, NodeType, names


def add_nodes(connection: Connection, new: NewNodes, at: int, first: int) -> None:
    """Add an epoch's nodes, made `at` (microseconds), numbered from `first` on, within the caller's transaction.

    Their ids say what they are: ``scene-N``, ``promoted-N``, ``pattern-N``, N their number. A node takes over text,
    confidence and payload of the cell it was made of; a pattern's payload names the cells of its group instead. Raises
    DatabaseError where `first` is not the next free number.
    """
    if not len(new):
        return
    following = next_number(connection)
    if following != first:
        raise DatabaseError(f"an epoch numbers its nodes from {first} on, but the store from {following}")
    numbers = first + np.arange(len(new))
    kinds = np.where(new.types == NodeType.SCENE, "scene", np.where(new.patterns, "pattern", "promoted")).tolist()
    ids = pa.array(
        _free(connection, [f"{kind}-{n}" for kind, n in zip(kinds, numbers, strict=True)]), pa.large_string()
    )
    placed = np.asarray(new.vectors.any(axis=1), np.bool_)
    when = np.full(len(new), at)
    columns = [
        "num", "id", "type", "layer", "knowledge_type", "salience", "agent", "made_of", "pending", "created_at",
        "last_access", "embedding",
    ]  # fmt: skip
    parts = (
        [
            copy.int64(numbers[p]),
            copy.text(ids[p.start : p.stop]),
            copy.words(new.types[p], names(NodeType)),
            copy.int16(new.layers[p].astype(np.int16)),
            copy.words(new.knowledge_types[p], names(KnowledgeType)),
            copy.float32(new.saliences[p], new.knowledge_types[p] >= 0),
            copy.reference(new.makers[p]),
            copy.reference(new.made_of[p]),
            copy.words(np.where(new.patterns[p], 0, -1), ["pattern"]),
            copy.timestamps(when[p]),
            copy.timestamps(when[p]),
            copy.vectors(new.vectors[p], placed[p]),
        ]
        for p in slices(len(new), new.vectors.shape[1])
    )
    copy_in(connection, "knowledge_nodes", columns, parts, "checkpoint.nodes")
    _take_over(connection, new, numbers)


def _take_over(connection: Connection, new: NewNodes, numbers: I64) -> None:
    """Give nodes the text, confidence and payload of the cells they were made of."""
    made = np.flatnonzero(new.made_of >= 0)
    if not len(made):
        return
    connection.execute("create temp table made (num bigint, text text, members bigint[]) on commit drop")
    fields = [
        copy.int64(numbers[made]),
        copy.text(pa.array([new.texts[i] for i in made], pa.large_string())),
        bigint_lists([new.members[i] for i in made]),
    ]
    copy_in(connection, "made", ["num", "text", "members"], [fields], "checkpoint.made")
    connection.execute(
        "update knowledge_nodes n set text = coalesce(m.text, c.text), confidence = c.confidence, payload = "
        "case when n.pending = 'pattern' then jsonb_build_object('members', "
        "(select jsonb_agg(g.id order by s.step) from unnest(m.members) with ordinality s (num, step) "
        "join knowledge_nodes g on g.num = s.num)) else c.payload end "
        "from made m, knowledge_nodes c where n.num = m.num and c.num = n.made_of"
    )


def _free(connection: Connection, ids: list[str]) -> list[str]:
    """Return the ids, those that a row has already taken with a mark behind."""
    while True:
        taken = {name for (name,) in connection.execute("select id from knowledge_nodes where id = any(%s)", [ids])}
        if not taken:
            return ids
        ids = [f"{name}~" if name in taken else name for name in ids]


def add_promotions(connection: Connection, table: PromotionTable, epoch: int) -> None:
    """Add the epoch's promotions; one that is there already fails the whole checkpoint (spec 5.2)."""
    fields = [
        copy.int64(table.diffs),
        copy.int16(table.layers.astype(np.int16)),
        copy.int32(np.full(len(table), epoch)),
        bigint_lists(table.scenes),
        copy.int64(table.nodes),
        bigint_lists(table.counts),
        copy.int64(table.carriers),
        copy.reference(table.entries),
        bigint_lists(table.carried),
    ]
    columns = ["diff", "layer", "epoch", "scenes", "node", "counts", "carrier", "entry", "carried"]
    copy_in(connection, "promotions", columns, [fields], "checkpoint.promotions")


def bigint_lists(lists: Sequence[I32]) -> copy.Field:
    """Return a bigint[] column of integer arrays, one a row."""
    offsets = np.zeros(len(lists) + 1, np.int64)
    np.cumsum([len(one) for one in lists], out=offsets[1:])
    return copy.bigints(offsets, np.concatenate([np.zeros(0, np.int64), *lists]))
