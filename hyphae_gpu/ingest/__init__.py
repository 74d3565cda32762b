"""Rows in: files and tables to checked Arrow tables."""

from hyphae_gpu.ingest.embed import embed_texts
from hyphae_gpu.ingest.read import read_rows

__all__ = ["embed_texts", "read_rows"]
