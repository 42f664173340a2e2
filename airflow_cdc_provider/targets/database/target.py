"""What stands in a table of a database, and every commit to it: fences on a worker, merges and copies from a job.

A copy is known by the identity that its comment names; the control row of that identity is the one that counts. A row
of another identity, left by an attempt that died, counts for nothing. Each commit first takes the table's lock, then
moves the control row on from what it was read as: one row, or nothing happens. The lock is what makes a lost answer
readable: whoever gets it knows that no commit is still on its way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.errors import Blocked, Problem, TargetUnavailable
from airflow_cdc_provider.core.failpoints import failpoint
from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.core.table.published_cut import Cut
from airflow_cdc_provider.core.table.schema import Column
from airflow_cdc_provider.core.table.special_values import Specials
from airflow_cdc_provider.staging.change_log import ChangeLog
from airflow_cdc_provider.targets.database import control
from airflow_cdc_provider.targets.database.check import check_tables
from airflow_cdc_provider.targets.database.cuts import write_cut
from airflow_cdc_provider.targets.database.merge_sql import Counts, rows_after
from airflow_cdc_provider.targets.database.names import CONTROL, identity_in
from airflow_cdc_provider.targets.database.server import Server
from airflow_cdc_provider.targets.database.sql import Sql
from airflow_cdc_provider.targets.fencing import claimed, is_ours, overtaken_by
from airflow_cdc_provider.targets.naming import default_name
from airflow_cdc_provider.targets.target import EarlierVersion, TargetState

TRIES = 2
"""A commit whose answer was lost and that did not happen is tried once more."""


@dataclass(frozen=True)
class Open:
    """A locked table whose control row is as expected, in an open transaction."""

    connection: Any
    cursor: Any
    sql: Sql


class DatabaseTarget:
    def __init__(self, server: Server, replicator: str, log: ChangeLog) -> None:
        self.server = server
        self.replicator = replicator
        self.log = log

    @property
    def sql(self) -> Sql:
        return self.server.sql

    def table_name(self, source_table: str) -> str:
        return default_name(source_table)

    def locate(self, target_table: str) -> str:
        return f"{self.server.place}, table {self.server.schema}.{target_table}"

    def check(self, tables: Sequence[TableTask]) -> list[Problem]:
        return check_tables(self, tables)

    def unverified(self) -> list[Problem]:
        return self.server.unverified()

    def refused(self, column: Column, in_key: bool, value: str) -> str:
        return self.sql.refused(column, in_key, value)

    def unsupported_values(self, column: Column, in_key: bool) -> Specials:
        return self.sql.unsupported_values(column, in_key)

    def state(self, table: str, target_table: str) -> TargetState:
        with self.server.session("probe") as connection:
            return self.look(connection.cursor(), table, target_table)

    def look(self, cursor: Any, table: str, target_table: str) -> TargetState:
        comment = self.server.comment(cursor, target_table)
        if comment is None:
            return TargetState(exists=False)
        identity = identity_in(comment)
        if not identity or self.server.comment(cursor, CONTROL) is None:
            return TargetState(exists=True, identity=identity)
        record = control.read(cursor, self.sql, target_table, identity)
        if record is None or (record.replicator, record.table) != (self.replicator, table):
            return TargetState(exists=True, identity=identity)
        return TargetState(True, record, None, identity, record.token)

    def row_count(self, target_table: str, held: TargetState) -> int | None:
        """By what our own commits did: rows that somebody else writes do not count."""
        return held.control.rows if held.control else None

    def oldest_token(self, table: str, target_table: str) -> int:
        """The row holds the record itself: no older one is asked for in staging."""
        return self.state(table, target_table).token or 0

    def version_at_or_before(self, table: str, target_table: str, window: int) -> EarlierVersion | None:
        """A database keeps what is, and nothing of what was."""
        return None

    def control_at(self, table: str, target_table: str, version: int) -> ControlRecord | None:
        return None

    def restore_version(self, target_table: str, expected: TargetState, version: int) -> None:
        where, do = self.locate(target_table), "copy the table again: airflow cdc resync"
        raise Blocked(Problem("TGT024", "a database keeps no versions", where, f"version {version}", do=do))

    def publish_cut(self, cut: Cut) -> None:
        with self.server.session("publish") as connection:
            cursor = connection.cursor()
            self.server.lock(cursor, f"cdc:cut:{cut.replicator}")
            write_cut(cursor, self.sql, cut)
            connection.commit()

    def fence(self, target_table: str, expected: TargetState, record: ControlRecord) -> ControlRecord:
        record = claimed(self.log, record, expected)
        self.commit(target_table, expected, record, lambda _: {})
        return record

    def commit(
        self, target_table: str, expected: TargetState, record: ControlRecord, work: Callable[[Open], Counts]
    ) -> Counts | None:
        """Move the control row from ``expected`` to ``record``, with the number of rows that the table then holds, and
        do ``work`` in the same transaction. None where the commit stands but its answer was lost. Raises Fenced where
        the table is not as expected."""
        lost: TargetUnavailable | None = None
        for _ in range(TRIES):
            try:
                return self._commit(target_table, expected, record, work)
            except TargetUnavailable as error:
                lost = error
            if self.stands(target_table, record):
                return None
        assert lost is not None
        raise lost

    def stands(self, target_table: str, record: ControlRecord) -> bool:
        """Whether the commit of ``record`` has happened. Under the lock: nothing of it can still be on its way."""
        with self.server.session("read back") as connection:
            cursor = connection.cursor()
            self.server.lock(cursor, self.lock_name(target_table))
            return is_ours(self.look(cursor, record.table, target_table), record)

    def lock_name(self, target_table: str) -> str:
        return f"cdc:{self.server.schema}.{target_table}"

    def require(self, cursor: Any, target_table: str, expected: TargetState, record: ControlRecord) -> None:
        """Raises Fenced where the table is no longer as expected."""
        found = self.look(cursor, record.table, target_table)
        if (found.exists, found.identity, found.control) != (expected.exists, expected.identity, expected.control):
            raise overtaken_by(found, record)

    def _commit(
        self, target_table: str, expected: TargetState, record: ControlRecord, work: Callable[[Open], Counts]
    ) -> Counts:
        with self.server.session("commit") as connection:
            cursor = connection.cursor()
            self.server.lock(cursor, self.lock_name(target_table))
            self.require(cursor, target_table, expected, record)
            counts = work(Open(connection, cursor, self.sql))
            assert expected.control is not None
            moved = replace(record, rows=rows_after(expected.control.rows, counts))
            if not control.move(cursor, self.sql, target_table, expected.identity, expected.control, moved):
                raise overtaken_by(self.look(cursor, record.table, target_table), record)
            failpoint("commit.before")
            connection.commit()
            failpoint("commit.after")
            return counts
