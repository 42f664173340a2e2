"""The BigQuery target."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.errors import Problem, TargetUnavailable
from airflow_cdc_provider.core.failpoints import failpoint
from airflow_cdc_provider.core.serde import from_plain
from airflow_cdc_provider.core.spec.definition import Target
from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.core.table.published_cut import Cut
from airflow_cdc_provider.core.table.schema import TableSchema
from airflow_cdc_provider.staging.change_log import ChangeLog
from airflow_cdc_provider.targets.bigquery import scripts
from airflow_cdc_provider.targets.bigquery.bounds import bounded_columns, bounds_condition, bounds_query
from airflow_cdc_provider.targets.bigquery.checks import (
    option_problems,
    table_problems,
    too_many_tables,
    unknown_tables,
)
from airflow_cdc_provider.targets.bigquery.cursor import JobCursor
from airflow_cdc_provider.targets.bigquery.failures import Cause, JobFailed
from airflow_cdc_provider.targets.bigquery.jobs import is_repeatable, rows_of
from airflow_cdc_provider.targets.bigquery.options import BigQueryOptions
from airflow_cdc_provider.targets.bigquery.quotas import quota_warnings
from airflow_cdc_provider.targets.bigquery.server import BigQueryServer
from airflow_cdc_provider.targets.common_checks import first_problems
from airflow_cdc_provider.targets.database import control
from airflow_cdc_provider.targets.database.commit import Commit, Swap
from airflow_cdc_provider.targets.database.cuts import create_view, view_query
from airflow_cdc_provider.targets.database.merge_sql import Counts
from airflow_cdc_provider.targets.database.names import CONTROL, PUBLISHED, comment, identity_in
from airflow_cdc_provider.targets.database.target import TRIES, DatabaseTarget
from airflow_cdc_provider.targets.fencing import superseded_by
from airflow_cdc_provider.targets.missing_rows import row_missing_in
from airflow_cdc_provider.targets.target import TargetState

R = TypeVar("R")


class BigQueryTarget(DatabaseTarget):
    """Tables in one dataset. A copy that is about to get the name of its table has a control row, too: as long as the
    job runs that gives it the name, no state of the table is read."""

    server: BigQueryServer

    def __init__(self, target: Target, connection: ConnectionInfo, replicator: str, log: ChangeLog) -> None:
        options = from_plain(BigQueryOptions, dict(target.options))
        super().__init__(BigQueryServer(connection, options, replicator), replicator, log)

    def check(self, tables: Sequence[TableTask]) -> list[Problem]:
        options = self.server.options
        of_tables = (*too_many_tables(tables), *unknown_tables(options.partition_by, tables))
        return [*option_problems(options), *of_tables, *super().check(tables)]

    def limits(self, task: TableTask) -> Iterable[Problem]:
        return [*table_problems(self.server.sql, task), *super().limits(task)]

    def refused(self, tables: Sequence[TableTask]) -> Mapping[str, Problem]:
        options = list(option_problems(self.server.options))
        return first_problems(tables, lambda _: options) if options else super().refused(tables)

    def quota_warnings(self, tables: int, runs_a_day: int) -> list[Problem]:
        return list(quota_warnings(tables, runs_a_day, has_stage=bool(self.server.options.stage)))

    def read_state(self, cursor: JobCursor, table: str, target_table: str) -> TargetState:
        """The control rows first, then the identity of the copy: between the two reads, the name may go to a copy whose
        control row is not among the rows yet."""
        while True:
            records = control.records(self.server, cursor, target_table)
            if len(records) > 1:
                self.server.settle_swaps(cursor, target_table, records)
            found = self.server.comment(cursor, target_table)
            if found is None:
                return TargetState(exists=False)
            identity = identity_in(found)
            again = records if identity in records else control.records(self.server, cursor, target_table)
            if again == records:
                return self.state_of_copy(table, identity, records.get(identity))

    def row_count(self, target_table: str, state: TargetState) -> int | None:
        """BigQuery counts by itself."""
        with self.server.session("probe") as connection:
            return self.server.row_count(connection.cursor(), target_table)

    def key_bounds(self, target_table: str, staged: str, schema: TableSchema) -> str:
        with self.server.session("bounds") as connection:
            cursor = connection.cursor()
            columns = bounded_columns(schema, self.server.arranged_by(cursor, target_table))
            if not columns:
                return ""
            cursor.execute(bounds_query(self.server.sql, staged, columns))
            return bounds_condition(self.server.sql, columns, cursor.fetchone() or ())

    def commit(self, commit: Commit) -> Counts:
        """The job is asked for by its id if an answer is lost."""
        table, record = commit.target_table, replace(commit.record, rows=None)
        text = scripts.commit_script(self.server.sql, replace(commit, record=record))
        job_id = scripts.commit_job(table, record)

        def run() -> Counts:
            with self.server.session("commit", record.window) as connection:
                cursor = connection.cursor()

                def may_retry(failed: JobFailed) -> bool:
                    if failed.cause is Cause.CONFLICT:
                        self.require_unchanged(cursor, table, commit.expected, record)
                    return is_repeatable(failed)

                failpoint("commit.before")
                with self._translated(cursor, table, record):
                    job = cursor.jobs.query(text, job_id, lambda: failpoint("commit.submitted"), may_retry)
                failpoint("commit.after")
                counts = next(rows_of(job)) if commit.statements else ()
                return dict(zip(scripts.COUNTED, counts, strict=False))

        return asked_again(run)

    def swap(self, swap: Swap) -> None:
        def run() -> None:
            with self.server.session("commit", swap.record.window) as connection:
                cursor = connection.cursor()
                options, grants = self._description(cursor, swap)
                text = scripts.swap_script(self.server.sql, swap, options, grants)
                job_id = scripts.swap_job(swap.shadow)
                failpoint("copy.before_swap")
                with self._translated(cursor, swap.target_table, swap.record):
                    cursor.jobs.query(text, job_id, lambda: failpoint("copy.in_swap"), was_cancelled)
                failpoint("copy.after_swap")
                self.server.drop_if_unused(connection, swap.shadow)

        asked_again(run)

    def publish_cut(self, cut: Cut) -> None:
        with self.server.session("publish") as connection:
            cursor = connection.cursor()
            job_id = f"cdc-cut-{cut.replicator}-{cut.window}-{time.time_ns()}"
            connection.jobs.query(scripts.cut_script(self.server.sql, cut), job_id, may_retry=was_cancelled)
            control_tables = self.server.tables_like(cursor, CONTROL)
            # BigQuery allows five changes of a view in ten seconds, and all replicators of the dataset share this one.
            if self.server.view_query(cursor, PUBLISHED) != view_query(self.sql, control_tables):
                cursor.execute(create_view(self.sql, control_tables))

    @contextlib.contextmanager
    def _translated(self, cursor: JobCursor, table: str, record: ControlRecord) -> Iterator[None]:
        """Raises Fenced if the table has changed, RowMissing if it lacks the row of a change."""
        try:
            yield
        except JobFailed as failed:
            if failed.cause is Cause.NO_ROW:
                raise row_missing_in(self.locate(table), record) from None
            if failed.cause in (Cause.SUPERSEDED, Cause.EXISTS):
                raise superseded_by(self.read_state(cursor, record.table, table), record) from None
            raise

    def _description(self, cursor: JobCursor, swap: Swap) -> tuple[str, list[str]]:
        """The options of the table, and the grants on it: the new copy has those of the old one."""
        sql, table = self.server.sql, swap.target_table
        labels = self.server.labels(cursor, table) if swap.expected.exists else {}
        grants = self.server.grants(cursor, table) if swap.expected.exists else []
        return sql.table_options(comment(swap.record.nonce), labels | dict(sql.labels)), grants


def was_cancelled(failed: JobFailed) -> bool:
    """Whether nothing of a transaction is committed, and it may be tried again."""
    return failed.cause is Cause.CONFLICT


def asked_again(run: Callable[[], R]) -> R:
    """The jobs of ``run`` have ids, so a second time finds those of the first."""
    lost: TargetUnavailable | None = None
    for _ in range(TRIES):
        try:
            return run()
        except TargetUnavailable as error:
            lost = error
    assert lost is not None
    raise lost
