"""Columns of a copy that somebody has altered in the target database."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from airflow_cdc_provider.core.decisions.steps import Outcome
from airflow_cdc_provider.core.table.alterations import Alter, Alteration, altered
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType, TableSchema
from airflow_cdc_provider.targets.target import AltersTables
from tests.spark.databases import Database
from tests.spark.scripted_table import Row, ScriptedTable

pytestmark = pytest.mark.jvm

SCHEMA = TableSchema(
    "public.t",
    (
        Column("id", LogicalType(Kind.INT32), nullable=False),
        Column("at", LogicalType(Kind.TIMESTAMP)),
        Column("price", LogicalType(Kind.DECIMAL, 10, 2)),
        Column("big", LogicalType(Kind.INT64)),
        Column("v", LogicalType(Kind.TEXT)),
        Column("doc", LogicalType(Kind.JSON)),
        Column("uid", LogicalType(Kind.UUID)),
        Column("raw", LogicalType(Kind.BYTES)),
        Column("yes", LogicalType(Kind.BOOLEAN)),
        Column("small", LogicalType(Kind.INT16)),
        Column("f", LogicalType(Kind.FLOAT64)),
        Column("zoned", LogicalType(Kind.TIMESTAMPTZ)),
        Column("day", LogicalType(Kind.DATE)),
        Column("key_text", LogicalType(Kind.TEXT), nullable=False),
    ),
    ("id", "key_text"),
)
VALUES: Row = {"id": 1, "at": "2026-01-02T03:04:05.123456", "price": "1.25", "big": 2, "v": "a", "key_text": "k"}
ROW: Row = {**dict.fromkeys(SCHEMA.names), **VALUES}


@pytest.fixture
def table(spark: SparkSession, tmp_path: Path, warehouse: Database) -> ScriptedTable:
    table = warehouse.table(spark, tmp_path, SCHEMA)
    table.copy([ROW])
    return table


def alter(warehouse: Database, column: str, kind: str) -> None:
    change = f"ALTER COLUMN {column} TYPE {kind}" if warehouse.kind == "postgres" else f"MODIFY {column} {kind}"
    warehouse.execute(f"ALTER TABLE {warehouse.schema}.t {change}")


ROUNDING = {
    "at": ("timestamp(0)", "datetime"),
    "price": ("numeric(10,1)", "decimal(10,1)"),
    "big": ("real", "double"),
    "v": ("varchar(20)", "varchar(20) CHARACTER SET ascii COLLATE ascii_bin"),
    "doc": ("jsonb", "tinytext CHARACTER SET ascii COLLATE ascii_bin"),
}


def test_the_types_of_a_copy_are_those_of_the_catalog(table: ScriptedTable) -> None:
    assert table.target_state().unfit is None


@pytest.mark.parametrize("column", ROUNDING)
def test_a_column_that_rounds_values_stops_its_table_until_it_is_copied_again(
    table: ScriptedTable, warehouse: Database, column: str
) -> None:
    kind = ROUNDING[column][0 if warehouse.kind == "postgres" else 1]
    alter(warehouse, column, kind)
    unfit = table.target_state().unfit
    assert unfit is not None and unfit.copy_helps and unfit.problem.code == "TGT098"
    assert f"column {column} is" in unfit.problem.found
    table.land([table.update({**ROW, "price": "9.99"})])
    result = table.merged(table.staged()[0])
    assert result.outcome is Outcome.BLOCKED and result.problem is not None and result.problem.code == "TGT098"
    table.copy([ROW])
    assert table.target_state().unfit is None


@pytest.mark.parametrize(("column", "kind"), [("small", "bigint"), ("price", "decimal(14,3)")])
def test_a_wider_column_is_left_alone(table: ScriptedTable, warehouse: Database, column: str, kind: str) -> None:
    alter(warehouse, column, kind)
    assert table.target_state().unfit is None
    table.apply([table.update({**ROW, "price": "9.99"})])
    assert [str(price)[:4] for (price,) in warehouse.rows(["price"])] == ["9.99"]


def test_a_column_that_was_dropped_in_the_target_stops_its_table(table: ScriptedTable, warehouse: Database) -> None:
    warehouse.execute(f"ALTER TABLE {warehouse.schema}.t DROP COLUMN price")
    table.land([table.update({**ROW, "v": "b"})])
    result = table.merged(table.staged()[0])
    assert result.outcome is Outcome.BLOCKED and result.problem is not None
    assert (result.problem.code, result.problem.found) == ("TGT098", "column price is missing")
    table.copy([ROW])
    assert table.target_state().unfit is None


def test_a_table_is_read_without_columns_that_it_lacks(table: ScriptedTable, warehouse: Database) -> None:
    """A new copy reads it, also of a history whose former column was renamed so that a new one can have the name."""
    warehouse.execute(f"ALTER TABLE {warehouse.schema}.t RENAME COLUMN small TO small_old")
    found = table.read_at(None)
    assert found.count() == 1 and set(SCHEMA.names) - set(found.columns) == {"small"}


def test_an_alteration_whose_attempt_died_before_its_commit_goes_on(
    table: ScriptedTable, warehouse: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """MariaDB has executed it, and a column has the name of a former one with another type."""
    column = SCHEMA.column("big")
    done = [Alteration(Alter.DROP, SCHEMA.column("v")), Alteration(Alter.RENAME, column, replace(column, name="v"))]

    def alter_table() -> None:
        current, tables = table.target_state(), table.job_tables()
        assert current.control is not None and isinstance(tables, AltersTables)
        tables.alter("t", current, current.control.fenced(schema=altered(SCHEMA, done)), done)

    def die(*_: object) -> None:
        raise RuntimeError

    monkeypatch.setattr("airflow_cdc_provider.targets.database.target.DatabaseTarget.commit", die)
    with pytest.raises(RuntimeError):
        alter_table()
    monkeypatch.undo()
    assert table.target_state().unfit is None
    alter_table()
    assert table.target_state().unfit is None
    alter(warehouse, "v", "decimal(10,1)")
    unfit = table.target_state().unfit
    assert unfit is not None and "column v is" in unfit.problem.found


def test_a_new_column_whose_name_differs_from_a_former_one_in_case_alone_is_stored(
    table: ScriptedTable, warehouse: Database
) -> None:
    without = replace(SCHEMA, columns=tuple(column for column in SCHEMA.columns if column.name != "v"))
    fewer = {name: value for name, value in ROW.items() if name != "v"}
    table.land([table.alter(without), table.update(fewer)])
    assert table.merged(table.staged()[0]).outcome is Outcome.DONE
    table.schema = without
    again = replace(without, columns=(*without.columns, Column("V", LogicalType(Kind.TEXT))))
    table.land([table.alter(again), table.update({**fewer, "V": "new"})])
    assert table.merged(table.staged()[0]).outcome is Outcome.DONE
    assert warehouse.rows(['"V"' if warehouse.kind == "postgres" else "V"]) == [("new",)]


def test_a_new_column_whose_former_one_has_another_type_is_refused(table: ScriptedTable, warehouse: Database) -> None:
    without = replace(SCHEMA, columns=tuple(column for column in SCHEMA.columns if column.name != "small"))
    table.land([table.alter(without), table.update(ROW)])
    assert table.merged(table.staged()[0]).outcome is Outcome.DONE
    table.schema = without
    again = replace(without, columns=(*without.columns, Column("small", LogicalType(Kind.DECIMAL, 10, 2))))
    table.land([table.alter(again), table.update({**ROW, "small": "1.25"})])
    _, staged = table.staged()
    assert staged.outcome is Outcome.BLOCKED and staged.problem is not None and staged.problem.code == "SCH005"


KEYLESS = TableSchema("public.t", (SCHEMA.column("small"), SCHEMA.column("price")))
"""Its rows are compared by their texts."""


def test_a_wider_column_that_shows_other_texts_stops_a_table_without_key(
    spark: SparkSession, tmp_path: Path, warehouse: Database
) -> None:
    table = warehouse.table(spark, tmp_path, KEYLESS)
    table.copy([{"small": 1, "price": "1.50"}])
    alter(warehouse, "small", "bigint")
    assert table.target_state().unfit is None
    alter(warehouse, "price", "decimal(14,4)")
    unfit = table.target_state().unfit
    assert unfit is not None and unfit.copy_helps and unfit.problem.code == "TGT098"
    table.copy([{"small": 1, "price": "1.50"}])
    table.apply([table.delete({"small": 1, "price": "1.50"})])
    assert warehouse.rows(["small"]) == []


def test_a_new_column_of_a_table_without_key_is_not_written_into_a_wider_former_one(
    spark: SparkSession, tmp_path: Path, warehouse: Database
) -> None:
    table = warehouse.table(spark, tmp_path, KEYLESS)
    table.copy([{"small": 1, "price": "1.50"}])
    without = replace(KEYLESS, columns=KEYLESS.columns[:1])
    table.apply([table.alter(without), table.insert({"small": 2})])
    again = replace(KEYLESS.column("price"), type=LogicalType(Kind.DECIMAL, 9, 1))
    table.land([table.alter(replace(KEYLESS, columns=(*without.columns, again)))])
    _, staged = table.staged()
    assert staged.outcome is Outcome.BLOCKED and staged.problem is not None and staged.problem.code == "SCH005"


FUNCTION = "CREATE FUNCTION {s}.changed() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN {row}; END'"
CHANGES_OF_ROWS = {
    "a trigger that changes rows": (
        FUNCTION.replace("{row}", "NEW"),
        "CREATE TRIGGER changed BEFORE UPDATE ON {s}.t FOR EACH ROW EXECUTE FUNCTION {s}.changed()",
        "DROP TRIGGER changed ON {s}.t",
    ),
    "a rule": ("CREATE RULE kept AS ON DELETE TO {s}.t DO INSTEAD NOTHING", "DROP RULE kept ON {s}.t"),
    "a trigger of MySQL": (
        "CREATE TRIGGER {s}.changed BEFORE UPDATE ON {s}.t FOR EACH ROW SET NEW.v = 'x'",
        "DROP TRIGGER {s}.changed",
    ),
    "a time of changes": (
        "ALTER TABLE {s}.t MODIFY at DATETIME(6) ON UPDATE CURRENT_TIMESTAMP(6)",
        "ALTER TABLE {s}.t MODIFY at DATETIME(6)",
    ),
}


@pytest.mark.parametrize(
    ("warehouse", "kind", "found"),
    [
        ("postgres", "a trigger that changes rows", "trigger changed"),
        ("postgres", "a rule", "rule kept"),
        ("mysql", "a trigger of MySQL", "trigger changed"),
        ("mysql", "a time of changes", "column at on update"),
    ],
    indirect=["warehouse"],
)
def test_what_changes_or_skips_rows_stops_a_table_until_it_is_dropped(
    table: ScriptedTable, warehouse: Database, kind: str, found: str
) -> None:
    *statements, undo = (text.format(s=warehouse.schema) for text in CHANGES_OF_ROWS[kind])
    warehouse.execute(*statements)
    unfit = table.target_state().unfit
    assert unfit is not None and not unfit.copy_helps
    assert unfit.problem.code == "TGT100" and unfit.problem.found.lower().startswith(found)
    table.land([table.update({**ROW, "price": "9.99"})])
    result = table.merged(table.staged()[0])
    assert result.outcome is Outcome.BLOCKED and result.problem is not None and result.problem.code == "TGT100"
    warehouse.execute(undo)
    assert table.target_state().unfit is None
    assert table.merged(table.staged()[0]).outcome is Outcome.DONE


@pytest.mark.parametrize("warehouse", ["postgres"], indirect=True)
def test_a_trigger_after_a_row_or_that_is_disabled_is_left_alone(table: ScriptedTable, warehouse: Database) -> None:
    function, trigger, _ = (text.format(s=warehouse.schema) for text in CHANGES_OF_ROWS["a trigger that changes rows"])
    warehouse.execute(
        function,
        trigger,
        f"ALTER TABLE {warehouse.schema}.t DISABLE TRIGGER changed",
        trigger.replace("TRIGGER changed BEFORE", "TRIGGER seen AFTER"),
    )
    assert table.target_state().unfit is None
    table.apply([table.update({**ROW, "price": "9.99"})])


@pytest.mark.parametrize("warehouse", ["mysql"], indirect=True)
def test_a_further_column_with_the_time_of_changes_is_left_alone(table: ScriptedTable, warehouse: Database) -> None:
    further = "ADD COLUMN seen DATETIME NULL ON UPDATE CURRENT_TIMESTAMP"
    warehouse.execute(f"ALTER TABLE {warehouse.schema}.t {further}")
    assert table.target_state().unfit is None
    table.apply([table.update({**ROW, "price": "9.99"})])
