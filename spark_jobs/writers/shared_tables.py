"""Copies that share a table of a lake."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pyspark.sql import DataFrame

from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.errors import ForeignTarget, Problem
from airflow_cdc_provider.core.spec.definition import OnDelete
from airflow_cdc_provider.core.table.schema import Column
from airflow_cdc_provider.targets.common_checks import foreign_table, rows_do_not_fit
from airflow_cdc_provider.targets.delta.local_engine.protocol_support import expected_columns
from airflow_cdc_provider.targets.target import TargetState
from spark_jobs.writers.former_columns import other_types


def missing_columns(task: TableTask, opened: Any, location: str) -> tuple[Column, ...]:
    """The columns of the copy that the shared table lacks. Raises Blocked (TGT090) where others have another type."""
    types = {field.name.lower(): _type_name(field.type) for field in opened.schema().fields}
    for name, kind in expected_columns(task.schema, task.rule.on_delete is OnDelete.SOFT):
        found = types.get(name.lower())
        if found is not None and found != kind:
            raise rows_do_not_fit(task.table, location, f"column {name} is {found}, and {kind} in {task.table}")
    return tuple(column for column in task.schema.columns if column.name.lower() not in types)


def require_equal_types(
    task: TableTask,
    table: DataFrame,
    added: Sequence[Column],
    location: str,
    stored_as: Callable[[str], str] = str,
) -> None:
    """Raises Blocked (TGT090) where others have given a new column another type: its values would be rounded."""
    for name, found, wanted in other_types(table, added, stored_as):
        raise rows_do_not_fit(task.table, location, f"column {name} is {found}, and {wanted} in {task.table}")


def require_same_use(task: TableTask, current: TargetState, location: str) -> None:
    """Raises ForeignTarget where a copy would replace the rows of others, or may do so: without the record of its rows
    it is unknown whether others share the table."""
    if current.shared and not task.rule.shard_column:
        raise ForeignTarget(foreign_table(location))
    if task.rule.shard_column and current.exists and current.token is not None and current.control is None:
        raise ForeignTarget(_unknown_rows(task, location))


def _unknown_rows(task: TableTask, location: str) -> Problem:
    return Problem(
        "TGT012",
        f"the history of the target table of {task.table} does not show whose rows it has",
        location,
        found="a table that another tool restored to a version without commits of this replicator, or whose history it "
        "has cut",
        allowed="a table restored to the number of a version that this replicator has committed",
        do="restore it to such a version; or drop the table, then resync every copy that shares it",
        data="nothing was written to it",
    )


def _type_name(kind: Any) -> str:
    return str(getattr(kind, "type", kind))
