"""What emerges between rounds: decay, drift (spec 1.3, 6)."""
