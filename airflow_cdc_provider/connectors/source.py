"""What every source connector answers: to the worker about the stream, to a Spark job about rows."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, runtime_checkable

from airflow_cdc_provider.connectors.blocks import Block
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.errors import Problem
from airflow_cdc_provider.core.log.change_records import ChangeRecord
from airflow_cdc_provider.core.log.positions import Position
from airflow_cdc_provider.core.log.snapshots import SourceSnapshot
from airflow_cdc_provider.core.table.identity import TableIdentity, UnloggedChanges
from airflow_cdc_provider.core.table.schema import Column, TableSchema
from airflow_cdc_provider.core.table.special_values import Specials

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class SourceStatus:
    """What the source has behind a position. ``has_changes``: there are changes of our tables. ``limit``: how far a
    window may reach; the position itself where the source cannot say, and then the window ends where the stream falls
    silent or is full. ``idle``: the position at which an empty window may end, where the stream has moved on far enough
    without changes of our tables. ``outside``: tables whose changes the stream does not carry now, with the reason and
    the remedy."""

    has_changes: bool
    limit: Position
    idle: Position | None = None
    outside: Mapping[str, Problem] = field(default_factory=dict)


@dataclass(frozen=True)
class Boundary:
    """A transaction ended: a window may end at ``position``. Of many small ones that are told together it is enough to
    say so of the last."""

    position: Position


@dataclass(frozen=True)
class Ignored:
    """``count`` changes were read that belong to no table of ours, or that the row filter leaves out. ``table``: the
    one they belong to, where it is none of ours and the decoder knows its name."""

    count: int
    table: str = ""


@dataclass(frozen=True)
class Resolved:
    """Whatever the source had committed before ``at`` (UTC) stands in the channel before this."""

    channel: str
    at: datetime


@dataclass(frozen=True)
class HoleFound:
    """What the stream cannot tell of ``table``, or of any table where that is empty. The window ends behind its
    transaction, with a hole of this ``kind`` (``core.changelog.Hole``)."""

    table: str
    kind: str
    order_key: str
    detail: str


@dataclass(frozen=True)
class SnapshotFound:
    """The stream holds rows of this full snapshot."""

    snapshot: SourceSnapshot


StreamItem = ChangeRecord | Block | TableSchema | Boundary | Ignored | Resolved | HoleFound | SnapshotFound
"""What a reader yields, in stream order. A TableSchema comes before the first record decoded with it."""


@dataclass(frozen=True)
class StreamSplit:
    """A share of a window that one task reads. ``body`` is JSON-able and holds no secret. ``table``: the only one whose
    channel this is; where it cannot be read, that is its trouble alone."""

    lo: Position
    limit: Position
    body: Mapping[str, str]
    table: str = ""


@dataclass(frozen=True)
class SplitRead:
    """A table as it lies in ``splits``, each of which any process can read, any number of times, with the connector's
    ``read_split``. Shares are text and hold no secret. ``rows`` is how many there are by the source's own count, None
    where nobody has counted them. ``repeatable``: every reading gives the same rows."""

    splits: tuple[str, ...]
    rows: int | None = None
    repeatable: bool = False


@dataclass(frozen=True)
class Copy:
    """A view of one table while the context that gave it is open. It holds everything up to ``floor`` (an order key)
    and, where the source knows exact snapshots, nothing after.

    From the source's own statistics: about how many ``rows`` there are, the ``high_cardinality`` columns, and the
    columns whose order the rows keep, or nearly (``clustered_by``). ``unlogged``: columns whose changes the stream does
    not carry. ``identity``: the catalogue's entry of the table in this view.
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
    """``bytes`` of the source's log from our position to its end, with what the source holds back for us; None where
    there is no such position. ``since`` (UTC): everything from then on is served still; None where that is not told."""

    bytes: int | None = None
    since: datetime | None = None


@runtime_checkable
class ReadsSplits(Protocol):
    """A source connector whose copies lie in shares."""

    def read_split(self, share: str, schema: TableSchema) -> Iterator[pa.Table]:
        """The rows of one share of a copy, in the table's types. Runs wherever a task runs."""


@runtime_checkable
class LimitsCopies(Protocol):
    """A source that holds something scarce for each copy while it lasts."""

    def copies_at_once(self) -> int:
        """How many it has room for now, beside the stream: at least one."""


@runtime_checkable
class ProvesRows(Protocol):
    """A database that vouches for its rows itself: in words of its own, so that a mistake of the copy's conversion
    shows. Both see what ``copy`` sees; ``schema`` has the columns to compare."""

    def checksums(self, copy: Copy, table: TableTask, schema: TableSchema) -> Mapping[str, Any]:
        """``n`` rows, and per column ``c0``, ``c1`` … the sum of its hashes."""

    def hashes(self, copy: Copy, table: TableTask, schema: TableSchema) -> SplitRead:
        """Per row ``k``, the text that tells it from others, and ``h``, a hash of all its values."""


@runtime_checkable
class FetchesRows(Protocol):
    """A source connector that can be asked for single rows: where its stream says that a row changed, but not how."""

    def fetch(self, table: TableTask, schema: TableSchema, untold: Sequence[ChangeRecord]) -> Iterator[ChangeRecord]:
        """The rows of these records as they are now, in any order: a ``read`` with every column of ``schema``, or a
        ``delete`` where the source is sure that the row is gone. ``commit_ts``: what was committed before that is in
        the row. ``order_key`` is left empty. ``untold``: of each key the last record that says too little. A key that
        the source says nothing about is left out.

        Raises SourceUnavailable where a retry can help."""


