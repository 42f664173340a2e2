"""The interface of a source connector: the worker calls it about the stream, a Spark job about rows."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, runtime_checkable

from airflow_cdc_provider.connectors.blocks import Block
from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.errors import Problem
from airflow_cdc_provider.core.log.change_records import ChangeRecord
from airflow_cdc_provider.core.log.positions import Position
from airflow_cdc_provider.core.log.registered_schemas import SchemaFiles
from airflow_cdc_provider.core.log.snapshots import SourceSnapshot
from airflow_cdc_provider.core.table.identity import TableIdentity, UnloggedChanges
from airflow_cdc_provider.core.table.schema import Column, TableSchema
from airflow_cdc_provider.core.table.special_values import Specials

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class SourceStatus:
    """The state of the stream after a position. ``has_changes``: it contains changes of our tables. ``limit``: the last
    position that a window may reach; the given position if the source cannot determine one, and the window then ends
    when the stream is idle or the window is full. ``idle``: where an empty window may end, if the stream has advanced
    far enough without changes of our tables. ``outside``: tables whose changes the stream does not carry now, with the
    reason and the remedy."""

    has_changes: bool
    limit: Position
    idle: Position | None = None
    outside: Mapping[str, Problem] = field(default_factory=dict)


@dataclass(frozen=True)
class Boundary:
    """A transaction ended: a window may end at ``position``. For many small transactions that are read together, one
    boundary after the last is enough."""

    position: Position


@dataclass(frozen=True)
class Ignored:
    """``count`` changes were read that belong to no table of ours, or that the row filter leaves out. ``table``: their
    table, if it is not one of ours and the decoder has its name."""

    count: int
    table: str = ""


@dataclass(frozen=True)
class Resolved:
    """Every change that the source committed before ``at`` (UTC) precedes this item in the channel."""

    channel: str
    at: datetime


@dataclass(frozen=True)
class HoleFound:
    """The stream lacks changes of ``table``, or of any table if that is empty. The window ends after the transaction,
    with a hole of this ``kind`` (``core.log.change_log.Hole``)."""

    table: str
    kind: str
    order_key: str
    detail: str


@dataclass(frozen=True)
class SnapshotFound:
    """The stream contains rows of this full snapshot."""

    snapshot: SourceSnapshot


StreamItem = ChangeRecord | Block | TableSchema | Boundary | Ignored | Resolved | HoleFound | SnapshotFound
"""What a reader yields, in stream order. A TableSchema precedes the first record decoded with it."""


@dataclass(frozen=True)
class StreamSplit:
    """A part of a window that one task reads. ``body`` is JSON-able and contains no secret. ``table``: set if the split
    belongs to this table alone; a read error then affects no other table."""

    lo: Position
    limit: Position
    body: Mapping[str, str]
    table: str = ""


@dataclass(frozen=True)
class SplitRead:
    """A table in ``splits``, each of which any process can read, any number of times, with the connector's
    ``read_split``. Splits are text and contain no secret. ``rows``: the source's own row count, None if there is none.
    ``repeatable``: every read returns the same rows."""

    splits: tuple[str, ...]
    rows: int | None = None
    repeatable: bool = False


@dataclass(frozen=True)
class Copy:
    """A view of one table while its context is open. It contains every change up to ``floor`` (an order key) and, if
    the source has exact snapshots, none after.

    From the source's own statistics: the approximate number of ``rows``, the ``high_cardinality`` columns, and the
    columns by which the rows are sorted, or nearly (``clustered_by``). ``unlogged``: columns whose changes the stream
    does not carry. ``identity``: the catalog's entry of the table in this view.
    """

    floor: str
    position: Position
    schema: TableSchema
    read: SplitRead
    rows: int
    high_cardinality: tuple[str, ...] = ()
    clustered_by: tuple[str, ...] = ()
    unlogged: tuple[str, ...] = ()
    identity: TableIdentity | None = None


@dataclass(frozen=True)
class RetainedLog:
    """``bytes`` of the source's log from our position to its end, including what the source retains for us; None if
    there is no such position. ``since`` (UTC): the source serves everything from then on; None if unknown."""

    bytes: int | None = None
    since: datetime | None = None


@runtime_checkable
class ReadsSplits(Protocol):
    """A source connector whose copies are read in splits."""

    def read_split(self, split: str, schema: TableSchema) -> Iterator[pa.Table]:
        """The rows of one split of a copy, in the table's types. Runs in any process."""


@runtime_checkable
class LimitsCopies(Protocol):
    """A source that uses a scarce resource for the duration of each copy."""

    def copies_at_once(self) -> int:
        """The number of copies that can run now, beside the stream: at least one."""


