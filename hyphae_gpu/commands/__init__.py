"""The commands of `hyphae-gpu`, by what they touch; `cli.py` puts them together."""
