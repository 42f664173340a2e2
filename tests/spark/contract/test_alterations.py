"""Alterations of columns where the target still has former ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from airflow_cdc_provider.core.decisions.steps import StepKind
from airflow_cdc_provider.core.errors import Blocked
from airflow_cdc_provider.core.spec.conditions import Comparison, Condition
from airflow_cdc_provider.core.table.alterations import Alter, Alteration, altered
from airflow_cdc_provider.core.table.copy_extent import CopyExtent
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType, TableSchema
from airflow_cdc_provider.targets.database.target import DatabaseTarget
from airflow_cdc_provider.targets.target import AltersTables
from spark_jobs.batches.schema_change import alter_table
from tests.spark.contract.control_records import control
from tests.spark.contract.fold_cases import INT, TEXT
from tests.spark.contract.kit_table import KitTable
from tests.spark.contract.kits import TargetKit

pytestmark = pytest.mark.jvm

ID, V, FORMER = Column("id", INT, nullable=False), Column("v", TEXT), Column("Former", INT)
NEW = Column("former", INT)


def schema(*columns: Column) -> TableSchema:
    return TableSchema("public.t", (ID, *columns), ("id",))


@pytest.fixture
def table(kit: TargetKit, tmp_path: Path) -> KitTable:
    """Without the column ``Former``, which the target still has."""
    table = KitTable(kit, tmp_path, schema(V, FORMER))
    if not isinstance(table.job_tables(), AltersTables):
        pytest.skip("the target alters no columns")
    table.copy([{"id": 1, "v": "a", "Former": 7}])
    table.apply([table.alter(schema(V)), table.update({"id": 1, "v": "b"})])
    return table


def alter(table: KitTable, *alterations: Alteration) -> None:
    current, tables = table.target_state(), table.job_tables()
    assert current.control is not None and isinstance(tables, AltersTables)
    after = altered(table.schema, alterations)
    tables.alter("t", current, current.control.fenced(schema=after), alterations)
    table.schema = after


@pytest.mark.parametrize("name", ["Former", "former"])
def test_a_column_is_not_renamed_to_the_name_of_a_former_one(table: KitTable, name: str) -> None:
    """Where the target can have two columns whose names differ in case alone, it is renamed to the other name."""
    tables, renamed = table.job_tables(), Alteration(Alter.RENAME, V, replace(V, name=name))
    if isinstance(tables, DatabaseTarget) and tables.sql.column_id(FORMER.name) != tables.sql.column_id(name):
        alter(table, renamed)
        assert table.rows() == [(1, "b")]
        return
    with pytest.raises(Blocked, match="SCH003"):
        alter(table, renamed)
    assert control(table).schema == schema(V)
    assert table.rows() == [(1, "b")]


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("alterations", "names", "row"),
    [
        ([Alteration(Alter.RENAME, NEW, replace(NEW, name="later"))], ("id", "later"), (1, 8)),
        ([Alteration(Alter.RENAME, NEW, replace(NEW, name="FORMER"))], ("id", "FORMER"), (1, 8)),
        ([Alteration(Alter.WIDEN, NEW, replace(NEW, type=LogicalType(Kind.INT64)))], (), ()),
        ([Alteration(Alter.COMMENT, NEW, NEW, comment="new")], ("id",), (1,)),
        ([Alteration(Alter.DROP, NEW)], ("id",), (1,)),
        ([Alteration(Alter.SET_NULL, NEW)], ("id",), (1,)),
    ],
    ids=lambda value: value[0].kind if isinstance(value, list) else "",
)
def test_a_column_that_lives_in_a_former_one_with_another_case_is_altered(
    table: KitTable, alterations: Sequence[Alteration], names: Sequence[str], row: tuple[int, ...]
) -> None:
    """The reader of the kit supports no widened types."""
    table.apply([table.alter(schema(V, NEW)), table.update({"id": 1, "v": "c", "former": 8})])
    alter(table, *alterations)
    assert control(table).schema == table.schema
    if names:
        assert table.kit.rows(*names) == [row]


def test_a_dropped_column_that_the_target_lacks_is_passed_over(table: KitTable) -> None:
    alter(table, Alteration(Alter.DROP, V))
    table.schema = schema(V)
    alter(table, Alteration(Alter.DROP, V))
    assert control(table).schema == schema()
    assert table.rows() == [(1,)]


def test_the_extent_of_a_copy_follows_a_renamed_column(table: KitTable) -> None:
    """Without it, rows of the copy could be lost unseen: a comparison would not know which rows it must have."""
    current, task = table.target_state(), table.task()
    assert current.control is not None
    extent = CopyExtent(where=(Condition("v", Comparison.EQUAL, "b"),))
    table.job_tables().fence("t", current, current.control.fenced(extent=extent))
    job, renamed = table.job(StepKind.STAGE, (task,)), Alteration(Alter.RENAME, V, replace(V, name="w"))
    alter_table(job, task, table.target_state(), schema(V), [renamed], "a rename")
    assert control(table).extent == CopyExtent(where=(Condition("w", Comparison.EQUAL, "b"),))
