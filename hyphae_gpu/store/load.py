"""The whole project out of the store, as the engine wants it, at one instant."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from hyphae_gpu.emerged import KnownPairs, PromotedKeys, SceneTable
from hyphae_gpu.errors import DatabaseError
from hyphae_gpu.state import AccessLog, DiffTable, EdgeTable, InboxKeys, NodeTable, SwarmState
from hyphae_gpu.store import copy_out
from hyphae_gpu.store.arrays import load_index
from hyphae_gpu.store.copy_out import codes, numbers, strings, times, vector_rows
from hyphae_gpu.store.postgres import Connection
from hyphae_gpu.vocabulary import DiffType, EdgeKind, EdgeType, KnowledgeType, NodeType, names

_PENDING = ("created", "updated", "silent", "pattern")


def load_state(connection: Connection) -> SwarmState:
    """Return the project within the caller's transaction; raises DatabaseError when nothing was ingested."""
    dimension = connection.execute("select value from meta where key = 'dimension'").fetchone()
    if dimension is None:
        raise DatabaseError("the store holds no vectors yet: ingest some rows first (hyphae-gpu ingest FILES)")
    wide = int(dimension[0])
    nodes = _nodes(connection, wide)
    epoch = connection.execute("select coalesce(max(epoch), 0) from epochs").fetchone()
    following = connection.execute("select coalesce(max(num), -1) + 1 from memory_diffs").fetchone()
    assert epoch is not None
    assert following is not None
    return SwarmState(
        epoch=int(epoch[0]),
        dimension=wide,
        nodes=nodes,
        accesses=_accesses(connection),
        declared=_edges(connection, "given"),
        topology=_edges(connection, "not given"),
        diffs=_diffs(connection, wide),
        next_diff=int(following[0]),
        sequences=_sequences(connection, len(nodes)),
        delivered=_delivered(connection),
        indexes=[load_index(connection, layer, wide) for layer in range(3)],
        contradictions=_contradictions(connection),
        scenes=_scenes(connection),
        node_scenes=_node_scenes(connection, len(nodes)),
        promoted=_promoted(connection),
    )


def _narrow(to: Any, null: float = -1) -> copy_out.Reader:
    return numbers(">i8", null, to)


def _nodes(connection: Connection, dimension: int) -> NodeTable:
    readers = {
        "num": _narrow(np.int64),
        "type": codes(names(NodeType)),
        "layer": numbers(">i2", to=np.int8),
        "knowledge_type": codes(names(KnowledgeType)),
        "salience": numbers(">f4", 0.0),
        "agent": _narrow(np.int32),
        "created_at": times(),
        "last_access": times(),
        "superseded_by": _narrow(np.int32),
        "told_superseded": _narrow(np.int32),
        "made_of": _narrow(np.int32),
        "stance": numbers(">f4", float("nan")),
        "pending": codes(_PENDING),
        "radius": numbers(">f8", float("nan")),
        "quarantined": numbers("u1", 0, np.bool_),
        "embedding is not null": numbers("u1", 0, np.bool_),
    }
    query = f"select {', '.join(readers)} from knowledge_nodes order by num"
    columns = dict(zip(readers, copy_out.copy_out(connection, query, list(readers.values())), strict=True))
    count = len(columns["num"])
    if not np.array_equal(columns["num"], np.arange(count)):
        raise DatabaseError(f"the store's node numbers are not 0 to {count - 1}: rows of knowledge_nodes were deleted")
    subjects, values = _claims(connection, count)
    return NodeTable(
        types=columns["type"],
        layers=columns["layer"],
        vectors=_vectors(connection, count, dimension),
        placed=columns["embedding is not null"],
        knowledge_types=columns["knowledge_type"],
        saliences=columns["salience"],
        makers=columns["agent"],
        created_at=columns["created_at"],
        last_access=columns["last_access"],
        superseded_by=columns["superseded_by"],
        pending=(columns["pending"] + 1).astype(np.int8),
        interests=_interests(connection, count),
        radii=columns["radius"],
        quarantined=columns["quarantined"],
        claim_subjects=subjects,
        claim_values=values,
        stances=columns["stance"],
        told_superseded=columns["told_superseded"],
        made_of=columns["made_of"],
    )


def _vectors(connection: Connection, count: int, dimension: int) -> Any:
    """Read the vectors block by block into their places, so that they are held once."""
    whole = np.zeros((count, dimension), np.float32)

    def place(block: list[Any]) -> None:
        whole[block[0]] = block[1]

    query = "select num, embedding from knowledge_nodes where embedding is not null"
    copy_out.for_each_block(connection, query, [_narrow(np.int64), vector_rows(dimension)], place)
    return whole


def _interests(connection: Connection, count: int) -> Any:
    whole = np.zeros((count, len(KnowledgeType)), np.float32)
    query = "select num, interests from knowledge_nodes where interests is not null"
    rows, declared = copy_out.copy_out(connection, query, [_narrow(np.int64), strings(skip=1)])
    code = {word: i for i, word in enumerate(names(KnowledgeType))}
    for row, said in zip(rows, declared.to_pylist(), strict=True):
        for word, value in json.loads(said).items():
            whole[row, code[word]] = value
    return whole