@runtime_checkable
class ProvesRows(Protocol):
    """A database that computes checksums of its rows with SQL of its own, independent of the copy's conversion. Both
    methods read the view ``copy``; ``schema`` has the columns to compare."""

    def checksums(self, copy: Copy, table: TableTask, schema: TableSchema) -> Mapping[str, Any]:
        """``n`` rows, and per column ``c0``, ``c1`` … the sum of its hashes."""

    def hashes(self, copy: Copy, table: TableTask, schema: TableSchema) -> SplitRead:
        """Per row ``k``, the text that identifies it, and ``h``, a hash of all its values."""


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
class StreamHoldsSnapshots(Protocol):
    """A source whose stream contains its tables from their first row on: the first copy of a table is empty, at a
    position before every record of the table."""

    def contains_all_after(self, start: Position, end: Position, table: str) -> bool:
        """Whether the stream contains no record of the table up to ``start`` and still serves every record after
        ``end``; the change log contains the records between them."""


@dataclass(frozen=True)
class Restart:
    """``limit``: the end of a window right before a new snapshot. ``tables``: the tables of its connector, by topic.
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
    ) -> Restart:
        """Where the window from ``lo`` must end so that the next one starts with the snapshot ``began`` in each channel
        of its connector. ``known``: the snapshots of earlier windows; ``snapshots``: those, and this window's."""


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


@runtime_checkable
class DelaysCapture(Protocol):
    """A source whose windows end some time before now; a later window reads the commits since."""

    def capture_delay(self) -> timedelta:
        """The time between the end of a window and now."""


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
class HasIdentities(Protocol):
    """A source whose catalog shows changes of a table that its stream does not carry."""

    def identities(self, tables: Sequence[str]) -> Mapping[str, TableIdentity]:
        """The current identities of these tables in the catalog. A table that does not exist is left out."""

    def not_streamed(
        self, table: str, position: Position, now: TableIdentity, changes: UnloggedChanges, truncated: bool
    ) -> UnloggedChanges:
        """``changes`` of ``table`` without those that the stream carries after ``position``. ``truncated``: the change
        log contains a TRUNCATE of the table that the copy does not have yet."""


@runtime_checkable
class HasChannels(Protocol):
    """A source whose stream has several channels, each with its own progress."""

    def channels(self, position: Position) -> Collection[str]:
        """The channels that were read up to ``position``."""


class KeepsNoState:
    """For a source connector whose source retains nothing for its readers."""

    def acknowledge(self, position: Position) -> None:
        """Nothing to discard."""

    def drop_stream(self) -> None:
        """Nothing to remove."""


class SourceConnector(Protocol):
    """Constructed from the definition's source, its connection, and the replicator's name. The constructor opens no
    connection.

    Every method raises SourceUnavailable if a retry can help, PositionLost or IdentityChanged if it cannot.
    ``has_transactions``: a window may end between any two transactions, and schemas arrive in commit order.
    ``duplicates_within``: how long the source may deliver a change again, at another position; zero if it never does.
    ``unseen``: one line about the changes that the source cannot show, and the page that lists them.
    """

    unseen: ClassVar[str]
    has_transactions: ClassVar[bool]
    exact_snapshot: ClassVar[bool]
    duplicates_within: ClassVar[timedelta]

    def check(self, tables: Sequence[TableTask]) -> list[Problem]:
        """All problems at once, each with the statement that solves it. An empty list means ready."""

    def identity(self) -> dict[str, str]:
        """What identifies this source (PostgreSQL: system identifier, timeline, database)."""

    def tables(self) -> list[TableSchema]:
        """The schemas of all tables that the connection can see."""

    def may_hold(self, column: Column) -> Specials:
        """Special values that the source's type of a column has. ``column``: the column of the copy."""

    def open_stream(self, tables: Sequence[str]) -> Position:
        """Create the stream with these tables if it does not exist. Returns the position where the first window
        starts."""

    def status(self, position: Position, tables: Sequence[str]) -> SourceStatus:
        """The state of the stream after ``position``. Raises PositionLost if the source no longer serves it."""

    def acknowledge(self, position: Position) -> None:
        """Let the source discard everything up to ``position``. An earlier or repeated position has no effect."""

    def drop_stream(self) -> None:
        """Remove what the source retains for us. It is no error if there is nothing."""

    def splits(self, lo: Position, limit: Position) -> list[StreamSplit]: ...

    def read(self, split: StreamSplit, tables: Sequence[TableTask], epoch: int) -> Iterator[StreamItem]:
        """Records of transactions that end in ``(lo, limit]``, whole transactions only, in stream order."""

    def reread(self, record: ChangeRecord, table: TableTask, schema: TableSchema) -> list[ChangeRecord]:
        """Decode an ``unreadable`` record again, from its own bytes, with the ``schema`` of its time. The result is the
        record itself if that fails, nothing if the row filter leaves it out."""

    def copy(self, table: TableTask, epoch: int, sealed: Position, cores: int) -> AbstractContextManager[Copy]:
        """A view for a full copy, in splits for this number of cores. ``sealed``: the end of the last sealed window,
        which is the anchor of the copy if the source cannot determine the position of its view. The driver keeps the
        context open until the last row is read."""
