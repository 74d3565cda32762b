"""Cells that say opposite things and were brought together by gossip (spec 6.2)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hyphae_gpu.arrays import F64, I8, I32, I64, Flags
from hyphae_gpu.backends.protocol import Backend
from hyphae_gpu.emerged import REASONS, KnownPairs, Resolved
from hyphae_gpu.errors import UsageError
from hyphae_gpu.state import NodeTable
from hyphae_gpu.swarm import LEAST_STANCE, Deliveries, Diffs, Sides
from hyphae_gpu.vocabulary import DiffType, NodeType

#: The least probability that a verifier's yes has (spec 6.2 c).
LEAST_PROBABILITY = 0.5
#: Text pairs, at most, that a verifier gets at once.
VERIFIER_BATCH = 1024
CLAIM, STANCE, VERIFIER = range(len(REASONS))

#: From a batch of text pairs to the probability of each that the two contradict each other.
Verifier = Callable[[Sequence[tuple[str, str]]], Sequence[float]]
#: From node numbers int32 to their texts, None where there is none.
Texts = Callable[[I32], Sequence[str | None]]


@dataclass(frozen=True, kw_only=True)
class Pairs:
    """Pairs of cells that oppose each other, each once, sorted by (a, b).

    a, b int32 node numbers, a < b; similarities float64, their cosine; reasons int8, places in `state.REASONS`: the
    first of spec 6.2's a, b, c that holds; hops int32: the least after which a diff of one reached the other (a
    measurement, as any hop is: spec 3.7).
    """

    a: I32
    b: I32
    similarities: F64
    reasons: I8
    hops: I32

    def __len__(self) -> int:
        return len(self.a)


class Meetings:
    """What a wave's deliveries bring together (spec 6.2): `add` every batch, then ask for the pairs that oppose.

    nodes: all nodes; images int8 [n, d] and lengths float64 [n] as `swarm.Nodes` has them; live bool [n]: which nodes
    are live cells. Without a verifier only cells with a claim or a stance that some other cell could oppose cost
    anything. The answer does not depend on how deliveries are cut into batches, nor on their order.
    """

    def __init__(
        self,
        nodes: NodeTable,
        images: npt.NDArray[np.int8],
        lengths: F64,
        live: Flags,
        *,
        theta_sim: float,
        backend: Backend,
        verifier: Verifier | None = None,
        texts: Texts | None = None,
    ) -> None:
        if verifier is not None and texts is None:
            raise ValueError("a verifier judges texts: give Meetings the texts as well")
        self._nodes, self._images, self._lengths, self._live = nodes, images, lengths, live
        self._theta, self._backend = theta_sim, backend
        self._verifier, self._texts = verifier, texts
        # a verifier can call any two cells opposite
        self._sides = _sides(nodes) if verifier is None else None
        self._listening = live if verifier is not None else live & could_oppose(nodes, live)
        self._keys: list[I64] = []
        self._similarities: list[F64] = []
        self._hops: list[I32] = []

    def add(self, diffs: Diffs, found: Deliveries) -> None:
        """Look at a batch: the cells of its `created` and `updated` diffs meet the live cells that these reached."""
        if not self._listening.any():
            return
        nodes = found.nodes.cpu().numpy()
        rows = np.flatnonzero(self._listening[nodes])
        which = diffs.rows_of(found.diffs[rows]).cpu().numpy()
        origins, met = diffs.origins.cpu().numpy()[which], nodes[rows]
        meets = self._speaking(diffs)[which] & (origins != met)
        rows, origins, met = rows[meets], origins[meets], met[meets]
        near, similarities = self._backend.opposing(self._images, self._lengths, self._sides, origins, met, self._theta)
        hops = found.hops.cpu().numpy()[rows[near]]
        keys, hops, similarities = _soonest(self._key(origins[near], met[near]), hops, similarities)
        self._keys.append(keys)
        self._similarities.append(similarities)
        self._hops.append(hops)

    def opposing(self, known: KnownPairs) -> Pairs:
        """Return the pairs met so far that oppose each other and were not raised before."""
        keys, hops, similarities = _soonest(
            np.concatenate([np.zeros(0, np.int64), *self._keys]),
            np.concatenate([np.zeros(0, np.int32), *self._hops]),
            np.concatenate([np.zeros(0), *self._similarities]),
        )
        fresh = ~np.isin(keys, self._key(known.a, known.b))
        keys, similarities, hops = keys[fresh], similarities[fresh], hops[fresh]
        a, b = self._of(keys)
        reasons = opposition(self._nodes, a, b, verifier=self._verifier, texts=self._texts)
        opposed = reasons >= 0
        return Pairs(
            a=a[opposed],
            b=b[opposed],
            similarities=similarities[opposed],
            reasons=reasons[opposed],
            hops=hops[opposed],
        )

    def _speaking(self, diffs: Diffs) -> Flags:
        """Return which diffs bring their cell before others: `created` and `updated` ones of cells that may oppose."""
        origins = diffs.origins.cpu().numpy()
        news = np.isin(diffs.types.cpu().numpy(), (DiffType.CREATED, DiffType.UPDATED))
        speaking: Flags = news & (self._nodes.types[origins] == NodeType.CELL) & self._listening[origins]
        return speaking

    def _key(self, one: I32, other: I32) -> I64:
        keys: I64 = np.minimum(one, other).astype(np.int64) * len(self._nodes) + np.maximum(one, other)
        return keys

    def _of(self, keys: I64) -> tuple[I32, I32]:
        count = max(1, len(self._nodes))
        return (keys // count).astype(np.int32), (keys % count).astype(np.int32)


def _sides(nodes: NodeTable) -> Sides:
    return Sides(subjects=nodes.claim_subjects, values=nodes.claim_values, stances=nodes.stances)


def could_oppose(nodes: NodeTable, live: Flags) -> Flags:
    """Return which live cells have a claim on a subject that others of them claim too, or take a side; bool [n]."""
    claims = live & (nodes.claim_subjects >= 0) & (nodes.claim_values >= 0)
    counts = np.bincount(nodes.claim_subjects[claims], minlength=1)
    could: Flags = live & (np.abs(nodes.stances) >= LEAST_STANCE)
    could[claims] |= counts[nodes.claim_subjects[claims]] > 1
    return could


def opposition(nodes: NodeTable, a: I32, b: I32, *, verifier: Verifier | None = None, texts: Texts | None = None) -> I8:
    """Return why cells a[i] and b[i] oppose each other, int8 [m], places in `state.REASONS`; -1: they do not (6.2).

    The verifier is asked about those pairs only that have two texts and do not oppose by claim or stance; the text of
    a[i] comes first. Raises UsageError where its answer is not one probability a pair.
    """
    reasons = _by_rule(nodes, a, b)
    open_ = np.flatnonzero(reasons < 0)
    if verifier is None or texts is None or not len(open_):
        return reasons
    pairs = list(zip(texts(a[open_]), texts(b[open_]), strict=True))
    rows = [row for row, pair in enumerate(pairs) if None not in pair]
    for start in range(0, len(rows), VERIFIER_BATCH):
        some = rows[start : start + VERIFIER_BATCH]
        said = probabilities(verifier, [(str(pairs[row][0]), str(pairs[row][1])) for row in some])
        reasons[open_[some]] = np.where(said >= LEAST_PROBABILITY, VERIFIER, -1)
    return reasons


def probabilities(verifier: Verifier, pairs: Sequence[tuple[str, str]]) -> F64:
    """Return a verifier's answers as float64 [m]; raises UsageError unless each is a probability."""
    said = np.asarray(verifier(pairs), np.float64)
    if said.shape != (len(pairs),):
        raise UsageError(f"verifier: it gave {said.shape} values for {len(pairs)} text pairs, expected one a pair")
    fine = (said >= 0) & (said <= 1)
    if not fine.all():
        raise UsageError(f"verifier: it gave {said[~fine][0]}, expected a probability from 0 to 1")
    return said


