"""The settings: flag > environment > TOML file > default. The only file that reads the environment.

Every rule's setting has the name that the spec gives it. `Settings(...)` itself reads nothing; `effective` gathers the
layers and remembers where each value came from.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar, Literal

from pydantic import Field, ValidationError, field_validator
from pydantic_settings import BaseSettings, EnvSettingsSource, PydanticBaseSettingsSource, SettingsConfigDict

from hyphae_gpu.errors import UsageError

#: The file that is read from the working directory when no other is named.
DEFAULT_FILE = Path("hyphae.toml")
#: Variables of this prefix that are no settings: test hooks and the scripts' own.
_NO_SETTINGS = {"HYPHAE_FAIL_POINT", "HYPHAE_REQUIRE_GPU", "HYPHAE_TORCH_INDEX"}
_TESTS_OWN = "HYPHAE_TEST_"
_INT32_MAX = 2**31 - 1
#: Numerator and denominator of a ratio at most: times the weights of all links they stay below 2^63.
_RATIO_LIMIT = 10_000


def available_cores() -> int:
    """Return how many cores this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class Settings(BaseSettings):
    """Every setting, checked once; frozen. The default is the spec's.

    Raises pydantic.ValidationError on an unknown name or a value out of its range.
    """

    model_config = SettingsConfigDict(
        frozen=True,
        extra="forbid",
        allow_inf_nan=False,
        env_prefix="HYPHAE_",
        env_ignore_empty=True,
        hide_input_in_errors=True,
    )

    sigma_min: float = Field(0.30, ge=-1, le=1, description="lowest score that opens a gate (spec 3.3)")
    cos_min: float = Field(0.25, ge=-1, le=1, description="lowest cosine that opens a gate (spec 3.3)")
    fanout: int = Field(10, ge=0, le=_INT32_MAX, description="semantic edges a node forwards over, 0 = all (spec 3.4)")
    max_hops: int = Field(64, ge=0, le=_INT32_MAX, description="hops after which a diff stops (spec 3.8)")
    loss: float = Field(0.0, ge=0, lt=1, description="share of transmissions dropped (spec 3.10)")
    seed: int = Field(0, ge=0, lt=2**64, description="seed of the losses (spec 3.10)")
    anti_entropy_every: int = Field(
        1, ge=1, le=_INT32_MAX, description="epochs from one that closes its waves with sweeps to the next (spec 7.2)"
    )
    ttl_epochs: int = Field(3, ge=1, le=_INT32_MAX, description="epochs a diff lives, the first included (spec 3.9)")
    decay_per_day: float = Field(0.99, gt=0, le=1, description="salience kept a day, 1 = no decay (spec 6.5)")
    salience_threshold: float = Field(0.05, ge=0, le=1, description="salience below which a cell is silent (spec 6.5)")
    access_unit_days: float = Field(1.0, gt=0, le=36_500, description="days per unit of recency (spec 1.3)")
    beacon_fanin: int = Field(32, ge=1, le=_INT32_MAX, description="cells a beacon listens to, at most (spec 1.5)")
    beacon_radius: float = Field(0.3, ge=-1, le=1, description="lowest cosine of a cell that a beacon hears (spec 1.5)")
    audience_limit: int | None = Field(
        None, ge=1, le=_INT32_MAX, description="agents a diff is kept for, those it concerns most (spec 3.13)"
    )
    inbox_limit: int = Field(50, ge=1, le=_INT32_MAX, description="gossip entries an agent gets an epoch (spec 3.14)")
    beacon_limit: int = Field(50, ge=1, le=_INT32_MAX, description="entries a beacon passes on an epoch (spec 3.14)")

    resolution: str = Field("2/1", description="how fine scenes are, a ratio NUM/DEN, higher = more (spec 6.4)")
    confirm_by: Literal["delivery", "agents"] = Field(
        "delivery", description="what counts for a promotion: what was reached, or who works on it (spec 5.3)"
    )
    pattern_eps: float = Field(0.80, ge=-1, le=1, description="lowest cosine within a pattern's group (spec 6.4)")
    summariser: str | None = Field(
        None,
        pattern=r"^[A-Za-z_][\w.]*:[A-Za-z_][\w.]*$",
        description="function that writes a pattern's text, as MODULE:FUNCTION (spec 6.4)",
    )
    theta_sim: float = Field(0.80, ge=-1, le=1, description="lowest cosine of two cells that contradict (spec 6.2)")
    policy: Literal["flag", "recency", "salience", "vote"] = Field(
        "flag", description="who wins a contradiction: flag leaves it open (spec 6.3)"
    )
    verifier: str | None = Field(
        None,
        pattern=r"^[A-Za-z_][\w.]*:[A-Za-z_][\w.]*$",
        description="function that judges text pairs, as MODULE:FUNCTION (spec 6.2)",
    )

    project: str = Field("default", pattern=r"^[a-z0-9_]{1,40}$", description="name of the project in the store")
    data_dir: Path = Field(Path("hyphae-data"), description="folder of the embedded PostgreSQL")
    database_url: str | None = Field(
        None, alias="database_url", repr=False, description="PostgreSQL to use instead of the embedded one"
    )
    embed: str | None = Field(None, description="embedder of rows with text only: lsa, sentence-transformers:NAME")
    device: Literal["auto", "cpu", "cuda"] = Field("auto", description="where gossip runs")
    threads: int = Field(
        default_factory=available_cores, ge=1, le=4096, description="CPU threads (default: the cores at hand)"
    )
    batch_size: int = Field(4096, ge=1, le=_INT32_MAX, description="diffs that are propagated together")

    #: The settings that decide what is computed; the others say where and how fast.
    RULES: ClassVar[tuple[str, ...]] = (
        "sigma_min",
        "cos_min",
        "fanout",
        "max_hops",
        "loss",
        "seed",
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

    @field_validator("*", mode="before")
    @classmethod
    def _no_truth_values(cls, value: Any) -> Any:
        """Refuse true and false, which would else be taken for 1 and 0."""
        if isinstance(value, bool):
            raise ValueError("expected a value, not true or false")
        return value

    @field_validator("resolution", mode="before")
    @classmethod
    def _ratio_reduced(cls, value: Any) -> str:
        """Take ``2/1``, ``2``, ``0.5`` alike, as the ratio in lowest terms, so that equal ones give equal results."""
        text = str(value).strip()
        given = re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,9}|/0*[1-9][0-9]{0,8})?", text)
        ratio = Fraction(text) if given else Fraction(0)
        if ratio <= 0 or max(ratio.numerator, ratio.denominator) > _RATIO_LIMIT:
            raise ValueError(f"expected a ratio such as 2/1, of whole numbers from 1 to {_RATIO_LIMIT:,}")
        return f"{ratio.numerator}/{ratio.denominator}"

    @field_validator("data_dir")
    @classmethod
    def _home_resolved(cls, value: Path) -> Path:
        return value.expanduser()

    @property
    def resolution_ratio(self) -> tuple[int, int]:
        """The resolution's numerator and denominator."""
        numerator, denominator = self.resolution.split("/")
        return int(numerator), int(denominator)

    def rules(self) -> dict[str, Any]:
        """Return the settings that decide what is computed, by name; the same dict gives the same results."""
        return {name: getattr(self, name) for name in self.RULES}

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Read keywords only: `effective` is where the other layers come in."""
        return (init_settings,)


@dataclass(frozen=True, kw_only=True)
class Effective:
    """The settings in force, and where each came from.

    sources: by name, ``flag --fanout``, ``environment HYPHAE_FANOUT``, the file's path, or ``default``.
    ignored: variables that look like settings and are none.
    """

    settings: Settings
    sources: dict[str, str]
    ignored: tuple[str, ...]

    def rows(self) -> list[tuple[str, Any, str]]:
        """Return (name, value, source) of every setting as it may be shown: paths as text, passwords masked."""
        return [(name, shown(name, getattr(self.settings, name)), self.sources[name]) for name in Settings.model_fields]


def effective(flags: Mapping[str, Any] | None = None, *, config: Path | None = None) -> Effective:
    """Gather the layers: `flags` (None = not given), the environment, `config` or ./hyphae.toml, the defaults.

    Raises UsageError that names each unknown or refused setting and the layer it came from.
    """
    layers: list[tuple[dict[str, Any], str]] = []
    file = config if config is not None else DEFAULT_FILE
    if config is not None or file.is_file():
        layers.append((_read_toml(file), str(file)))
    layers.append((EnvSettingsSource(Settings)(), "environment"))
    layers.append(({name: value for name, value in (flags or {}).items() if value is not None}, "flag"))
    values: dict[str, Any] = {}
    sources = dict.fromkeys(Settings.model_fields, "default")
    for layer, source in layers:
        for name, value in layer.items():
            values[name] = value
            sources[name] = _place(name, source)
    try:
        settings = Settings(**values)
    except ValidationError as refused:
        raise UsageError(_explain(refused, values, sources)) from None
    return Effective(settings=settings, sources=sources, ignored=_look_like_settings())


def variable(name: str) -> str:
    """Return the environment variable of a setting."""
    return "DATABASE_URL" if name == "database_url" else f"HYPHAE_{name.upper()}"


def shown(name: str, value: Any) -> Any:
    """Return a setting's value as it may be printed: paths as text, a database's password masked."""
    if isinstance(value, Path):
        return str(value)
    return masked(value) if name == "database_url" and value is not None else value


def masked(url: str) -> str:
    """Return a database URL or connection string without its password."""
    url = re.sub(r"://([^:/@?]*):(.*)@", r"://\1:***@", url, flags=re.DOTALL)
    return re.sub(r"(password\s*=\s*)('(?:[^'\\]|\\.)*'|[^\s&]+)", r"\1***", url)


def fail_point() -> str | None:
    """Return the store's fail point that a test armed, as ``HYPHAE_FAIL_POINT``; None in real life."""
    return os.environ.get("HYPHAE_FAIL_POINT") or None


