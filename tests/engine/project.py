"""A project held in Python dicts: what rows and checkpoints mean to a store, without one (`engine.Project`)."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np

from hyphae_gpu.emerged import ContradictionTable, KnownPairs, PromotedKeys, PromotionTable, Resolved, SceneTable
from hyphae_gpu.state import (
    PENDING_CREATED,
    PENDING_PATTERN,
    PENDING_SILENT,
    PENDING_UPDATED,
    SETTLED,
    AccessLog,
    Checkpoint,
    DiffTable,
    EdgeTable,
    InboxKeys,
    InboxTable,
    IndexArrays,
    NodeTable,
    SwarmState,
)
from hyphae_gpu.vocabulary import EdgeKind, EdgeType, KnowledgeType, NodeType

DAY = 86_400_000_000
#: When everything happens that does not say when.
START = 1_767_225_600_000_000

_NODE = {
    "types": (np.int8, NodeType.CELL),
    "layers": (np.int8, 0),
    "placed": (np.bool_, True),
    "knowledge_types": (np.int8, -1),
    "saliences": (np.float32, 0.0),
    "makers": (np.int32, -1),
    "created_at": (np.int64, START),
    "last_access": (np.int64, START),
    "superseded_by": (np.int32, -1),
    "told_superseded": (np.int32, -1),
    "made_of": (np.int32, -1),
    "pending": (np.int8, PENDING_SILENT),
    "radii": (np.float64, np.nan),
    "quarantined": (np.bool_, False),
    "claim_subjects": (np.int32, -1),
    "claim_values": (np.int32, -1),
    "stances": (np.float32, np.nan),
}
_SCENE = {"numbers": np.int32, "sizes": np.int32, "epochs": np.int32}
_DIFF = (
    np.int64, np.int32, np.int32, np.int8, np.int8, np.float32, np.float32, np.float32, np.int32, np.int32, np.int32,
    np.int32,
)  # fmt: skip
_EDGE = (np.int32, np.int32, np.int8, np.int8, np.float32, np.int32)


class Project:
    """A project that rows are put into by name, and that `run_epochs` runs."""

    def __init__(self, dimension: int = 3) -> None:
        self.dimension = dimension
        self.numbers: dict[str, int] = {}
        self.words: dict[str, int] = {}
        self.contradictions: dict[tuple[int, int], dict[str, Any]] = {}
        self.nodes: list[dict[str, Any]] = []
        self.accesses: set[tuple[int, int, int]] = set()
        self.declared: dict[tuple[int, int, int], tuple[Any, ...]] = {}
        self.topology: dict[tuple[int, int, int], tuple[Any, ...]] = {}
        self.diffs: dict[int, dict[str, Any]] = {}
        self.inbox: dict[tuple[int, int, int], dict[str, Any]] = {}
        self.epochs: list[Checkpoint] = []
        self.scenes: dict[int, dict[str, Any]] = {}
        self.home: dict[int, int] = {}
        self.promotions: dict[tuple[int, int], dict[str, Any]] = {}
        self.indexes = [IndexArrays.empty(dimension) for _ in range(3)]

    def _add(self, name: str, vector: Any, **given: Any) -> int:
        interests = np.zeros(9, np.float32)
        for word, value in given.pop("interests", {}).items():
            interests[KnowledgeType[word.upper()]] = value
        placed = vector is not None
        node = {key: value for key, (_, value) in _NODE.items()}
        node |= {"vectors": vector if placed else [0.0] * self.dimension, "placed": placed, "interests": interests}
        self.numbers[name] = len(self.nodes)
        self.nodes.append(node | given)
        return self.numbers[name]

    def agent(self, name: str, vector: Any = None, **interests: float) -> int:
        return self._add(name, vector, types=NodeType.AGENT, interests=interests)

    def beacon(self, name: str, owner: str, vector: Any, *, radius: float = np.nan, **interests: float) -> int:
        maker = self.numbers[owner]
        return self._add(name, vector, types=NodeType.BEACON, makers=maker, interests=interests, radii=radius)

    def cell(
        self,
        name: str,
        vector: Any,
        *,
        by: str | None = None,
        kind: str = "fact",
        salience: float = 0.9,
        at: int = START,
        supersedes: str | None = None,
        claim: tuple[str, str] | None = None,
        stance: float = np.nan,
        silent: bool = False,
    ) -> int:
        """A row of a cell, new or given again with other content."""
        content = {
            "vectors": vector,
            "knowledge_types": KnowledgeType[kind.upper()],
            "saliences": salience,
            "makers": -1 if by is None else self.numbers[by],
            "claim_subjects": self._code(claim[0]) if claim else -1,
            "claim_values": self._code(claim[1]) if claim else -1,
            "stances": stance,
        }
        if name in self.numbers:
            node = self.nodes[self.numbers[name]]
            silently = node["pending"] or PENDING_SILENT
            waits = node["pending"] == PENDING_CREATED
            node |= content | {"pending": PENDING_CREATED if waits else silently if silent else PENDING_UPDATED}
        else:
            pending = PENDING_SILENT if silent else PENDING_CREATED
            self._add(name, vector, created_at=at, last_access=at, **content, pending=pending)
        if by is not None:
            self.access(by, name, at)
        if supersedes is not None and self.nodes[self.numbers[supersedes]]["superseded_by"] < 0:
            self.nodes[self.numbers[supersedes]]["superseded_by"] = self.numbers[name]
        return self.numbers[name]

    def _code(self, word: str) -> int:
        return self.words.setdefault(word, len(self.words))

    def access(self, agent: str, cell: str, at: int = START) -> None:
        self.accesses.add((self.numbers[agent], self.numbers[cell], at))

    def edge(self, source: str, target: str, weight: float = 1.0, *, bandwidth: int = -1, causal: bool = True) -> None:
        edge_type, kind = (EdgeType.CAUSAL, EdgeKind.DECLARED) if causal else (EdgeType.SEMANTIC, EdgeKind.NEAR)
        key = (self.numbers[source], self.numbers[target], int(edge_type))
        self.declared[key] = (int(kind), weight, bandwidth)

    def load(self) -> SwarmState:
        """spec 8.3: the project as the last whole epoch left it, with the rows that came since."""
        columns: dict[str, Any] = {
            key: np.array([node[key] for node in self.nodes], dtype) for key, (dtype, _) in _NODE.items()
        }
        count = len(self.nodes)
        columns["vectors"] = np.array([node["vectors"] for node in self.nodes], np.float32).reshape(count, -1)
        columns["interests"] = np.array([node["interests"] for node in self.nodes], np.float32).reshape(count, 9)
        log = np.array(sorted(self.accesses), np.int64).reshape(-1, 3)
        live = [self.diffs[number] for number in sorted(self.diffs) if self.diffs[number]["ttl"] > 0]
        sequences = np.zeros(count, np.int32)
        for diff in self.diffs.values():
            sequences[diff["origins"]] += 1
        held = [key for key in self.inbox if self.diffs[key[1]]["ttl"] > 0]
        keys = np.array(held, np.int64).reshape(-1, 3)
        return SwarmState(
            epoch=len(self.epochs),
            dimension=self.dimension,
            nodes=NodeTable(**columns),
            accesses=AccessLog(agents=log[:, 0].astype(np.int32), cells=log[:, 1].astype(np.int32), at=log[:, 2]),
            declared=edge_table(self.declared),
            topology=edge_table(self.topology),
            diffs=self._diff_table(live),
            next_diff=max(self.diffs, default=-1) + 1,
            sequences=sequences,
            delivered=InboxKeys(agents=keys[:, 0].astype(np.int32), diffs=keys[:, 1], vias=keys[:, 2].astype(np.int32)),
            indexes=list(self.indexes),
            contradictions=self._known_pairs(),
            scenes=self._scene_table(),
            node_scenes=np.array([self.home.get(node, -1) for node in range(count)], np.int32),
            promoted=self._promoted_keys(),
        )

    def _known_pairs(self) -> KnownPairs:
        pairs = sorted(self.contradictions)
        columns = np.array(pairs, np.int32).reshape(-1, 2)
        unresolved = np.array([self.contradictions[pair]["open"] for pair in pairs], np.bool_)
        return KnownPairs(a=columns[:, 0].copy(), b=columns[:, 1].copy(), open=unresolved)

    def _promoted_keys(self) -> PromotedKeys:
        alive = [(diff, layer) for diff, layer in self.promotions if self.diffs[diff]["ttl"] > 0]
        return PromotedKeys(
            diffs=np.array([diff for diff, _ in alive], np.int64),
            layers=np.array([layer for _, layer in alive], np.int8),
        )

    def _scene_table(self) -> SceneTable:
        alive = [row for _, row in sorted(self.scenes.items()) if not row["ended"]]
        columns = {name: np.array([row[name] for row in alive], dtype) for name, dtype in _SCENE.items()}
        return SceneTable(**columns, names=[row["names"] for row in alive])

    def _diff_table(self, diffs: list[dict[str, Any]]) -> DiffTable:
        columns = {
            spec.name: np.array([diff[spec.name] for diff in diffs], dtype)
            for spec, dtype in zip(fields(DiffTable), _DIFF, strict=True)
        }
        columns["vectors"] = columns["vectors"].reshape(len(diffs), self.dimension)
        return DiffTable(**columns)

    def checkpoint(self, done: Checkpoint) -> None:
        """Write an epoch; refuses one that a store would refuse."""
        assert done.epoch == len(self.epochs) + 1
        for node in self.nodes:
            node["pending"] = SETTLED
        self._add_made(done)
        for node in done.displaced.tolist():
            self.nodes[node]["placed"] = False
        for agent, vector in zip(done.moved, done.moved_vectors, strict=True):
            self.nodes[agent] |= {"vectors": vector.tolist(), "placed": True}
        for node, at in zip(done.accessed.tolist(), done.accessed_at.tolist(), strict=True):
            self.nodes[node]["last_access"] = at
        for diff in self.diffs.values():
            diff["ttl"] = max(0, diff["ttl"] - 1)
        for number in set(done.ended_diffs.tolist()) - set(done.new_diffs.numbers.tolist()):
            self.diffs[number]["ttl"] = 0
        for diff in records(done.new_diffs):
            assert diff["numbers"] not in self.diffs
            self.diffs[diff["numbers"]] = diff
        for key in edge_rows(done.removed_edges):
            del self.topology[key]
        self.topology |= edge_rows(done.written_edges)
        for row in records(done.contradictions):
            assert (row["a"], row["b"]) not in self.contradictions, "a contradiction was raised twice"
            self.contradictions[row["a"], row["b"]] = row | {"epoch": done.epoch}
        for row in records(done.resolved):
            known = self.contradictions[row["a"], row["b"]]
            assert known["open"], "a contradiction was resolved twice"
            known |= {"open": False, "resolutions": row["resolutions"]}
        for loser, winner in zip(done.superseded.losers.tolist(), done.superseded.winners.tolist(), strict=True):
            self.nodes[loser] |= {"superseded_by": winner, "told_superseded": winner}
        self.home |= dict(zip(done.scenes.nodes.tolist(), done.scenes.scenes.tolist(), strict=True))
        written = done.scenes.written
        for row, number in enumerate(written.numbers.tolist()):
            told = {name: getattr(written, name)[row] for name in (*_SCENE, "names")}
            self.scenes[number] = told | {"ended": False}
        for number in done.scenes.ended.tolist():
            self.scenes[number]["ended"] = True
        for entry in records(done.inbox):
            key = (entry["agents"], entry["diffs"], entry["vias"])
            assert key not in self.inbox, "an inbox entry was written twice"
            self.inbox[key] = entry | {"epoch": done.epoch}
        for row in records(done.promotions):
            assert (row["diffs"], row["layers"]) not in self.promotions, "a promotion was recorded twice"
            self.promotions[row["diffs"], row["layers"]] = row | {"epoch": done.epoch}
        self.indexes = [done.indexes.get(layer, kept) for layer, kept in enumerate(self.indexes)]
        self.epochs.append(done)

    def _add_made(self, done: Checkpoint) -> None:
        """The nodes that the epoch made; their names are their kinds and numbers."""
        made = done.new_nodes
        for row in range(len(made)):
            vector = made.vectors[row].tolist()
            pattern = bool(made.patterns[row])
            kind = "scene" if made.types[row] == NodeType.SCENE else "pattern" if pattern else "promoted"
            columns = ("types", "layers", "knowledge_types", "saliences", "makers", "made_of")
            given = {name: getattr(made, name)[row].item() for name in columns}
            given |= {"created_at": done.as_of, "last_access": done.as_of}
            given["pending"] = PENDING_PATTERN if pattern else SETTLED
            assert len(self.nodes) == done.first_new_node + row
            self._add(f"{kind} {len(self.nodes)}", vector if any(vector) else None, **given)

    def texts(self, numbers: np.ndarray) -> list[str | None]:
        """No node has a text."""
        return [None for _ in numbers]

    def named_scenes(self) -> dict[int, str]:
        """The scenes there are, number -> name."""
        return {number: row["names"] for number, row in self.scenes.items() if not row["ended"]}

    def received(self, agent: str, epoch: int | None = None) -> list[tuple[str, str]]:
        """What lies in an agent's inbox, as (origin, via), by epoch, via and place."""
        names = {number: name for name, number in self.numbers.items()}
        mine = [e for e in self.inbox.values() if e["agents"] == self.numbers[agent] and epoch in (None, e["epoch"])]
        mine.sort(key=lambda entry: (entry["epoch"], entry["vias"], entry["places"]))
        return [(names[self.diffs[entry["diffs"]]["origins"]], names.get(entry["vias"], "gossip")) for entry in mine]

    def raised(self) -> dict[tuple[str, str], tuple[int, bool]]:
        """The contradictions, as (cell, cell) by number -> (epoch, open)."""
        names = {number: name for name, number in self.numbers.items()}
        return {(names[a], names[b]): (row["epoch"], row["open"]) for (a, b), row in self.contradictions.items()}

    def alive(self) -> list[tuple[str, int, int]]:
        """The live diffs, as (origin, diff type, epochs left), by number."""
        names = {number: name for name, number in self.numbers.items()}
        return [
            (names[diff["origins"]], diff["types"], diff["ttl"])
            for _, diff in sorted(self.diffs.items())
            if diff["ttl"] > 0
        ]


