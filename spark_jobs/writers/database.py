"""Commits to SQL databases: Spark's tasks load rows into a staging table, one transaction merges or swaps it in."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.errors import ForeignTarget
from airflow_cdc_provider.core.failpoints import failpoint
from airflow_cdc_provider.core.serde import from_plain, to_plain
from airflow_cdc_provider.core.spec.definition import OnDelete
from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.core.table.merge_plan import DELETED, ORDER, schema_delta
from airflow_cdc_provider.core.table.own_rows import own_rows
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType, TableSchema
from airflow_cdc_provider.core.table.special_values import FLOATS
from airflow_cdc_provider.targets.common_checks import foreign_table
from airflow_cdc_provider.targets.database.commit import Loaded, Swap
from airflow_cdc_provider.targets.database.commits import merge
from airflow_cdc_provider.targets.database.loading import LoadedPart, finish_load, load_part
from airflow_cdc_provider.targets.database.merge_sql import Effect, own_condition
from airflow_cdc_provider.targets.database.names import COPIED, STAGED, copy_name, staging_table
from airflow_cdc_provider.targets.database.server import ReadsByJdbc, ReadsByParts, ReadsTables, Server
from airflow_cdc_provider.targets.database.shards import copy_into_shared
from airflow_cdc_provider.targets.database.sql import Sql
from airflow_cdc_provider.targets.database.staging import (
    create_shadow_table,
    create_staged_table,
    discard,
    index_shadow_table,
    index_staged_table,
    prepare_staging,
)
from airflow_cdc_provider.targets.database.target import DatabaseTarget
from airflow_cdc_provider.targets.needs_spark import NeedsSpark
from airflow_cdc_provider.targets.sparksql.names import quoted
from airflow_cdc_provider.targets.sparksql.types import column_type
from spark_jobs.batches.staged_rows import StagedRows
from spark_jobs.copies.copied_rows import CopiedRows
from spark_jobs.copies.spooled_rows import SpooledRows
from spark_jobs.writers.expected_states import state_before_copy, state_before_merge, translate_lost_race
from spark_jobs.writers.jdbc import read_jdbc
from spark_jobs.writers.result_parts import read_result
from spark_jobs.writers.task_results import on_files, on_partitions
from spark_jobs.writers.writer import CopyCommit, MergeCounts, merge_plan

LoadCopy = Callable[[str, TableSchema, Sequence[str], int], int]
"""Loads all rows of a copy into a table with this schema and these columns, for this window; returns their number."""

ORDER_COLUMN = Column(ORDER, LogicalType(Kind.TEXT))
DELETED_COLUMN = Column(DELETED, LogicalType(Kind.BOOLEAN))


class DatabaseWriter:
    """One per table and session."""

    def __init__(self, session: Callable[[], SparkSession], tables: DatabaseTarget) -> None:
        self._session = session
        self.tables = tables

    @property
    def spark(self) -> SparkSession:
        return self._session()

    def read(self, task: TableTask, version: int | None) -> DataFrame:
        """The current rows, since a database keeps no versions. If another commit comes first, a batch that was built
        on them is rejected by its own commit. Without columns that the table lacks: somebody has renamed a former one,
        or a new copy is to bring them back."""
        current = self.tables.state(task.table, task.target)
        if current.control is None:  # a table to be taken over
            return self._select(task, task.schema.columns)
        schema = current.control.schema or task.schema
        columns = [*schema.columns, *_technical_columns(schema, task.rule.on_delete is OnDelete.SOFT)]
        return self._select(task, self._present(task.target, columns))

    def _present(self, table: str, columns: Sequence[Column]) -> list[Column]:
        column_id, server = self.tables.sql.column_id, self.tables.server
        with server.session("probe") as connection:
            present = set(map(column_id, server.columns(connection.cursor(), table)))
        return [column for column in columns if column_id(column.name) in present]

    def _select(self, task: TableTask, columns: Sequence[Column]) -> DataFrame:
        sql, server = self.tables.sql, self.tables.server
        read = {column.name: sql.read_expressions(column) for column in columns}
        selected = ", ".join(f"{expression} AS {sql.quoted(name)}" for name, (expression, _) in read.items())
        casts = {
            column.name: f"CAST({read[column.name][1] or quoted(column.name)} AS {column_type(column.type)})"
            for column in columns
        }
        query = f"SELECT {selected} FROM {sql.table(task.target)}"
        if own := own_rows(task.rule):
            query += f" WHERE {own_condition(sql, own)}"
        if isinstance(server, ReadsByJdbc):
            return read_jdbc(self.spark, server.jdbc(), query, casts)
        kinds = {column.name: "DOUBLE" if column.type.kind in FLOATS else "STRING" for column in columns}
        if isinstance(server, ReadsTables):
            parts = server.table_parts(task.target, list(kinds))
        else:
            assert isinstance(server, ReadsByParts)
            parts = server.result_parts(query)
        frame = read_result(self.spark, parts, kinds)
        return frame.selectExpr(*(f"{cast} AS {quoted(name)}" for name, cast in casts.items()))

    def taken_names(self, task: TableTask, added: Sequence[Column], with_values: bool) -> list[str]:
        sql, server = self.tables.sql, self.tables.server
        with server.session("probe") as connection:
            cursor = connection.cursor()
            missing = schema_delta(added, server.columns(cursor, task.target), sql.column_id).missing
            present = tuple(column for column in added if column not in missing)
            former = task.control.former if task.control else {}
            others = self.tables.with_other_types(cursor, task.target, present, task.schema.key, former)
            taken = [one.name for one in present if with_values and _has_value(cursor, sql, task.target, one.name)]
            return [column.name for column in present if column.name in {*others, *taken}]

    def copy(self, task: TableTask, rows: CopiedRows) -> CopyCommit:
        frame = rows.frame()

        def load(shadow: str, schema: TableSchema, columns: Sequence[str], window: int) -> int:
            server = self.tables.server
            selected = frame.select(*map(quoted, columns))
            parts = on_partitions(selected, partial(_load_in_task, server, shadow, schema, columns))
            return finish_load(server, shadow, schema, columns, _loaded(parts), window)

        return partial(self._copy, task, load)

    def copy_locally(self, task: TableTask, rows: CopiedRows) -> CopyCommit:
        """Raises NeedsSpark before any row is read."""
        if rows.in_driver is None:
            raise NeedsSpark("a comparison with the old rows")
        splits = rows.in_driver(SpooledRows).results

        def load(shadow: str, schema: TableSchema, columns: Sequence[str], window: int) -> int:
            server = self.tables.server
            batches = (split.batches() for split in splits)
            parts = [load_part(server, shadow, schema, columns, part, rows) for part, rows in enumerate(batches)]
            return finish_load(server, shadow, schema, columns, parts, window)

        return partial(self._copy, task, load)

    def _copy(self, task: TableTask, load: LoadCopy, record: ControlRecord) -> int:
        """A crash before the swap leaves the old table, or none. A token that does not increase, or that another
        attempt has claimed, is rejected: the caller has to raise the fence."""
        current = state_before_copy(self.tables, task, record)
        server, schema = self.tables.server, record.schema or task.schema
        soft, own = task.rule.on_delete is OnDelete.SOFT, own_rows(task.rule)
        if current.shared and own is None:
            raise ForeignTarget(foreign_table(self.tables.locate(task.target)))
        if current.exists and not current.shared:
            self.tables.require_replaceable(task.target)
        name = copy_name(task.target, task.table, own is not None)
        shadow = staging_table(name, COPIED, record.nonce)
        with translate_lost_race(self.tables, task, current, record):
            prepare_staging(server, task.target, name)
            create_shadow_table(server, shadow, schema, soft, record.nonce, task.cluster_by, own is not None)
            columns = [column.name for column in (*schema.columns, *_technical_columns(schema, soft))]
            rows = load(shadow, schema, columns, record.window)
            index_shadow_table(server, shadow, schema, task.target, record.nonce)
            swap = Swap(task.target, shadow, current, replace(record, rows=rows), own is not None)
            if own is None:
                self.tables.swap(swap)
            else:
                copy_into_shared(self.tables, swap, own, columns)
        return rows

    def merge(self, task: TableTask, rows: StagedRows, record: ControlRecord) -> MergeCounts:
        """``record`` is already written to the change log. A crash before the commit changes nothing. After it, the
        cursor prevents a second application of the batch."""
        server, schema, columns = self.tables.server, rows.batch.schema, rows.columns.names

        def load(staged: str) -> int:
            parts = on_files(rows, partial(_load_in_task, server, staged, schema, columns))
            return finish_load(server, staged, schema, columns, _loaded(parts), record.window)

        return self._merge(task, rows, record, load)

    def merge_locally(self, task: TableTask, rows: StagedRows, record: ControlRecord) -> MergeCounts:
        server, schema = self.tables.server, rows.batch.schema

        def load(staged: str) -> int:
            columns, read = rows.columns.names, rows.batches_of
            parts = [
                load_part(server, staged, schema, columns, part, read(file)) for part, file in enumerate(rows.files)
            ]
            return finish_load(server, staged, schema, columns, parts, record.window)

        return self._merge(task, rows, record, load)

    def _merge(
        self, task: TableTask, rows: StagedRows, record: ControlRecord, load: Callable[[str], int]
    ) -> MergeCounts:
        """``load`` writes the rows into a staging table and returns their number."""
        current, batch = state_before_merge(self.tables, task, rows, record), rows.batch
        server = self.tables.server
        name = copy_name(task.target, task.table, current.shared)
        staged = staging_table(name, STAGED, record.nonce)
        plan = merge_plan(task, batch, batch.added)
        with translate_lost_race(self.tables, task, current, record):
            prepare_staging(server, task.target, name)
            create_staged_table(server, staged, batch.schema)
            loaded = Loaded(staged, load(staged))
            index_staged_table(server, staged, batch.schema)
            failpoint("merge.before_submit")
            counts = merge(self.tables, task.target, loaded, plan, current, record)
        discard(server, staged)
        return MergeCounts(counts.get(Effect.INSERTED, 0), counts.get(Effect.UPDATED, 0), counts.get(Effect.DELETED, 0))

    def maintain(self, task: TableTask, keep: timedelta) -> tuple[str, ...]:
        """Does nothing: PostgreSQL's autovacuum, InnoDB's purge, Snowflake's clustering, and Redshift's vacuum and sort
        are automatic."""
        return ()


def _load_in_task(
    server: Server,
    table: str,
    schema: TableSchema,
    columns: Sequence[str],
    part: int,
    batches: Iterable[pa.RecordBatch],
) -> Any:
    """Runs in an executor."""
    return to_plain(load_part(server, table, schema, columns, part, batches))


def _loaded(results: Iterable[Any]) -> list[LoadedPart]:
    return [from_plain(LoadedPart, result) for result in results]


def _has_value(cursor: Any, sql: Sql, table: str, column: str) -> bool:
    cursor.execute(f"SELECT COUNT(*) FROM {sql.table(table)} WHERE {sql.quoted(column)} IS NOT NULL")
    (values,) = cursor.fetchone()
    return bool(values)


def _technical_columns(schema: TableSchema, soft: bool) -> tuple[Column, ...]:
    order = (ORDER_COLUMN,) if schema.key else ()
    return order + ((DELETED_COLUMN,) if soft else ())
