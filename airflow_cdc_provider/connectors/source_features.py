"""Interfaces that a source connector may implement beside ``SourceConnector``: what not every source can do."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, runtime_checkable

from airflow_cdc_provider.connectors.source import Copy, SplitRead
from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.errors import Problem
from airflow_cdc_provider.core.log.change_records import ChangeRecord
from airflow_cdc_provider.core.log.positions import Position
from airflow_cdc_provider.core.log.registered_schemas import SchemaFiles
from airflow_cdc_provider.core.log.retained_log import RetainedLog
from airflow_cdc_provider.core.log.snapshots import SourceSnapshot
from airflow_cdc_provider.core.proof.key_intervals import IntervalSums, Key, KeyInterval
from airflow_cdc_provider.core.spec.definition import Source
from airflow_cdc_provider.core.spec.other_kinds import OtherKind
from airflow_cdc_provider.core.table.identity import TableIdentity, UnloggedChanges
from airflow_cdc_provider.core.table.reported_changes import ReportedChanges
from airflow_cdc_provider.core.table.schema import TableSchema
from airflow_cdc_provider.core.table.table_size import TableSize

if TYPE_CHECKING:
    import pyarrow as pa


@runtime_checkable
class ReadsSplits(Protocol):
    """A source connector whose copies are read in splits."""

    def read_split(self, split: str, schema: TableSchema) -> Iterator[pa.Table]:
        """The rows of one split of a copy, in the table's types. Runs in any process."""


@runtime_checkable
class ReadsUnderViews(Protocol):
    """A source whose splits are read under the view of their copy, which ends when the copy is closed."""

    def under_view(self, read: SplitRead, view: SplitRead) -> SplitRead:
        """The splits ``read``, which are lasting, under the view of another copy of the same table."""


@runtime_checkable
class LimitsCopies(Protocol):
    """A source that uses a scarce resource for the duration of each copy."""

    def copies_at_once(self) -> int:
        """The number of copies that can run now, beside the stream: at least one."""


class RowProofs(Protocol):
    """Checksums of the rows of one view, which the database computes with SQL of its own, independent of the copy's
    conversion. ``intervals``: in the order of their keys; more than the whole table only if the key is ordered alike
    everywhere. What is read is returned as splits, or as rows that the driver has read."""

    def cuts(self, interval: KeyInterval, rows: int) -> Sequence[Key]:
        """The key of every ``rows``-th row of the interval, in the order of the keys."""

    def sums(self, intervals: Sequence[KeyInterval]) -> Mapping[int, IntervalSums]:
        """By the number of the interval; those without rows may be left out."""

    def hashes(self, intervals: Sequence[KeyInterval]) -> SplitRead | pa.Table:
        """Per row in one of the intervals ``k``, the text of its key, and ``h``, a hash of each value, separated by
        commas. Without a key ``k`` is the text of all columns, and ``h`` one hash."""

    def rows(self, intervals: Sequence[KeyInterval], keys: Sequence[str]) -> SplitRead | pa.Table:
        """The rows, in the intervals, whose keys have these texts, with the columns of the copy."""


@dataclass(frozen=True)
class TableSnapshot:
    """A view of one table for a comparison. ``proofs``: of the columns of the copy's schema; None if SQL of the
    database cannot hash one of them."""

    copy: Copy
    proofs: RowProofs | None = None


@runtime_checkable
class HoldsSnapshots(Protocol):
    """A source that holds a view of a table for a comparison: at a known position, or with proofs."""

    def snapshot(
        self, table: TableTask, epoch: int, sealed: Position, cores: int
    ) -> AbstractContextManager[TableSnapshot]:
        """As ``copy``. The view is exact if the server can show it at a known position."""


@runtime_checkable
class FetchesRows(Protocol):
    """A source connector that can fetch rows by key. Needed where its stream contains the key of a changed row but not
    all its values."""

    def fetch(self, table: TableTask, schema: TableSchema, records: Sequence[ChangeRecord]) -> Iterator[ChangeRecord]:
        """The current rows of these keys, in any order: a ``read`` with every column of ``schema``, or a ``delete`` if
        the row certainly no longer exists. ``commit_ts``: the row contains every change committed before it.
        ``order_key`` is left empty. ``records``: the last incomplete record of each key. A key for which the source
        returns nothing is left out.

        Raises SourceUnavailable if a retry can help."""


