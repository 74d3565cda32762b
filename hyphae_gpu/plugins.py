"""Functions that a project brings along, named in its settings as MODULE:FUNCTION."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from hyphae_gpu.errors import UsageError


def load_function(setting: str, entry: str) -> Callable[..., Any]:
    """Import the function that a setting names; raises UsageError that says what is missing. Runs the module's code."""
    module_name, _, name = entry.partition(":")
    try:
        module = import_module(module_name)
    except ImportError as error:
        raise UsageError(f"{setting} = {entry!r}: module {module_name!r} cannot be imported: {error}") from None
    function = getattr(module, name, None)
    if not callable(function):
        raise UsageError(f"{setting} = {entry!r}: module {module_name!r} has no function {name!r}")
    return function  # type: ignore[no-any-return]  # callable() was asked just before
