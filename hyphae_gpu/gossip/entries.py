"""Energy that enters a wave where a promotion lets it in, not over an edge (spec 5.2)."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from hyphae_gpu.backends.protocol import Backend
from hyphae_gpu.columns import Columns, column, offsets_of
from hyphae_gpu.swarm import Diffs, Nodes
from hyphae_gpu.wave_state import WaveState


@dataclass(frozen=True, kw_only=True, eq=False)
class Entries(Columns):
    """Offers to entries, no two of a diff to the same node: rows int64, diff rows; sources (v*), targets (the entry),
    energies int32.
    """

    rows: torch.Tensor = column(torch.int64)
    sources: torch.Tensor = column(torch.int32)
    targets: torch.Tensor = column(torch.int32)
    energies: torch.Tensor = column(torch.int32)

    def __len__(self) -> int:
        return len(self.rows)


def entered(
    backend: Backend, nodes: Nodes, diffs: Diffs, state: WaveState, entries: Entries
) -> tuple[WaveState, torch.Tensor]:
    """Let the entries take what they are offered, no gate, loss or limit asked; return also which rose, bool [m].

    The offers arrive as those of each diff's next round, which so has run; where that would be round max_hops nothing
    arrives (spec 3.7). Nodes that rose are the new frontier; the state has to be quiet before.
    """
    count = len(nodes)
    keys, wanted = state.rows() * count + state.nodes, entries.rows * count + entries.targets
    at = torch.searchsorted(keys, wanted).clamp(max=max(0, len(keys) - 1))
    known = keys[at] == wanted if len(keys) else torch.zeros_like(wanted, dtype=torch.bool)
    held = torch.where(known, state.energies[at], 0) if len(keys) else torch.zeros_like(entries.energies)
    hops = (state.rounds[entries.rows] + 1).to(torch.int32)
    rises = (entries.energies > held) & (hops < diffs.max_hops[entries.rows])

    columns = {name: getattr(state, name).clone() for name in WaveState.RECORDS}
    columns["fresh"][:] = False
    there, new = at[rises & known], rises & ~known
    first = columns["energies"][there] <= 0
    columns["energies"][there] = entries.energies[rises & known]
    columns["parents"][there] = entries.sources[rises & known]
    columns["hops"][there[first]] = hops[rises & known][first]
    columns["fresh"][there] = True
    more = {
        "nodes": entries.targets[new],
        "energies": entries.energies[new],
        "hops": hops[new],
        "parents": entries.sources[new],
        "scores": backend.scores(nodes, diffs, entries.rows[new], entries.targets[new].long()),
        "fresh": torch.ones(int(new.sum()), dtype=torch.bool, device=new.device),
    }
    order = torch.argsort(torch.cat([keys, wanted[new]]))
    rows = torch.cat([state.rows(), entries.rows[new]])
    rounds = state.rounds.clone()
    rounds[entries.rows[rises]] = state.rounds[entries.rows[rises]] + 1
    grown = WaveState(
        offsets=offsets_of(torch.bincount(rows, minlength=len(rounds))),
        rounds=rounds,
        sweeps=state.sweeps,
        **{name: torch.cat([columns[name], more[name]])[order] for name in WaveState.RECORDS},
    )
    return grown, rises
