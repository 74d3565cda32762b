"""Waves that promotions prolong equal the plain reading, in every column, and do not depend on how diffs are cut."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hyphae_gpu.config import Settings
from tests.engine.layered import Ran, layered, plain

#: Gates that let most of a small swarm in.
OPEN = {"sigma_min": 0.1, "cos_min": 0.0, "theta_sim": 1.0}


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6), confirm_by=st.sampled_from(["delivery", "agents"]), batch=st.sampled_from([1, 4096]))
def test_promoted_diffs_go_on_as_the_rule_says(seed: int, confirm_by: str, batch: int) -> None:
    """spec 5.1, 5.2, 5.3"""
    chosen = Settings(threads=1, fanout=seed % 3 * 2, confirm_by=confirm_by, batch_size=batch, **OPEN)
    expected, fired = plain(layered(seed), chosen)
    ran = Ran(layered(seed), chosen)
    assert ran.promoted() == fired
    assert ran.delivered() == expected


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10**6), loss=st.sampled_from([0.0, 0.1, 0.5, 0.9]), limited=st.sampled_from([0.0, 0.3]))
def test_losses_and_bandwidths_follow_the_rule_through_all_waves(seed: int, loss: float, limited: float) -> None:
    """spec 2.8, 3.10, 5.2, 7.2: the counter of losses never restarts, limited edges are shared by all diffs"""
    chosen = Settings(threads=1, loss=loss, seed=seed, **OPEN)
    expected, fired = plain(layered(seed, limited=limited), chosen)
    ran = Ran(layered(seed, limited=limited), chosen)
    assert ran.promoted() == fired
    assert ran.delivered() == expected


@settings(max_examples=15, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    loss=st.sampled_from([0.1, 0.5, 0.9]),
    bandwidth=st.sampled_from([1, 2, 8]),
)
def test_sweeps_restore_all_that_losses_and_limits_took(seed: int, loss: float, bandwidth: int) -> None:
    """spec 7.3, must show 2: nodes, energies, promotions and contradictions of the lossless, unthrottled run"""
    whole, hurt = layered(seed, claims=True), layered(seed, claims=True)
    for made in (whole, hurt):
        made.state.diffs.max_hops[:] = 4096
    hurt.edges.bandwidths[:] = bandwidth
    rules = OPEN | {"theta_sim": 0.3, "max_hops": 4096}
    calm = Ran(whole, Settings(threads=1, **rules))
    stormy = Ran(hurt, Settings(threads=1, loss=loss, seed=seed, **rules))
    assert {key: one.energy for key, one in calm.delivered().items()} == {
        key: one.energy for key, one in stormy.delivered().items()
    }
    assert calm.promoted() == stormy.promoted()
    assert calm.raised() == stormy.raised()


def test_the_random_swarms_promote_to_both_layers_and_are_blocked_too() -> None:
    """what the properties above are about does happen in their swarms"""
    seen: Counter[object] = Counter()
    for seed in range(40):
        made = layered(seed)
        ran = Ran(made, Settings(threads=1, **OPEN))
        for (_, layer), one in ran.promoted().items():
            seen[layer] += 1
            seen["nowhere"] += one.entry < 0
            seen["came down to v*"] += any(
                found.parent == one.entry and node == one.carrier for (_, node), found in ran.delivered().items()
            )
        seen["open"] += len(made.state.contradictions)
        torn = Ran(layered(seed, claims=True), Settings(threads=1, **OPEN | {"theta_sim": 0.3}))
        seen["raised"] += len(torn.raised())
    assert min(seen[1], seen[2], seen["open"], seen["raised"]) > 10
    assert seen["nowhere"] > 0
    assert seen["came down to v*"] > 0


@pytest.mark.parametrize("batch", [1, 2, 4096])
def test_the_order_of_diffs_decides_nothing(batch: int) -> None:
    """must show 3: their rows shuffled, numbers kept, the result is the same"""
    for seed in range(25):
        one, other = layered(seed), layered(seed)
        order = np.random.default_rng(seed).permutation(len(other.state.diffs))
        for name in ("numbers", "origins", "types", "knowledge_types", "vectors", "saliences", "units", "max_hops"):
            setattr(other.state.diffs, name, getattr(other.state.diffs, name)[order])
        first, second = (
            Ran(one, Settings(threads=1, **OPEN)),
            Ran(other, Settings(threads=2, batch_size=batch, **OPEN)),
        )
        assert first.delivered() == second.delivered()
        assert first.promoted() == second.promoted()
        assert first.words().tolist() == second.words().tolist()


def test_a_way_to_a_receiver_ends_at_the_origin_whatever_came_down_on_it() -> None:
    """spec 3.2, 3.7, 5.2: what comes down from an entry may raise the nodes below it, no way goes in a circle"""
    lengths_seen = []
    for seed in range(60):
        made = layered(seed)
        ran = Ran(made, Settings(threads=1, **OPEN))
        origins = dict(zip(made.state.diffs.numbers.tolist(), made.state.diffs.origins.tolist(), strict=True))
        catch = ran.waves.catch
        offsets = np.concatenate([part.numpy() for part in catch._way_offsets])
        ways = np.concatenate([part.numpy() for part in catch._ways])
        reached = [row for part in catch._reached for row in zip(part.diffs.tolist(), part.nodes.tolist(), strict=True)]
        for i, (diff, node) in enumerate(reached):
            way = ways[offsets[i] : offsets[i + 1]].tolist()
            assert (way[0], way[-1]) == (node, origins[diff])
            assert len(set(way)) == len(way)
            lengths_seen.append(len(way))
    assert max(lengths_seen) > 4
