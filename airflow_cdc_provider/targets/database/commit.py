"""A commit to a table as data. A server executes all of it, or nothing."""

from __future__ import annotations

from dataclasses import dataclass, replace

from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.core.table.schema import TableSchema
from airflow_cdc_provider.targets.database import control
from airflow_cdc_provider.targets.database.command import Command
from airflow_cdc_provider.targets.database.cuts import invalidate_cut
from airflow_cdc_provider.targets.database.merge_sql import Counts, Statement, row_count_after
from airflow_cdc_provider.targets.database.names import copy_name
from airflow_cdc_provider.targets.database.sql import Sql
from airflow_cdc_provider.targets.target import TargetState


@dataclass(frozen=True)
class Loaded:
    """A table into which earlier sessions loaded this number of rows. A server that crashed, or that another one
    replaced, may have lost them."""

    table: str
    rows: int


@dataclass(frozen=True)
class Commit:
    """Replaces the control record of a copy by ``record`` and runs ``statements``, which change its rows, if it is in
    state ``expected``. Without statements it is a fence. ``replaces``: the statements replace all rows of the copy.
    ``written``: the schema of the rows that they write. ``loaded``: what they read."""

    target_table: str
    expected: TargetState
    record: ControlRecord
    statements: tuple[Statement, ...] = ()
    replaces: bool = False
    written: TableSchema | None = None
    loaded: Loaded | None = None

    def advance(self, sql: Sql, record: ControlRecord) -> Command:
        """Changes one row, or none if the copy has changed. ``record``: with the new number of rows."""
        name, identity, before = self._name, self.expected.identity, self.expected.control
        if before is None:
            return control.insert(sql, name, identity, record)
        return control.advance(sql, name, identity, before, record)

    def invalidate_cut(self, sql: Sql) -> Command:
        return invalidate_cut(sql, self._name)

    def rows_after(self, counts: Counts) -> int | None:
        """The number of rows of the copy."""
        before = self.expected.control
        return self.record.rows if self.replaces or before is None else row_count_after(before.rows, counts)

    @property
    def _name(self) -> str:
        return copy_name(self.target_table, self.record.table, self.expected.shared)


@dataclass(frozen=True)
class Swap:
    """Gives the loaded copy ``shadow`` the name of a table that is in state ``expected``, with the control record
    ``record``. A copy is identified by the nonce of its first record. ``shared``: others can share the new table."""

    target_table: str
    shadow: str
    expected: TargetState
    record: ControlRecord
    shared: bool = False

    @property
    def loaded(self) -> Loaded | None:
        return None if self.record.rows is None else Loaded(self.shadow, self.record.rows)

    @property
    def name(self) -> str:
        """Of the copy in our own tables."""
        return copy_name(self.target_table, self.record.table, self.shared)

    def commands(self, sql: Sql) -> list[Command]:
        """The control row of the new copy, which takes effect when the copy has the name."""
        name, record = self.name, self.record
        invalidated = [invalidate_cut(sql, self._name_before)] if self.expected.exists else []
        return [
            *control.delete(sql, name, [record.nonce]),
            control.insert(sql, name, record.nonce, record),
            *invalidated,
        ]

    def raise_fence(self, sql: Sql) -> Command | None:
        """In the old copy, so that no other attempt commits between this commit and the swap. Changes one row, or none
        if the table has changed. None without an old copy."""
        before = self.expected.control
        if before is None:
            return None
        raised = replace(before.fenced(), fence=self.record.fence, attempt=self.record.attempt)
        return control.advance(sql, self._name_before, self.expected.identity, before, raised)

    @property
    def _name_before(self) -> str:
        return copy_name(self.target_table, self.record.table, self.expected.shared)
