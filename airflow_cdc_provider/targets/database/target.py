"""The state of the tables of a database, and all commits to them: fences on a worker, merges and copies from a job.

A copy is identified by the identity in its table comment, and only the control row with that identity is valid; rows of
other identities are left over from attempts that died. Each commit takes the table's lock and then updates the control
row as a compare-and-set. Under the lock no other commit is in flight, so the outcome of a commit can be read back if
its response was lost.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.errors import Problem, TargetUnavailable
from airflow_cdc_provider.core.failpoints import failpoint
from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.core.table.published_cut import Cut
from airflow_cdc_provider.core.table.schema import Column
from airflow_cdc_provider.core.table.special_values import Specials
from airflow_cdc_provider.staging.change_log import ChangeLog
from airflow_cdc_provider.targets.database import control
from airflow_cdc_provider.targets.database.check import check_tables
from airflow_cdc_provider.targets.database.cuts import create_view, write_cut
from airflow_cdc_provider.targets.database.merge_sql import Counts, row_count_after
from airflow_cdc_provider.targets.database.names import CONTROL, identity_in
from airflow_cdc_provider.targets.database.server import Server
from airflow_cdc_provider.targets.database.sql import Sql
from airflow_cdc_provider.targets.fencing import claim_fence, has_commit, superseded_by
from airflow_cdc_provider.targets.restrictions import Restriction
from airflow_cdc_provider.targets.target import TargetState
from airflow_cdc_provider.targets.unversioned import UnversionedTarget

TRIES = 2
"""A commit whose response was lost and that did not happen is tried once more."""


@dataclass(frozen=True)
class LockedTable:
    """A locked table whose control row is as expected, in an open transaction."""

    connection: Any
    cursor: Any
    sql: Sql


class DatabaseTarget(UnversionedTarget):
    def __init__(self, server: Server, replicator: str, log: ChangeLog) -> None:
        self.server = server
        self.replicator = replicator
        self.log = log

    @property
    def sql(self) -> Sql:
        return self.server.sql

    def locate(self, target_table: str) -> str:
        return f"{self.server.address}, table {self.server.schema}.{target_table}"

    def check(self, tables: Sequence[TableTask]) -> list[Problem]:
        return check_tables(self, tables)

    def tls_warnings(self) -> list[Problem]:
        return self.server.tls_warnings()

    def restriction(self, column: Column, in_key: bool) -> Restriction | None:
        return self.sql.restriction(column, in_key)

    def unsupported_values(self, column: Column, in_key: bool) -> Specials:
        return self.sql.unsupported_values(column, in_key)

    def state(self, table: str, target_table: str) -> TargetState:
        with self.server.session("probe") as connection:
            return self.read_state(connection.cursor(), table, target_table)

    def read_state(self, cursor: Any, table: str, target_table: str) -> TargetState:
        comment = self.server.comment(cursor, target_table)
        if comment is None:
            return TargetState(exists=False)
        identity = identity_in(comment)
        if not identity or self.server.comment(cursor, self.sql.control_table(target_table)) is None:
            return TargetState(exists=True, identity=identity)
        record = control.read(cursor, self.sql, target_table, identity)
        if record is None or (record.replicator, record.table) != (self.replicator, table):
            return TargetState(exists=True, identity=identity)
        return TargetState(True, record, None, identity, record.token)

    def publish_cut(self, cut: Cut) -> None:
        with self.server.session("publish") as connection:
            cursor = connection.cursor()
            self.server.lock_cut(cursor, cut.replicator)
            write_cut(cursor, self.sql, cut)
            connection.commit()
            # Attempts that create control tables at once may each have left a view without the other's table.
            control_tables = self.server.tables_like(cursor, CONTROL)
            if len(control_tables) > 1:
                cursor.execute(create_view(self.sql, control_tables))

    def fence(self, target_table: str, expected: TargetState, record: ControlRecord) -> ControlRecord:
        record = claim_fence(self.log, record, expected)
        self.commit(target_table, expected, record, lambda _: {})
        return record

    def commit(
        self, target_table: str, expected: TargetState, record: ControlRecord, work: Callable[[LockedTable], Counts]
    ) -> Counts | None:
        """Replace the control row ``expected`` by ``record``, with the table's new number of rows, and do ``work`` in
        the same transaction. Returns None if the commit succeeded but its response was lost. Raises Fenced if the
        table has changed."""
        return self.retry_lost_response(
            target_table, record, partial(self._commit, target_table, expected, record, work)
        )

    def retry_lost_response(
        self, target_table: str, record: ControlRecord, commit: Callable[[], Counts | None]
    ) -> Counts | None:
        """The result of ``commit``, which commits ``record``; None if it succeeded but its response was lost."""
        lost_response: TargetUnavailable | None = None
        for _ in range(TRIES):
            try:
                return commit()
            except TargetUnavailable as error:
                lost_response = error
            if self.is_committed(target_table, record):
                return None
        assert lost_response is not None
        raise lost_response

    def is_committed(self, target_table: str, record: ControlRecord) -> bool:
        """Whether ``record`` is committed, read under the lock, so that its commit cannot be in flight any more."""
        with self.server.session("read back") as connection:
            cursor = connection.cursor()
            self.server.lock_table(cursor, target_table)
            return has_commit(self.read_state(cursor, record.table, target_table), record)

    def require_unchanged(self, cursor: Any, target_table: str, expected: TargetState, record: ControlRecord) -> None:
        """Raises Fenced if the table has changed."""
        state = self.read_state(cursor, record.table, target_table)
        if (state.exists, state.identity, state.control) != (expected.exists, expected.identity, expected.control):
            raise superseded_by(state, record)

    def _commit(
        self, target_table: str, expected: TargetState, record: ControlRecord, work: Callable[[LockedTable], Counts]
    ) -> Counts:
        with self.server.session("commit") as connection:
            cursor = connection.cursor()
            self.server.lock_table(cursor, target_table)
            self.require_unchanged(cursor, target_table, expected, record)
            counts = work(LockedTable(connection, cursor, self.sql))
            assert expected.control is not None
            with_rows = replace(record, rows=row_count_after(expected.control.rows, counts))
            if not control.advance(cursor, self.sql, target_table, expected.identity, expected.control, with_rows):
                raise superseded_by(self.read_state(cursor, record.table, target_table), record)
            failpoint("commit.before")
            connection.commit()
            failpoint("commit.after")
            return counts
