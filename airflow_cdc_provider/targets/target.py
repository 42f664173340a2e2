"""What every target answers without Spark: what stands in a table, and a fence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.errors import Problem
from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.core.table.published_cut import Cut
from airflow_cdc_provider.core.table.schema import Column
from airflow_cdc_provider.core.table.special_values import Specials


@dataclass(frozen=True)
class TargetState:
    """What a target table holds now.

    ``control`` is the newest control record that counts (nobody restored the table to before it); None with
    ``exists`` means a table that is not ours. ``version`` is the table's version as the target counts it, ``identity``
    the table's own id. ``token`` is the highest number ever recorded; it may be above ``control`` after a restore.
    ``restored`` says that somebody took the table back to an earlier version.
    """

    exists: bool
    control: ControlRecord | None = None
    version: int | None = None
    identity: str = ""
    token: int | None = None
    restored: bool = False


@dataclass(frozen=True)
class EarlierVersion:
    """A version that a table can be taken back to, and the control record that counts there."""

    version: int
    control: ControlRecord


class TargetTables(Protocol):
    """Made from the definition's target, its connection, the replicator's name and the change log."""

    def check(self, tables: Sequence[TableTask]) -> list[Problem]:
        """Every obstacle at once, each with its cure."""

    def table_name(self, source_table: str) -> str:
        """The name a source table gets where the YAML gives none, folded to what the target allows."""

    def locate(self, target_table: str) -> str:
        """Where the table is: a path, URL or qualified name."""

    def refused(self, column: Column, in_key: bool, value: str) -> str:
        """Spark SQL that is true of a value which the column's Spark type can hold and this target cannot; empty where
        it holds them all. ``value``: Spark SQL."""

    def unsupported_values(self, column: Column, in_key: bool) -> Specials:
        """Values of the column's logical type that its type here has not: those of which ``refused`` is true."""

    def state(self, table: str, target_table: str) -> TargetState: ...

    def row_count(self, target_table: str, held: TargetState) -> int | None:
        """How many rows the table holds, soft-deleted ones included; ``held``: what stands in it. No row is read. None
        where the target cannot tell. Raises TargetUnavailable."""

    def oldest_token(self, table: str, target_table: str) -> int:
        """The token recorded at the oldest version that the table can still be taken back to: nobody asks for control
        records below it any more. 0 where all may be needed. Raises TargetUnavailable."""

    def version_at_or_before(self, table: str, target_table: str, window: int) -> EarlierVersion | None:
        """The newest state of the table with its cursor at ``window`` or before: of the versions with that cursor the
        first one, which nobody else had touched yet. None where there is none, and for targets that keep no versions.
        """

    def control_at(self, table: str, target_table: str, version: int) -> ControlRecord | None:
        """The control record that counts at a version."""

    def restore_version(self, target_table: str, expected: TargetState, version: int) -> None:
        """Make the data of an earlier version those of the table, on condition that it is still as ``expected``. Raises
        Fenced where it is not, Blocked where that version cannot be read any more."""

    def publish_cut(self, cut: Cut) -> None:
        """Let readers know of a cut, where they look for it; one that is older than what they know changes nothing.
        Raises TargetUnavailable."""

    def fence(self, target_table: str, expected: TargetState, record: ControlRecord) -> ControlRecord:
        """Commit ``record`` (made by ``ControlRecord.fenced``) without data, on condition that the table is still as
        ``expected``. Writes the record into the change log first. Returns the record as committed: its fence is higher
        than asked where attempts that died have taken the names between. Raises Fenced where the table is not as
        expected, TargetUnavailable where the answer was lost twice."""
