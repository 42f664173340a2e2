"""The Spanner target: the state of its tables, and the commits to them.

The control row of a table names the copy in force. Reading the state first ends what a commit has begun and not ended:
a copy that has not got its table's name yet, and a merge of several transactions.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import ClassVar

from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.errors import Problem, TargetUnavailable
from airflow_cdc_provider.core.serde import from_plain
from airflow_cdc_provider.core.spec.definition import Target
from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.core.table.published_cut import Cut
from airflow_cdc_provider.core.table.schema import Column, TableSchema
from airflow_cdc_provider.core.table.special_values import Specials
from airflow_cdc_provider.core.table.unfit import Unfit
from airflow_cdc_provider.staging.change_log import ChangeLog
from airflow_cdc_provider.targets.common_checks import first_problems, lost_rows
from airflow_cdc_provider.targets.fencing import claim_fence, has_commit, superseded_by
from airflow_cdc_provider.targets.restrictions import Restriction
from airflow_cdc_provider.targets.spanner import control
from airflow_cdc_provider.targets.spanner.catalog import FoundTables, find_names, find_tables
from airflow_cdc_provider.targets.spanner.changes import Counts
from airflow_cdc_provider.targets.spanner.check import check_tables, table_problems
from airflow_cdc_provider.targets.spanner.columns import (
    restriction,
    rewritten_documents,
    stored_columns,
    unsupported_values,
)
from airflow_cdc_provider.targets.spanner.control import ControlRow, committed
from airflow_cdc_provider.targets.spanner.cuts import publish, withdraw
from airflow_cdc_provider.targets.spanner.database import SpannerDatabase
from airflow_cdc_provider.targets.spanner.large_merge import end_merge
from airflow_cdc_provider.targets.spanner.leaving import drop_copy, release
from airflow_cdc_provider.targets.spanner.names import CUT
from airflow_cdc_provider.targets.spanner.options import SpannerOptions
from airflow_cdc_provider.targets.spanner.row_reads import SpannerRows
from airflow_cdc_provider.targets.spanner.session import Session, Transaction
from airflow_cdc_provider.targets.spanner.swap import take_name
from airflow_cdc_provider.targets.target import TargetState
from airflow_cdc_provider.targets.unversioned import UnversionedTarget

ENDINGS = 3
"""How often the state is read again after what was begun is ended."""


class SpannerTarget(SpannerRows, UnversionedTarget):
    """Tables in one database."""

    keys_rows_by_values: ClassVar[bool] = True

    def __init__(self, target: Target, connection: ConnectionInfo, replicator: str, log: ChangeLog) -> None:
        options = from_plain(SpannerOptions, dict(target.options))
        self.database = SpannerDatabase(connection, options, replicator)
        self.replicator = replicator
        self.log = log

    def locate(self, target_table: str) -> str:
        return f"{self.database.address}, table {target_table}"

    def check(self, tables: Sequence[TableTask]) -> list[Problem]:
        return check_tables(self, tables)

    def refused(self, tables: Sequence[TableTask]) -> Mapping[str, Problem]:
        return first_problems(tables, partial(table_problems, json=self.database.options.json))

    def tls_warnings(self) -> list[Problem]:
        return self.database.tls_warnings()

    def column_types(self, schema: TableSchema) -> Sequence[str]:
        return [column.type.value for column in stored_columns(schema, self.database.options.json)]

    def restriction(self, column: Column, in_key: bool) -> Restriction | None:
        return restriction(column, in_key)

    def unsupported_values(self, column: Column, in_key: bool) -> Specials:
        return unsupported_values(column, in_key)

    def rewritten_documents(self, schema: TableSchema) -> tuple[str, ...]:
        return rewritten_documents(schema, self.database.options.json)

    def state(self, table: str, target_table: str) -> TargetState:
        with self.database.session("probe") as session:
            row, tables = self.ended(session, target_table)
            return self.as_state(table, row, tables)

    def existing(self, target_tables: Collection[str]) -> Collection[str]:
        with self.database.session("probe") as session:
            found = {name.lower() for name in find_names(session)}
            return {name for name in target_tables if name.lower() in found}

    def ended(self, session: Session, target_table: str) -> tuple[ControlRow, FoundTables]:
        """The control row and the tables, after everything that a commit has begun is ended."""
        for _ in range(ENDINGS):
            tables = find_tables(session, target_table)
            row = control.read(session.read, target_table) if tables.has_own else control.NO_ROW
            copy = tables.copy(row.identity)
            if copy is None:
                return row, tables
            if copy is not tables.named:
                if tables.named and not tables.named.identity:  # a table of another origin has taken the name
                    return row, tables
                take_name(self.database, session, tables, copy)
            elif row.begun is not None:
                end_merge(self.database, session, target_table)
            else:
                return row, tables
        do = "nothing: the next run reads it again"
        raise TargetUnavailable.of(
            "TGT065", "other commits to the table are in progress", self.locate(target_table), do=do
        )

    def as_state(self, table: str, row: ControlRow, tables: FoundTables) -> TargetState:
        named, record = tables.named, row.record
        if named is None:
            return TargetState(exists=False)
        ours = record is not None and (record.replicator, record.table) == (self.replicator, table)
        if record is None or not ours or row.identity != named.identity:
            return TargetState(exists=True, identity=named.identity)
        if named.deletes:
            return replace(
                row.state, unfit=Unfit(lost_rows(self.locate(named.name), [f"row deletion policy {named.deletes}"]))
            )
        return row.state

    def publish_cut(self, cut: Cut) -> None:
        with self.database.session("publish") as session:
            session.transact(partial(publish, cut))

    def fence(self, target_table: str, expected: TargetState, record: ControlRecord) -> ControlRecord:
        record = claim_fence(self.log, record, expected)
        with self.database.session("fence") as session:
            self.commit(session, target_table, expected, record, lambda _: Counts())
        return record

    def take_over(self, target_table: str, expected: TargetState, record: ControlRecord) -> ControlRecord:
        """The control row is compared as a whole, with the replicator that it names."""
        return self.fence(target_table, expected, record)

    def release(self, table: str, target_table: str, identity: str | None = None) -> None:
        release(self.database, self.replicator, target_table, identity)

    def drop(self, target_table: str, identity: str) -> None:
        drop_copy(self.database, target_table, identity)

    def withdraw_cut(self) -> None:
        with self.database.session("publish") as session:
            if find_tables(session, CUT).named is not None:
                session.transact(partial(withdraw, replicator=self.replicator))

    def commit(
        self,
        session: Session,
        target_table: str,
        expected: TargetState,
        record: ControlRecord,
        work: Callable[[Transaction], Counts],
    ) -> Counts:
        """Replace the control record ``expected`` by ``record``, with the table's new number of rows, and do ``work``
        in the same transaction. Returns no counts if the commit was there already, its answer having been lost. Raises
        Fenced if the table has changed."""

        def transaction(transaction: Transaction) -> Counts:
            row = require(transaction, target_table, expected, record)
            if row is None:
                return Counts()
            counts = work(transaction)
            assert expected.control is not None
            with_rows = replace(record, rows=counts.rows_after(expected.control.rows))
            transaction.write(control.write(target_table, committed(row, with_rows)))
            return counts

        return session.transact(transaction)


def require(
    transaction: Transaction, target_table: str, expected: TargetState, record: ControlRecord
) -> ControlRow | None:
    """The control row if it is as expected; None if ``record`` is committed already. Raises Fenced otherwise."""
    row = control.read(transaction.read, target_table)
    if has_commit(row.state, record):
        return None
    if (row.identity, row.record, row.begun) != (expected.identity, expected.control, None):
        raise superseded_by(row.state, record)
    return row
