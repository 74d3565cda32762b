"""Scenes, promoted nodes and patterns as epochs make them, and the graph that the next epoch has of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from hyphae_gpu.config import Settings
from hyphae_gpu.engine import run_epochs
from hyphae_gpu.vocabulary import DiffType, EdgeType, KnowledgeType, NodeType
from tests.engine.project import START, Project


class Team(Project):
    """Three topics of eight cells, each made by one of four agents in turn; nobody declared anything."""

    def __init__(self, kind: str = "decision", salience: float = 0.9) -> None:
        super().__init__(dimension=6)
        for agent in "abcd":
            self.agent(agent)
        for topic in range(3):
            for i in range(8):
                self.say(topic, i, kind=kind, salience=salience)

    def say(self, topic: int, i: int, **given: Any) -> int:
        rng = np.random.default_rng([topic, i])
        vector = (np.eye(6)[topic] + 0.5 * np.eye(6)[3] + 0.12 * rng.normal(size=6)).tolist()
        return self.cell(f"{topic}.{i}", vector, by="abcd"[i % 4], **given)

    def run(self, epochs: int = 1, **given: Any) -> None:
        run_epochs(self, Settings(threads=2, **given), epochs=epochs, as_of=START)

    def made(self, kind: str) -> list[int]:
        return [number for name, number in sorted(self.numbers.items()) if name.startswith(f"{kind} ")]

    def edges(self, edge_type: EdgeType) -> set[tuple[int, int]]:
        return {(source, target) for source, target, of in self.topology if of == edge_type}


def test_scenes_are_nodes_of_layer_1_with_promoted_edges_down_to_what_belongs_to_them() -> None:
    """spec 1.4, 2.7"""
    team = Team("fact")
    team.run()
    scenes = team.made("scene")
    assert scenes == sorted(team.named_scenes())
    assert [(team.nodes[n]["types"], team.nodes[n]["layers"]) for n in scenes] == [(NodeType.SCENE, 1)] * len(scenes)
    belonging = {(home, node) for node, home in team.home.items() if home >= 0}
    assert team.edges(EdgeType.PROMOTED) == belonging
    assert {node for _, node in belonging} == set(range(4 + 24))
    linked = {(s, t) for s, t in team.edges(EdgeType.SEMANTIC) if s in scenes}
    assert linked == {(s, t) for s in scenes for t in scenes if s != t}
    assert team.epochs[0].counts["topology"]["layers"] == [24, 3, 0]


def test_a_scene_that_grows_moves_its_node_and_an_ended_one_leaves_the_graph() -> None:
    """spec 6.4, 2.7"""
    team = Team("fact")
    team.run()
    gone = team.home[team.numbers["2.0"]]
    before = list(team.nodes[team.home[team.numbers["0.0"]]]["vectors"])
    team.say(0, 8)
    for i in range(8):
        team.say(2, i, salience=0.01)
    team.run()
    assert team.nodes[team.home[team.numbers["0.0"]]]["vectors"] != before
    assert not team.nodes[gone]["placed"]
    assert not any(gone in key[:2] for key in team.topology)


def test_what_is_promoted_joins_the_layer_above_in_the_next_epoch_and_leads_down_to_its_cell() -> None:
    """spec 5.2, 2.7"""
    team = Team()
    team.run(sigma_min=0.0, cos_min=0.0, fanout=0, pattern_eps=1.0)
    first = team.epochs[0]
    raised = team.made("promoted")
    assert len(raised) == len(first.promotions) == first.counts["promotions"] == 48
    for row in team.promotions.values():
        node, origin = team.nodes[row["nodes"]], team.nodes[row["cells"]]
        assert (node["layers"], node["types"]) == (row["layers"], NodeType.CELL)
        for name in ("vectors", "knowledge_types", "saliences", "makers"):
            assert np.array_equal(np.float32(node[name]), np.float32(origin[name])), name
        assert (node["made_of"], node["created_at"]) == (row["cells"], START)
    assert not any(node in raised for key in team.topology for node in key[:2])

    team.run(sigma_min=0.0, cos_min=0.0, fanout=0, pattern_eps=1.0)
    second = team.epochs[1]
    down = {key for key in team.edges(EdgeType.PROMOTED) if key[0] in raised}
    assert down == {(node, team.nodes[node]["made_of"]) for node in raised}
    assert second.counts["topology"]["layers"] == [24, 27, 24]
    assert second.counts["promotions"] == 0
    assert second.counts["promoted"] == first.counts["promoted"] == 48
    assert len(second.new_diffs) == 0  # a promoted node sends nothing
    for layer in (1, 2):
        linked = {(s, t) for s, t in team.edges(EdgeType.SEMANTIC) if team.nodes[s]["layers"] == layer}
        assert linked
        assert all(team.nodes[t]["layers"] == layer for _, t in linked)


def test_a_contradiction_that_the_same_wave_finds_blocks_a_promotion() -> None:
    """spec 5.1, 8.1: contradictions are judged before the rules of promotion"""
    calm, torn = Team(), Team()
    for team in (calm, torn):
        team.nodes[team.numbers["0.0"]] |= {"claim_subjects": 5, "claim_values": 1}
        team.nodes[team.numbers["0.4"]] |= {"claim_subjects": 5, "claim_values": 1 if team is calm else 2}
        team.run(theta_sim=0.5)
    blocked = {calm.numbers["0.0"], calm.numbers["0.4"]}
    assert torn.raised() == {("0.0", "0.4"): (1, True)}
    kept = {(row["cells"], layer) for (_, layer), row in calm.promotions.items()}
    assert {cell for cell, _ in kept} > blocked
    assert {(row["cells"], layer) for (_, layer), row in torn.promotions.items()} == {
        (cell, layer) for cell, layer in kept if cell not in blocked
    }


def test_three_agents_who_say_alike_make_one_pattern_that_speaks_in_the_next_epoch_once() -> None:
    """spec 6.4, 8.1"""
    team = Team("fact", salience=0.5)
    team.run()
    patterns = team.made("pattern")
    assert len(patterns) == team.epochs[0].counts["patterns"] == 3
    for node in patterns:
        row = team.nodes[node]
        assert (row["types"], row["layers"], row["makers"]) == (NodeType.CELL, 0, -1)
        assert row["knowledge_types"] == KnowledgeType.PATTERN
        assert row["saliences"] > 0.98
    assert not {diff["origins"] for diff in team.diffs.values()} & set(patterns)

    team.run(2)
    assert team.made("pattern") == patterns
    told = [diff for diff in team.diffs.values() if diff["origins"] in patterns]
    assert [(diff["types"], diff["epoch_created"]) for diff in told] == [(DiffType.PATTERN, 2)] * 3
    assert [done.counts["patterns"] for done in team.epochs] == [3, 0, 0]


def test_a_summariser_writes_the_text_of_a_pattern() -> None:
    """spec 6.4"""
    team = Team("fact")
    team.run(summariser="tests.engine.test_emergence:count_texts")
    made = team.epochs[0].new_nodes
    assert [text for text, pattern in zip(made.texts, made.patterns, strict=True) if pattern] == ["8 texts"] * 3


def count_texts(groups: list[list[str]]) -> list[str]:
    return [f"{len(group)} texts" for group in groups]


def test_taken_up_again_a_project_emerges_as_one_that_ran_on() -> None:
    """spec 8.3: scenes, promoted nodes, patterns and the indexes of all layers are what the store holds"""
    whole, pieces = Team(), Team()
    for team in (whole, pieces):
        team.say(1, 9, kind="lesson")
    whole.run(4)
    for _ in range(4):
        pieces.run()
    assert [done.state_hash for done in whole.epochs] == [done.state_hash for done in pieces.epochs]
    assert repr(whole.nodes) == repr(pieces.nodes)
    assert whole.promotions == pieces.promotions
    assert whole.topology == pieces.topology


def test_the_state_hash_covers_promotions() -> None:
    """interfaces, `state_hash`"""
    one, other = Team(), Team()
    one.run()
    other.run(confirm_by="agents")
    assert len(other.promotions) < len(one.promotions)
    assert one.epochs[0].state_hash != other.epochs[0].state_hash
