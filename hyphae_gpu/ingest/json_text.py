"""JSON text to objects, stricter than Python: no repeated keys, no NaN, nothing that UTF-8 text cannot store."""

from __future__ import annotations

import json
import re
from typing import Any, Final

from hyphae_gpu.ingest.problems import quote

# Escapes that may hide a NUL or half a surrogate pair from the checks of the bytes.
_SUSPICIOUS: Final = re.compile(rb"\\u(?:0000|[dD][89a-fA-F])")


class RefusedError(ValueError):
    """Text that is no acceptable JSON object; the message is the reason."""


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in found if keys.count(key) > 1)
        raise RefusedError(f"key {quote(twice)} stands twice in one object")
    return found


def _no_constant(word: str) -> Any:
    raise RefusedError(f"{word} is no number of JSON")


_DECODER: Final = json.JSONDecoder(object_pairs_hook=_object, parse_constant=_no_constant)


def parse_object(line: bytes) -> dict[str, Any]:
    """Return the object that a line of UTF-8 holds; raises RefusedError with the reason."""
    try:
        row = _DECODER.decode(line.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise RefusedError(f"bad UTF-8 at byte {error.start + 1} of the line") from None
    except RecursionError:
        raise RefusedError("JSON nested too deeply") from None
    except json.JSONDecodeError as error:
        raise RefusedError(f"no JSON: {error.msg} at column {error.pos + 1}") from None
    except RefusedError:
        raise
    except ValueError:
        raise RefusedError("a number has too many digits") from None
    if type(row) is not dict:
        raise RefusedError(f"{quote(row)} is no JSON object")
    if _SUSPICIOUS.search(line):
        _check_texts(row)
    return row


def _check_texts(value: Any) -> None:
    """Refuse NUL and half surrogate pairs in any text or key: neither can be stored as UTF-8 text."""
    todo = [value]
    while todo:
        value = todo.pop()
        if isinstance(value, str):
            if "\0" in value:
                raise RefusedError(f"NUL in text {quote(value)}")
            if not value.isascii() and any("\ud800" <= character <= "\udfff" for character in value):
                raise RefusedError(f"half a surrogate pair in text {quote(value)}")
        elif isinstance(value, dict):
            todo.extend(value)
            todo.extend(value.values())
        elif isinstance(value, list):
            todo.extend(value)
