"""The living graph: HNSW, near and far links, attachments, one adjacency (spec 2)."""