def records(table: DiffTable | InboxTable | ContradictionTable | Resolved | PromotionTable) -> list[dict[str, Any]]:
    """A table's rows as dicts of Python values."""
    apart = ("path_offsets", "paths")
    given = {spec.name: getattr(table, spec.name) for spec in fields(table) if spec.name not in apart}
    columns = {
        name: [one.tolist() if isinstance(one, np.ndarray) else one for one in column]
        if isinstance(column, list)
        else column.tolist()
        for name, column in given.items()
    }
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def edge_rows(table: EdgeTable) -> dict[tuple[int, int, int], tuple[Any, ...]]:
    """Edges as (source, target, type) -> (kind, weight, bandwidth)."""
    columns = [getattr(table, spec.name).tolist() for spec in fields(EdgeTable)]
    return {(s, t, of_type): tuple(rest) for s, t, of_type, *rest in zip(*columns, strict=True)}


def edge_table(rows: dict[tuple[int, int, int], tuple[Any, ...]]) -> EdgeTable:
    """The same the other way round, sorted by key."""
    whole = [(*key, *rows[key]) for key in sorted(rows)]
    columns = zip(*whole, strict=True) if whole else [()] * len(_EDGE)
    return EdgeTable(
        **{
            spec.name: np.array(list(column), dtype)
            for spec, dtype, column in zip(fields(EdgeTable), _EDGE, columns, strict=True)
        }
    )
