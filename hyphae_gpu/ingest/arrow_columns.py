"""One field of a Parquet batch to a checked Arrow column, without Python lists but for payloads, claims, text times."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hyphae_gpu.ingest.checks import codes_of, nulls_of, numbers_of, wholes_of
from hyphae_gpu.ingest.fields import INTERESTS_TYPE, Field, Sort
from hyphae_gpu.ingest.intake import Intake, check_vectors, vector_column
from hyphae_gpu.ingest.json_columns import each, payload_text
from hyphae_gpu.ingest.json_text import parse_object
from hyphae_gpu.ingest.problems import I64, Mask, Problems, quote
from hyphae_gpu.ingest.times import EARLIEST, LATEST, microseconds
from hyphae_gpu.vocabulary import KnowledgeType, names

_WORDS: Final = names(KnowledgeType)
_TICKS: Final = {"s": 1_000_000, "ms": 1_000, "us": 1}


def _is_text(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def _is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def _is_numbers(kind: pa.DataType) -> bool:
    return _is_list(kind) and (pa.types.is_integer(kind.value_type) or pa.types.is_floating(kind.value_type))


def _is_interests(kind: pa.DataType) -> bool:
    if pa.types.is_map(kind):
        return _is_text(kind.key_type) and _is_number(kind.item_type)
    return pa.types.is_struct(kind) and all(_is_number(part.type) or pa.types.is_null(part.type) for part in kind)


def _is_time(kind: pa.DataType) -> bool:
    return (pa.types.is_timestamp(kind) and kind.tz is not None) or _is_text(kind) or _is_number(kind)


def _is_claim(kind: pa.DataType) -> bool:
    return pa.types.is_struct(kind) and {part.name for part in kind} == {"subject", "value"} and kind.num_fields == 2


_ALLOWED: Final = {
    Sort.ID: (lambda kind: _is_text(kind) or pa.types.is_integer(kind), "string or int64"),
    Sort.TEXT: (_is_text, "string"),
    Sort.WORD: (_is_text, "string"),
    Sort.NUMBER: (_is_number, "a number"),
    Sort.WHOLE: (pa.types.is_integer, "an integer"),
    Sort.TIME: (_is_time, "timestamp with zone, string or epoch seconds"),
    Sort.VECTOR: (_is_numbers, "list<float>"),
    Sort.INTERESTS: (_is_interests, "map<string, float>"),
    Sort.CLAIM: (_is_claim, "struct<subject: string, value: string>"),
    Sort.PAYLOAD: (lambda kind: _is_text(kind) or pa.types.is_struct(kind), "string (JSON text) or struct"),
}


def type_problem(kind: pa.DataType, sort: Sort) -> str | None:
    """Return why a column of this type cannot hold such a field, None when it can."""
    allowed, expected = _ALLOWED[sort]
    if isinstance(kind, pa.BaseExtensionType):
        kind = kind.storage_type
    if pa.types.is_null(kind) or allowed(kind):
        return None
    return f"has type {quote(str(kind))}, expected {expected}"


def column_of(name: str, field: Field, column: pa.Array, keys: I64, intake: Intake) -> dict[str, pa.Array]:
    """Return the checked columns that a field makes, of the types of `rows.schemas`; none where nothing is usable."""
    problems = intake.problems
    if isinstance(column, pa.ExtensionArray):
        column = column.storage
    if pa.types.is_null(column.type):
        return {}
    found: pa.Array | None = None
    match field.sort:
        case Sort.CLAIM:
            return _claims(name, column, keys, problems)
        case Sort.VECTOR:
            found = vectors_of(name, column, keys, intake)
        case Sort.ID:
            found = _ids(name, column, keys, problems)
        case Sort.TEXT:
            found = texts_of(name, column, keys, problems)
        case Sort.WORD:
            found = codes_of(name, texts_of(name, column, keys, problems), field.words, keys, problems)
        case Sort.NUMBER:
            found = numbers_of(name, _doubles(column), nulls_of(column), field, keys, problems)
        case Sort.WHOLE:
            found = wholes_of(name, _int64s(column), nulls_of(column), field, keys, problems)
        case Sort.INTERESTS:
            found = interests_of(name, column, keys, problems)
        case Sort.TIME:
            found = _times(name, column, keys, problems)
        case Sort.PAYLOAD:
            texts = column if pa.types.is_struct(column.type) else texts_of(name, column, keys, problems)
            found = each(name, _payload, texts.to_pylist(), keys, problems, pa.string())
    return {} if found is None else {name: found}


def _payload(value: Any) -> str:
    return payload_text(parse_object(value.encode()) if isinstance(value, str) else value)


def texts_of(name: str, column: pa.Array, keys: I64, problems: Problems) -> pa.Array:
    """Return texts as a string column; bad UTF-8 and NUL are refused and become null."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if column.type != pa.string():
        column = column.cast(pa.string())
    try:
        column.validate(full=True)
        broken = np.zeros(len(column), np.bool_)
    except pa.ArrowInvalid:
        raw = column.cast(pa.binary())
        broken = np.fromiter((not _is_utf8(value.as_py()) for value in raw), np.bool_, len(raw))
    problems.add_where(keys, broken, f"bad UTF-8 in {name}")
    nul = pc.match_substring(column, "\0").fill_null(False).to_numpy(zero_copy_only=False)
    problems.add_where(keys, nul, f"NUL in text {name}")
    bad = broken | nul
    return pc.if_else(pa.array(bad), pa.scalar(None, pa.string()), column) if bad.any() else column


