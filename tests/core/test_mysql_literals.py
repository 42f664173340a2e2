"""Initial values as MySQL gets them: the same texts as loaded rows."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType
from airflow_cdc_provider.targets.database.row_texts import as_texts
from airflow_cdc_provider.targets.mysql.options import Floats
from airflow_cdc_provider.targets.mysql.sql import MysqlSql

ARROW = {Kind.FLOAT32: pa.float32(), Kind.FLOAT64: pa.float64()}


@pytest.mark.parametrize("kind", ARROW)
@pytest.mark.parametrize("value", [0.1, 1e-05, 1e-07, 1e22, -0.0, 7, 123456789.125, "NaN", "Infinity", "-Infinity"])
def test_an_initial_float_has_the_text_of_a_loaded_one(kind: Kind, value: Any) -> None:
    """As a text, 0.00001 is not 1e-05."""
    (loaded,) = as_texts(pa.record_batch({"f": pa.array([float(value)], ARROW[kind])}), ["f"]).column(0).to_pylist()
    assert MysqlSql("s", Floats.TEXT).literal(value, Column("f", LogicalType(kind))) == f"'{loaded}'"
