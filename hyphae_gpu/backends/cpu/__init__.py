"""The numba backend: one file an operation, named like it."""
