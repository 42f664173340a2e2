"""Values of a driver that no target has are never replaced by another value or lost."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
import sqlalchemy as sa

from airflow_cdc_provider.connectors.sources.jdbc_poll.catalog import PolledTable
from airflow_cdc_provider.connectors.sources.jdbc_poll.rows import RowConverter
from airflow_cdc_provider.connectors.sources.jdbc_poll.select import TableQueries
from airflow_cdc_provider.core.errors import BadRecordFound
from airflow_cdc_provider.core.spec.definition import Comparison, Condition
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType, TableSchema

AT = datetime(2026, 1, 1)


def rows(kind: LogicalType) -> RowConverter:
    columns = (Column("k", LogicalType(Kind.FLOAT64)), Column("v", kind), Column("at", LogicalType(Kind.TIMESTAMP)))
    schema = TableSchema("shop.t", columns, ("k",))
    described = PolledTable("shop", "t", schema, {name: sa.types.NullType() for name in schema.names}, frozenset(), {})
    where = (Condition("k", Comparison.EQUAL, 1.0),)
    return RowConverter(TableQueries(described, schema, "at", timedelta(), "mysql", where))


@pytest.mark.parametrize(
    ("kind", "value", "what"),
    [
        (LogicalType(Kind.DATE), "0000-00-00", "zero date"),
        (LogicalType(Kind.DATE), "infinity", "infinite time"),
        (LogicalType(Kind.TIMESTAMP), "0000-00-00 00:00:00", "zero date"),
        (LogicalType(Kind.TIMESTAMPTZ), "-infinity", "infinite time"),
        (LogicalType(Kind.DECIMAL, 10, 2), Decimal("NaN"), "NaN"),
    ],
)
def test_unrepresentable_values_name_the_column(kind: LogicalType, value: Any, what: str) -> None:
    row = rows(kind).page_row((1.0, value, AT, 1.0, AT, 1.0))
    assert row.undecoded is not None and row.key == "[1.0]" and row.undecoded.columns == ("v",)
    assert re.search(f"v: .*{what}.*leave out the column", row.undecoded.reason)
    assert rows(kind).page_row((1.0, value, AT, 1.0, AT, 2.0)).deleted, "its values do not matter"
    with pytest.raises(BadRecordFound, match=f"CPY009.*v: .*{what}"):
        rows(kind).table([(1.0, value, AT, 1.0, AT, 1.0)])


def test_characters_of_a_text_are_kept_and_a_negative_zero_in_the_key_is_zero() -> None:
    text = rows(LogicalType(Kind.TEXT))
    row = text.page_row((-0.0, "a\0b", AT, -0.0, AT, 1.0))
    assert (row.key, row.image[:26]) == ("[0.0]", '{"k":0.0,"v":"a\\u0000b","a')
    assert str(text.table([(-0.0, "a\0b", AT, -0.0, AT, 1.0)]).to_pylist()[0]["k"]) == "0.0"
