"""The measurements behind scripts/kep_delivery: who is concerned by a proposal, asked of the engine and of memories."""
