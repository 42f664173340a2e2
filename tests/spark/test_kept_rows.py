"""Rows that a new copy keeps have their values in its columns, or stop the copy."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import SparkSession

from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.errors import Blocked
from airflow_cdc_provider.core.spec.definition import TableRule
from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType, Origin, TableSchema
from airflow_cdc_provider.core.table.states import State, TableState
from spark_jobs.copies.kept_rows import as_columns_of, require_same_values, same_in_copy

pytestmark = pytest.mark.jvm

INT, TEXT = LogicalType(Kind.INT32), LogicalType(Kind.TEXT)
ID = Column("id", INT, False, id="1")
A = Column("a", TEXT, id="2")


def schema(*columns: Column) -> TableSchema:
    return TableSchema("t", (ID, *columns), ("id",))


def control(copied: TableSchema, hidden_sha256: str) -> ControlRecord:
    state = State(TableState.RESYNCING, "2026-01-01T00:00:00Z")
    return ControlRecord(
        "r", "t", "log", "owner", "attempt", 1, 0, "", state, schema=copied, hidden_sha256=hidden_sha256
    )


TASK = TableTask("t", "t", schema(), TableRule("t"), "", TableState.RESYNCING)


def test_columns_without_ids_are_the_same_if_they_are_made_from_the_same_column() -> None:
    note, seen = Column("note", TEXT), Column("seen", TEXT)
    remark = Column("remark", TEXT, origin=Origin("note", TEXT))
    other = Column("note", TEXT, origin=Origin("seen", TEXT))
    assert same_in_copy(schema(note, seen), schema(remark, other)) == {"id": "id", "note": "remark", "seen": "note"}
    assert same_in_copy(schema(remark), schema(note)) == {"id": "id", "remark": "note"}
    texts = Column("_cdc_text_note", TEXT), Column("_cdc_text_remark", TEXT)
    both = same_in_copy(schema(note, texts[0]), schema(remark, texts[1]))
    assert both["_cdc_text_note"] == "_cdc_text_remark"


NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("before", "now", "kept"),
    [
        (("decimal(10,2)", Decimal("1.25")), "decimal(10,1)", None),
        (("decimal(10,2)", Decimal("1.20")), "decimal(10,1)", Decimal("1.2")),
        (("double", 1.5), "int", None),
        (("double", 2.0), "int", 2),
        (("double", 0.1), "float", None),
        (("timestamp", NOON), "date", None),
        (("timestamp", NOON), "string", None),
        (("date", date(2026, 1, 1)), "timestamp_ntz", datetime(2026, 1, 1)),
        (("string", "x"), "int", None),
        (("decimal(10,2)", Decimal("1.20")), "string", "1.20"),
        (("int", 7), "bigint", 7),
    ],
    ids=str,
)
def test_a_kept_value_fits_without_loss_or_stops_the_copy(
    spark: SparkSession, before: tuple[str, object], now: str, kept: object
) -> None:
    rows = spark.createDataFrame([], f"id int, v {now}")
    found = spark.createDataFrame([(1, before[1]), (2, None)], f"id int, v {before[0]}")
    if kept is None:
        with pytest.raises(Blocked, match="CPY015"):
            as_columns_of(rows, found, TASK)
        return
    assert sorted(map(tuple, as_columns_of(rows, found, TASK).collect())) == [(1, kept), (2, None)]


HASHED = Column("a", TEXT, id="2", origin=Origin("a", TEXT, converted=True, hidden=True))


@pytest.mark.parametrize(
    ("before", "now", "settings", "stops"),
    [
        (A, HASHED, "old", True),
        (HASHED, A, "old", True),
        (HASHED, HASHED, "older", True),
        (HASHED, HASHED, "old", False),
        (HASHED, HASHED, "", False),
        (A, A, "older", False),
    ],
    ids=["hashed now", "in clear now", "another hash", "the same hash", "unknown settings", "in clear"],
)
def test_kept_values_are_hidden_as_the_yaml_says_or_stop_the_copy(
    spark: SparkSession, before: Column, now: Column, settings: str, stops: bool
) -> None:
    known = control(schema(before), settings)

    def require(*values: Any) -> None:
        kept = spark.createDataFrame([(1, value) for value in values], "id int, a string")
        require_same_values(TASK, "here", known, "old", schema(now), kept)

    require(None)
    require()
    if not stops:
        require("x")
        return
    with pytest.raises(Blocked, match="CPY025"):
        require(None, "x")
