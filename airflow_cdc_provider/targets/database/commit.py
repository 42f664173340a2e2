"""A commit to a table as data. A server executes all of it, or nothing."""

from __future__ import annotations

from dataclasses import dataclass, replace

from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.targets.database import control
from airflow_cdc_provider.targets.database.command import Command
from airflow_cdc_provider.targets.database.cuts import invalidate_cut
from airflow_cdc_provider.targets.database.merge_sql import Statement
from airflow_cdc_provider.targets.database.sql import Sql
from airflow_cdc_provider.targets.target import TargetState


@dataclass(frozen=True)
class Commit:
    """Replaces the control record of a table by ``record`` and runs ``statements``, which change its rows, if the table
    is in state ``expected``. Without statements it is a fence."""

    target_table: str
    expected: TargetState
    record: ControlRecord
    statements: tuple[Statement, ...] = ()

    def advance(self, sql: Sql, record: ControlRecord) -> Command:
        """Changes one row, or none if the table has changed. ``record``: with the new number of rows."""
        assert self.expected.control is not None
        return control.advance(sql, self.target_table, self.expected.identity, self.expected.control, record)


@dataclass(frozen=True)
class Swap:
    """Gives the loaded copy ``shadow`` the name of a table that is in state ``expected``, with the control record
    ``record``. A copy is identified by the nonce of its first record."""

    target_table: str
    shadow: str
    expected: TargetState
    record: ControlRecord

    def commands(self, sql: Sql) -> list[Command]:
        """The control row of the new copy, which takes effect when the copy has the name."""
        table, record = self.target_table, self.record
        invalidated = [invalidate_cut(sql, table)] if self.expected.exists else []
        return [
            *control.delete(sql, table, [record.nonce]),
            control.insert(sql, table, record.nonce, record),
            *invalidated,
        ]

    def raise_fence(self, sql: Sql) -> Command | None:
        """In the old copy, so that no other attempt commits between this commit and the swap. Changes one row, or none
        if the table has changed. None without an old copy."""
        before = self.expected.control
        if before is None:
            return None
        raised = replace(before.fenced(), fence=self.record.fence, attempt=self.record.attempt)
        return control.advance(sql, self.target_table, self.expected.identity, before, raised)
