"""The binary COPY format, byte by byte, and back."""

from __future__ import annotations

import numpy as np
import psycopg
import pyarrow as pa
import pytest

from hyphae_gpu.store import copy, copy_out


def encoded(*fields: copy.Field) -> bytes:
    return b"".join(block.tobytes() for block in copy.encode(fields))


def test_numbers_have_their_golden_bytes():
    row = encoded(
        copy.int16(np.array([-2])),
        copy.int32(np.array([1])),
        copy.int64(np.array([2**40])),
        copy.float32(np.array([1.5])),
        copy.float64(np.array([-0.0])),
        copy.boolean(np.array([True])),
    )
    assert row.hex(" ", 1) == (
        "00 06 "
        "00 00 00 02 ff fe "
        "00 00 00 04 00 00 00 01 "
        "00 00 00 08 00 00 01 00 00 00 00 00 "
        "00 00 00 04 3f c0 00 00 "
        "00 00 00 08 80 00 00 00 00 00 00 00 "
        "00 00 00 01 01"
    )


def test_a_timestamp_counts_from_the_year_2000():
    assert encoded(copy.timestamps(np.array([946_684_800_000_001]))).hex() == "0001000000080000000000000001"


def test_a_vector_has_pgvectors_golden_bytes():
    row = encoded(copy.vectors(np.array([[1.0, -2.0]], np.float32)))
    assert row.hex() == "00010000000c000200003f800000c0000000"


def test_text_json_words_and_nulls_have_their_golden_bytes():
    rows = encoded(
        copy.text(pa.array(["é", None])),
        copy.jsonb(pa.array([None, "{}"])),
        copy.words(np.array([1, -1]), ["a", "bc"]),
        copy.reference(np.array([-1, 0])),
    )
    first = "000400000002c3a9ffffffff000000026263ffffffff"
    second = "0004ffffffff00000003017b7dffffffff000000080000000000000000"
    assert rows.hex() == first + second


def test_no_rows_are_no_bytes():
    assert encoded(copy.int64(np.zeros(0)), copy.text(pa.array([], pa.string()))) == b""


def test_columns_of_different_lengths_are_refused():
    with pytest.raises(ValueError, match="differ in length"):
        encoded(copy.int64(np.zeros(2)), copy.int64(np.zeros(3)))


@pytest.mark.parametrize("block", [1, 100, 1 << 20])
@pytest.mark.parametrize("count", [0, 1, 2, 31, 32, 33, 1000])
def test_what_is_copied_in_is_copied_out_at_any_block_size(server, monkeypatch, block, count):
    monkeypatch.setattr(copy, "BLOCK_BYTES", block)
    monkeypatch.setattr(copy_out, "BLOCK_BYTES", block)
    rng = np.random.default_rng(count)
    valid = rng.random(count) < 0.7
    given = {
        "a": rng.integers(-(2**62), 2**62, count),
        "b": rng.normal(size=count).astype(np.float32),
        "c": pa.array([None if i % 3 == 0 else "x" * (i % 50) + "€" for i in range(count)], pa.string()),
        "d": rng.integers(-1, 3, count).astype(np.int8),
        "e": rng.normal(size=(count, 3)).astype(np.float32),
    }
    with psycopg.connect(server.conninfo) as connection:
        connection.execute("create extension if not exists vector")
        connection.execute("create temp table t (i int, a bigint, b real, c text, d text, e vector(3))")
        fields = [
            copy.int32(np.arange(count)),
            copy.int64(given["a"]),
            copy.float32(given["b"], valid),
            copy.text(given["c"]),
            copy.words(given["d"], ["one", "two", "three"]),
            copy.vectors(given["e"], valid),
        ]
        with connection.cursor().copy("copy t from stdin (format binary)") as stream:
            stream.write(copy.HEADER + encoded(*fields) + copy.TRAILER)
        readers = [
            copy_out.numbers(">i8"),
            copy_out.numbers(">f4", 7.0),
            copy_out.strings(),
            copy_out.codes(["one", "two", "three"]),
            copy_out.vector_rows(3),
        ]
        a, b, c, d, e = copy_out.copy_out(connection, "select a, b, c, d, e from t order by i", readers)
    assert a.tolist() == given["a"].tolist()
    assert b.tolist() == np.where(valid, given["b"], np.float32(7)).tolist()
    assert c.to_pylist() == given["c"].to_pylist()
    assert d.tolist() == given["d"].tolist()
    assert e.tolist() == np.where(valid[:, None], given["e"], np.float32(0)).tolist()


def test_a_sliced_arrow_column_sends_its_own_rows():
    whole = pa.array(["no", "yes", None, "no"])
    assert encoded(copy.text(whole.slice(1, 2))) == encoded(copy.text(pa.array(["yes", None])))
    chunked = pa.chunked_array([pa.array(["yes"]), pa.array([None], pa.string())])
    assert encoded(copy.text(chunked)) == encoded(copy.text(whole.slice(1, 2)))


def test_an_unknown_word_is_named():
    data = np.frombuffer(encoded(copy.text(pa.array(["four"]))), np.uint8)
    starts, lengths, _ = copy_out.split(data, 0, 1)
    with pytest.raises(ValueError, match=r"'four'.*one, two"):
        copy_out.codes(["one", "two"])(data, starts[:, 0].copy(), lengths[:, 0].copy())
