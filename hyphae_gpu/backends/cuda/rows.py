"""Edges put into rows by source on the device, each row in the order of a key (CSR)."""

from __future__ import annotations

import torch

from hyphae_gpu.columns import offsets_of


def order_rows(count: int, sources: torch.Tensor, keys: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return (offsets, order), int64 [count + 1] and [m]: the edges by source, by key within a source.

    sources int32 [m] in [0, count) and keys int64 [m]; edges of equal source and key keep their order.
    """
    by_key = torch.argsort(keys, stable=True)
    by_source = torch.argsort(sources[by_key], stable=True)
    return offsets_of(torch.bincount(sources, minlength=count)), by_key[by_source]
