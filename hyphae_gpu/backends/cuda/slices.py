"""Diffs cut into slices that a device has room for, and their states joined again: any split agrees (spec 0.5)."""

from __future__ import annotations

from dataclasses import fields, replace

import torch

from hyphae_gpu.swarm import GossipCounts
from hyphae_gpu.wave_state import Offers, WaveState

Advanced = tuple[WaveState, Offers, GossipCounts]
_BY_DIFF = ("offsets", "rounds", "sweeps")


def state_of(state: WaveState, first: int, last: int) -> WaveState:
    """Return the state of the diffs at rows first .. last - 1."""
    begin, end = (int(state.offsets[row]) for row in (first, last))
    records = {spec.name: getattr(state, spec.name)[begin:end] for spec in fields(state) if spec.name not in _BY_DIFF}
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
    states, offers = [part[0] for part in parts], []
    counts, rows, records = GossipCounts(), 0, 0
    offsets = [states[0].offsets[:1]]
    for state, made, step in parts:
        offers.append(replace(made, rows=made.rows + rows))
        offsets.append(state.offsets[1:] + records)
        rows, records = rows + len(state.rounds), records + len(state.nodes)
        counts.add(step)
    columns = {
        spec.name: torch.cat([getattr(state, spec.name) for state in states])
        for spec in fields(WaveState)
        if spec.name != "offsets"
    }
    made = Offers(**{spec.name: torch.cat([getattr(part, spec.name) for part in offers]) for spec in fields(Offers)})
    return WaveState(offsets=torch.cat(offsets), **columns), made, counts
