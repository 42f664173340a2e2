"""Commits to SQL databases: Spark's tasks load rows into a table of their own, one transaction puts them in place."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import partial
from itertools import chain

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession

from airflow_cdc_provider.core import errors
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.errors import CdcError, ForeignTarget, Problem, TargetUnavailable
from airflow_cdc_provider.core.failpoints import failpoint
from airflow_cdc_provider.core.serde import from_plain, to_plain
from airflow_cdc_provider.core.spec.definition import OnDelete
from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.core.table.merge_plan import DELETED, ORDER
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType, TableSchema
from airflow_cdc_provider.targets.common_checks import not_ours
from airflow_cdc_provider.targets.database.commits import merge, put_in_place
from airflow_cdc_provider.targets.database.merge_sql import Effect
from airflow_cdc_provider.targets.database.names import COPIED, STAGED, staging_table
from airflow_cdc_provider.targets.database.server import Server
from airflow_cdc_provider.targets.database.staging import (
    discard,
    load_share,
    make_shadow,
    make_staged,
    prepare,
    settle_shadow,
    settle_staged,
)
from airflow_cdc_provider.targets.database.target import DatabaseTarget
from airflow_cdc_provider.targets.fencing import overtaken_by
from airflow_cdc_provider.targets.sparksql.names import quoted
from airflow_cdc_provider.targets.sparksql.types import column_type
from airflow_cdc_provider.targets.target import TargetState
from spark_jobs.batches.staged_rows import StagedRows
from spark_jobs.copies.copied_rows import CopiedRows
from spark_jobs.runtime.memory_budget import is_small
from spark_jobs.writers.jdbc import JdbcRead, read_jdbc
from spark_jobs.writers.row_texts import as_texts, is_binary
from spark_jobs.writers.writer import CopyCommit, MergeCounts, merge_plan

FETCH_ROWS = 5_000

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
        """A database keeps no versions: what it holds now is what the cursor says until the next commit, and a batch
        that was built on anything else is refused by that commit."""
        held = self.tables.state(task.table, task.target)
        schema = held.control.schema if held.control and held.control.schema else task.schema
        columns = [*schema.columns, *_technical(schema, task.rule.on_delete is OnDelete.SOFT)]
        sql, jdbc = self.tables.sql, self.tables.server.jdbc()
        read = {column.name: sql.read_as(column) for column in columns}
        selected = ", ".join(f"{expression} AS {sql.quoted(name)}" for name, (expression, _) in read.items())
        casts = {
            column.name: f"CAST({read[column.name][1] or quoted(column.name)} AS {column_type(column.type)})"
            for column in columns
        }
        query = JdbcRead(
            url=jdbc.url,
            driver=jdbc.driver,
            user=jdbc.user,
            password=jdbc.password,
            query=f"(SELECT {selected} FROM {sql.table(task.target)}) copied",
            session_init=jdbc.session_init,
            fetch_rows=FETCH_ROWS,
            casts=casts,
        )
        return read_jdbc(self.spark, query, [column.name for column in columns])

    def copy(self, task: TableTask, rows: CopiedRows) -> CopyCommit:
        return partial(self._copy, task, rows.frame())

    def _copy(self, task: TableTask, frame: DataFrame, record: ControlRecord) -> int:
        """Died before the swap: the old table stands, or none. A token that does not grow is refused, and so is one
        that another attempt has named: the caller has to raise the fence."""
        held = self.tables.state(task.table, task.target)
        if held.exists and held.control is None:
            raise ForeignTarget(not_ours(self.tables.locate(task.target)))
        if (held.token is not None and record.token <= held.token) or not self.tables.log.write_control(record):
            raise overtaken_by(held, record)
        server, schema = self.tables.server, record.schema or task.schema
        soft = task.rule.on_delete is OnDelete.SOFT
        shadow = staging_table(task.target, COPIED, record.attempt)
        with self._losing_is_fenced(task, held, record):
            prepare(server, task.target, self.tables.lock_name(task.target))
            make_shadow(server, shadow, schema, soft, record.nonce)
            columns = [column.name for column in (*schema.columns, *_technical(schema, soft))]
            rows = self._load(frame.select(*map(quoted, columns)), shadow, schema)
            settle_shadow(server, shadow, schema, task.target, record.nonce)
            put_in_place(self.tables, task.target, shadow, held, replace(record, rows=rows))
        return rows

    def merge(self, task: TableTask, rows: StagedRows, record: ControlRecord) -> MergeCounts:
        """``record`` is already named in the change log. Died before the commit: nothing happened. Died after it: the
        cursor stands, and the same batch can never apply twice."""
        held = self.tables.state(task.table, task.target)
        found, batch = held.control, rows.batch
        if found is None or found.token >= record.token or (not batch.repair and found.window != batch.lo_window):
            raise overtaken_by(held, record)
        server = self.tables.server
        staged = staging_table(task.target, STAGED, record.attempt)
        plan = merge_plan(task, batch, batch.added)
        with self._losing_is_fenced(task, held, record):
            prepare(server, task.target, self.tables.lock_name(task.target))
            make_staged(server, staged, batch.schema)
            if is_small(batch.rows):
                _load_share(server, staged, 0, rows.batches(), batch.schema.names)
            else:
                self._load(rows.frame, staged, batch.schema)
            settle_staged(server, staged, batch.schema)
            failpoint("merge.before_submit")
            counts = merge(self.tables, task.target, staged, plan, held, record)
        discard(server, staged)
        return MergeCounts(counts.get(Effect.INSERTED, 0), counts.get(Effect.UPDATED, 0), counts.get(Effect.DELETED, 0))

    def maintain(self, task: TableTask, keep: timedelta) -> tuple[str, ...]:
        """Nothing: PostgreSQL's autovacuum and InnoDB's purge keep tables in shape by their own figures."""
        return ()

    @contextlib.contextmanager
    def _losing_is_fenced(self, task: TableTask, before: TargetState, record: ControlRecord) -> Iterator[None]:
        """An attempt that came later takes away the table that our rows wait in."""
        try:
            yield
        except TargetUnavailable:
            after = self.tables.state(task.table, task.target)
            if after != before:
                raise overtaken_by(after, record) from None
            raise

    def _load(self, frame: DataFrame, table: str, schema: TableSchema) -> int:
        """Load the frame from its tasks, nothing through the driver. The number of rows; raises what a task met."""
        share = partial(_load_in_task, self.tables.server, table, schema.names)
        told = frame.mapInArrow(share, "rows BIGINT, failure STRING").collect()
        for row in told:
            if row["failure"]:
                raise _failure(row["failure"])
        return sum(int(row["rows"]) for row in told)


def _load_in_task(
    server: Server, table: str, names: Sequence[str], batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Runs in an executor. What the database says against it comes back as data: an exception would reach the driver
    as text, with every value it quotes."""
    context = TaskContext.get()
    assert context is not None
    rows, failure = 0, None
    try:
        rows = _load_share(server, table, context.partitionId(), batches, names)
    except CdcError as error:
        failure = json.dumps({"class": type(error).__name__, "problem": to_plain(error.problems[0])})
    yield pa.RecordBatch.from_pydict(
        {"rows": pa.array([rows], pa.int64()), "failure": pa.array([failure], pa.string())}
    )


def _load_share(server: Server, table: str, share: int, batches: Iterable[pa.RecordBatch], names: Sequence[str]) -> int:
    """``names``: the columns of the table, as ``_cdc_known`` counts them."""
    incoming = iter(batches)
    first = next(incoming, None)
    if first is None:
        return 0
    columns = {field.name: is_binary(field.type) for field in first.schema}
    texts = (as_texts(batch, names) for batch in chain([first], incoming))
    return load_share(server, table, columns, share, texts)


def _failure(text: str) -> CdcError:
    told = json.loads(text)
    kind: Callable[[Problem], CdcError] = getattr(errors, told["class"])
    return kind(from_plain(Problem, told["problem"]))


def _technical(schema: TableSchema, soft: bool) -> tuple[Column, ...]:
    order = (ORDER_COLUMN,) if schema.key else ()
    return order + ((DELETED_COLUMN,) if soft else ())
