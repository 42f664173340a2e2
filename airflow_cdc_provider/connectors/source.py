"""The interface of a source connector: the worker calls it about the stream, a Spark job about rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import ClassVar, Protocol

from airflow_cdc_provider.connectors.blocks import Block
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.errors import Problem
from airflow_cdc_provider.core.log.change_records import ChangeRecord
from airflow_cdc_provider.core.log.positions import Position
from airflow_cdc_provider.core.log.server_orders import ServerOrder
from airflow_cdc_provider.core.log.snapshots import SourceSnapshot
from airflow_cdc_provider.core.table.identity import TableIdentity
from airflow_cdc_provider.core.table.schema import Column, TableSchema
from airflow_cdc_provider.core.table.special_values import Specials


@dataclass(frozen=True)
class SourceStatus:
    """The state of the stream after a position. ``has_changes``: it contains changes of our tables. ``limit``: the last
    position that a window may reach; the given position if the source cannot determine one, and the reader then ends
    the window at a time of the source's clock that is known when it begins. ``idle``: where an empty window may end, if
    the stream has advanced far enough without changes of our tables. ``outside``: tables whose changes the stream does
    not carry now, with the reason and the remedy. ``at``: the source's clock when ``limit`` was taken; None if it shows
    none."""

    has_changes: bool
    limit: Position
    idle: Position | None = None
    outside: Mapping[str, Problem] = field(default_factory=dict)
    at: datetime | None = None


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
    with a hole of this ``kind`` (``core.log.change_log.Hole``). ``copies``: those that have the hole; empty for all."""

    table: str
    kind: str
    order_key: str
    detail: str
    copies: tuple[str, ...] = ()


@dataclass(frozen=True)
class SnapshotFound:
    """The stream contains rows of this full snapshot."""

    snapshot: SourceSnapshot


@dataclass(frozen=True)
class OrderFound:
    """The servers that changes of a table come from."""

    order: ServerOrder


@dataclass(frozen=True)
class CutShort:
    """The last item of a reader that ends before changes that the source has: the next window contains them."""


StreamItem = (
    ChangeRecord
    | Block
    | TableSchema
    | Boundary
    | Ignored
    | Resolved
    | HoleFound
    | SnapshotFound
    | OrderFound
    | CutShort
)
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
    ``repeatable``: every read returns the same rows. ``lasting``: each row belongs to one of the splits at any time,
    and they can be read when the view is closed, or under another one (``ReadsUnderViews``)."""

    splits: tuple[str, ...]
    rows: int | None = None
    repeatable: bool = False
    lasting: bool = False


@dataclass(frozen=True)
class Copy:
    """A view of one table while its context is open. It contains every change up to ``floor`` (an order key) and, if
    the source has exact snapshots, none after.

    From the source's own statistics: the approximate number of ``rows``, the ``high_cardinality`` columns, and the
    columns by which the rows are sorted, or nearly (``clustered_by``). ``unlogged``: columns whose changes the stream
    does not carry. ``identity``: the catalog's entry of the table in this view. ``exact``: the view has no change after
    ``position``, although other copies of the source may have.
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
    exact: bool = False


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
