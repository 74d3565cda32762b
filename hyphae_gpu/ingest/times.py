"""Times: ISO 8601 with a zone, or epoch seconds, to int64 microseconds since 1970 UTC."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

from hyphae_gpu.ingest.problems import quote

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
#: The years 1 to 9999, which Python and PostgreSQL can both tell.
EARLIEST: Final = (datetime.min.replace(tzinfo=UTC) - _EPOCH) // _MICROSECOND
LATEST: Final = (datetime.max.replace(tzinfo=UTC) - _EPOCH) // _MICROSECOND


def microseconds(value: object) -> int:
    """Return a time as given in JSON in microseconds; raises ValueError with the reason where it is refused."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ValueError(f"{quote(value)} is no time, expected ISO 8601 with zone, or epoch seconds")
    if isinstance(value, str):
        found = _from_text(value)
    elif isinstance(value, int):
        found = value * 1_000_000
    else:
        # NaN fails the comparison; beyond it the product could be infinite.
        found = round(value * 1e6) if abs(value) < 1e12 else LATEST + 1
    if not EARLIEST <= found <= LATEST:
        raise ValueError(f"{quote(value)} is out of range, expected the years 1 to 9999")
    return found


def _from_text(text: str) -> int:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"{quote(text)} is no ISO 8601 time such as 2026-01-31T12:00:00Z") from None
    if moment.tzinfo is None:
        raise ValueError(f"{quote(text)} has no zone, add Z or an offset such as +01:00")
    return (moment - _EPOCH) // _MICROSECOND
