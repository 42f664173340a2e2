"""Which schemas are those of late changes, and which renames count for them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from airflow_cdc_provider.core.decisions.operator_decisions import DecisionKind, new_decision
from airflow_cdc_provider.core.errors import IntegrityBroken
from airflow_cdc_provider.core.table.applied_order import AppliedOrder
from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.core.table.questions import Answer
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType, TableSchema
from airflow_cdc_provider.core.table.states import State, TableState
from spark_jobs.batches.late_schemas import LateSchemas, late_schemas
from spark_jobs.windows.log_reader import window_schemas, windows_between
from tests.spark.scripted_table import ScriptedTable


def schema(*columns: str) -> TableSchema:
    named = (Column(name, LogicalType(Kind.TEXT)) for name in columns)
    return TableSchema("public.t", (Column("id", LogicalType(Kind.INT32), nullable=False), *named), ("id",))


OLD, RENAMED, WITH_IGNORED = schema("v"), schema("n"), schema("n", "x")
CURSOR = ControlRecord(
    *("hand", "public.t", "log", "tests", "a", 1, 2, "", State(TableState.REPLICATING, "2026-01-01")),
    schema=RENAMED,
    ignored={"x": ""},
    applied=AppliedOrder(0, "f"),
)


def found(folder: Path, *of_window: TableSchema, later: TableSchema = RENAMED) -> LateSchemas:
    """In a window whose first change alone is late. An operator has said that ``v`` was renamed to ``n``."""
    table = ScriptedTable(None, folder, OLD)  # type: ignore[arg-type]
    decision = new_decision(
        *(DecisionKind.SCHEMA, "hand", "public.t", "ann", "question"),
        answer=Answer.RENAME,
        columns={"v": "n"},
        window=1,
    )
    table.log.write_decision(decision)
    records, schemas = [], []
    for key, one in enumerate(of_window):
        schemas.append(table.alter(one))
        table.schema = one
        records.append(table.insert(dict.fromkeys(one.names, key)))
    table.land([schemas[0], records[0], *schemas[1:], *records[1:]])
    windows = windows_between(table.log, "public.t", 0, 1)
    in_time = window_schemas(table.log, windows, later, records[0].order_key)
    return late_schemas(table.log, table.task(), CURSOR, windows, in_time, later, CURSOR.ignored)


def test_a_schema_before_a_rename_gets_the_names_of_today(tmp_path: Path) -> None:
    late = found(tmp_path, OLD, WITH_IGNORED)
    assert late == LateSchemas(frozenset({OLD.schema_id}), {"v": "n"}, frozenset({OLD.schema_id}))


@pytest.mark.parametrize("first", [WITH_IGNORED, RENAMED])
def test_a_schema_that_differs_by_ignored_columns_is_none_of_late_changes(tmp_path: Path, first: TableSchema) -> None:
    assert found(tmp_path, first, WITH_IGNORED) == LateSchemas()


def test_changes_in_time_are_not_read_by_renames_of_the_past(tmp_path: Path) -> None:
    """There is a new column with the former name, and none with the present one."""
    again = schema("v", "x")
    assert found(tmp_path, again, again, later=schema("v")) == LateSchemas()


def test_a_column_that_may_be_another_one_stops(tmp_path: Path) -> None:
    again = replace(OLD, columns=(*OLD.columns, Column("c", LogicalType(Kind.TEXT))))
    with pytest.raises(IntegrityBroken, match=r"TGT043.*v was renamed to n, and it is there again"):
        found(tmp_path, OLD, again, later=again)