@runtime_checkable
class StreamHoldsSnapshots(Protocol):
    """A source whose stream tells its tables from their beginning: the first copy of a table is empty, at a place that
    lies before everything the stream tells of it."""

    def contains_all_after(self, start: Position, end: Position, table: str) -> bool:
        """Nothing of the table lies up to ``start``, and all of it behind ``end`` is served still: what lies between
        them stands in the change log."""


@dataclass(frozen=True)
class Restart:
    """``limit``: where a window ends right before a new snapshot. ``tables``: those in the topics of its connector,
    by topic. ``parted``: whether the stream can be parted there; files may hold rows of the snapshot and what was
    written before."""

    limit: Position
    tables: Mapping[str, frozenset[str]]
    parted: bool = True


@runtime_checkable
class RestartsSnapshots(Protocol):
    """A source whose stream may tell its tables from their beginning once more."""

    def restart(
        self,
        lo: Position,
        limit: Position,
        began: SourceSnapshot,
        snapshots: Sequence[SourceSnapshot],
        known: Sequence[SourceSnapshot],
    ) -> Restart:
        """Where the window from ``lo`` has to end so that the next one starts with ``began`` in every channel of its
        connector. ``known``: the snapshots of earlier windows; ``snapshots``: those, and what this window holds."""


@runtime_checkable
class RetainsLog(Protocol):
    """A source with a log of its own, which costs it space, or which it forgets."""

    def retained_log(self, position: Position | None) -> RetainedLog:
        """What it keeps of that log. ``position``: the end of the last sealed window, None where there is none."""


@runtime_checkable
class DelaysCapture(Protocol):
    """A source whose windows end some time before now: what was committed since comes with a later one."""

    def capture_delay(self) -> timedelta:
        """How long."""


@runtime_checkable
class HasIdentities(Protocol):
    """A source whose catalogue shows changes of a table that its stream does not carry."""

    def identities(self, tables: Sequence[str]) -> Mapping[str, TableIdentity]:
        """What the catalogue says of these tables now. A table that is gone is left out."""

    def not_streamed(
        self, table: str, position: Position, now: TableIdentity, changes: UnloggedChanges, truncated: bool
    ) -> UnloggedChanges:
        """What is left of ``changes`` of ``table`` with what the stream carries behind ``position``. ``truncated``: a
        TRUNCATE of the table stands in the change log already, and not yet in the copy."""


@runtime_checkable
class HasChannels(Protocol):
    """A source whose stream comes in channels that are not equally far."""

    def channels(self, position: Position) -> Collection[str]:
        """Those that were read up to ``position``."""


class SourceConnector(Protocol):
    """Made from the definition's source, its connection, and the replicator's name. Opens nothing until asked.

    Every method raises SourceUnavailable where a retry can help, PositionLost or IdentityChanged where it cannot.
    ``has_transactions``: a window may end between any two of them, and schemas come in the order in which they came
    about. ``repeats_within``: for how long the source may tell a change once more, at another place; nothing where it
    never does. ``unseen``: in one line what the source cannot show, and the page that lists it.
    """

    unseen: ClassVar[str]
    has_transactions: ClassVar[bool]
    exact_snapshot: ClassVar[bool]
    repeats_within: ClassVar[timedelta]

    def check(self, tables: Sequence[TableTask]) -> list[Problem]:
        """Every obstacle at once, each with the statement that cures it. An empty list means ready."""

    def identity(self) -> dict[str, str]:
        """What makes this source this source (PostgreSQL: system identifier, timeline, database)."""

    def tables(self) -> list[TableSchema]:
        """Every table the connection can see, described."""

    def may_hold(self, column: Column) -> Specials:
        """Special values that the source's type of a column has. ``column``: as the copy has it."""

    def open_stream(self, tables: Sequence[str]) -> Position:
        """Make the stream exist, once, with these tables in it; where it exists already, its position. The position is
        where the first window starts."""

    def status(self, position: Position, tables: Sequence[str]) -> SourceStatus:
        """What lies behind ``position``. Raises PositionLost where the source no longer serves it."""

    def acknowledge(self, position: Position) -> None:
        """Let the source forget everything up to ``position``. Going back, or repeating, does nothing."""

    def drop_stream(self) -> None:
        """Remove what the source keeps for us. Nothing there is no error."""

    def partitions(self, lo: Position, limit: Position) -> list[StreamSplit]: ...

    def read(self, partition: StreamSplit, tables: Sequence[TableTask], epoch: int) -> Iterator[StreamItem]:
        """Records of transactions that end in ``(lo, limit]``, whole transactions only, in stream order."""

    def reread(self, record: ChangeRecord, table: TableTask, schema: TableSchema) -> list[ChangeRecord]:
        """Decode an ``unreadable`` record once more, from its own bytes, with the ``schema`` of then. The record itself
        where it still cannot be understood; nothing where the row filter leaves it out."""

    def copy(self, table: TableTask, epoch: int, sealed: Position, cores: int) -> AbstractContextManager[Copy]:
        """A view for a full copy, in shares for so many cores. ``sealed`` is the end of the last sealed window: a copy
        stands there where the source cannot name the place of its view itself. The driver keeps the context open until
        the last row is read."""
