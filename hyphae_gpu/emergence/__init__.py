"""What emerges: decay, drift, contradictions, scenes, promotion, patterns (spec 1.3, 5, 6)."""
