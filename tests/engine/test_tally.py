"""What a run tells of its waves is the same for any split, and says what the spec asks for (spec 4.3)."""

from __future__ import annotations

import torch

from hyphae_gpu.gossip.tally import Tally
from hyphae_gpu.swarm import Deliveries, Diffs, GossipCounts
from hyphae_gpu.vocabulary import KnowledgeType

FACT, RISK = KnowledgeType.FACT, KnowledgeType.RISK


def diffs(*rows: tuple[int, int, int]) -> Diffs:
    """Diffs of (number, knowledge type, energy in units)."""
    count = len(rows)
    numbers, types, energies = zip(*rows, strict=True)
    return Diffs(
        numbers=torch.tensor(numbers),
        origins=torch.zeros(count, dtype=torch.int32),
        types=torch.zeros(count, dtype=torch.int8),
        knowledge_types=torch.tensor(types, dtype=torch.int8),
        images=torch.ones(count, 2, dtype=torch.int8),
        lengths=torch.ones(count, dtype=torch.float64),
        saliences=torch.ones(count),
        energies=torch.tensor(energies, dtype=torch.int32),
        max_hops=torch.full((count,), 64, dtype=torch.int32),
    )


def found(*rows: tuple[int, int]) -> Deliveries:
    """Deliveries of (diff, hop), each to a node of its own."""
    count = len(rows)
    return Deliveries(
        diffs=torch.tensor([row[0] for row in rows], dtype=torch.int64),
        nodes=torch.arange(count, dtype=torch.int32),
        hops=torch.tensor([row[1] for row in rows], dtype=torch.int32),
        energies=torch.ones(count, dtype=torch.int32),
        scores=torch.zeros(count, dtype=torch.float64),
        parents=torch.full((count,), -1, dtype=torch.int32),
    )


THREE = diffs((5, FACT, 2048), (9, RISK, 1024), (7, FACT, 0))
REACHED = found((5, 0), (5, 1), (5, 1), (5, 3), (9, 0))


def test_counts_hops_reach_and_bounds():
    tally = Tally()
    tally.ran(GossipCounts(rounds=3, gates=4))
    tally.add(THREE, REACHED)
    told = tally.summary(0.5, 0.75)
    assert told["hops"] == [2, 2, 0, 1]
    assert told["reach"] == {"min": 0.0, "q1": 0.5, "median": 1.0, "q3": 2.5, "max": 4.0, "mean": 5 / 3}
    assert set(told["by_type"]) == {"fact", "risk"}
    assert told["by_type"]["fact"] == {
        "diffs": 2, "reach_mean": 2.0, "reach_max": 4, "hops_max": 3, "energy": 2.0, "hop_bound": 1.5,
        "node_bound": 1.0,
    }  # fmt: skip
    assert told["by_type"]["risk"]["hops_max"] == 0
    assert tally.counts.deliveries == 5


def test_the_same_for_any_split():
    whole, split = Tally(), Tally()
    whole.ran(GossipCounts(rounds=4, lost=3))
    whole.add(THREE, REACHED)
    split.ran(GossipCounts(rounds=1, lost=1))
    split.add(THREE.take(torch.tensor([1, 2])), found((9, 0)))
    split.ran(GossipCounts(rounds=4, lost=2))
    split.add(THREE.take(torch.tensor([0])), found((5, 0), (5, 1), (5, 1), (5, 3)))
    assert split.summary(0.5, 0.75) == whole.summary(0.5, 0.75)
    assert split.counts == whole.counts


def test_an_epoch_without_a_diff_is_told_too():
    tally = Tally()
    told = tally.summary(0.0, 0.0)
    assert (told["hops"], told["reach"], told["by_type"]) == ([], {}, {})
    tally.add(THREE.take(torch.zeros(0, dtype=torch.int64)), found())
    assert tally.summary(0.0, 0.0) == told


def test_sweeps_of_waves_add_up_and_rounds_are_the_longest_diffs():
    """spec 7.2: every wave is closed by its own sweeps"""
    tally = Tally()
    for rounds, sweeps in ((4, 2), (7, 3), (5, 0)):
        tally.ran(GossipCounts(rounds=rounds, sweeps=sweeps, lost=1))
    assert (tally.counts.rounds, tally.counts.sweeps, tally.counts.lost) == (7, 5, 3)