def _ids(name: str, column: pa.Array, keys: I64, problems: Problems) -> pa.Array:
    """Return ids as large_string or int64; 64-bit offsets, so that the ids of a whole file fit one array."""
    if pa.types.is_integer(column.type):
        return column.cast(pa.int64())
    found = texts_of(name, column, keys, problems)
    empty = pc.equal(pc.binary_length(found), 0).fill_null(False).to_numpy(zero_copy_only=False)
    problems.add_where(keys, empty, f"{name} is empty")
    return found.cast(pa.large_string())


def _is_utf8(value: bytes | None) -> bool:
    try:
        (value or b"").decode()
    except UnicodeDecodeError:
        return False
    return True


def _doubles(column: pa.Array) -> npt.NDArray[np.float64]:
    """Return numbers as float64; whatever stands for null must be masked out by the caller."""
    if pa.types.is_decimal(column.type):
        column = column.cast(pa.float64())
    values = column.fill_null(0).to_numpy(zero_copy_only=False) if column.null_count else column.to_numpy()
    return np.asarray(values).astype(np.float64, copy=False)


def _int64s(column: pa.Array) -> npt.NDArray[np.int64]:
    values = np.asarray(column.fill_null(0).to_numpy(zero_copy_only=False))
    if values.dtype == np.uint64:
        values = np.minimum(values, np.uint64(2**63 - 1))
    return values.astype(np.int64)


