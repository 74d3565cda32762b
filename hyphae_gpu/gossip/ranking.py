"""Ranks within groups, and the fusion of rankings that orders audiences and inboxes (spec 3.13, 3.14)."""

from __future__ import annotations

import torch

#: What a rank is added to before it is inverted.
_FUSION_OFFSET = 20


def ranks_within(groups: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    """Return how many of its group have a strictly greater value, int64 [m] (spec 3.13).

    groups int64 [m]; values [m] of any number type, none NaN.
    """
    order = torch.argsort(values, stable=True, descending=True)
    order = order[torch.argsort(groups[order], stable=True)]
    sorted_groups, sorted_values = groups[order], values[order]
    places = torch.arange(len(order), device=order.device)
    first = torch.ones(len(order), dtype=torch.bool, device=order.device)
    first[1:] = (sorted_groups[1:] != sorted_groups[:-1]) | (sorted_values[1:] != sorted_values[:-1])
    starts = torch.cummax(torch.where(first, places, 0), 0).values if len(order) else places
    ranks = torch.empty_like(places)
    ranks[order] = starts - torch.searchsorted(sorted_groups, sorted_groups)
    return ranks


def fused(groups: torch.Tensor, rankings: list[torch.Tensor]) -> torch.Tensor:
    """Return the sum over rankings, in their order, of 1 / (20 + rank within the group), float64 [m] (spec 3.13)."""
    total = torch.zeros(len(groups), dtype=torch.float64, device=groups.device)
    for values in rankings:
        total = total + 1.0 / (_FUSION_OFFSET + ranks_within(groups, values)).double()
    return total


def places_within(groups: torch.Tensor, values: torch.Tensor, ties: torch.Tensor) -> torch.Tensor:
    """Return each row's place in its group by falling value, equal ones by rising `ties`, int64 [m] from 0 on."""
    order = torch.argsort(ties, stable=True)
    order = order[torch.argsort(values[order], stable=True, descending=True)]
    order = order[torch.argsort(groups[order], stable=True)]
    sorted_groups = groups[order]
    places = torch.empty_like(order)
    places[order] = torch.arange(len(order), device=order.device) - torch.searchsorted(sorted_groups, sorted_groups)
    return places
