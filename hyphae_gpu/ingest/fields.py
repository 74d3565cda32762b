"""What a row of each kind may hold: the table behind interfaces.md, "Rows that `ingest` takes"."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

import pyarrow as pa

from hyphae_gpu.ingest.problems import quote
from hyphae_gpu.vocabulary import EdgeType, KnowledgeType, names


class Sort(Enum):
    """How a field is written in files, and the Arrow type that its checked column has."""

    ID = auto()  # of graph files: text or an integer -> large_string or int64
    TEXT = auto()  # text -> string
    WORD = auto()  # one of the field's words -> int8 code
    NUMBER = auto()  # a real -> float32, or float64 where the field is `wide`
    WHOLE = auto()  # an integer -> int32
    TIME = auto()  # ISO 8601 with zone, or epoch seconds -> int64 microseconds
    VECTOR = auto()  # a list of reals -> fixed size list of float32
    INTERESTS = auto()  # {knowledge type: 0..1} -> nine float32
    CLAIM = auto()  # {"subject", "value"} -> two strings
    PAYLOAD = auto()  # a JSON object -> its text


@dataclass(frozen=True, kw_only=True)
class Field:
    """One field of a row. `low` and `high` are inclusive, unless `above_low` or `below_high` say otherwise."""

    sort: Sort
    needed: bool = False
    low: float = 0.0
    high: float = 1.0
    above_low: bool = False
    below_high: bool = False
    wide: bool = False
    words: tuple[str, ...] = ()

    @property
    def range(self) -> str:
        """The allowed range as messages write it."""
        return f"{'(' if self.above_low else '['}{self.low:.10g}, {self.high:.10g}{')' if self.below_high else ']'}"


_ID: Final = Field(sort=Sort.TEXT, needed=True)
_TEXT: Final = Field(sort=Sort.TEXT)
_UNIT: Final = Field(sort=Sort.NUMBER)
_VECTOR: Final = Field(sort=Sort.VECTOR)
_INTERESTS: Final = Field(sort=Sort.INTERESTS)
WEIGHT: Final = Field(sort=Sort.NUMBER, needed=True, above_low=True)
BANDWIDTH: Final = Field(sort=Sort.WHOLE, low=1.0, high=2.0**31 - 1)

FIELDS: Final[dict[str, dict[str, Field]]] = {
    "cell": {
        "id": _ID,
        "text": _TEXT,
        "embedding": _VECTOR,
        "knowledge_type": Field(sort=Sort.WORD, needed=True, words=names(KnowledgeType)),
        "salience": _UNIT,
        "confidence": _UNIT,
        "agent": _TEXT,
        "created_at": Field(sort=Sort.TIME),
        "supersedes": _TEXT,
        "claim": Field(sort=Sort.CLAIM),
        "stance": Field(sort=Sort.NUMBER, low=-1.0),
        "payload": Field(sort=Sort.PAYLOAD),
    },
    "agent": {
        "id": _ID,
        "embedding": _VECTOR,
        "interests": _INTERESTS,
        "trust": _UNIT,
        "sponsor": _TEXT,
    },
    "beacon": {
        "id": _ID,
        "agent": _ID,
        "text": _TEXT,
        "embedding": _VECTOR,
        "interests": _INTERESTS,
        "radius": Field(sort=Sort.NUMBER, low=-1.0, wide=True),
    },
    "access": {
        "agent": _ID,
        "cell": _ID,
        "at": Field(sort=Sort.TIME, needed=True),
    },
    "edge": {
        "src": _ID,
        "tgt": _ID,
        "type": Field(sort=Sort.WORD, needed=True, words=names(EdgeType)),
        "weight": WEIGHT,
        "bandwidth": BANDWIDTH,
    },
}

INTERESTS_TYPE: Final = pa.list_(pa.float32(), len(KnowledgeType))


def unknown_field(kind: str, name: str, fields: dict[str, Field]) -> str:
    """Return why a field that rows of a kind do not have is refused."""
    if name == "interests":
        return f"interests on {kind}: only agents and beacons declare interests"
    where = "; other data goes into payload" if "payload" in fields else ""
    return f"unknown field {quote(name)} of {kind}, known are {', '.join(fields)}{where}"
