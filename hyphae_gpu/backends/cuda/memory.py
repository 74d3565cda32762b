"""What a wave needs of a device's memory, and so how many diffs are propagated at once."""

from __future__ import annotations

from dataclasses import dataclass

from hyphae_gpu.backends.cuda.mirrors import CHUNK
from hyphae_gpu.backends.cuda.wave import Room
from hyphae_gpu.errors import DeviceError

GIB = 1 << 30
#: What to do where memory does not suffice.
REMEDY = "use a device with more memory or --device cpu"
#: Bytes a node beside its image: length, interest row, offset.
_NODE_BYTES = 8 + 4 + 8
#: Bytes an edge: target, cost, type, bandwidth.
_EDGE_BYTES = 4 + 4 + 1 + 4
#: Bytes a diff beside its image: the columns of `Diffs`, of the state and of the counters.
_DIFF_BYTES = 128
#: Bytes a (diff, node) pair looked at: a slot's columns, its places in two lists and in a table that is at least a
#: quarter full; and at the end the sort of the pairs and the state that is made of them. Growing needs less than that.
_PAIR_BYTES = (40 + 8 + 64) + 112
#: Bytes an edge of the frontier: its place in the table and its key for the fanout.
_PENDING_BYTES = 4 + 8
#: The share of the pairs that the widest frontier holds, as one in so many.
_FRONTIER_SHARE = 4
#: The share of what is free that a plan uses; the rest is for torch's rounding and for others.
_USED = 0.9


@dataclass(frozen=True, kw_only=True)
class Plan:
    """How many diffs are propagated at once, the room they start with, and the bytes of the graph and of a diff."""

    batch: int
    room: Room
    graph_bytes: int
    diff_bytes: int


def graph_bytes(*, nodes: int, edges: int, dimension: int) -> int:
    """Return the bytes that the nodes' and edges' columns take on the device."""
    return nodes * (_row_bytes(dimension) + _NODE_BYTES) + edges * _EDGE_BYTES


def plan(*, nodes: int, edges: int, dimension: int, diffs: int, free_bytes: int, pairs_a_diff: int) -> Plan:
    """Choose a batch for a graph that is still to be brought to a device with so many bytes free.

    pairs_a_diff: how many nodes a diff is expected to look at; at most all count. Raises DeviceError, naming what would
    fit, where the graph or a single diff does not.
    """
    graph = graph_bytes(nodes=nodes, edges=edges, dimension=dimension)
    pairs = max(1, min(pairs_a_diff, nodes))
    degree = edges / max(1, nodes)
    pending = int(pairs / _FRONTIER_SHARE * degree) + 1
    diff = _row_bytes(dimension) + _DIFF_BYTES + pairs * _PAIR_BYTES + pending * _PENDING_BYTES
    left = int(free_bytes * _USED) - graph
    if left < diff:
        raise DeviceError(_refusal(nodes, edges, dimension, graph, diff, free_bytes))
    batch = min(max(1, diffs), left // diff)
    return Plan(
        batch=batch,
        room=Room(slots=batch * pairs, pending=batch * pending),
        graph_bytes=graph,
        diff_bytes=diff,
    )


def _refusal(nodes: int, edges: int, dimension: int, graph: int, diff: int, free_bytes: int) -> str:
    """Say what does not fit and what would."""
    needed = (graph + diff) / _USED
    what = f"{nodes} nodes of {dimension} dimensions with {edges} edges need {needed / GIB:.1f} GiB"
    a_node = _row_bytes(dimension) + _NODE_BYTES + _EDGE_BYTES * edges / max(1, nodes)
    fitting = max(0, int((free_bytes * _USED - diff) / a_node))
    free = f"{free_bytes / GIB:.1f} GiB are free"
    return f"device cuda: {what}, {free}: about {fitting} nodes like these would fit; {REMEDY}"


def _row_bytes(dimension: int) -> int:
    return -(-dimension // CHUNK) * CHUNK
