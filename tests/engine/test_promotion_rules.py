"""The rules of promotion at their exact borders (spec 5.1, 5.2, 5.3)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
import torch

from hyphae_gpu.config import Settings
from hyphae_gpu.emerged import KnownPairs, SceneTable
from hyphae_gpu.linking import cells as settled_cells
from hyphae_gpu.state import AccessLog, AccessPairs, DiffTable, InboxKeys, IndexArrays, SwarmState
from hyphae_gpu.swarm import Edges
from hyphae_gpu.vocabulary import DiffType, EdgeKind, EdgeType, KnowledgeType, NodeType
from tests.engine import layered
from tests.engine.layered import Layered, Ran

#: All stand at nearly the same place, so that every gate is open.
HERE = np.array([1.0, 0.2, 0.1, 0.0], np.float32)
OPEN = Settings(threads=1, sigma_min=0.0, cos_min=0.0)
E0 = 12 * 1024


@dataclass
class Swarm:
    """One diff of cell 0, which hands it to `reached` cells and agents of each scene over edges of weight 1.

    Nodes: cell 0, which is in no scene unless `origin_counts`; for each scene its cells, then its agents; the scenes'
    own nodes, each linked to the next; `top` promoted nodes of layer 2.
    """

    reached: tuple[int, ...] = (5,)
    agents: int = 0
    kind: KnowledgeType = KnowledgeType.DECISION
    salience: float = 0.9
    diff_type: DiffType = DiffType.CREATED
    origin_counts: bool = False
    open: bool = False
    top: int = 0
    pairs: list[tuple[int, int]] = field(default_factory=list)
    far: tuple[int, ...] = ()
    maker: int = -1

    def ran(self, settings: Settings = OPEN) -> Ran:
        return Ran(self.made(), settings)

    def made(self) -> Layered:
        homes, types = [-1], [NodeType.CELL]
        for scene, count in enumerate(self.reached):
            homes += [scene] * (count + self.agents)
            types += [NodeType.CELL] * count + [NodeType.AGENT] * self.agents
        first, scenes = len(homes), len(self.reached)
        total = first + scenes + self.top
        homes = [home if home < 0 else first + home for home in homes] + [-1] * (scenes + self.top)
        if self.origin_counts:
            homes[0] = first
        vectors = HERE + 0.001 * np.arange(total, dtype=np.float32)[:, None]
        for node in self.far:
            vectors[node] = [0.0, 0.0, 0.0, 1.0]
        table = settled_cells(vectors.astype(np.float32))
        table.types[:] = [*types, *[NodeType.SCENE] * scenes, *[NodeType.CELL] * self.top]
        table.layers[first : first + scenes], table.layers[first + scenes :] = 1, 2
        table.knowledge_types[table.types != NodeType.CELL] = -1
        table.makers[0] = self.maker
        pairs = [(0, node, EdgeType.CAUSAL) for node in range(1, first)]
        for scene in range(first, first + scenes - 1):
            pairs += [(scene, scene + 1, EdgeType.CAUSAL), (scene + 1, scene, EdgeType.CAUSAL)]
        return Layered(
            state=self._state(table, np.array(homes, np.int32), np.arange(first, first + scenes, dtype=np.int32)),
            edges=_edges(pairs),
            live=table.types == NodeType.CELL,
            pairs=AccessPairs(
                agents=np.array([agent for agent, _ in sorted(self.pairs)], np.int32),
                cells=np.array([cell for _, cell in sorted(self.pairs)], np.int32),
                recencies=np.ones(len(self.pairs), np.float32),
            ),
        )

    def _state(self, table: Any, homes: np.ndarray, scenes: np.ndarray) -> SwarmState:
        one = {
            "numbers": np.array([7], np.int64),
            "origins": np.zeros(1, np.int32),
            "sequence": np.zeros(1, np.int32),
            "types": np.array([self.diff_type], np.int8),
            "knowledge_types": np.array([self.kind], np.int8),
            "vectors": table.vectors[:1],
            "saliences": np.array([self.salience], np.float32),
            "energies": np.array([E0 / 1024], np.float32),
            "units": np.array([E0], np.int32),
            "max_hops": np.array([64], np.int32),
            "ttl": np.array([3], np.int32),
            "epoch_created": np.ones(1, np.int32),
        }
        known = KnownPairs(a=np.zeros(1, np.int32), b=np.ones(1, np.int32), open=np.array([self.open]))
        none = np.zeros(0, np.int32)
        return SwarmState(
            epoch=0,
            dimension=4,
            nodes=table,
            accesses=AccessLog(agents=none, cells=none, at=np.zeros(0, np.int64)),
            declared=layered._no_edges(),
            topology=layered._no_edges(),
            diffs=DiffTable(**one),
            next_diff=8,
            sequences=np.zeros(len(table), np.int32),
            delivered=InboxKeys(agents=none, diffs=np.zeros(0, np.int64), vias=none),
            indexes=[IndexArrays.empty(4) for _ in range(3)],
            contradictions=known,
            scenes=SceneTable(
                numbers=scenes,
                sizes=np.full(len(scenes), 5, np.int32),
                epochs=np.ones(len(scenes), np.int32),
                names=[""] * len(scenes),
            ),
            node_scenes=homes,
        )


def _edges(pairs: list[tuple[int, int, EdgeType]]) -> Edges:
    sources, targets, types = zip(*pairs, strict=True)
    return Edges(
        sources=torch.tensor(sources, dtype=torch.int32),
        targets=torch.tensor(targets, dtype=torch.int32),
        types=torch.tensor(types, dtype=torch.int8),
        kinds=torch.full((len(pairs),), EdgeKind.DECLARED, dtype=torch.int8),
        weights=torch.ones(len(pairs)),
        bandwidths=torch.full((len(pairs),), -1, dtype=torch.int32),
    )


def layers_of(ran: Ran) -> list[int]:
    return ran.waves.promotions.recorded(0).layers.tolist()


@pytest.mark.parametrize(
    ("swarm", "layers"),
    [
        (Swarm(reached=(4,)), []),
        (Swarm(reached=(5,)), [1]),
        (Swarm(reached=(4, 4, 4)), []),
        (Swarm(reached=(4,), origin_counts=True), [1]),
        (Swarm(reached=(3,), agents=1), []),
        (Swarm(reached=(3,), agents=2), [1]),
        (Swarm(reached=(5, 0)), [1]),
        (Swarm(reached=(5, 0, 0)), [1, 2]),
    ],
    ids=str,
)
def test_five_nodes_of_one_scene_and_three_scenes_are_enough(swarm: Swarm, layers: list[int]) -> None:
    """spec 5.1: cells and agents, the origin too, count for layer 1; the scenes' own nodes for layer 2"""
    assert layers_of(swarm.ran()) == layers