def _claims(connection: Connection, count: int) -> tuple[Any, Any]:
    """Return each node's claim as codes of distinct texts, int32 [n] for subjects and for values; -1: none."""
    query = (
        "select num, claim_subject, claim_value from knowledge_nodes "
        "where claim_subject is not null and claim_value is not null order by num"
    )
    rows, *texts = copy_out.copy_out(connection, query, [_narrow(np.int64), strings(), strings()])
    columns = []
    for column in texts:
        coded = np.full(count, -1, np.int32)
        coded[rows] = column.combine_chunks().dictionary_encode().indices.to_numpy(zero_copy_only=False)
        columns.append(coded)
    return columns[0], columns[1]


def _contradictions(connection: Connection) -> KnownPairs:
    readers = [_narrow(np.int32), _narrow(np.int32), numbers("u1", 0, np.bool_)]
    query = "select least(a, b), greatest(a, b), status = 'open' from contradictions order by 1, 2"
    a, b, unresolved = copy_out.copy_out(connection, query, readers)
    return KnownPairs(a=a, b=b, open=unresolved)


def _scenes(connection: Connection) -> SceneTable:
    readers = [_narrow(np.int32), numbers(">i4"), numbers(">i4"), strings()]
    query = "select num, size, epoch, name from scenes where ended is null order by num"
    found, sizes, epochs, names_ = copy_out.copy_out(connection, query, readers)
    return SceneTable(numbers=found, sizes=sizes, epochs=epochs, names=names_.to_pylist())


def _node_scenes(connection: Connection, count: int) -> Any:
    whole = np.full(count, -1, np.int32)
    query = "select num, scene from knowledge_nodes where scene is not null"
    rows, found = copy_out.copy_out(connection, query, [_narrow(np.int64), _narrow(np.int32)])
    whole[rows] = found
    return whole


def _promoted(connection: Connection) -> PromotedKeys:
    query = "select p.diff, p.layer from promotions p join memory_diffs d on d.num = p.diff and d.ttl > 0"
    diffs, layers = copy_out.copy_out(connection, query, [_narrow(np.int64), numbers(">i2", to=np.int8)])
    return PromotedKeys(diffs=diffs, layers=layers)


def _accesses(connection: Connection) -> AccessLog:
    readers = [_narrow(np.int32), _narrow(np.int32), times()]
    agents, cells, at = copy_out.copy_out(connection, "select agent, cell, at from accesses", readers)
    return AccessLog(agents=agents, cells=cells, at=at)


def _edges(connection: Connection, which: str) -> EdgeTable:
    readers = [
        _narrow(np.int32),
        _narrow(np.int32),
        codes(names(EdgeType)),
        codes(names(EdgeKind), int(EdgeKind.NONE)),
        numbers(">f4"),
        numbers(">i4"),
    ]
    query = f"select src, tgt, type, kind, weight, bandwidth from topology_edges where {which}"
    src, tgt, types, kinds, weights, bandwidths = copy_out.copy_out(connection, query, readers)
    order = np.lexsort((types, tgt, src))
    return EdgeTable(
        sources=src[order],
        targets=tgt[order],
        types=types[order],
        kinds=kinds[order],
        weights=weights[order],
        bandwidths=bandwidths[order],
    )


def _diffs(connection: Connection, dimension: int) -> DiffTable:
    readers = {
        "num": _narrow(np.int64),
        "origin": _narrow(np.int32),
        "seq": numbers(">i4"),
        "diff_type": codes(names(DiffType)),
        "knowledge_type": codes(names(KnowledgeType)),
        "embedding": vector_rows(dimension),
        "salience": numbers(">f4"),
        "energy": numbers(">f4"),
        "units": numbers(">i4"),
        "max_hops": numbers(">i4"),
        "ttl": numbers(">i4"),
        "epoch_created": numbers(">i4"),
    }
    query = f"select {', '.join(readers)} from memory_diffs where ttl > 0 order by num"
    columns = copy_out.copy_out(connection, query, list(readers.values()))
    fields = [
        "numbers",
        "origins",
        "sequence",
        "types",
        "knowledge_types",
        "vectors",
        "saliences",
        "energies",
        "units",
        "max_hops",
        "ttl",
        "epoch_created",
    ]
    return DiffTable(**dict(zip(fields, columns, strict=True)))


def _sequences(connection: Connection, count: int) -> Any:
    made = np.zeros(count, np.int32)
    query = "select origin, count(*) from memory_diffs group by origin"
    origins, counts = copy_out.copy_out(connection, query, [_narrow(np.int64), _narrow(np.int32)])
    made[origins] = counts
    return made


def _delivered(connection: Connection) -> InboxKeys:
    readers = [_narrow(np.int32), _narrow(np.int64), _narrow(np.int32)]
    query = (
        "select i.agent, i.diff, b.num from inbox i join memory_diffs d on d.num = i.diff and d.ttl > 0 "
        "left join knowledge_nodes b on b.type = 'beacon' and b.id = i.via"
    )
    agents, diffs, vias = copy_out.copy_out(connection, query, readers)
    return InboxKeys(agents=agents, diffs=diffs, vias=vias)
