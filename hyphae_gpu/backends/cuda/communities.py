"""Communities of one level by modularity on the device: local moving, splitting, merging of links (spec 6.4)."""

from __future__ import annotations

import torch

from hyphae_gpu.backends.cpu.modularity import ITERATIONS, QUIET, SUB_STEPS
from hyphae_gpu.backends.cuda.components import flattened
from hyphae_gpu.backends.cuda.launcher import WARP, Argument, Launcher, grid_of
from hyphae_gpu.columns import offsets_of

#: Links of a node that one warp looks at; kernels/communities.cu has the same number.
_LONGEST_OF_WARP = 128
#: Bytes of a place in a table of neighbouring communities, and places that a warp has in shared memory.
_PLACE_BYTES, _ROOM_OF_WARP = 12, 2 * _LONGEST_OF_WARP
#: Places, at most, that all blocks' tables for longer rows have together, unless one needs more.
_ALL_PLACES = 1 << 26

Links = tuple[torch.Tensor, torch.Tensor, torch.Tensor]


def communities(launcher: Launcher, links: Links, numbers: torch.Tensor, resolution: tuple[int, int]) -> torch.Tensor:
    """Return each node's community, split into its connected parts, as its first member, int32 [n].

    links: offsets int64 [n + 1], targets int32 and weights int64 [m], numbers int64 [n], all on the device; see
    `Backend.communities`.
    """
    offsets, targets, _ = links
    count = len(numbers)
    parts = torch.arange(count, dtype=torch.int32, device=numbers.device)
    if count == 0:
        return parts
    community = _Moving(launcher, links, numbers, resolution).moved()
    launcher.launch(
        "communities.split", (offsets, targets, community, count, parts), grid=grid_of(launcher, count, lanes=WARP)
    )
    return flattened(launcher, parts)


def merged_links(links: Links, groups: torch.Tensor) -> Links:
    """Return the links between groups of nodes, summed, in the order in which they are met; see the CPU's twin.

    Of a group's nodes in ascending order the links are met row by row. groups int32 [n], none of them empty.
    """
    offsets, targets, weights = links
    count = int(groups.max()) + 1 if len(groups) else 0
    members = torch.argsort(groups, stable=True)
    # The links in the order in which they are met, and what each of them is between.
    degrees = offsets.diff()[members]
    starts = torch.repeat_interleave(offsets[:-1][members] - (degrees.cumsum(0) - degrees), degrees)
    met = starts + torch.arange(len(targets), device=targets.device)
    keys = torch.repeat_interleave(groups[members].long(), degrees) * count + groups[targets[met].long()]
    keys, order = torch.sort(keys, stable=True)
    distinct, sizes = torch.unique_consecutive(keys, return_counts=True)
    ends = torch.cat([sizes.new_zeros(1), sizes.cumsum(0)])
    summed = torch.cat([weights.new_zeros(1), weights[met[order]].cumsum(0)])[ends].diff()
    # A stable sort leaves the link that is met first at the head of its like.
    by_meeting = torch.argsort(order[ends[:-1]])
    sources = distinct // max(count, 1)
    merged_offsets = offsets_of(torch.bincount(sources, minlength=count))
    return merged_offsets, (distinct % max(count, 1))[by_meeting].to(torch.int32), summed[by_meeting]


class _Moving:
    """One level's local moving: made with what does not change, `moved` does the iterations."""

    def __init__(self, launcher: Launcher, links: Links, numbers: torch.Tensor, resolution: tuple[int, int]) -> None:
        self.launcher, self.links, self.numbers = launcher, links, numbers
        offsets, _, weights = links
        device, degrees = offsets.device, offsets.diff()
        rows = torch.repeat_interleave(torch.arange(len(numbers), device=device), degrees)
        self.totals = torch.zeros(len(numbers), dtype=torch.int64, device=device).index_add_(0, rows, weights)
        self.den_two_m, self.numerator = float(resolution[1] * int(self.totals.sum())), resolution[0]
        self.community = torch.arange(len(numbers), dtype=torch.int32, device=device)
        self.sums, self.chosen = self.totals.clone(), torch.empty_like(self.community)
        self.moves = torch.zeros(1, dtype=torch.int64, device=device)
        self.long = torch.nonzero(degrees > _LONGEST_OF_WARP).flatten()
        if len(self.long):
            self.room = 1 << (2 * int(degrees.max()) - 1).bit_length()
            self.blocks = max(1, min(len(self.long), launcher.blocks, _ALL_PLACES // self.room))
            self.keys = torch.full((self.blocks * self.room,), -1, dtype=torch.int32, device=device)
            self.linked = torch.zeros(self.blocks * self.room, dtype=torch.int64, device=device)

    def moved(self) -> torch.Tensor:
        """Return each node's community after local moving; the host reads one number an iteration."""
        count = len(self.numbers)
        for iteration in range(ITERATIONS):
            self.moves.zero_()
            for step in range(SUB_STEPS):
                self._choose(iteration, step)
                arguments = (self.totals, self.numbers, count, iteration, step, self.chosen, self.community)
                out = (self.sums, self.moves)
                self.launcher.launch("communities.apply_moves", (*arguments, *out), grid=grid_of(self.launcher, count))
            moves = int(self.moves)
            if not moves or moves * QUIET < count:
                break
        return self.community

    def _choose(self, iteration: int, step: int) -> None:
        level: tuple[Argument, ...] = (
            *self.links,
            *(self.totals, self.community, self.sums, self.den_two_m, self.numerator, self.numbers),
        )
        count, when = len(self.numbers), (iteration, step)
        self.launcher.launch(
            "communities",
            (*level, count, *when, self.chosen),
            grid=grid_of(self.launcher, count, lanes=WARP),
            shared_bytes=self.launcher.block // WARP * _ROOM_OF_WARP * _PLACE_BYTES,
        )
        if len(self.long):
            arguments = (*level, self.long, len(self.long), *when, self.keys, self.linked, self.room, self.chosen)
            self.launcher.launch("communities.choose_long", arguments, grid=self.blocks)
