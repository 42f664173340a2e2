"""An answer ``ignore`` counts for the column that it was about."""

from __future__ import annotations

from dataclasses import replace

from airflow_cdc_provider.core.serde import from_plain, to_plain
from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.core.table.ignored_columns import still_ignored, without_ignored
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType, TableSchema
from airflow_cdc_provider.core.table.states import State, TableState
from spark_jobs.batches.schema_evolution import WindowSchemas
from spark_jobs.batches.wanted_columns import WantedColumns

TEXT = LogicalType(Kind.TEXT)
ID, C = Column("id", TEXT, id="1"), Column("c", TEXT, id="2")
WITHOUT_IDS = TableSchema("t", (Column("id", TEXT), Column("c", TEXT)), ("id",))
SMALL = TableSchema("t", (Column("id", TEXT),), ("id",))
CONTROL = ControlRecord("r", "t", "log", "me", "a", 1, 1, "", State(TableState.REPLICATING, ""))


def schema(*columns: Column) -> TableSchema:
    return TableSchema("t", columns, ("id",))


def names(windows: list[WindowSchemas]) -> list[list[tuple[str, ...]]]:
    return [[tuple(one.names) for one in window.schemas] for window in windows]


def test_another_column_with_the_name_is_copied() -> None:
    assert without_ignored(schema(ID, C), {"c": "2"}).names == ("id",)
    assert without_ignored(schema(ID, replace(C, id="3")), {"c": "2"}).names == ("id", "c")
    assert still_ignored({"c": "2"}, schema(ID, replace(C, id="3"))) == {}


def test_without_ids_a_column_is_ignored_until_it_is_dropped() -> None:
    wanted = WantedColumns({"c": ""}, new=())
    windows = [WindowSchemas(5, (WITHOUT_IDS,)), WindowSchemas(6, (SMALL,)), WindowSchemas(7, (WITHOUT_IDS,))]
    assert names([wanted.of(window) for window in windows]) == [[("id",)], [("id",)], [("id", "c")]]
    assert [wanted.ignored_after(window) for window in (4, 5, 6, 7)] == [{"c": ""}, {"c": ""}, {}, {}]


def test_records_from_before_the_column_do_not_end_a_new_answer() -> None:
    wanted = WantedColumns({"c": ""}, new={"c"})
    windows = [WindowSchemas(5, (SMALL, WITHOUT_IDS)), WindowSchemas(6, (SMALL,)), WindowSchemas(7, (WITHOUT_IDS,))]
    assert names([wanted.of(window) for window in windows]) == [[("id",), ("id",)], [("id",)], [("id", "c")]]


def test_records_of_former_versions_have_names_alone() -> None:
    plain = to_plain(replace(CONTROL, ignored={"c": "2"}))
    assert from_plain(ControlRecord, plain).ignored == {"c": "2"}
    assert from_plain(ControlRecord, plain | {"ignored": ["c"]}).ignored == {"c": ""}
