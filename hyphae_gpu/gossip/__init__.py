"""Propagation (spec 3, 4)."""
