"""What one epoch changed, in one transaction (spec 8.3): a reader sees the epoch before it or after it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from psycopg.types.json import Jsonb

from hyphae_gpu.emerged import REASONS, ContradictionTable, Resolved, Supersessions
from hyphae_gpu.errors import DatabaseError
from hyphae_gpu.state import Checkpoint, DiffTable, EdgeTable, InboxTable
from hyphae_gpu.store import copy, copy_out
from hyphae_gpu.store.arrays import save_index
from hyphae_gpu.store.copy_in import copy_in, slices, sorted_unique
from hyphae_gpu.store.new_nodes import add_nodes, add_promotions
from hyphae_gpu.store.numbering import RESERVED_BEACON
from hyphae_gpu.store.postgres import Connection
from hyphae_gpu.store.scenes import write_scenes
from hyphae_gpu.vocabulary import DiffType, EdgeKind, EdgeType, KnowledgeType, names

_KEY = ["src", "tgt", "type"]


def write_checkpoint(connection: Connection, done: Checkpoint) -> None:
    """Write an epoch within the caller's transaction; raises DatabaseError unless it is the next one."""
    last = connection.execute("select coalesce(max(epoch), 0) from epochs").fetchone()
    if last is None or done.epoch != last[0] + 1:
        raise DatabaseError(f"checkpoint of epoch {done.epoch}, but the store has seen {last and last[0]} epochs")
    connection.execute("update knowledge_nodes set pending = null where pending is not null")
    add_nodes(connection, done.new_nodes, done.as_of, done.first_new_node)
    _move(connection, done)
    _touch(connection, done)
    _age_diffs(connection, done.ended_diffs)
    _add_diffs(connection, done.new_diffs)
    _change_edges(connection, done.removed_edges, done.written_edges)
    _add_inbox(connection, done)
    for layer, index in done.indexes.items():
        save_index(connection, layer, index)
    _supersede(connection, done.superseded)
    _add_contradictions(connection, done.contradictions, done.epoch)
    _resolve(connection, done.resolved)
    write_scenes(connection, done.scenes, done.epoch)
    add_promotions(connection, done.promotions, done.epoch)
    connection.execute(
        "insert into epochs values (%s, to_timestamp(0) + %s * interval '1 microsecond', "
        "to_timestamp(0) + %s * interval '1 microsecond', %s, %s, %s)",
        [done.epoch, done.started_at, done.as_of, Jsonb(done.seconds), Jsonb(done.counts), done.state_hash],
    )
    connection.execute(
        "insert into meta values ('settings', %s) on conflict (key) do update set value = excluded.value",
        [Jsonb(done.settings)],
    )


def _move(connection: Connection, done: Checkpoint) -> None:
    """Set the new positions of the nodes that moved, and take those of nodes that have none any more."""
    if len(done.displaced):
        gone = done.displaced.tolist()
        connection.execute("update knowledge_nodes set embedding = null where num = any(%s)", [gone])
    count, dimension = done.moved_vectors.shape
    if not count:
        return
    connection.execute(
        "create temp table moved on commit drop as select num, embedding from knowledge_nodes with no data"
    )
    parts = ([copy.int64(done.moved[p]), copy.vectors(done.moved_vectors[p])] for p in slices(count, dimension))
    copy_in(connection, "moved", ["num", "embedding"], parts, "checkpoint.moved")
    connection.execute("update knowledge_nodes n set embedding = m.embedding from moved m where n.num = m.num")


def _touch(connection: Connection, done: Checkpoint) -> None:
    """Set last_access where it changed."""
    if not len(done.accessed):
        return
    connection.execute("create temp table accessed (num bigint, at timestamptz) on commit drop")
    fields = [copy.int64(done.accessed), copy.timestamps(done.accessed_at)]
    copy_in(connection, "accessed", ["num", "at"], [fields], "checkpoint.accessed")
    connection.execute("update knowledge_nodes n set last_access = a.at from accessed a where n.num = a.num")


