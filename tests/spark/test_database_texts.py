"""Rows are written as the texts that databases read."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_cdc_provider.core.table.merge_plan import KNOWN
from airflow_cdc_provider.targets.database.row_texts import as_texts, is_binary


def texts(values: pa.Array) -> list[str | None]:
    batch = as_texts(pa.RecordBatch.from_arrays([values], ["v"]), ["v"])
    assert batch.schema.field("v").type == pa.string()
    return batch.column(0).to_pylist()  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("values", "wanted"),
    [
        (pa.array([True, False, None]), ["1", "0", None]),
        (pa.array([-(2**63), 2**63 - 1, None]), ["-9223372036854775808", "9223372036854775807", None]),
        (pa.array([b"\x00\xff", b"", None]), ["00ff", "", None]),
        (pa.array(["", "a\0'\\", None]), ["", "a\0'\\", None]),
        (
            pa.array([Decimal("0.0000000001"), Decimal(0), None], pa.decimal128(38, 10)),
            ["0.0000000001", "0.0000000000", None],
        ),
        (pa.array([Decimal("12.50"), Decimal("-0.05"), None], pa.decimal128(12, 2)), ["12.50", "-0.05", None]),
        (pa.array([float("nan"), float("inf"), -float("inf"), None]), ["NaN", "Infinity", "-Infinity", None]),
        (pa.array([0.1, -0.0, None]), ["0.1", "-0", None]),
        (pa.array([date(1, 1, 1), None]), ["0001-01-01", None]),
        (pa.array([datetime(2025, 1, 2, 3, 4, 5, 6), None]), ["2025-01-02 03:04:05.000006", None]),
        (pa.array([datetime(2025, 1, 2, 3, tzinfo=UTC)], pa.timestamp("us", "UTC")), ["2025-01-02 03:00:00.000000"]),
    ],
    ids=lambda value: str(value.type) if isinstance(value, pa.Array) else "",
)
def test_each_type_has_one_text_and_null_none(values: pa.Array, wanted: list[str | None]) -> None:
    assert texts(values) == wanted


@given(st.lists(st.one_of(st.none(), st.floats(allow_nan=False)), min_size=1))
def test_a_float_comes_back_from_its_text(values: list[float | None]) -> None:
    assert [None if text is None else float(text) for text in texts(pa.array(values, pa.float64()))] == values


@given(st.integers(0, 38).flatmap(lambda scale: st.tuples(st.just(scale), st.integers(1 - 10**38, 10**38 - 1))))
def test_a_decimal_comes_back_from_its_text_which_has_no_exponent(drawn: tuple[int, int]) -> None:
    scale, unscaled = drawn
    value = Decimal(f"{unscaled}E{-scale}")
    (text,) = texts(pa.array([value], pa.decimal128(38, scale)))
    assert text is not None and Decimal(text) == value and "E" not in text


def test_known_columns_become_a_digit_per_column() -> None:
    known = pa.array([["b"], [], None], pa.list_(pa.string()))
    batch = pa.RecordBatch.from_arrays([pa.array([1, 2, 3]), known], ["a", KNOWN])
    assert as_texts(batch, ["a", "b"]).column(1).to_pylist() == ["01", "00", None]


def test_bytes_are_recognised_by_their_type() -> None:
    assert is_binary(pa.binary()) and not is_binary(pa.string())
