"""CSV as PostgreSQL writes it, read into the types of a table."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from math import inf, nan
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_cdc_provider.connectors.arrow_types import arrow_schema
from airflow_cdc_provider.connectors.sources.postgres import csv_columns
from airflow_cdc_provider.connectors.sources.postgres.csv_columns import InvalidCells, csv_table, csv_tables
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType, TableSchema


def schema(*kinds: LogicalType | Kind) -> TableSchema:
    types = [one if isinstance(one, LogicalType) else LogicalType(one) for one in kinds]
    return TableSchema("t", tuple(Column(f"c{number}", one) for number, one in enumerate(types)), ())


def line(*values: Any) -> bytes:
    """NULL is an empty cell; a text is quoted where it would be read as something else."""
    cells = []
    for value in values:
        text = "" if value is None else value.hex() if isinstance(value, bytes) else str(value)
        quotes = value is not None and (not text or set(',"\r\n') & set(text))
        cells.append('"' + text.replace('"', '""') + '"' if quotes else text)
    return (",".join(cells) + "\n").encode()


TEXTS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))
ROWS = st.lists(
    st.tuples(
        st.none() | TEXTS,
        st.none() | st.binary(),
        st.none() | st.integers(-(2**63), 2**63 - 1),
        st.none() | TEXTS,
    )
)


@given(ROWS, st.integers(1, 100))
def test_rows_are_read_as_they_were_written_however_they_are_split(rows: list[tuple[Any, ...]], at_once: int) -> None:
    expected = schema(Kind.TEXT, Kind.BYTES, Kind.INT64, Kind.JSON)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(csv_columns, "AT_ONCE_BYTES", at_once)
        tables = list(csv_tables([line(*row) for row in rows], expected))
    assert all(table.schema == arrow_schema(expected) for table in tables)
    assert [tuple(row.values()) for table in tables for row in table.to_pylist()] == rows


@pytest.mark.parametrize("kind", list(Kind))
def test_a_table_of_one_column_may_be_null_in_every_row(kind: Kind) -> None:
    expected = schema(LogicalType(kind, 10, 2) if kind is Kind.DECIMAL else kind)
    table = csv_table(b"\n\n", expected)
    assert (table.schema, table["c0"].to_pylist()) == (arrow_schema(expected), [None, None])


@pytest.mark.parametrize(
    ("kind", "texts", "values"),
    [
        (LogicalType(Kind.BOOLEAN), ["t", "f"], [True, False]),
        (LogicalType(Kind.INT16), ["-32768", "32767"], [-32768, 32767]),
        (LogicalType(Kind.FLOAT64), ["Infinity", "-Infinity", "1e-300", "0.1"], [inf, -inf, 1e-300, 0.1]),
        (LogicalType(Kind.DECIMAL, 38, 2), ["-0.01", "9" * 36 + ".99"], [Decimal("-0.01"), Decimal("9" * 36 + ".99")]),
        (LogicalType(Kind.DATE), ["0001-01-01", "9999-12-31"], [date(1, 1, 1), date(9999, 12, 31)]),
        (
            LogicalType(Kind.TIMESTAMP),
            ["0001-01-01 00:00:00", "9999-12-31 23:59:59.999999", "2024-02-29 12:00:00.1"],
            [datetime(1, 1, 1), datetime.max, datetime(2024, 2, 29, 12, 0, 0, 100_000)],
        ),
        (
            LogicalType(Kind.TIMESTAMPTZ),
            ["0001-01-01 00:00:00+00", "2024-02-29 12:00:00.123+00"],
            [datetime(1, 1, 1, tzinfo=UTC), datetime(2024, 2, 29, 12, 0, 0, 123_000, tzinfo=UTC)],
        ),
        (LogicalType(Kind.TEXT), ["NULL", "nan", "t", " a ", "\\N", "'"], ["NULL", "nan", "t", " a ", "\\N", "'"]),
    ],
)
def test_values_within_the_range_of_their_type_are_read_exactly(
    kind: LogicalType, texts: list[str], values: list[Any]
) -> None:
    assert csv_table("".join(f"{text}\n" for text in texts).encode(), schema(kind))["c0"].to_pylist() == values


def test_nan_and_negative_zero_are_read_exactly() -> None:
    for kind in (Kind.FLOAT32, Kind.FLOAT64):
        assert list(map(str, csv_table(b"NaN\n-0\n", schema(kind))["c0"].to_pylist())) == [str(nan), "-0.0"]


def test_a_cell_that_is_no_value_of_its_column_is_refused() -> None:
    with pytest.raises(InvalidCells) as refused:
        csv_table(b"12x\n", schema(Kind.INT32))
    assert refused.value.columns == schema(Kind.INT32).names