def vectors_of(name: str, column: pa.Array, keys: I64, intake: Intake) -> pa.Array | None:
    """Return vectors as a fixed size list column of float32, or None where no row has a usable one."""
    problems, dimension = intake.problems, intake.dimension
    present = ~nulls_of(column)
    lengths = pc.list_value_length(column).fill_null(-1).to_numpy(zero_copy_only=False)
    fine = present.copy()
    distinct, first = np.unique(lengths, return_index=True)
    for at in np.sort(first[distinct >= 0]).tolist():
        length = int(lengths[at])
        reason = dimension.refuse(length, problems.place(int(keys[at])))
        if reason is not None:
            problems.add_where(keys, lengths == length, reason)
            fine &= lengths != length
    if not fine.any():
        return None
    values = (column if fine.all() else column.filter(pa.array(fine))).flatten()
    size = int(dimension.expected or 0)
    if values.null_count:
        holes, where = np.unique(np.flatnonzero(nulls_of(values)) // size, return_index=True)
        at_hole = np.flatnonzero(nulls_of(values))[where] % size
        problems.add(keys[fine][holes], lambda row: f"{name}[{at_hole[row]}] is null, expected a number")
        values = values.fill_null(1)
    wide = values.to_numpy(zero_copy_only=False).reshape(-1, size)
    return vector_column(check_vectors(wide, keys[fine], problems), fine)


def interests_of(name: str, column: pa.Array, keys: I64, problems: Problems) -> pa.Array:
    """Return interests as nine float32 by knowledge type, null where a row declares none."""
    matrix = interest_matrix(name, column, keys, problems)
    flat = pa.array(matrix.reshape(-1))
    return pa.FixedSizeListArray.from_arrays(flat, type=INTERESTS_TYPE, mask=pa.array(~matrix.any(axis=1)))


def interest_matrix(name: str, column: pa.Array, keys: I64, problems: Problems) -> npt.NDArray[np.float32]:
    """Return what each row declares, float32 [n, 9] by knowledge type, 0 where nothing is (spec 1.6)."""
    matrix = np.zeros((len(column), len(_WORDS)), np.float32)
    for words, numbers, owners in _declarations(column):
        known = codes_of(name, words, _WORDS, keys[owners], problems, "knowledge type in ")
        codes = known.fill_null(-1).to_numpy(zero_copy_only=False)
        values = _doubles(numbers)
        usable = (codes >= 0) & ~nulls_of(numbers)
        outside = usable & ~((values >= 0) & (values <= 1))

        def reason(at: int, codes: Any = codes, values: Any = values) -> str:
            return f"{name} of {_WORDS[codes[at]]} is {values[at]:.9g}, expected [0, 1]"

        problems.add_where(keys[owners], outside, reason)
        cells = owners[usable].astype(np.int64) * len(_WORDS) + codes[usable]
        _, firsts = np.unique(cells, return_index=True)
        again = np.ones(len(cells), np.bool_)
        again[firsts] = False
        problems.add_where(keys[owners[usable]], again, f"{name} names a knowledge type twice")
        fine = usable & ~outside
        matrix[owners[fine], codes[fine]] = values[fine] + 0.0
    return matrix


def _declarations(column: pa.Array) -> list[tuple[pa.Array, pa.Array, npt.NDArray[np.int64]]]:
    """Return the declared (words, numbers, rows) of a map or struct column."""
    if pa.types.is_null(column.type):
        return []
    if pa.types.is_map(column.type):
        offsets = column.offsets.to_numpy()
        owners = np.repeat(np.arange(len(column)), np.diff(offsets))
        held = ~nulls_of(column)[owners]
        words = column.keys.slice(int(offsets[0]), len(owners)).cast(pa.string())
        numbers = column.items.slice(int(offsets[0]), len(owners))
        return [(words.filter(pa.array(held)), numbers.filter(pa.array(held)), owners[held])]
    found = []
    for part in column.type:
        numbers = pc.struct_field(column, part.name)
        if not pa.types.is_null(numbers.type):
            owners = np.flatnonzero(~nulls_of(numbers))
            found.append((pa.array([part.name] * len(owners), pa.string()), numbers.drop_null(), owners))
    return found


def _times(name: str, column: pa.Array, keys: I64, problems: Problems) -> pa.Array:
    """Return times as int64 microseconds since 1970 UTC."""
    if _is_text(column.type):
        return each(name, microseconds, texts_of(name, column, keys, problems).to_pylist(), keys, problems, pa.int64())
    absent = nulls_of(column)
    if pa.types.is_timestamp(column.type):
        unit = column.type.unit
        column = column.cast(pa.int64())
        ticks = _int64s(column)
        found, inside = (ticks // 1000, _everywhere(ticks)) if unit == "ns" else _scaled(ticks, _TICKS[unit])
        inside &= (found >= EARLIEST) & (found <= LATEST)
    elif pa.types.is_integer(column.type):
        found, inside = _scaled(_int64s(column), _TICKS["s"])
    else:
        with np.errstate(over="ignore", invalid="ignore"):
            wide = np.rint(_doubles(column) * 1e6)
            inside = (wide >= EARLIEST) & (wide <= LATEST)
            found = np.where(inside, wide, 0.0).astype(np.int64)
    problems.add_where(
        keys, ~inside & ~absent, lambda row: f"{name} {column[row]} is out of range, expected the years 1 to 9999"
    )
    return pa.array(found, mask=absent | ~inside)


def _everywhere(values: npt.NDArray[Any]) -> Mask:
    return np.ones(len(values), np.bool_)


def _scaled(ticks: npt.NDArray[np.int64], factor: int) -> tuple[npt.NDArray[np.int64], Mask]:
    """Return ticks * factor and where that lies within the allowed years; 0 elsewhere, so that nothing wraps round."""
    inside = (ticks >= -(-EARLIEST // factor)) & (ticks <= LATEST // factor)
    return np.where(inside, ticks, 0) * factor, inside


def _claims(name: str, column: pa.Array, keys: I64, problems: Problems) -> dict[str, pa.Array]:
    parts = {}
    given = {}
    for part in ("subject", "value"):
        raw = pc.struct_field(column, part)
        given[part] = ~nulls_of(raw)
        if not pa.types.is_null(raw.type) and not _is_text(raw.type):
            problems.add_where(keys, given[part], f"{name} {part} has type {raw.type}, expected a text")
            raw = pa.nulls(len(raw))
        parts[part] = texts_of(f"{name} {part}", raw.cast(pa.string()), keys, problems)
    for part, other in (("subject", "value"), ("value", "subject")):
        problems.add_where(keys, given[other] & ~given[part], f"{name} {part} missing")
    return {"claim_subject": parts["subject"], "claim_value": parts["value"]}
