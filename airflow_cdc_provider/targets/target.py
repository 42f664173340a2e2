"""What every target does without Spark: reads the state of its tables, and raises fences."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Protocol, runtime_checkable

from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.errors import Problem
from airflow_cdc_provider.core.table.alterations import Alteration
from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.core.table.published_cut import Cut
from airflow_cdc_provider.core.table.schema import Column, TableSchema
from airflow_cdc_provider.core.table.special_values import Specials
from airflow_cdc_provider.core.table.unfit import Unfit
from airflow_cdc_provider.targets.restrictions import Restriction

if TYPE_CHECKING:
    import pyarrow

    from airflow_cdc_provider.targets.exact_values import Numbers


@dataclass(frozen=True)
class TargetState:
    """The current state of a target table.

    ``control`` is the newest control record that is in force, i.e. not undone by a restore; None with ``exists`` means
    that the table is not ours. ``version`` is the target's own version number, ``identity`` the table's own id.
    ``token`` is the highest token ever recorded; after a restore it may be above that of ``control``. ``restored``: the
    table was restored to an earlier version by others. ``shared``: several copies of the replicator are in the table;
    then ``exists`` is about the copy, and ``identity`` about the table. ``unfit``: why the table takes no changes.
    """

    exists: bool
    control: ControlRecord | None = None
    version: int | None = None
    identity: str = ""
    token: int | None = None
    restored: bool = False
    shared: bool = False
    unfit: Unfit | None = None


@dataclass(frozen=True)
class EarlierVersion:
    """A version that a table can be restored to, and the control record in force there."""

    version: int
    control: ControlRecord


class TargetTables(Protocol):
    """Constructed from the definition's target, its connection, the replicator's name and the change log."""

    def check(self, tables: Sequence[TableTask]) -> list[Problem]:
        """All problems at once, each with its remedy."""

    def locate(self, target_table: str) -> str:
        """The location of the table: a path, URL or qualified name."""

    def column_types(self, schema: TableSchema) -> Sequence[str]:
        """The types that the columns have in the target, in their order."""

    def restriction(self, column: Column, in_key: bool) -> Restriction | None:
        """What the target's type requires of values, beyond the column's type in Spark; None if nothing."""

    def unsupported_values(self, column: Column, in_key: bool) -> Specials:
        """Values of the column's logical type that the target's type lacks: those that ``restriction`` excludes."""

    def state(self, table: str, target_table: str) -> TargetState: ...

    def refused(self, tables: Sequence[TableTask]) -> Mapping[str, Problem]:
        """Those of ``tables`` that no table of this target can hold as they are now: ``check`` reports the same
        problems. By name of the task, with few requests. Raises TargetUnavailable or CheckFailed."""

    def existing(self, target_tables: Collection[str]) -> Collection[str]:
        """Those of the tables that exist now, of any origin, by one request for all of them. A table that the listing
        may have missed is left out. Raises TargetUnavailable or CheckFailed."""

    def row_count(self, target_table: str, state: TargetState) -> int | None:
        """The number of rows, soft-deleted ones included, from metadata only. ``state``: that of the table. None if the
        target cannot determine it. Raises TargetUnavailable."""

    def oldest_token(self, table: str, target_table: str) -> int:
        """The token at the oldest version that the table can still be restored to: control records below it are no
        longer needed. 0 if all may be needed. Raises TargetUnavailable."""

    def version_at_or_before(self, table: str, target_table: str, window: int) -> EarlierVersion | None:
        """The newest state of the table with its cursor at ``window`` or before: of the versions with that cursor the
        first one, which no other writer had changed yet. None if there is none, and for targets without versions."""

    def control_at(self, table: str, target_table: str, version: int) -> ControlRecord | None:
        """The control record in force at a version."""

    def restore_version(self, target_table: str, expected: TargetState, version: int) -> None:
        """Restore the data of an earlier version if the table is still in state ``expected``. Raises Fenced if it is
        not, Blocked if the version is no longer readable."""

    def publish_cut(self, cut: Cut) -> None:
        """Publish a cut where the target's readers can query it, unless a newer one is published. Raises
        TargetUnavailable."""

    def fence(self, target_table: str, expected: TargetState, record: ControlRecord) -> ControlRecord:
        """Commit ``record`` (made by ``ControlRecord.fenced``) without data if the table is still in state
        ``expected``; the record goes into the change log first. Returns the record as committed: its fence is higher
        than requested if attempts that died have claimed the fences between. Raises Fenced if the table has changed,
        TargetUnavailable if the response was lost twice."""


@dataclass(frozen=True)
class RowsRead:
    """Which rows are read: of ``version``, which must be the newest one and lacks the columns ``added`` to ``schema``.
    ``soft``: the table marks deleted rows."""

    version: int | None
    schema: TableSchema
    added: tuple[Column, ...]
    soft: bool


@runtime_checkable
class HasQuotas(Protocol):
    """A target whose operator limits how often it can be used."""

    def quota_warnings(self, tables: int, runs_a_day: int) -> list[Problem]:
        """Warnings for ``check``. Opens no connection."""


@runtime_checkable
class AltersTables(Protocol):
    """A target that can alter columns without another copy of the table."""

    def statements(self, target_table: str, alterations: Sequence[Alteration]) -> tuple[str, ...] | None:
        """What ``alter`` executes, for an operator to read; None if the target cannot execute all of it in place. Opens
        no connection."""

    def alter(
        self, target_table: str, expected: TargetState, record: ControlRecord, alterations: Sequence[Alteration]
    ) -> ControlRecord:
        """As ``fence``, with alterations in the same commit. Where the target cannot do both at once, the alterations
        come first, and a repetition leaves out those that are done."""


@runtime_checkable
class KeysRowsByValues(Protocol):
    """A target in which a row of a table without key is found by all its values, those of dropped columns, too."""

    keys_rows_by_values: ClassVar[bool]


@runtime_checkable
class RewritesDocuments(Protocol):
    """A target that can have documents in a type of its own, in which their texts change."""

    def rewritten_documents(self, schema: TableSchema) -> tuple[str, ...]:
        """The columns whose texts are not those of the source when they are read back."""


@runtime_checkable
class ReleasesTables(Protocol):
    """A target from which a replicator can be removed. Every method may be repeated after a crash, and raises
    TargetUnavailable."""

    def release(self, table: str, target_table: str, identity: str | None = None) -> None:
        """Remove what belongs to the replicator beside a copy: control row and staging tables. The copy stays, and
        belongs to no replicator any more where its control record is in a row. ``identity``: only what belongs to the
        copy of this identity; another copy may have the name by now."""

    def drop(self, target_table: str, identity: str) -> None:
        """Drop the copy of this identity, or what an interrupted call has left of it. A table of another identity
        stays. The caller has recorded the drop where an outage of the target does not reach it: a table that cannot be
        read is taken for one that is dropped in part."""

    def withdraw_cut(self) -> None:
        """Remove the published cut of the replicator."""


@runtime_checkable
class TakesOverTables(Protocol):
    """A target whose tables can be given to a replicator of another name."""

    def take_over(self, target_table: str, expected: TargetState, record: ControlRecord) -> ControlRecord:
        """As ``fence``, for a table of another replicator. ``expected``: its state as the target of that replicator
        reads it; ``record`` names this replicator, with a fence above every recorded one."""


@runtime_checkable
class ReadsRows(Protocol):
    """A target that can read rows of its tables without Spark. Both methods raise NeedsSpark and TargetUnavailable."""

    def count_rows(self, target_table: str, read: RowsRead, rows: pyarrow.Table) -> Sequence[int]:
        """How often each of ``rows``, which are distinct, is in a table without a key."""

    def live_rows(
        self, target_table: str, read: RowsRead, keys: pyarrow.Table, columns: pyarrow.Schema
    ) -> tuple[Numbers, pyarrow.Table]:
        """The ``columns`` of the rows that have one of ``keys``, which are distinct; and the index of the key of
        each."""