@runtime_checkable
class RepeatsChanges(FetchesRows, Protocol):
    """A source connector whose stream may contain a change again, at a later position (``duplicates_within``)."""

    def time_of(self, position: Position) -> datetime:
        """By the source's clock: every change before the position was committed at this time or earlier."""


@runtime_checkable
class StreamHoldsSnapshots(Protocol):
    """A source whose stream contains its tables from their first row on: the first copy of a table is empty, at a
    position before every record of the table."""

    def contains_all_after(self, start: Position, end: Position, table: str) -> bool:
        """Whether the stream contains no record of the table up to ``start`` and still serves every record after
        ``end``; the change log contains the records between them."""


@runtime_checkable
class RefusesTables(Protocol):
    """A source with tables of which a copy would not be exact, or that this login may not copy."""

    def refused(self, tables: Sequence[TableTask]) -> Mapping[str, Problem]:
        """Those of ``tables`` that no run copies as they are now: ``check`` reports the same problems. By name of the
        task. Raises SourceUnavailable."""


@runtime_checkable
class FiltersLog(Protocol):
    """A source that can leave tables out of its stream, and does not show later that it did."""

    def filtered(self, tables: Sequence[TableTask]) -> Mapping[str, str]:
        """Those that its stream leaves out now, with the reason. By name of the task. Raises SourceUnavailable."""


@runtime_checkable
class ReadsTablesApart(Protocol):
    """A source with a position of its own for each table, under the name of the table. A window leaves out those that
    no run copies now: they are read from there later."""

    reads_tables_apart: ClassVar[bool]


@runtime_checkable
class ListsOtherKinds(Protocol):
    """A source with other things than tables that have a name like one, such as views."""

    def other_kinds(self) -> Mapping[str, OtherKind]:
        """By name. Raises SourceUnavailable."""


@runtime_checkable
class ConfirmsDrops(Protocol):
    """A source that distinguishes a dropped table from one without access."""

    def is_dropped(self, table: str, identity: TableIdentity | None) -> bool:
        """Whether the table certainly does not exist. ``identity``: of the table that was copied, if it is known: a
        renamed table is not dropped. Raises SourceUnavailable."""


@runtime_checkable
class FindsRenamedTables(Protocol):
    """A source that finds a table by its identity under another name."""

    def present_names(self, tables: Mapping[str, TableIdentity | None]) -> Mapping[str, str]:
        """``tables``: by their names when they were copied; None if their identity is not known. The names that they
        have now; without those that do not exist any more. Raises SourceUnavailable."""

    def renames_hidden(self) -> Problem | None:
        """What prevents this login from finding renamed tables. Raises SourceUnavailable."""


@runtime_checkable
class HasFormerNames(Protocol):
    """A source whose stream has changes of a renamed table under its former names."""

    def former_names(self, table: str) -> tuple[str, ...]:
        """``table``: its name now. Raises SourceUnavailable."""


@dataclass(frozen=True)
class Restart:
    """``limit``: the end of a window right before a new snapshot. ``tables``: the tables of its connector, by topic;
    under the empty name those that any of these topics may contain, or none.
    ``separable``: False if rows of the snapshot and earlier changes may share a file, so that no window can end between
    them."""

    limit: Position
    tables: Mapping[str, frozenset[str]]
    separable: bool = True


@runtime_checkable
class RestartsSnapshots(Protocol):
    """A source whose stream may contain another full snapshot of its tables."""

    def restart(
        self,
        lo: Position,
        limit: Position,
        began: SourceSnapshot,
        snapshots: Sequence[SourceSnapshot],
        known: Sequence[SourceSnapshot],
        tables: Sequence[str],
    ) -> Restart:
        """Where the window from ``lo`` must end so that the next one starts with the snapshot ``began`` in each channel
        of its connector. ``known``: the snapshots of earlier windows; ``snapshots``: those, and this window's.
        ``tables``: those of the window, as the source names them."""


@dataclass(frozen=True)
class RegistryAccess:
    """The connection of a schema registry, and the files where its schemas are kept."""

    connection: ConnectionInfo
    files: SchemaFiles


@runtime_checkable
class UsesRegistry(Protocol):
    """A source whose messages may contain ids of registered schemas."""

    def use_registry(self, access: RegistryAccess) -> None:
        """Called once, before any other method, if the definition names a registry."""


@runtime_checkable
class RetainsLog(Protocol):
    """A source with a log that uses its disk space or that it removes after a while."""

    def retained_log(self, position: Position | None) -> RetainedLog:
        """``position``: the end of the last sealed window, None if there is none."""


