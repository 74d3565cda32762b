"""PostgreSQL with pgvector: the checkpoint between epochs (spec 8)."""
