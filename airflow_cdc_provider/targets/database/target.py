"""The state of the tables of a database, and all commits to them: fences on a worker, merges and copies from a job.

A copy is identified by the identity in its table comment, and only the control row with that identity is valid; rows of
other identities are left over from attempts that died. Each commit takes the table's lock and then updates the control
row as a compare-and-set. Under the lock no other commit is in flight, so the outcome of a commit can be read back if
its response was lost.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.errors import Blocked, Problem, TargetUnavailable
from airflow_cdc_provider.core.failpoints import failpoint
from airflow_cdc_provider.core.table.alterations import Alteration
from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.core.table.former_columns import with_other_types
from airflow_cdc_provider.core.table.published_cut import Cut
from airflow_cdc_provider.core.table.schema import Column, TableSchema
from airflow_cdc_provider.core.table.special_values import Specials
from airflow_cdc_provider.core.table.unfit import Unfit
from airflow_cdc_provider.staging.change_log import ChangeLog
from airflow_cdc_provider.targets.common_checks import first_problems, lost_rows
from airflow_cdc_provider.targets.database import control, errors, leaving
from airflow_cdc_provider.targets.database.alter_sql import alteration_statements
from airflow_cdc_provider.targets.database.check import check_tables
from airflow_cdc_provider.targets.database.commit import Commit, Swap
from airflow_cdc_provider.targets.database.conflicts import retry_conflicts
from airflow_cdc_provider.targets.database.cuts import create_view, write_cut
from airflow_cdc_provider.targets.database.declared_types import missing, other_types
from airflow_cdc_provider.targets.database.limits import limit_problems, rewritten_documents
from airflow_cdc_provider.targets.database.merge_sql import Counts, Effect
from airflow_cdc_provider.targets.database.names import (
    CONTROL,
    CUT,
    REPLACED,
    copy_name,
    identity_in,
    is_shared,
    staging_table,
)
from airflow_cdc_provider.targets.database.row_counts import require_all_taken_over, require_loaded
from airflow_cdc_provider.targets.database.server import (
    CarriesOver,
    ChangesRows,
    LosesRows,
    NamesTransactions,
    Server,
    ShowsTypes,
)
from airflow_cdc_provider.targets.database.sql import Sql
from airflow_cdc_provider.targets.database.text_loads import delete_loads
from airflow_cdc_provider.targets.fencing import claim_fence, has_commit, superseded_by
from airflow_cdc_provider.targets.missing_rows import row_missing_in
from airflow_cdc_provider.targets.restrictions import Restriction
from airflow_cdc_provider.targets.target import TargetState
from airflow_cdc_provider.targets.unversioned import UnversionedTarget

TRIES = 2
"""A commit whose response was lost and that did not happen is tried once more."""


class DatabaseTarget(UnversionedTarget):
    def __init__(self, server: Server, replicator: str, log: ChangeLog) -> None:
        self.server = server
        self.replicator = replicator
        self.log = log

    @property
    def sql(self) -> Sql:
        return self.server.sql

    @property
    def alteration_sql(self) -> Sql:
        """The dialect of alterations; needs no connection."""
        return self.server.sql

    def locate(self, target_table: str) -> str:
        return f"{self.server.address}, table {self.server.schema}.{target_table}"

    def check(self, tables: Sequence[TableTask]) -> list[Problem]:
        return check_tables(self, tables)

    def tls_warnings(self) -> list[Problem]:
        return self.server.tls_warnings()

    def column_types(self, schema: TableSchema) -> Sequence[str]:
        return [self.sql.column_type(column, column.name in schema.key) for column in schema.columns]

    def restriction(self, column: Column, in_key: bool) -> Restriction | None:
        return self.sql.restriction(column, in_key)

    def unsupported_values(self, column: Column, in_key: bool) -> Specials:
        return self.sql.unsupported_values(column, in_key)

    def state(self, table: str, target_table: str) -> TargetState:
        with self.server.session("probe") as connection:
            cursor = connection.cursor()
            state = self.read_state(cursor, table, target_table)
            return replace(state, unfit=self.unfit(cursor, target_table, state)) if state.control else state

    def limits(self, task: TableTask) -> Iterable[Problem]:
        return limit_problems(self.server.limits, self.alteration_sql, task)

    def rewritten_documents(self, schema: TableSchema) -> tuple[str, ...]:
        return rewritten_documents(self.sql, schema)

    def refused(self, tables: Sequence[TableTask]) -> Mapping[str, Problem]:
        with self.server.session("probe") as connection:
            of_server = list(self.server.server_problems(connection.cursor()))
        return first_problems(tables, lambda task: [*of_server, *self.limits(task)])

    def unfit(self, cursor: Any, target_table: str, state: TargetState) -> Unfit | None:
        """Where keys of other characters may be equal, rows of other keys would be changed and deleted. Where another
        type was given to a column, values would be rounded. Triggers and rules can change or skip rows;
        expirations delete them."""
        if found := self.server.other_collations(cursor, target_table):
            return Unfit(errors.other_collation(self.locate(target_table), found), copy_helps=True)
        if isinstance(self.server, LosesRows) and (found := self.server.losses_of_rows(cursor, target_table)):
            return Unfit(lost_rows(self.locate(target_table), found))
        control, in_transactions = state.control, self.server.alters_in_transactions
        schema = control.schema if control else None
        if control is None or schema is None:
            return None
        if found := self._changes_of_rows(cursor, target_table, schema):
            return Unfit(errors.changed_rows(self.locate(target_table), found))
        found = self.other_columns(cursor, target_table, schema, in_transactions)
        if not found or (not in_transactions and self.log.highest_fence(control.table) > control.fence):
            return None  # an attempt that died can have altered columns: the next one goes on
        return errors.other_columns(self.locate(target_table), found, schema, state.shared)

    def _changes_of_rows(self, cursor: Any, target_table: str, schema: TableSchema) -> list[str]:
        if not isinstance(self.server, ChangesRows):
            return []
        return self.server.changes_of_rows(cursor, target_table, schema.names)

    def other_columns(self, cursor: Any, target_table: str, schema: TableSchema, with_missing: bool) -> list[str]:
        """What differs from the columns that a copy with this schema has."""
        if not isinstance(self.server, ShowsTypes):
            return []
        types = self.server.declared_types(cursor, target_table)
        lacking = missing(self.server, types, schema.columns) if with_missing else []
        return [*lacking, *other_types(self.server, types, schema.columns, schema.key).values()]

    def with_other_types(
        self,
        cursor: Any,
        target_table: str,
        columns: tuple[Column, ...],
        key: Sequence[str],
        former: Mapping[str, str],
    ) -> Collection[str]:
        """The names of those that the table has with a type that does not fit. ``key``: of the copy. ``former``: the
        types of its former columns, for a server that shows none."""
        if not isinstance(self.server, ShowsTypes):
            return with_other_types(former, columns, self.sql.column_id, partial(self.sql.column_type, in_key=False))
        return other_types(self.server, self.server.declared_types(cursor, target_table), columns, key)

    def existing(self, target_tables: Collection[str]) -> Collection[str]:
        with self.server.session("probe") as connection:
            return self.server.existing(connection.cursor(), target_tables)

    def read_state(self, cursor: Any, table: str, target_table: str) -> TargetState:
        comment = self.server.comment(cursor, target_table)
        if comment is None:
            return TargetState(exists=False)
        identity, shared = identity_in(comment), is_shared(comment)
        name = copy_name(target_table, table, shared)
        record = control.records(self.server, cursor, name).get(identity) if identity else None
        if not shared:
            return self.state_of_copy(table, identity, record)
        if record is None:
            others = control.sharing(self.server, cursor, target_table, identity)
            ours = any(other.replicator == self.replicator for other in others)
            return TargetState(exists=not ours, identity=identity, shared=True)
        return replace(self.state_of_copy(table, identity, record), shared=True)

    def state_of_copy(self, table: str, identity: str, record: ControlRecord | None) -> TargetState:
        """``record``: of the copy with this identity."""
        if record is None or (record.replicator, record.table) != (self.replicator, table):
            return TargetState(exists=True, identity=identity)
        return TargetState(True, record, None, identity, record.token)

    def publish_cut(self, cut: Cut) -> None:
        retry_conflicts(partial(self._publish_cut, cut))

    def _publish_cut(self, cut: Cut) -> None:
        with self.server.session("publish") as connection:
            cursor = connection.cursor()
            self.server.lock_cut(cursor, cut.replicator)
            with self._one_transaction(cursor):
                for command in write_cut(self.sql, cut):
                    command.execute(cursor)
            connection.commit()
            # Attempts that create control tables at once may each have left a view without the other's table.
            control_tables = self.server.tables_like(cursor, CONTROL)
            if len(control_tables) > 1:
                cursor.execute(create_view(self.sql, control_tables))
                connection.commit()

    def fence(self, target_table: str, expected: TargetState, record: ControlRecord) -> ControlRecord:
        record = claim_fence(self.log, record, expected)
        self.settle_swaps(target_table)
        self.commit(Commit(target_table, expected, record))
        return record

    def statements(self, target_table: str, alterations: Sequence[Alteration]) -> tuple[str, ...] | None:
        found = alteration_statements(self.alteration_sql, target_table, alterations)
        return None if found is None else tuple(f"{statement.text};" for statement in found)

    def alter(
        self, target_table: str, expected: TargetState, record: ControlRecord, alterations: Sequence[Alteration]
    ) -> ControlRecord:
        from airflow_cdc_provider.targets.database.commits import alter

        return alter(self, target_table, expected, record, alterations)

    def take_over(self, target_table: str, expected: TargetState, record: ControlRecord) -> ControlRecord:
        record = claim_fence(self.log, record, expected)
        self.settle_swaps(target_table)
        execute = partial(retry_conflicts, partial(self._take_over, Commit(target_table, expected, record)))
        self.retry_lost_response(target_table, record, execute)
        return record

    def release(self, table: str, target_table: str, identity: str | None = None) -> None:
        retry_conflicts(partial(leaving.release, self.server, self.replicator, table, target_table, identity))

    def drop(self, target_table: str, identity: str) -> None:
        leaving.drop_copy(self.server, target_table, identity)

    def withdraw_cut(self) -> None:
        retry_conflicts(self._withdraw_cut)

    def _withdraw_cut(self) -> None:
        with self.server.session("publish") as connection:
            cursor = connection.cursor()
            if self.server.comment(cursor, CUT) is None:
                return
            connection.commit()
            self.server.lock_cut(cursor, self.replicator)
            with self._one_transaction(cursor):
                leaving.delete_cut(self.server, cursor, self.replicator)
            connection.commit()

    def settle_swaps(self, target_table: str) -> None:
        """After it, no copy whose control row is committed gets the name of the table any more. Most databases swap in
        the transaction of that row, under the lock."""

    def key_bounds(self, target_table: str, staged: str, schema: TableSchema) -> str:
        """A condition that every row of the table with the key of a staged row fulfils, so that the database reads
        less of the table; empty if it does not help. ``staged``: the table of the staged rows, as SQL."""
        return ""

    def require_replaceable(self, target_table: str) -> None:
        """Raises Blocked where a table has what a new copy of it cannot have."""
        if isinstance(self.server, CarriesOver):
            with self.server.session("probe") as connection:
                self.server.require_replaceable(connection.cursor(), target_table)

    def commit(self, commit: Commit) -> Counts | None:
        """Returns None if the commit succeeded but its response was lost. Raises Fenced if the table has changed,
        RowMissing if it lacks the row of a change."""
        execute = partial(retry_conflicts, partial(self._commit, commit))
        return self.retry_lost_response(commit.target_table, commit.record, execute)

    def swap(self, swap: Swap) -> None:
        """A crash before the swap leaves the old copy with its own control row. A crash after it leaves the new copy,
        whose control row was written first. There is no state in between. Raises Fenced if the table has changed."""
        execute = partial(retry_conflicts, partial(self._swap, swap))
        self.retry_lost_response(swap.target_table, swap.record, execute)

    def require_unchanged(self, cursor: Any, target_table: str, expected: TargetState, record: ControlRecord) -> None:
        """Raises Fenced if the table has changed."""
        state = self.read_state(cursor, record.table, target_table)
        if (state.exists, state.identity, state.control) != (expected.exists, expected.identity, expected.control):
            raise superseded_by(state, record)

    def is_committed(self, target_table: str, record: ControlRecord) -> bool:
        """Whether ``record`` is committed, read under the lock, so that its commit cannot be in flight any more."""
        with self.server.session("read back") as connection:
            cursor = connection.cursor()
            self.server.lock_table(cursor, target_table)
            return has_commit(self.read_state(cursor, record.table, target_table), record)

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

    @contextmanager
    def _one_transaction(self, cursor: Any) -> Iterator[None]:
        """Entered when the lock is taken. Raises TransactionConflict if the lock was lost in the meantime."""
        if not isinstance(self.server, NamesTransactions):
            yield
            return
        locked = self.server.transaction(cursor)
        yield
        if self.server.transaction(cursor) != locked:
            raise errors.conflict(self.server.address, "the transaction was aborted")

    def _commit(self, commit: Commit) -> Counts:
        table, expected, record = commit.target_table, commit.expected, commit.record
        with self.server.session("commit", record.window) as connection:
            cursor = connection.cursor()
            self.server.lock_table(cursor, table)
            counts = dict.fromkeys(Effect, 0)
            with self._one_transaction(cursor):
                self.require_unchanged(cursor, table, expected, record)
                require_loaded(cursor, self, commit.loaded)
                written = commit.written
                for statement in commit.statements:
                    if written and statement.effect is not Effect.ALTER:
                        self._require_fit(cursor, commit, written)
                        written = None
                    cursor.execute(statement.text)
                    if statement.effect is not Effect.REFUSE:
                        counts[statement.effect] += max(cursor.rowcount, 0)
                    elif cursor.fetchone()[0]:
                        raise row_missing_in(self.locate(table), record)
                if commit.replaces:
                    commit.invalidate_cut(self.sql).execute(cursor)
                with_rows = replace(record, rows=commit.rows_after(counts))
                if commit.advance(self.sql, with_rows).execute(cursor) != 1:
                    raise superseded_by(self.read_state(cursor, record.table, table), record)
                failpoint("commit.before")
            connection.commit()
            failpoint("commit.after")
            self._require_committed(cursor, table, record)
            return counts

    def _require_fit(self, cursor: Any, commit: Commit, schema: TableSchema) -> None:
        """Raises Blocked where the table would not keep the values."""
        if found := self._changes_of_rows(cursor, commit.target_table, schema):
            raise Blocked(errors.changed_rows(self.locate(commit.target_table), found))
        if found := self.other_columns(cursor, commit.target_table, schema, with_missing=True):
            unfit = errors.other_columns(self.locate(commit.target_table), found, schema, commit.expected.shared)
            raise Blocked(unfit.problem)

    def _take_over(self, commit: Commit) -> None:
        """The row is compared by its cursor alone: to this target, the table belongs to another replicator."""
        table, record = commit.target_table, commit.record
        with self.server.session("commit", record.window) as connection:
            cursor = connection.cursor()
            self.server.lock_table(cursor, table)
            with self._one_transaction(cursor):
                if commit.advance(self.sql, record).execute(cursor) != 1:
                    raise superseded_by(self.read_state(cursor, record.table, table), record)
                failpoint("commit.before")
            connection.commit()
            failpoint("commit.after")
            self._require_committed(cursor, table, record)

    def _require_committed(self, cursor: Any, target_table: str, record: ControlRecord) -> None:
        """Raises TransactionConflict if there was no transaction left to commit."""
        loses = isinstance(self.server, NamesTransactions)
        if loses and not has_commit(self.read_state(cursor, record.table, target_table), record):
            raise errors.conflict(self.server.address, "the transaction was aborted")

    def _swap(self, swap: Swap) -> None:
        table, record = swap.target_table, swap.record
        with self.server.session("commit", record.window) as connection:
            cursor = connection.cursor()
            self.server.lock_table(cursor, table)
            with self._one_transaction(cursor):
                self.require_unchanged(cursor, table, swap.expected, record)
                require_loaded(cursor, self, swap.loaded)
                require_all_taken_over(cursor, self, swap)
                for command in swap.commands(self.sql):
                    command.execute(cursor)
                raised = None if self.server.swaps_under_lock else swap.raise_fence(self.sql)
                if raised and raised.execute(cursor) != 1:
                    raise superseded_by(self.read_state(cursor, record.table, table), record)
                delete_loads(self.server, cursor, swap.shadow)
            replaced = staging_table(swap.name, REPLACED, record.nonce)
            self.server.swap(connection, swap.shadow, table, replaced, swap.expected.exists)
