"""Memory that travels through a swarm of agents by itself.

The commands of `hyphae-gpu` in a few names, loaded when they are first used: `propagate` over a graph of one's own
(`Nodes`, `Edges`, `Diffs`, and `link` where there are no edges yet); `open_store`, `read_rows` and `run_epochs` for a
project in PostgreSQL. Tensors are torch's or numpy's.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hyphae_gpu.config import Settings
    from hyphae_gpu.engine import EpochReport, run_epochs
    from hyphae_gpu.errors import HyphaeError
    from hyphae_gpu.ingest import read_rows
    from hyphae_gpu.linking import link
    from hyphae_gpu.propagation import Propagation, propagate
    from hyphae_gpu.store import open_store
    from hyphae_gpu.swarm import Deliveries, Diffs, Edges, Nodes
    from hyphae_gpu.vocabulary import DiffType, EdgeType, KnowledgeType, NodeType

__all__ = [
    "Deliveries",
    "DiffType",
    "Diffs",
    "EdgeType",
    "Edges",
    "EpochReport",
    "HyphaeError",
    "KnowledgeType",
    "NodeType",
    "Nodes",
    "Propagation",
    "Settings",
    "link",
    "open_store",
    "propagate",
    "read_rows",
    "run_epochs",
]

_HOMES = {
    "hyphae_gpu.config": ("Settings",),
    "hyphae_gpu.engine": ("EpochReport", "run_epochs"),
    "hyphae_gpu.errors": ("HyphaeError",),
    "hyphae_gpu.ingest": ("read_rows",),
    "hyphae_gpu.linking": ("link",),
    "hyphae_gpu.propagation": ("Propagation", "propagate"),
    "hyphae_gpu.store": ("open_store",),
    "hyphae_gpu.swarm": ("Deliveries", "Diffs", "Edges", "Nodes"),
    "hyphae_gpu.vocabulary": ("DiffType", "EdgeType", "KnowledgeType", "NodeType"),
}


def __getattr__(name: str) -> Any:
    """Load a public name from its home on first use, so that `import hyphae_gpu` needs nothing heavy."""
    for home, words in _HOMES.items():
        if name in words:
            value = getattr(import_module(home), name)
            globals()[name] = value
            return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
