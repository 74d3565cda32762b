"""Diffs cut into slices that a device has room for, and their states joined again: any split agrees (spec 0.5)."""

from __future__ import annotations

from dataclasses import replace

from hyphae_gpu.swarm import GossipCounts
from hyphae_gpu.wave_state import Offers, WaveState

Advanced = tuple[WaveState, Offers, GossipCounts]


def state_of(state: WaveState, first: int, last: int) -> WaveState:
    """Return the state of the diffs at rows first .. last - 1."""
    begin, end = (int(state.offsets[row]) for row in (first, last))
    records = {name: getattr(state, name)[begin:end] for name in WaveState.RECORDS}
    return WaveState(
        offsets=state.offsets[first : last + 1] - begin,
        rounds=state.rounds[first:last],
        sweeps=state.sweeps[first:last],
        **records,
    )


def joined(parts: list[Advanced]) -> Advanced:
    """Return the states, offers and counts of slices that follow each other, as one."""
    if len(parts) == 1:
        return parts[0]
    offers, counts, rows = [], GossipCounts(), 0
    for state, made, step in parts:
        offers.append(replace(made, rows=made.rows + rows))
        rows += len(state.rounds)
        counts.add(step)
    return WaveState.concat([state for state, _, _ in parts]), Offers.concat(offers), counts
