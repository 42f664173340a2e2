"""What a statement does to the copies of one table, each by itself."""

from __future__ import annotations

from airflow_cdc_provider.connectors.copied.reading import source_tasks
from airflow_cdc_provider.connectors.sources.mysql.binlog import Query
from airflow_cdc_provider.connectors.sources.mysql.known_columns import ColumnsOfCopies
from airflow_cdc_provider.connectors.sources.mysql.statements import parse_statement
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.spec.definition import TableRule
from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType, TableSchema
from airflow_cdc_provider.core.table.states import State, TableState

TEXT = LogicalType(Kind.TEXT)
COPIED = TableSchema("shop.t", (Column("id", TEXT), Column("a", TEXT)), ("id",))


def copy(name: str, state: TableState, copied: TableSchema | None = COPIED) -> TableTask:
    control = ControlRecord("r", name, "log", "me", "a", 1, 7, "0001", State(state, ""), schema=copied)
    return TableTask(name, "t", COPIED, TableRule("shop.t"), "", state, control if copied else None)


def test_a_rename_that_stops_the_first_copy_of_one_target_is_logged_for_the_copies_of_others() -> None:
    """They would see a dropped and an added column."""
    tasks = [copy("shop.t", TableState.REPLICATING), copy("shop.t@new", TableState.PENDING, None)]
    (task,) = source_tasks(tasks)
    known, statement = ColumnsOfCopies(task), parse_statement(Query("shop", "ALTER TABLE t RENAME COLUMN a TO b"))
    assert list(known.apply(statement, strict=True).values()) == [("shop.t@new",)]
    renamed = known.renamed(statement, {"shop.t@new"})
    assert renamed and [(column.name, column.id) for column in renamed.columns] == [("id", ""), ("b", "a")]
    assert ColumnsOfCopies(task).renamed(statement, {"shop.t", "shop.t@new"}) is None
