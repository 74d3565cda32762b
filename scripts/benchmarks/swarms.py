"""Made input that behaves like sentence embeddings: topics, sub-topics and stories, the same for the same seed."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from hyphae_gpu.columns import as_tensor
from hyphae_gpu.energies import initial_energy, units
from hyphae_gpu.state import AccessPairs, EdgeTable, NodeTable
from hyphae_gpu.swarm import Diffs
from hyphae_gpu.vectors import lengths, quantise
from hyphae_gpu.vocabulary import DiffType, KnowledgeType, NodeType

F32 = npt.NDArray[np.float32]

SEED = 20_260
TOPICS = 14
SUBTOPICS = 12
#: Mean number of texts that tell of the same thing.
STORY_SIZE = 12
#: Share of a vector's squared length that is common to everything, its topic, its sub-topic, its story. With these
#: about 8 % of pairs have a cosine above 1/3 and 3 % above 1/2, and a diff reaches some 4 % of the nodes, as on short
#: titles of one field embedded by MiniLM.
SHARES = (0.12, 0.35, 0.16, 0.12)
#: How much a share differs from text to text (standard deviation of its logarithm).
SPREAD = 0.35
#: Agents among the nodes; each has interests and accesses.
AGENT_SHARE = 0.01
ACCESSES_AN_AGENT = 20
SALIENCE_THRESHOLD = 0.05
NOW = 1_767_225_600_000_000


def vectors(count: int, dimension: int, rng: np.random.Generator) -> F32:
    """Return unit vectors of texts, float32 [count, dimension]; only element-wise arithmetic, so that they repeat."""
    topic = rng.choice(TOPICS, count, p=_zipf(TOPICS, 0.5))
    subtopic = topic * SUBTOPICS + rng.choice(SUBTOPICS, count, p=_zipf(SUBTOPICS, 0.5))
    stories = max(1, count // STORY_SIZE)
    story = subtopic.astype(np.int64) * stories + rng.integers(0, max(1, stories // (TOPICS * SUBTOPICS)), count)
    _, story = np.unique(story, return_inverse=True)
    centres = (
        _directions(1, dimension, rng),
        _directions(TOPICS, dimension, rng),
        _directions(TOPICS * SUBTOPICS, dimension, rng),
        _directions(int(story.max(initial=0)) + 1, dimension, rng),
    )
    factors = np.exp(SPREAD * rng.standard_normal((count, len(SHARES)), np.float32))
    made = np.sqrt(np.float32(1 - sum(SHARES))) * _directions(count, dimension, rng)
    members = (np.zeros(count, np.int64), topic, subtopic, story)
    for i, (share, centre, member) in enumerate(zip(SHARES, centres, members, strict=True)):
        made += np.sqrt(np.float32(share)) * factors[:, i : i + 1] * centre[member]
    return _unit(made)


def _zipf(count: int, exponent: float) -> npt.NDArray[np.float64]:
    weights = np.arange(1, count + 1, dtype=np.float64) ** -exponent
    shares: npt.NDArray[np.float64] = weights / weights.sum()
    return shares


def _directions(count: int, dimension: int, rng: np.random.Generator) -> F32:
    return _unit(rng.standard_normal((count, dimension), np.float32))


def _unit(made: F32) -> F32:
    made /= np.sqrt((made * made).sum(axis=1, keepdims=True))
    return made


def node_table(
    count: int, dimension: int, rng: np.random.Generator, *, agents: int | None = None, news: int = 0
) -> NodeTable:
    """Return `count` nodes, all placed, all live, of mixed knowledge types: cells, then agents, then `news` cells.

    Without a number given one node in a hundred is an agent.
    """
    agents = int(count * AGENT_SHARE) if agents is None else agents
    types = np.zeros(count, np.int8)
    types[count - news - agents : count - news] = NodeType.AGENT
    listens = types == NodeType.AGENT
    interests = rng.choice(np.array([0, 0, 0, 0.3, 1], np.float32), (count, len(KnowledgeType)))
    interests[~listens] = 0
    kinds = rng.integers(0, len(KnowledgeType), count).astype(np.int8)
    return NodeTable(
        types=types,
        layers=np.zeros(count, np.int8),
        vectors=vectors(count, dimension, rng),
        placed=np.ones(count, np.bool_),
        knowledge_types=np.where(listens, np.int8(-1), kinds),
        saliences=(SALIENCE_THRESHOLD + (1 - SALIENCE_THRESHOLD) * rng.random(count, np.float32)),
        makers=np.full(count, -1, np.int32),
        created_at=np.full(count, NOW, np.int64),
        last_access=np.full(count, NOW, np.int64),
        superseded_by=np.full(count, -1, np.int32),
        pending=np.zeros(count, np.int8),
        interests=interests,
        radii=np.full(count, np.nan),
        quarantined=np.zeros(count, np.bool_),
    )


def access_pairs(nodes: NodeTable, rng: np.random.Generator, *, among: int | None = None) -> AccessPairs:
    """Return up to `ACCESSES_AN_AGENT` accesses of each agent, to any of the first `among` nodes that are cells."""
    agents, cells = np.flatnonzero(nodes.types == NodeType.AGENT), np.flatnonzero(nodes.types[:among] == NodeType.CELL)
    if not len(cells):
        agents = agents[:0]
    pairs = np.repeat(agents, ACCESSES_AN_AGENT) * len(nodes) + rng.choice(
        cells, len(agents) * ACCESSES_AN_AGENT if len(cells) else 0
    )
    pairs = np.unique(pairs)
    return AccessPairs(
        agents=(pairs // len(nodes)).astype(np.int32),
        cells=(pairs % len(nodes)).astype(np.int32),
        recencies=(np.float32(1 / 4096) * rng.integers(205, 4097, len(pairs))).astype(np.float32),
    )


def diffs_of(nodes: NodeTable, count: int, rng: np.random.Generator, *, max_hops: int) -> Diffs:
    """Return `created` diffs of different cells, at most as many as there are, with the energies of spec 4.1."""
    cells = np.flatnonzero(nodes.types == NodeType.CELL)
    origins = np.sort(rng.choice(cells, min(count, len(cells)), replace=False)).astype(np.int32)
    images = quantise(nodes.vectors[origins])
    return Diffs(
        numbers=as_tensor(np.arange(len(origins), dtype=np.int64)),
        origins=as_tensor(origins),
        types=as_tensor(np.full(len(origins), DiffType.CREATED, np.int8)),
        knowledge_types=as_tensor(nodes.knowledge_types[origins]),
        images=as_tensor(images),
        lengths=as_tensor(lengths(images)),
        saliences=as_tensor(nodes.saliences[origins]),
        energies=as_tensor(units(initial_energy(nodes.saliences[origins], nodes.knowledge_types[origins]))),
        max_hops=as_tensor(np.full(len(origins), max_hops, np.int32)),
    )


def no_edges() -> EdgeTable:
    """Return an edge table without rows."""
    none = np.zeros(0, np.int32)
    kinds = np.zeros(0, np.int8)
    return EdgeTable(
        sources=none, targets=none, types=kinds, kinds=kinds, weights=np.zeros(0, np.float32), bandwidths=none
    )
