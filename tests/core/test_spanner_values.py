"""Values in Spanner's form: as bytes of protobuf, as canonical texts, and back."""

from __future__ import annotations

from decimal import Context, Decimal
from functools import partial
from typing import Any

import pyarrow as pa
import pytest
from google.protobuf.struct_pb2 import ListValue, Value
from hypothesis import given
from hypothesis import strategies as st

from airflow_cdc_provider.connectors.arrow_types import arrow_type
from airflow_cdc_provider.core.table.schema import Kind, LogicalType
from airflow_cdc_provider.targets.spanner import mutations
from airflow_cdc_provider.targets.spanner.changes import Verb
from airflow_cdc_provider.targets.spanner.columns import SpannerType, StoredColumn, stored_type
from airflow_cdc_provider.targets.spanner.encoding import encode
from airflow_cdc_provider.targets.spanner.options import Json
from airflow_cdc_provider.targets.spanner.values import NULL, decode, key_of, number_text, scalars, text_of, texts

DIGITS = st.integers(-(10**38) + 1, 10**38 - 1)


def fraction(scale: int, digits: int) -> Decimal:
    return Context(prec=40).scaleb(Decimal(digits), -scale)


VALUES: list[tuple[LogicalType, st.SearchStrategy[Any]]] = [
    (LogicalType(Kind.BOOLEAN), st.booleans()),
    (LogicalType(Kind.INT64), st.integers(-(2**63), 2**63 - 1)),
    (LogicalType(Kind.FLOAT32), st.floats(width=32)),
    (LogicalType(Kind.FLOAT64), st.floats()),
    *((LogicalType(Kind.DECIMAL, 38, scale), DIGITS.map(partial(fraction, scale))) for scale in (9, 38)),
    (LogicalType(Kind.TEXT), st.text()),
    (LogicalType(Kind.BYTES), st.binary()),
    (LogicalType(Kind.DATE), st.dates()),
    (LogicalType(Kind.TIMESTAMP), st.datetimes()),
]


@pytest.mark.parametrize(("kind", "values"), VALUES, ids=str)
def test_values_come_back_as_they_were_written(kind: LogicalType, values: st.SearchStrategy[Any]) -> None:
    column = StoredColumn("c", kind, stored_type(kind, False, Json.TEXT))

    @given(st.lists(st.none() | values, max_size=5))
    def check(given: list[Any]) -> None:
        written = pa.array(given, arrow_type(kind))
        values = encoded_values(written, column.type)
        read = decode(values, column)
        assert repr(read.to_pylist()) == repr(written.to_pylist()) and read.type == written.type
        assert [text_of(value) for value in values] == list(scalars(written, column.type))

    check()


@pytest.mark.parametrize(
    ("kind", "one", "other"),
    [
        (SpannerType.TIMESTAMP, "2020-01-01T00:00:00.500000Z", "2020-01-01T00:00:00.5Z"),
        (SpannerType.TIMESTAMP, "2020-01-01T00:00:00Z", "2020-01-01T00:00:00.000Z"),
        (SpannerType.NUMERIC, "10.50", "10.5"),
        (SpannerType.NUMERIC, "10", "10.0"),
    ],
)
def test_keys_are_equal_however_the_server_writes_them(kind: SpannerType, one: str, other: str) -> None:
    keys = [key_of([Value(string_value=text)], [kind]) for text in (one, other)]
    assert keys[0] == keys[1]


def encoded_values(array: pa.Array, kind: SpannerType) -> list[Value]:
    return [value for one in encode(array, kind).to_pylist() for value in ListValue.FromString(one).values]


ROWS = st.lists(st.tuples(st.text(max_size=300), st.none() | st.booleans(), st.none() | st.floats()), max_size=5)


@given(ROWS)
def test_rows_are_encoded_as_protobuf_encodes_them(given: list[tuple[str, bool | None, float | None]]) -> None:
    texts_, flags, numbers = zip(*given, strict=True) if given else ((), (), ())
    columns = {
        "a": encode(pa.array(texts_, pa.string()), SpannerType.STRING),
        "b": encode(pa.array(flags, pa.bool_()), SpannerType.BOOL),
        "c": encode(pa.array(numbers, pa.float64()), SpannerType.FLOAT64),
    }
    rows = [ListValue(values=map(value_of, row)) for row in given]
    assert mutations.write_columns(Verb.INSERT, "t", columns) == mutations.write(Verb.INSERT, "t", list("abc"), rows)
    assert mutations.encoded_keys(columns.values()) == mutations.keys(rows)


def test_long_texts_have_long_lengths() -> None:
    given = ["", "x" * 127, "x" * 128, "é" * 20_000]
    assert [value.string_value for value in encoded_values(pa.array(given), SpannerType.STRING)] == given


def value_of(found: str | float | bool | None) -> Value:
    match found:
        case None:
            return NULL
        case bool():
            return Value(bool_value=found)
        case float() if found != found:
            return Value(string_value="NaN")
        case float() if found in (float("inf"), float("-inf")):
            return Value(string_value="Infinity" if found > 0 else "-Infinity")
        case float():
            return Value(number_value=found)
    return Value(string_value=found)


@pytest.mark.parametrize("scale", [0, 9, 38])
def test_numbers_are_written_without_exponent_and_zeros_at_the_end(scale: int) -> None:
    @given(st.lists(st.none() | DIGITS, max_size=5))
    def check(digits: list[int | None]) -> None:
        given = [None if number is None else fraction(scale, number) for number in digits]
        written = texts(pa.array(given, pa.decimal128(38, scale)), SpannerType.NUMERIC).to_pylist()
        assert written == [None if number is None else number_text(number) for number in given]

    check()
