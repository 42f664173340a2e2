"""Columns that a table still has of former columns of its copy, under the names of new ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from pyspark.sql import DataFrame

from airflow_cdc_provider.core.errors import Blocked
from airflow_cdc_provider.core.spec.history import History
from airflow_cdc_provider.core.table.schema import Column
from airflow_cdc_provider.core.table.source_names import in_shell
from airflow_cdc_provider.targets.sparksql.names import quoted
from airflow_cdc_provider.targets.sparksql.types import column_type
from spark_jobs.runtime.job import Job, TableWork
from spark_jobs.writers.writer import open_writer


def require_free_names(job: Job, work: TableWork, added: Sequence[Column]) -> None:
    """Raises Blocked (SCH005) where a new column would have the type of a former one, or in a history its values. In
    any other table the values are removed. A table that other copies share has their columns, too."""
    task = work.task
    if not added or task.rule.shard_column:
        return
    history = task.rule.history is not History.NONE
    taken = open_writer(job, work).taken_names(task, added, history)
    if not taken:
        return
    name = job.step.definition.name
    resume = f"airflow cdc resume {name} --table {in_shell(task.table)}"
    raise Blocked.of(
        "SCH005",
        f"a new column of {task.table} has the name of a former one, which the target still has",
        where=job.tables.locate(task.target),
        found=", ".join(taken),
        allowed="names that the target does not have, or the same type without a history",
        do=f"rename the former column in the target, then {resume}"
        if history
        else f"airflow cdc resync {name} --table {in_shell(task.table)}",
        data="nothing of the new column is written; the change log keeps its changes",
    )


def other_types(
    frame: DataFrame, added: Sequence[Column], stored_as: Callable[[str], str] = str
) -> Iterator[tuple[str, str, str]]:
    """Name, type and wanted type of those of ``added`` that the table has with another type. ``stored_as``: the type of
    a table for one of Spark."""
    present = {field.name.lower(): field.dataType.simpleString() for field in frame.schema.fields}
    for column in added:
        found, wanted = present.get(column.name.lower()), stored_as(column_type(column.type).lower())
        if found is not None and found != wanted:
            yield column.name, found, wanted


def taken_in(
    frame: DataFrame, added: Sequence[Column], with_values: bool, stored_as: Callable[[str], str] = str
) -> list[str]:
    """Names of ``added`` that the table has with another type; ``with_values``: or with a value."""
    taken = [name for name, _, _ in other_types(frame, added, stored_as)]
    if with_values:
        present = {field.name.lower(): field for field in frame.schema.fields}
        both = [(column, present[column.name.lower()]) for column in added if column.name.lower() in present]
        same = [old.name for new, old in both if new.name not in taken]
        taken += [name for name in same if frame.where(f"{quoted(name)} IS NOT NULL").limit(1).count()]
    return taken


def without_columns(frame: DataFrame, added: Sequence[Column]) -> DataFrame:
    """Without what the table has under the names of ``added``."""
    names = {column.name.lower() for column in added}
    return frame.select(*(quoted(name) for name in frame.columns if name.lower() not in names))
