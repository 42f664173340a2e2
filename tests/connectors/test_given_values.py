"""Values that an operator gives as texts are those that a source writes, to the byte."""

from __future__ import annotations

import json
import math
import struct
from datetime import UTC
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_cdc_provider.connectors.sources.polling.canonical import canonical_value as written
from airflow_cdc_provider.core.columns.given_values import canonical_value, form_of
from airflow_cdc_provider.core.log.change_records import canonical
from airflow_cdc_provider.core.table.schema import Kind, LogicalType

TEXTS = st.text(st.characters(exclude_categories=["Cs"]))


def shortest(value: float) -> float:
    """A float of 32 bits, with the digits that it needs."""
    if not math.isfinite(value):
        return value
    packed = struct.pack("f", value)
    return next(one for digits in range(1, 10) if struct.pack("f", one := float(f"{value:.{digits}g}")) == packed)


def scaled(number: int) -> Decimal:
    return Decimal(f"{number}e-2")


VALUES: list[tuple[LogicalType, st.SearchStrategy[Any]]] = [
    (LogicalType(Kind.BOOLEAN), st.booleans()),
    (LogicalType(Kind.INT16), st.integers(-(2**15), 2**15 - 1)),
    (LogicalType(Kind.INT32), st.integers(-(2**31), 2**31 - 1)),
    (LogicalType(Kind.INT64), st.integers(-(2**63), 2**63 - 1)),
    (LogicalType(Kind.FLOAT32), st.floats(width=32, allow_subnormal=False).map(shortest)),
    (LogicalType(Kind.FLOAT64), st.floats()),
    (LogicalType(Kind.DECIMAL, 30, 2), st.integers(-(10**30) + 1, 10**30 - 1).map(scaled)),
    (LogicalType(Kind.TEXT), TEXTS | st.sampled_from(["1.10", "1e3", "null", "true", "NaN", '"a"', "007"])),
    (LogicalType(Kind.JSON), st.sampled_from(['{"a":1}', '{"a": 1.10}', "null", "1", '"1"', "[ ]"])),
    (LogicalType(Kind.UUID), st.integers(0, 2**128 - 1).map(lambda number: str(UUID(int=number)))),
    (LogicalType(Kind.BYTES), st.binary(max_size=5)),
    (LogicalType(Kind.DATE), st.dates()),
    (LogicalType(Kind.TIMESTAMP), st.datetimes()),
    (LogicalType(Kind.TIMESTAMPTZ), st.datetimes(timezones=st.just(UTC))),
]


@pytest.mark.parametrize(("kind", "values"), VALUES, ids=[str(kind) for kind, _ in VALUES])
@given(data=st.data())
def test_the_text_of_a_value_is_this_value(
    kind: LogicalType, values: st.SearchStrategy[Any], data: st.DataObject
) -> None:
    json_text = written(kind, data.draw(values))
    text = json.loads(json_text) if json_text.startswith('"') else json_text
    assert canonical(canonical_value(text, kind)) == json_text


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (LogicalType(Kind.DECIMAL, 30, 2), "12345678901234567890.1", "12345678901234567890.10"),
        (LogicalType(Kind.DECIMAL, 4, 2), "-0", "0.00"),
        (LogicalType(Kind.DECIMAL, 38, 0), "9" * 38, "9" * 38),
        (LogicalType(Kind.INT64), "9007199254740993", 9007199254740993),
        (LogicalType(Kind.FLOAT64), "12.50", 12.5),
        (LogicalType(Kind.UUID), "6F9619FF-8B86-D011-B42D-00CF4FC964FF", "6f9619ff-8b86-d011-b42d-00cf4fc964ff"),
        (LogicalType(Kind.TIMESTAMPTZ), "2026-05-01T12:00:00+02:00", "2026-05-01T10:00:00Z"),
        (LogicalType(Kind.TIMESTAMP), "2026-05-01 12:00", "2026-05-01T12:00:00"),
        (LogicalType(Kind.BOOLEAN), "TRUE", True),
    ],
)
def test_another_text_of_a_value_is_this_value_too(kind: LogicalType, text: str, value: object) -> None:
    assert canonical(canonical_value(text, kind)) == canonical(value)


@pytest.mark.parametrize(
    ("kind", "texts"),
    [
        (LogicalType(Kind.BOOLEAN), ("", "2", "yes", "null")),
        (LogicalType(Kind.INT16), ("", "32768", "1.5", "NaN", "null", "true", "1_0", "٣")),
        (LogicalType(Kind.INT64), ("9223372036854775808", "1e400")),
        (LogicalType(Kind.FLOAT32), ("3.5e38", "16777217", "nan", "null")),
        (LogicalType(Kind.FLOAT64), ("1e400", "12345678901234567890.12", "inf", "0x10")),
        (LogicalType(Kind.DECIMAL, 4, 2), ("1.005", "100", "NaN", "Infinity", "1e3", "")),
        (LogicalType(Kind.TEXT), ("\ud800",)),
        (LogicalType(Kind.JSON), ("", "{", "NaN", '{"a": NaN}', "\udfff")),
        (LogicalType(Kind.UUID), ("", "1")),
        (LogicalType(Kind.BYTES), ("a", "!!!!", "é")),
        (LogicalType(Kind.DATE), ("2026-02-30", "2026-05-01T12:00:00", "infinity")),
        (LogicalType(Kind.TIMESTAMP), ("2026-05-01T12:00:00Z", "2026-05-01T12:00:00.1234567", "12:00")),
        (LogicalType(Kind.TIMESTAMPTZ), ("2026-05-01T12:00:00", "0001-01-01T00:00:00+14:00")),
    ],
    ids=str,
)
def test_another_text_is_refused_and_its_form_is_named(kind: LogicalType, texts: tuple[str, ...]) -> None:
    assert form_of(kind)
    for text in texts:
        with pytest.raises(ValueError):
            canonical_value(text, kind)
