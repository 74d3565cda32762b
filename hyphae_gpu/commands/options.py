"""The flags of settings, written once: any command that takes a setting takes it by the same flag.

The texts stand here and not in `config` so that `--help` need not load the settings' machinery; a test holds the two
together.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import wraps
from pathlib import Path
from typing import Annotated, Any

import typer

from hyphae_gpu.commands.session import Session, guarded, unwrapped
from hyphae_gpu.errors import UsageError

#: Flags that say which store; every command that opens it takes them.
STORE = ("project", "data_dir", "database_url")
#: Flags that decide what gossip over a given graph delivers (spec 3).
GOSSIP = ("sigma_min", "cos_min", "fanout", "max_hops", "loss", "seed")
#: Flags of the epoch's other rules.
EPOCH = (
    "anti_entropy_every",
    "ttl_epochs",
    "decay_per_day",
    "salience_threshold",
    "access_unit_days",
    "beacon_fanin",
    "beacon_radius",
    "audience_limit",
    "inbox_limit",
    "beacon_limit",
    "resolution",
    "confirm_by",
    "pattern_eps",
    "summariser",
    "theta_sim",
    "policy",
    "verifier",
)
#: Flags that say where and how fast.
DEVICE = ("device", "threads", "batch_size")

_RULES, _PLACE, _SPEED, _OUTPUT = "Rules", "Store", "Device", "Settings and output"

#: Setting -> (type, what it means, its default, panel of the help page).
TEXTS: Mapping[str, tuple[type, str, str, str]] = {
    "sigma_min": (float, "Lowest score that opens a node's gate to a diff.", "0.3", _RULES),
    "cos_min": (float, "Lowest cosine that opens it, whatever the score.", "0.25", _RULES),
    "fanout": (int, "Semantic neighbours a node forwards to, the best first; 0 = all.", "10", _RULES),
    "max_hops": (int, "Hops after which a diff stops.", "64", _RULES),
    "loss": (float, "Share of transmissions to drop, 0 up to but not 1.", "0.0", _RULES),
    "seed": (int, "Seed of those losses.", "0", _RULES),
    "anti_entropy_every": (int, "Every so many epochs sweeps bring what was lost or throttled.", "1", _RULES),
    "ttl_epochs": (int, "Epochs that a diff lives, its first one included.", "3", _RULES),
    "decay_per_day": (float, "Salience kept per day without access; 1 = no decay.", "0.99", _RULES),
    "salience_threshold": (float, "Cells below this salience stay silent.", "0.05", _RULES),
    "access_unit_days": (float, "Days that count as one step of recency.", "1.0", _RULES),
    "beacon_fanin": (int, "Cells that a beacon listens to, at most.", "32", _RULES),
    "beacon_radius": (float, "Lowest cosine of a cell that a beacon hears.", "0.3", _RULES),
    "audience_limit": (int, "Agents that keep a diff it reached, at most, the best first.", "all", _RULES),
    "inbox_limit": (int, "Gossip entries that an agent gets an epoch, at most.", "50", _RULES),
    "beacon_limit": (int, "Entries that a beacon passes on an epoch, at most.", "50", _RULES),
    "resolution": (str, "How fine scenes are, a ratio NUM/DEN; higher = more of them.", "2/1", _RULES),
    "confirm_by": (
        str,
        "What a promotion counts: delivery, or agents who work on what was delivered.",
        "delivery",
        _RULES,
    ),
    "pattern_eps": (float, "Lowest cosine of cells that make a pattern together.", "0.8", _RULES),
    "summariser": (str, "MODULE:FUNCTION that writes a pattern's text; runs its code.", "none", _RULES),
    "theta_sim": (float, "Lowest cosine of two cells that contradict each other.", "0.8", _RULES),
    "policy": (str, "Which cell of a contradiction wins: flag (none), recency, salience, vote.", "flag", _RULES),
    "verifier": (str, "MODULE:FUNCTION that judges text pairs too; runs its code.", "none", _RULES),
    "project": (str, "Which swarm of the store to use.", "default", _PLACE),
    "data_dir": (Path, "Folder of the built-in PostgreSQL.", "hyphae-data", _PLACE),
    "database_url": (str, "A PostgreSQL with pgvector to use instead of the built-in one.", "none", _PLACE),
    "embed": (
        str,
        "Make vectors from the texts: 'lsa' (built in) or 'sentence-transformers:NAME'.",
        "vectors come with the rows",
        _OUTPUT,
    ),
    "device": (str, "Where gossip runs: auto, cpu or cuda.", "auto", _SPEED),
    "threads": (int, "CPU threads.", "the cores at hand", _SPEED),
    "batch_size": (int, "Diffs propagated together; changes speed and memory, never results.", "4096", _SPEED),
}

_Config = Annotated[
    Path | None,
    typer.Option("--config", help="TOML file of settings.", show_default="hyphae.toml", rich_help_panel=_OUTPUT),
]
_Json = Annotated[bool, typer.Option("--json", help="Print one JSON object for machines.", rich_help_panel=_OUTPUT)]
_Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress on standard error.", rich_help_panel=_OUTPUT)]


def with_settings(*names: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command the flags of these settings, and --config, --json and --quiet; it receives a `Session` first.

    Errors that a user can meet become one message on standard error and an exit code (`session.guarded`).
    """

    def wrap(function: Callable[..., None]) -> Callable[..., None]:
        own = list(inspect.signature(function, eval_str=True).parameters.values())[1:]
        added = [_parameter(name, _flag(name), None) for name in names]
        added += [
            _parameter("config", _Config, None),
            _parameter("as_json", _Json, False),
            _parameter("quiet", _Quiet, False),
        ]

        @wraps(function)
        def command(**given: Any) -> None:
            flags = {name: given.pop(name) for name in names}
            with guarded():
                _check_text(flags | given)
                session = Session.begin(
                    flags, config=given.pop("config"), as_json=given.pop("as_json"), quiet=given.pop("quiet")
                )
                function(session, **given)

        parameters = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in own] + added
        command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined] # read by typer
        command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        command.__doc__ = unwrapped(function.__doc__ or "")
        return command

    return wrap


def _check_text(given: Mapping[str, Any]) -> None:
    """Refuse arguments that are no text in the terminal's encoding; raises UsageError."""
    for name, value in given.items():
        if isinstance(value, str) and _surrogates(value):
            raise UsageError(f"{name.replace('_', '-')}: not valid text in this terminal's encoding, expected UTF-8")


def _surrogates(value: str) -> bool:
    return any("\ud800" <= character <= "\udfff" for character in value)


def _flag(name: str) -> Any:
    kind, meaning, default, panel = TEXTS[name]
    flag = "--" + name.replace("_", "-")
    return Annotated[kind | None, typer.Option(flag, help=meaning, show_default=default, rich_help_panel=panel)]


def _parameter(name: str, annotation: Any, default: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
