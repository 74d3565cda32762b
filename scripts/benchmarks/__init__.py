"""The benchmarks behind scripts/bench: one module a case, one a peer."""
