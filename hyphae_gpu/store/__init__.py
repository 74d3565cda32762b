"""PostgreSQL with pgvector: the checkpoint between epochs (spec 8)."""

from hyphae_gpu.store.project import Store, open_store

__all__ = ["Store", "open_store"]
