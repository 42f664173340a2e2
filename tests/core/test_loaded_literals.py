"""Values in statements of databases that load texts: they are made of the text that a loaded row has."""

from __future__ import annotations

from base64 import b64encode
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from airflow_cdc_provider.connectors.arrow_types import arrow_type
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType
from airflow_cdc_provider.targets.database.row_texts import as_texts
from airflow_cdc_provider.targets.mysql.options import Floats
from airflow_cdc_provider.targets.mysql.sql import MysqlSql
from airflow_cdc_provider.targets.snowflake.sql import SnowflakeSql

MYSQL, SNOWFLAKE = MysqlSql("s", Floats.TEXT), SnowflakeSql("DB", "S")
FLOATS = [0.1, 1e-05, 1e-07, 1e22, 1e-45, -0.0, 7, 16777217, 123456789.125, "NaN", "Infinity", "-Infinity"]
VALUES: list[tuple[LogicalType, Any, Any]] = [
    *((LogicalType(kind), value, float(value)) for kind in (Kind.FLOAT32, Kind.FLOAT64) for value in FLOATS),
    (LogicalType(Kind.BOOLEAN), True, True),
    (LogicalType(Kind.INT64), 2**63 - 1, 2**63 - 1),
    (LogicalType(Kind.DECIMAL, 38, 38), "0.1", Decimal("0.1")),
    (LogicalType(Kind.DECIMAL, 10, 9), "0.000000001", Decimal("0.000000001")),
    (LogicalType(Kind.TEXT), "it's", "it's"),
    (LogicalType(Kind.BYTES), b64encode(b"\x00\xff").decode(), b"\x00\xff"),
    (LogicalType(Kind.DATE), "0001-01-01", date(1, 1, 1)),
    (LogicalType(Kind.TIMESTAMP), "2024-01-01T00:00:00.5", datetime(2024, 1, 1, 0, 0, 0, 500_000)),
    (LogicalType(Kind.TIMESTAMPTZ), "2024-01-01T00:00:00Z", datetime(2024, 1, 1, tzinfo=UTC)),
]


def quoted(column: Column, loaded: Any) -> str:
    """The text of a loaded value, as SQL."""
    batch = pa.record_batch({"c": pa.array([loaded], arrow_type(column.type))})
    return "'" + as_texts(batch, ["c"]).column(0).to_pylist()[0].replace("'", "''") + "'"


@pytest.mark.parametrize(("kind", "canonical", "loaded"), VALUES, ids=str)
def test_a_value_in_a_statement_is_made_of_the_text_of_a_loaded_one(
    kind: LogicalType, canonical: Any, loaded: Any
) -> None:
    """0.1 as a number of 32 bits is 0.10000000149011612 as a double, which no loaded text is."""
    column = Column("c", kind)
    text = quoted(column, loaded)
    assert SNOWFLAKE.literal(canonical, column) == SNOWFLAKE.value_of(text, column, in_key=False)
    assert MYSQL.literal(canonical, column) == (f"X{text}" if kind.kind is Kind.BYTES else text)