def _age_diffs(connection: Connection, ended: npt.NDArray[np.int64]) -> None:
    """Take one epoch off every live diff, and all of them off those that ended early."""
    connection.execute("update memory_diffs set ttl = ttl - 1 where ttl > 0")
    if len(ended):
        connection.execute("create temp table ended (num bigint) on commit drop")
        copy_in(connection, "ended", ["num"], [[copy.int64(ended)]], "checkpoint.ended")
        connection.execute("update memory_diffs d set ttl = 0 from ended e where d.num = e.num and d.ttl > 0")


def _ids_of(connection: Connection, numbers: npt.NDArray[Any]) -> tuple[npt.NDArray[np.int64], pa.ChunkedArray]:
    """Return the distinct numbers, ascending, and their nodes' ids."""
    distinct = sorted_unique([numbers])
    connection.execute("create temp table named (num bigint primary key) on commit drop")
    copy_in(connection, "named", ["num"], [[copy.int64(distinct)]], "checkpoint.ids")
    query = "select n.id from named w join knowledge_nodes n using (num) order by w.num"
    [ids] = copy_out.copy_out(connection, query, [copy_out.strings()])
    connection.execute("drop table named")
    if len(ids) != len(distinct):
        raise DatabaseError(f"the checkpoint names {len(distinct) - len(ids)} nodes that the store does not hold")
    return distinct, ids


def _add_diffs(connection: Connection, diffs: DiffTable) -> None:
    """Add the epoch's diffs; a diff's id is its origin's id, ``#``, and its sequence number there."""
    if not len(diffs):
        return
    distinct, ids = _ids_of(connection, diffs.origins)
    origins = pc.take(ids, pa.array(np.searchsorted(distinct, diffs.origins)))
    made = pc.binary_join_element_wise(
        origins, pa.array(diffs.sequence).cast(pa.large_string()), pa.scalar("#", pa.large_string())
    )
    made = pa.concat_arrays(made.chunks)
    columns = [
        "num",
        "id",
        "origin",
        "seq",
        "diff_type",
        "knowledge_type",
        "salience",
        "energy",
        "units",
        "max_hops",
        "ttl",
        "epoch_created",
        "embedding",
    ]
    parts = (
        [
            copy.int64(diffs.numbers[p]),
            copy.text(made[p.start : p.stop]),
            copy.int64(diffs.origins[p]),
            copy.int32(diffs.sequence[p]),
            copy.words(diffs.types[p], names(DiffType)),
            copy.words(diffs.knowledge_types[p], names(KnowledgeType)),
            copy.float32(diffs.saliences[p]),
            copy.float32(diffs.energies[p]),
            copy.int32(diffs.units[p]),
            copy.int32(diffs.max_hops[p]),
            copy.int32(diffs.ttl[p]),
            copy.int32(diffs.epoch_created[p]),
            copy.vectors(diffs.vectors[p]),
        ]
        for p in slices(len(diffs), diffs.vectors.shape[1])
    )
    copy_in(connection, "memory_diffs", columns, parts, "checkpoint.diffs")


def _key_fields(edges: EdgeTable) -> list[copy.Field]:
    return [copy.int64(edges.sources), copy.int64(edges.targets), copy.words(edges.types, names(EdgeType))]


def _change_edges(connection: Connection, removed: EdgeTable, written: EdgeTable) -> None:
    """Delete the edges that are gone or changed, then copy those that came or changed."""
    held = connection.execute("select exists (select from topology_edges where not given)").fetchone()
    if held is not None and held[0] and len(removed) + len(written):
        connection.execute("create temp table stale (src bigint, tgt bigint, type text) on commit drop")
        for edges, point in ((removed, "checkpoint.removed"), (written, "checkpoint.written")):
            copy_in(connection, "stale", _KEY, [_key_fields(edges)], point)
        connection.execute("analyze stale")
        connection.execute(
            "delete from topology_edges e using stale s "
            "where e.src = s.src and e.tgt = s.tgt and e.type = s.type and not e.given"
        )
    if not len(written):
        return
    raised = dict(connection.execute("select num, layer from knowledge_nodes where layer > 0"))
    numbers = np.array(sorted(raised), np.int64)
    layers = np.zeros(len(written), np.int16)
    if len(numbers):
        place = np.minimum(np.searchsorted(numbers, written.sources), len(numbers) - 1)
        layers = np.where(numbers[place] == written.sources, np.array([raised[n] for n in numbers])[place], 0)
    fields = [
        *_key_fields(written),
        copy.words(np.where(written.kinds == EdgeKind.NONE, -1, written.kinds), names(EdgeKind)),
        copy.int16(layers),
        copy.float32(written.weights),
        copy.int32(written.bandwidths, written.bandwidths >= 0),
        copy.boolean(np.zeros(len(written), np.bool_)),
    ]
    columns = [*_KEY, "kind", "layer", "weight", "bandwidth", "given"]
    copy_in(connection, "topology_edges", columns, [fields], "checkpoint.edges")


