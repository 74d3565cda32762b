"""Rows in: files and tables to checked Arrow tables."""
