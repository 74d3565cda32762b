"""What a run is told as: figures and a page."""