@dataclass(frozen=True)
class SourceObject:
    """Something at the source that exists for one replicator alone."""

    kind: str
    name: str


@runtime_checkable
class CreatesObjects(Protocol):
    """A source at which a replicator creates something, its stream included. Every method may be repeated after a
    crash."""

    def objects(self) -> Sequence[SourceObject]:
        """What exists now."""

    def remove_objects(self, others: Sequence[Source]) -> None:
        """Remove it all, after ``drop_stream``, but for what one of ``others`` uses, too: the sources of other
        replicators on the same connection."""

    def take_objects(self, former: str) -> bool:
        """For a replicator that was named ``former``: create its stream at the same position under the new name, and
        take over the rest. Returns whether the old stream is another object, which ``drop_stream`` of the former
        replicator has to remove."""


@runtime_checkable
class EstimatesSizes(Protocol):
    """A source with statistics of its tables."""

    def sizes(self, tables: Sequence[str]) -> Mapping[str, TableSize]:
        """Read from the statistics, never from the tables. A table without statistics is left out."""


@runtime_checkable
class ProposesOptions(Protocol):
    """A source type for which ``airflow cdc init`` can propose options that the user did not give."""

    @staticmethod
    def propose_options(
        replicator: str, connection: ConnectionInfo, given: Mapping[str, Any], patterns: Sequence[str]
    ) -> Mapping[str, Any]:
        """Option → value, as in the YAML. ``given``: the user's options, which are kept. ``patterns``: of the tables to
        copy; empty for all. Raises SourceUnavailable or CheckFailed if it has to ask the source."""


@runtime_checkable
class DelaysCapture(Protocol):
    """A source whose windows end some time before now; a later window reads the commits since."""

    def capture_delay(self) -> timedelta:
        """The time between the end of a window and now."""


@runtime_checkable
class HearsWriter(Protocol):
    """A source that is written by another program, and may notice that this has stopped."""

    def silent_since(self) -> datetime | None:
        """The last sign of the writer, if there should have been one since; None if all is well or that is unknown.
        UTC. Raises SourceUnavailable."""


@runtime_checkable
class CapturesLater(Protocol):
    """A source whose stream contains a commit some time after queries show it."""

    def wait_for_capture(self) -> None:
        """Returns when a window that begins now will contain every commit that a query has shown so far. Raises
        SourceUnavailable if that takes too long."""


@runtime_checkable
class WarnsUsers(Protocol):
    """A source of which users must know something before they rely on it."""

    def warnings(self) -> list[Problem]:
        """Warnings for ``check``. Opens no connection."""


@runtime_checkable
class AnnouncesColumns(Protocol):
    """A source whose windows end with the schemas of tables whose columns changed without a change of rows."""

    announces_columns: ClassVar[bool]


@runtime_checkable
class ReportsChanges(Protocol):
    """A source, or a message format, that declares what it reports of changed tables. The reference of schema changes
    is generated from it."""

    reported_changes: ClassVar[ReportedChanges]


@runtime_checkable
class ReportsStatements(Protocol):
    """A message format that reports more if the statements of a schema-change topic are among the messages."""

    changes_with_statements: ClassVar[ReportedChanges]


@runtime_checkable
class HasIdentities(Protocol):
    """A source whose catalog shows changes of a table that its stream does not carry."""

    def identities(self, tables: Sequence[str]) -> Mapping[str, TableIdentity]:
        """The current identities of these tables in the catalog. A table that does not exist is left out."""

    def not_streamed(
        self, table: str, position: Position, now: TableIdentity, changes: UnloggedChanges, truncated: bool
    ) -> UnloggedChanges:
        """``changes`` of ``table`` without those that the stream carries after ``position``. ``truncated``: the change
        log contains a TRUNCATE of the table that the copy does not have yet. Raises SourceUnavailable where this table
        cannot be queried, SourceUnreachable where none can."""


@runtime_checkable
class HasComments(Protocol):
    """A source whose catalog has comments of columns."""

    def comments(self, tables: Sequence[str]) -> Mapping[str, Mapping[str, str]]:
        """The current comments of the columns of these tables: table → column → comment, which is not empty. Raises
        SourceUnavailable."""


@runtime_checkable
class HasChannels(Protocol):
    """A source whose stream has several channels, each with its own progress."""

    def channels(self, position: Position) -> Collection[str]:
        """The channels that were read up to ``position``."""
