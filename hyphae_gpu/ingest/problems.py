"""Every bad row of an input, by file and row number, gathered before anything is written."""

from __future__ import annotations

import json
import os
from array import array
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from hyphae_gpu.errors import BadInputError

I64 = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

_NUMBER_BITS = 44
_SHOWN_CHARACTERS = 60


def quote(value: object) -> str:
    """Return a value as it may stand in a message: one printable line, long ones cut."""
    text = repr(value[: _SHOWN_CHARACTERS + 1]) if isinstance(value, str) else _plain(value)
    return text if len(text) <= _SHOWN_CHARACTERS + 2 else text[:_SHOWN_CHARACTERS] + "..."


def _plain(value: object) -> str:
    try:
        return json.dumps(value)
    except (TypeError, ValueError, RecursionError):
        return f"a {type(value).__name__}"


def place_key(file: int, number: int) -> int:
    """Return an integer that sorts as (file, row number) does; numbers count from 1, 0 is the whole file."""
    return (file << _NUMBER_BITS) + number


def place_keys(file: int, numbers: Sequence[int] | I64) -> I64:
    """Return `place_key` of many rows, int64."""
    return (np.int64(file) << np.int64(_NUMBER_BITS)) + np.asarray(numbers, np.int64)


class Problems:
    """What is wrong with an input. Rows are named by the keys of `place_keys`.

    Memory stays small however many rows are bad: all are counted, only the reasons of the first ones are kept.
    """

    def __init__(self, files: Sequence[Path]) -> None:
        # A file's name may hold bytes that are no UTF-8; a message may not.
        self._files = [os.fsencode(file).decode("utf-8", "replace") for file in files]
        self._many: list[I64] = []
        self._single: array[int] = array("q")
        self._reasons: dict[int, list[str]] = {}
        #: True once a whole file could not be read: what refers to its rows cannot be judged.
        self.file_lost = False

    def add(self, keys: I64, reason: str | Callable[[int], str]) -> None:
        """Refuse these rows; a function is asked for the reason of the row at a position in `keys`."""
        if not len(keys):
            return
        distinct, first = np.unique(keys, return_index=True)
        self._many.append(distinct)
        for key, at in zip(distinct[: BadInputError.shown].tolist(), first.tolist(), strict=False):
            self._keep(key, reason if isinstance(reason, str) else reason(at))

    def add_where(self, keys: I64, bad: Mask, reason: str | Callable[[int], str]) -> None:
        """Refuse the rows where `bad` is True; a function is asked by the position in `bad`."""
        if not bad.any():
            return
        at = np.flatnonzero(bad)
        self.add(keys[at], reason if isinstance(reason, str) else lambda i: reason(int(at[i])))

    def add_one(self, key: int, reason: str) -> None:
        """Refuse one row."""
        self._single.append(key)
        self._keep(key, reason)

    def add_file(self, file: int, reason: str) -> None:
        """Refuse a whole file."""
        self.file_lost = True
        self.add_one(place_key(file, 0), reason)

    @property
    def any(self) -> bool:
        """Whether any row was refused so far."""
        return bool(self._many or self._single)

    def place(self, key: int) -> str:
        """Return how messages name a row, as ``cells.jsonl row 7``."""
        file, number = divmod(key, 1 << _NUMBER_BITS)
        return f"{self._files[file]} row {number}" if number else self._files[file]

    def raise_if_any(self) -> None:
        """Raise BadInputError when any row was refused."""
        bad = np.unique(np.concatenate([*self._many, np.array(self._single, np.int64)]))
        if len(bad):
            first = sorted(self._reasons)[: BadInputError.shown]
            raise BadInputError([(self.place(key), "; ".join(self._reasons[key])) for key in first], len(bad))

    def raise_if_file_lost(self) -> None:
        """Raise BadInputError when a whole file was refused: checks between files would mislead."""
        if self.file_lost:
            self.raise_if_any()

    def _keep(self, key: int, reason: str) -> None:
        reasons = self._reasons
        if key not in reasons and len(reasons) >= 2 * BadInputError.shown:
            for late in sorted(reasons)[BadInputError.shown :]:
                del reasons[late]
            if key > max(reasons):
                return
        known: list[Any] = reasons.setdefault(key, [])
        if reason not in known:
            known.append(reason)