def no_longer_opposed(
    known: KnownPairs,
    nodes: NodeTable,
    images: npt.NDArray[np.int8],
    lengths: F64,
    changed: Flags,
    *,
    theta_sim: float,
    backend: Backend,
    verifier: Verifier | None = None,
    texts: Texts | None = None,
) -> Resolved:
    """Return the open contradictions that are over because a cell was superseded or changed since [ours].

    A superseded cell ends it, whoever superseded it. A changed one (changed bool [n]: cells that rows updated since the
    last epoch) ends it when the two, as they are now, would not be raised. Decay and quarantine end nothing.
    """
    rows = np.flatnonzero(known.open)
    a, b = known.a[rows], known.b[rows]
    gone = (nodes.superseded_by[a] >= 0) | (nodes.superseded_by[b] >= 0)
    asked = np.flatnonzero(~gone & (changed[a] | changed[b]))
    near = backend.cosines(images, lengths, a[asked], b[asked]) >= theta_sim
    opposed = near.copy()
    opposed[near] = opposition(nodes, a[asked[near]], b[asked[near]], verifier=verifier, texts=texts) >= 0
    ends = gone.copy()
    ends[asked] = ~opposed
    resolutions = []
    for one, other, by_rows in zip(a[ends].tolist(), b[ends].tolist(), gone[ends].tolist(), strict=True):
        cells = [cell for cell in (one, other) if (nodes.superseded_by[cell] >= 0 if by_rows else changed[cell])]
        reason = "superseded" if by_rows else "updated: they no longer oppose each other"
        resolutions.append({"cells": cells, "reason": reason})
    return Resolved(a=a[ends], b=b[ends], resolutions=resolutions)


def _soonest(keys: I64, hops: I32, similarities: F64) -> tuple[I64, I32, F64]:
    """Return the distinct keys, ascending, each with its least hop and its similarity."""
    order = np.lexsort((hops, keys))
    distinct, first = np.unique(keys[order], return_index=True)
    return distinct, hops[order][first], similarities[order][first]


def _by_rule(nodes: NodeTable, a: I32, b: I32) -> I8:
    """Return which of spec 6.2 a, b holds for each pair, -1 for none."""
    subjects, values = nodes.claim_subjects, nodes.claim_values
    claims = (subjects[a] == subjects[b]) & (subjects[a] >= 0)
    claims &= (values[a] != values[b]) & (values[a] >= 0) & (values[b] >= 0)
    sides = (np.abs(nodes.stances[a]) >= LEAST_STANCE) & (np.abs(nodes.stances[b]) >= LEAST_STANCE)
    sides &= np.signbit(nodes.stances[a]) != np.signbit(nodes.stances[b])
    return np.where(claims, CLAIM, np.where(sides, STANCE, -1)).astype(np.int8)