def _add_inbox(connection: Connection, done: Checkpoint) -> None:
    """Add the epoch's inbox entries; one that is there already fails the whole checkpoint."""
    inbox: InboxTable = done.inbox
    count = len(inbox)
    if not count:
        return
    through, ids = _ids_of(connection, inbox.vias)
    words = [RESERVED_BEACON, *ids.to_pylist()]
    place = np.where(inbox.vias < 0, 0, np.searchsorted(through, inbox.vias) + 1)
    fields = [
        copy.int64(inbox.agents),
        copy.int64(inbox.diffs),
        copy.words(place, words),
        copy.int32(np.full(count, done.epoch)),
        copy.int32(inbox.hops),
        copy.float32(inbox.energies),
        copy.float64(inbox.scores),
        copy.int64(inbox.resonances),
        copy.float64(inbox.relevances, ~np.isnan(inbox.relevances)),
        copy.reference(inbox.parents),
        copy.int32(inbox.places),
        copy.reference(inbox.throughs),
        copy.bigints(inbox.path_offsets, inbox.paths),
    ]
    columns = [
        "agent", "diff", "via", "epoch", "hop", "energy", "score", "resonance", "relevance", "parent",
        "place", "through", "path",
    ]  # fmt: skip
    copy_in(connection, "inbox", columns, [fields], "checkpoint.inbox")


def _supersede(connection: Connection, superseded: Supersessions) -> None:
    """Note by whom cells are superseded, and that an epoch has told of it (spec 6.6)."""
    connection.execute("create temp table beaten (num bigint, winner bigint) on commit drop")
    fields = [copy.int64(superseded.losers), copy.int64(superseded.winners)]
    copy_in(connection, "beaten", ["num", "winner"], [fields], "checkpoint.superseded")
    connection.execute(
        "update knowledge_nodes n set superseded_by = b.winner, told_superseded = b.winner "
        "from beaten b where n.num = b.num"
    )


def _add_contradictions(connection: Connection, raised: ContradictionTable, epoch: int) -> None:
    """Add the epoch's contradictions; a pair that is there already fails the whole checkpoint (spec 6.2)."""
    fields = [
        copy.int64(raised.a),
        copy.int64(raised.b),
        copy.float64(raised.similarities),
        copy.words(raised.reasons, REASONS),
        copy.int32(np.full(len(raised), epoch)),
        copy.words(np.where(raised.open, 0, 1), ("open", "resolved")),
        _json(raised.resolutions),
    ]
    columns = ["a", "b", "similarity", "reason", "epoch", "status", "resolution"]
    copy_in(connection, "contradictions", columns, [fields], "checkpoint.contradictions")


def _resolve(connection: Connection, resolved: Resolved) -> None:
    """Close contradictions of earlier epochs (spec 6.3)."""
    connection.execute("create temp table settled (a bigint, b bigint, resolution jsonb) on commit drop")
    fields = [copy.int64(resolved.a), copy.int64(resolved.b), _json(resolved.resolutions)]
    copy_in(connection, "settled", ["a", "b", "resolution"], [fields], "checkpoint.resolved")
    connection.execute(
        "update contradictions c set status = 'resolved', resolution = s.resolution from settled s "
        "where least(c.a, c.b) = s.a and greatest(c.a, c.b) = s.b"
    )


def _json(values: Sequence[dict[str, Any] | None]) -> copy.Field:
    texts = [None if value is None else json.dumps(value) for value in values]
    return copy.jsonb(pa.array(texts, pa.large_string()))