@pytest.mark.parametrize("kind", KnowledgeType)
def test_only_some_types_of_knowledge_are_promoted(kind: KnowledgeType) -> None:
    """spec 5.1"""
    ones = (KnowledgeType.DECISION, KnowledgeType.PATTERN, KnowledgeType.CONSTRAINT, KnowledgeType.LESSON)
    twos = (KnowledgeType.DECISION, KnowledgeType.CONSTRAINT)
    wanted = [1] * (kind in ones) + [2] * (kind in twos)
    assert layers_of(Swarm(reached=(5, 5, 5), kind=kind).ran()) == wanted


@pytest.mark.parametrize(("salience", "layers"), [(0.79, [1]), (0.8, [1, 2]), (1.0, [1, 2])])
def test_the_top_layer_asks_for_salience(salience: float, layers: list[int]) -> None:
    """spec 5.1: the diff's, float32(0.8) is enough"""
    assert layers_of(Swarm(reached=(5, 5, 5), salience=salience).ran()) == layers


@pytest.mark.parametrize("diff_type", DiffType)
def test_contradiction_diffs_never_promote(diff_type: DiffType) -> None:
    """spec 5.1"""
    wanted = [] if diff_type == DiffType.CONTRADICTION else [1, 2]
    assert layers_of(Swarm(reached=(5, 5, 5), diff_type=diff_type).ran()) == wanted


def test_an_open_contradiction_of_the_origin_blocks_a_resolved_one_does_not() -> None:
    """spec 5.1"""
    assert layers_of(Swarm(open=True).ran()) == []
    assert layers_of(Swarm(open=False).ran()) == [1]


