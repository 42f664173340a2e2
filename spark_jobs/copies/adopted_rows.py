"""The rows of a table that exists already in the target, and that a replicator takes over (``snapshot.mode: never``).

They are written again, with the technical columns, in the commit that also takes the table over: readers see the old
table or the new one. A crash before it leaves the old table; after it, the next attempt finds the copy.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from airflow_cdc_provider.connectors.source import Copy
from airflow_cdc_provider.core.columns.taken_over import not_taken_over, other_values
from airflow_cdc_provider.core.errors import ForeignTarget, Problem
from airflow_cdc_provider.core.spec.history import History
from airflow_cdc_provider.core.spec.selection import RESERVED_PREFIX
from airflow_cdc_provider.targets.database.declared_types import lossy_types
from airflow_cdc_provider.targets.database.server import ShowsTypes
from airflow_cdc_provider.targets.database.target import DatabaseTarget
from airflow_cdc_provider.targets.sparksql.names import quoted
from airflow_cdc_provider.targets.sparksql.types import column_type
from airflow_cdc_provider.targets.target import TargetState
from spark_jobs.copies.copied_rows import CopiedRows, target_frame, technical_columns
from spark_jobs.runtime.job import Job, TableWork
from spark_jobs.writers.writer import open_writer

TAKES_OVER = frozenset({"delta", "mysql", "postgres"})
"""The types of targets whose tables can be taken over."""


def adopted_rows(job: Job, work: TableWork, copy: Copy, current: TargetState) -> CopiedRows:
    """Raises ForeignTarget (CPY023) if the table cannot be taken over; then nothing is written."""
    task, where = work.task, job.tables.locate(work.task.target)
    names = _column_names(job, work, current)
    if problem := next(_obstructions(job, work, copy, where, names), None):
        raise ForeignTarget(problem)
    _require_types(job, work, copy, where)
    existing = open_writer(job, work).read(task, current.version)
    kinds = {field.name: field.dataType.simpleString() for field in existing.schema.fields}
    columns = {column.name: column_type(column.type) for column in copy.schema.columns}
    others = [f"{name} {kinds[name]}" for name, kind in columns.items() if kinds[name] != kind.lower()]
    if others:
        expected = ", ".join(f"{name} {kind.lower()}" for name, kind in columns.items())
        raise ForeignTarget(_refused(copy, where, ", ".join(others), f"the types of the source: {expected}"))
    rows = existing.select(*(F.col(quoted(name)) for name in columns))
    if copy.schema.key and (double := _double_key(rows, copy.schema.key)):
        raise ForeignTarget(_refused(copy, where, double, "one row per key, without NULL"))
    frame = target_frame(work, copy, rows, technical_columns(copy, task.rule, datetime.now(UTC)))
    return CopiedRows(lambda: frame, taken_from=current)


def _column_names(job: Job, work: TableWork, current: TargetState) -> list[str]:
    if isinstance(job.tables, DatabaseTarget):
        with job.tables.server.session("probe") as connection:
            return job.tables.server.columns(connection.cursor(), work.task.target)
    return open_writer(job, work).read(work.task, current.version).columns


def _require_types(job: Job, work: TableWork, copy: Copy, where: str) -> None:
    """Before the rows are read as the types of the copy, which rounds them. Raises ForeignTarget (CPY023)."""
    if not isinstance(job.tables, DatabaseTarget) or not isinstance(job.tables.server, ShowsTypes):
        return
    server, columns, key = job.tables.server, copy.schema.columns, copy.schema.key
    with server.session("probe") as connection:
        types = server.declared_types(connection.cursor(), work.task.target)
    if lossy := lossy_types(server, types, columns, key):
        found = ", ".join(f"{name} {kind}" for name, kind in lossy.items())
        expected = ", ".join(f"{name} {server.catalog_type(copy.schema.column(name), name in key)}" for name in lossy)
        raise ForeignTarget(_refused(copy, where, found, f"the types of the source: {expected}"))


def _obstructions(job: Job, work: TableWork, copy: Copy, where: str, names: list[str]) -> Iterator[Problem]:
    kind = job.target.type
    if kind not in TAKES_OVER:
        yield _refused(copy, where, f"a table in a {kind} target", ", ".join(sorted(TAKES_OVER)))
    if (history := work.task.rule.history) is not History.NONE:
        yield _refused(copy, where, f"history: {history}", "a table without a history")
    if problem := other_values(work.task.rule, copy.schema, where):
        yield problem
    if ours := [name for name in names if name.startswith(RESERVED_PREFIX)]:
        yield _refused(copy, where, ", ".join(ours), "a table of no replicator; drop these columns if none writes it")
    if missing := [name for name in copy.schema.names if name not in names]:
        yield _refused(copy, where, f"no column {', '.join(missing)}", ", ".join(copy.schema.names))


def _double_key(rows: DataFrame, key: tuple[str, ...]) -> str:
    """A key that two rows have, or NULL in a key, as text; empty if there is neither."""
    columns = [F.col(quoted(name)) for name in key]
    has_null = F.lit(False)
    for column in columns:
        has_null = has_null | column.isNull()
    found = rows.groupBy(*columns).agg(F.count(F.lit(1)).alias("_cdc_n")).where((F.col("_cdc_n") > 1) | has_null)
    return ", ".join(f"{row['_cdc_n']} rows with key {list(row)[:-1]}" for row in found.limit(1).collect())


def _refused(copy: Copy, where: str, found: str, allowed: str) -> Problem:
    return not_taken_over(copy.schema.table, where, found, allowed)
