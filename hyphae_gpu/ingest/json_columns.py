"""One field of many JSON rows to an Arrow column; values of a wrong type are refused by row.

Each function takes the values of a chunk as parsed, None where the field was left out, and the rows' keys.
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hyphae_gpu.ingest.checks import codes_of, numbers_of, wholes_of
from hyphae_gpu.ingest.fields import INTERESTS_TYPE, Field, Sort
from hyphae_gpu.ingest.intake import Intake, check_vectors, vector_column
from hyphae_gpu.ingest.problems import I64, Problems, quote
from hyphae_gpu.ingest.times import microseconds
from hyphae_gpu.vocabulary import KnowledgeType, names

_KNOWLEDGE_CODES = {word: code for code, word in enumerate(names(KnowledgeType))}
_INT64 = 1 << 63


def column_of(name: str, field: Field, values: list[Any], keys: I64, intake: Intake) -> dict[str, pa.Array]:
    """Return the checked columns that a field makes, of the types of `rows.schemas`; none where nothing is usable."""
    problems = intake.problems
    found: pa.Array | None = None
    match field.sort:
        case Sort.CLAIM:
            return _claims(name, values, keys, problems)
        case Sort.VECTOR:
            found = _vectors(name, values, keys, intake)
        case Sort.TEXT:
            found = texts(name, values, keys, problems)
        case Sort.WORD:
            found = codes_of(name, texts(name, values, keys, problems), field.words, keys, problems)
        case Sort.NUMBER | Sort.WHOLE:
            found = _numbers(name, field, values, keys, problems)
        case Sort.INTERESTS:
            found = each(name, _interests, values, keys, problems, INTERESTS_TYPE)
        case Sort.TIME:
            found = each(name, microseconds, values, keys, problems, pa.int64())
        case Sort.PAYLOAD:
            found = each(name, payload_text, values, keys, problems, pa.string())
    return {} if found is None else {name: found}


def texts(name: str, values: list[Any], keys: I64, problems: Problems) -> pa.Array:
    """Return texts as a string column; what is no text is refused."""
    if not set(map(type, values)) <= {str, type(None)}:
        for row, value in enumerate(values):
            if value is not None and type(value) is not str:
                problems.add_one(int(keys[row]), f"{name} is {quote(value)}, expected a text")
        values = [value if type(value) is str else None for value in values]
    return pa.array(values, pa.string())


def each(
    name: str, convert: Callable[[Any], object], values: list[Any], keys: I64, problems: Problems, kind: pa.DataType
) -> pa.Array:
    """Return a column made value by value; the text of a ValueError of `convert` is the reason of refusal."""
    found: list[Any] = []
    for row, value in enumerate(values):
        try:
            found.append(None if value is None else convert(value))
        except ValueError as error:
            problems.add_one(int(keys[row]), f"{name} {error}")
            found.append(None)
    return pa.array(found, kind)


def _numbers(name: str, field: Field, values: list[Any], keys: I64, problems: Problems) -> pa.Array:
    whole = field.sort is Sort.WHOLE
    allowed = {int} if whole else {int, float}
    if not set(map(type, values)) <= allowed | {type(None)}:
        wanted = "a whole number" if whole else "a number"
        for row, value in enumerate(values):
            if value is not None and type(value) not in allowed:
                problems.add_one(int(keys[row]), f"{name} is {quote(value)}, expected {wanted}")
        values = [value if type(value) in allowed else None for value in values]
    absent = np.fromiter((value is None for value in values), np.bool_, len(values))
    if whole:
        near = [0 if value is None else max(-_INT64, min(value, _INT64 - 1)) for value in values]
        return wholes_of(name, np.array(near, np.int64), absent, field, keys, problems)
    return numbers_of(name, _doubles(values), absent, field, keys, problems)


def _doubles(values: Sequence[int | float | None]) -> npt.NDArray[np.float64]:
    try:
        return np.array([0.0 if value is None else value for value in values], np.float64)
    except OverflowError:
        # An integer beyond float64 is out of any range, as infinity is.
        return np.array([_double(value) for value in values], np.float64)


def _double(value: int | float | None) -> float:
    try:
        return float(value or 0.0)
    except OverflowError:
        return float("inf") if value and value > 0 else float("-inf")


def _vectors(name: str, values: list[Any], keys: I64, intake: Intake) -> pa.Array | None:
    """Return the vectors as a column, or None where no row has a usable one."""
    problems, dimension = intake.problems, intake.dimension
    flat = array("d")
    rows: list[int] = []
    for row, value in enumerate(values):
        if value is None:
            continue
        reason = None if type(value) is list else f"{name} is {quote(value)}, expected a list of numbers"
        reason = reason or dimension.refuse(len(value), problems.place(int(keys[row])))
        if reason is None and not set(map(type, value)) <= {int, float}:
            at, wrong = next((i, x) for i, x in enumerate(value) if type(x) not in (int, float))
            reason = f"{name}[{at}] is {quote(wrong)}, expected a number"
        if reason is not None:
            problems.add_one(int(keys[row]), reason)
            continue
        try:
            flat.fromlist(value)
        except OverflowError:
            flat.extend(map(_double, value))
        rows.append(row)
    if not rows:
        return None
    wide = np.frombuffer(flat, np.float64).reshape(len(rows), -1)
    present = np.zeros(len(values), np.bool_)
    present[rows] = True
    return vector_column(check_vectors(wide, keys[rows], problems), present)


def _interests(value: Any) -> list[float] | None:
    """Return nine interests of a JSON object; raises ValueError with the reason."""
    if type(value) is not dict:
        raise ValueError(f"is {quote(value)}, expected an object of knowledge types")
    found = [0.0] * len(_KNOWLEDGE_CODES)
    for word, number in value.items():
        if word not in _KNOWLEDGE_CODES:
            raise ValueError(f"names unknown knowledge type {quote(word)}, known are {', '.join(_KNOWLEDGE_CODES)}")
        if type(number) not in (int, float) or not 0 <= number <= 1:
            raise ValueError(f"of {word} is {quote(number)}, expected a number in [0, 1]")
        found[_KNOWLEDGE_CODES[word]] = float(number) + 0.0  # -0.0 becomes 0.0
    return found if value else None


def _claims(name: str, values: list[Any], keys: I64, problems: Problems) -> dict[str, pa.Array]:
    subjects: list[str | None] = [None] * len(values)
    stated: list[str | None] = [None] * len(values)
    for row, claim in enumerate(values):
        if claim is None:
            continue
        reason = claim_problem(claim)
        if reason is None:
            subjects[row], stated[row] = claim["subject"], claim["value"]
        else:
            problems.add_one(int(keys[row]), f"{name} {reason}")
    return {"claim_subject": pa.array(subjects, pa.string()), "claim_value": pa.array(stated, pa.string())}


def claim_problem(claim: Any) -> str | None:
    """Return what is wrong with a claim, None when it has a subject and a value, both texts."""
    if type(claim) is not dict:
        return f'is {quote(claim)}, expected {{"subject": text, "value": text}}'
    for part in claim:
        if part not in ("subject", "value"):
            return f"has unknown field {quote(part)}, known are subject, value"
    for part in ("subject", "value"):
        if type(claim.get(part)) is not str:
            return f"{part} is {quote(claim[part])}, expected a text" if part in claim else f"{part} missing"
    return None


def payload_text(value: Any) -> str:
    """Return a payload's JSON text; raises ValueError unless it is an object of finite numbers."""
    if type(value) is not dict:
        raise ValueError(f"is {quote(value)}, expected a JSON object")
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except ValueError:
        raise ValueError("holds a number out of range") from None
    except TypeError as error:
        raise ValueError(f"cannot be kept as JSON: {error}") from None
    except RecursionError:
        raise ValueError("is nested too deeply") from None