def test_the_entry_gets_five_more_than_the_strongest_counted_node_and_waves_go_on() -> None:
    """spec 5.2"""
    ran = Swarm(reached=(5, 6, 0)).ran()
    table = ran.waves.promotions.recorded(100)
    first, second = 12, 13  # 1 + 5 + 6 nodes below
    assert table.nodes.tolist() == [100, 101]
    assert table.scenes[0].tolist() == [second, first]
    assert table.counts[0].tolist() == [6, 5]
    assert table.carried[0].tolist() == [6, 7, 8, 9, 10, 11]
    assert table.carriers[0] == 6  # all hold the same: the lowest number
    entry = int(table.entries[0])
    found = ran.delivered()
    assert found[7, entry].energy == found[7, 6].energy + 5 * 1024 == E0 + 4 * 1024
    # one round brought the cells, one found nothing more, the entry is the third's
    assert (found[7, entry].hop, found[7, entry].parent) == (3, 6)
    assert ran.waves.count == 2  # layer 2 has no node, so nothing goes on from there
    assert {node for _, node in found} == set(range(15))
    assert (table.entries[1], table.scenes[1].tolist()) == (-1, table.carried[1].tolist())


def test_without_a_node_above_only_the_record_and_its_node_are_made() -> None:
    """spec 5.2"""
    made = Swarm(reached=(5,)).made()
    made.state.nodes.placed[made.state.nodes.types == NodeType.SCENE] = False
    lonely = Ran(made, OPEN)
    table = lonely.waves.promotions.recorded(0)
    assert (table.entries.tolist(), table.layers.tolist()) == ([-1], [1])
    assert lonely.waves.count == 1


def test_layer_two_is_entered_where_the_strongest_scene_is_nearest() -> None:
    """spec 5.2: v* of the second rule is a scene's node, the entry a node of layer 2"""
    ran = Swarm(reached=(5, 0, 0), top=2).ran()
    table = ran.waves.promotions.recorded(0)
    assert table.layers.tolist() == [1, 2]
    scene, entry = int(table.carriers[1]), int(table.entries[1])
    found = ran.delivered()
    assert ran.waves.state.nodes.layers[[scene, entry]].tolist() == [1, 2]
    assert found[7, entry].energy == found[7, scene].energy + 5 * 1024
    assert found[7, scene].energy == max(found[7, node].energy for node in table.carried[1].tolist())


def test_agents_confirm_who_work_on_what_the_diff_is_about() -> None:
    """spec 5.3: five different agents, the maker aside, with an access pair on a near live cell of the scene"""
    agents, settings = range(2, 8), Settings(threads=1, sigma_min=0.0, cos_min=0.0, confirm_by="agents")

    def layers(pairs: list[tuple[int, int]], **given: Any) -> list[int]:
        return layers_of(Swarm(reached=(1,), agents=6, pairs=pairs, **given).ran(settings))

    five, all_six = [(agent, 1) for agent in agents][:5], [(agent, 1) for agent in agents]
    assert layers(five) == [1]
    assert layers(five[:4]) == []
    assert layers([*five[:4], (5, 0)]) == []  # the same agent twice, and a cell that is in no scene
    assert layers(five, maker=4) == []
    assert layers(all_six, maker=4) == [1]
    assert layers(five, far=(1,)) == []


def test_a_diff_is_recorded_once_in_its_life_and_promoted_again_in_each_epoch() -> None:
    """spec 5.2"""
    made = Swarm(reached=(5, 0, 0)).made()
    first = Ran(made, OPEN)
    made.state.promoted = first.waves.promotions.recorded(0).keys()
    again = Ran(made, OPEN)
    assert len(again.waves.promotions.recorded(0)) == 0
    assert again.waves.promotions.fired == first.waves.promotions.fired == 2
    assert again.delivered() == first.delivered()


def test_a_node_that_was_superseded_is_no_entry() -> None:
    """spec 5.2, 6.6"""
    ran = Swarm(reached=(5, 0, 0), top=2).ran()
    promotions = ran.waves.promotions
    table = promotions.recorded(0)
    carrier, entry = table.carriers[1:], int(table.entries[1])
    promotions.live[entry] = False
    [other] = promotions._entries(2, carrier).tolist()
    assert {other, entry} == set(promotions.members[2].tolist())
    promotions.live[other] = False
    assert promotions._entries(2, carrier).tolist() == [-1]
