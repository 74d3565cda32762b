"""A page for people about what a project's epochs did."""

from hyphae_gpu.report.page import render, write_report
from hyphae_gpu.report.record import Record

__all__ = ["Record", "render", "write_report"]
