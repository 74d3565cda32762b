"""Devices behind one seam (`protocol.py`)."""