def _read_toml(file: Path) -> dict[str, Any]:
    """Return a settings file's keys. Raises UsageError when it cannot be read or names what is no setting."""
    try:
        keys = tomllib.loads(file.read_text("utf-8"))
    except OSError as error:
        raise UsageError(f"{file}: cannot be read ({error.strerror}); expected a TOML file of settings") from None
    except UnicodeDecodeError:
        raise UsageError(f"{file}: not UTF-8 text; expected a TOML file of settings") from None
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{file}: not valid TOML: {error}") from None
    unknown = [key for key in keys if key not in Settings.model_fields]
    if unknown:
        raise UsageError(f"{file}: no such setting: {', '.join(unknown)}. Known: {', '.join(Settings.model_fields)}")
    return keys


def _place(name: str, source: str) -> str:
    if source == "environment":
        return f"environment {variable(name)}"
    return f"flag --{name.replace('_', '-')}" if source == "flag" else source


def _explain(refused: ValidationError, values: Mapping[str, Any], sources: Mapping[str, str]) -> str:
    lines = []
    for error in refused.errors():
        name = str(error["loc"][0])
        got = shown(name, values.get(name))
        lines.append(f"{name} = {got!r} ({sources.get(name, 'given')}): {_reason(name, error['msg'])}")
    return "\n".join(lines)


def _reason(name: str, message: str) -> str:
    if name == "project":
        return "expected 1 to 40 of the characters a-z, 0-9 and _"
    if name in ("verifier", "summariser"):
        return "expected MODULE:FUNCTION, such as my_package.nli:contradictions"
    message = message.removeprefix("Value error, ")
    return message[0].lower() + message[1:]


def _look_like_settings() -> tuple[str, ...]:
    known = _NO_SETTINGS | {variable(name) for name in Settings.model_fields}
    candidates = {name for name in os.environ if name.startswith("HYPHAE_") and not name.startswith(_TESTS_OWN)}
    return tuple(sorted(candidates - known))
