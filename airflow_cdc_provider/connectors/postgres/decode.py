"""pgoutput messages → stream items. Pure: no connection, no clock."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from airflow_cdc_provider.connectors.postgres import messages
from airflow_cdc_provider.connectors.postgres.positions import lsn_text, position_of
from airflow_cdc_provider.connectors.postgres.rows import Layout
from airflow_cdc_provider.connectors.postgres.schemas import Catalogue, shape, stream_schema, unclear_columns
from airflow_cdc_provider.connectors.postgres.unreadable import put_aside
from airflow_cdc_provider.connectors.rows import Row, halves
from airflow_cdc_provider.connectors.source import Boundary, Ignored, StreamItem
from airflow_cdc_provider.core.changes import ARRIVES, DEPARTS, ChangeRecord, Operation, canonical
from airflow_cdc_provider.core.errors import IntegrityBroken, Problem
from airflow_cdc_provider.core.plain import to_plain
from airflow_cdc_provider.core.positions import epoch_prefix
from airflow_cdc_provider.core.steps import TableTask
from airflow_cdc_provider.core.tables import TableSchema

ROW_LETTERS = frozenset({messages.INSERT, messages.UPDATE, messages.DELETE})
BEHIND = "ff"


class Decoder:
    """Feed it the messages of a slot in order; it appends what they mean to ``items``.

    Transactions whose commit record starts before ``lo`` are passed over, but their relation messages count: the server
    sends each only once. ``ended`` is set when a transaction reaches beyond ``limit``; records of it that were given
    out already have no Boundary behind them.
    """

    def __init__(self, tasks: Sequence[TableTask], catalogue: Catalogue, epoch: int, lo: int, limit: int) -> None:
        self.items: list[StreamItem] = []
        self.ended = False
        self._tasks = {task.table: task for task in tasks}
        self._catalogue = catalogue
        self._epoch = epoch_prefix(epoch)
        self._lo, self._limit = lo, limit
        self._tables: dict[int, Layout | None] = {}
        self._relations: dict[int, bytes] = {}
        self._current: dict[str, TableSchema] = {}
        self._announced: set[str] = set()
        self._passing = True
        self._lsn = -1
        self._commit_prefix = self._tx_id = self._position = ""
        self._commit_ts: datetime | None = None
        self._ordinal = self._ignored = 0

    def feed(self, lsn: int, data: bytes) -> None:
        """One message. A row change that cannot be understood becomes an ``unreadable`` record of its table. Any other
        message might be about anything: there it raises IntegrityBroken (SRC030), naming the place."""
        try:
            self._feed(lsn, data)
        except messages.MALFORMED as error:
            raise _unreadable(lsn, data, error) from error

    def _feed(self, lsn: int, data: bytes) -> None:
        letter = data[0]
        if letter in ROW_LETTERS:
            if not self._passing:
                self._row(lsn, data)
            return
        match letter:
            case messages.BEGIN:
                self._begin(messages.parse_begin(data))
            case messages.COMMIT:
                self._commit(messages.parse_commit(data))
            case messages.RELATION:
                self._relation(data)
            case messages.TRUNCATE:
                if not self._passing:
                    self._truncate(lsn, messages.parse_truncate(data))
            case messages.TYPE | messages.ORIGIN | messages.MESSAGE:
                pass
            case unknown:
                raise messages.MalformedMessage(f"unknown message {unknown:#x}")

    def _begin(self, begin: messages.Begin) -> None:
        self._passing = begin.commit_lsn < self._lo
        self.ended = begin.commit_lsn >= self._limit
        self._commit_prefix = f"{self._epoch}{begin.commit_lsn:016x}"
        self._commit_ts = begin.commit_ts
        self._tx_id = str(begin.xid)
        self._position = f'{{"commit":"{lsn_text(begin.commit_lsn)}"}}'
        self._lsn = -1
        self._ordinal = 0

    def _commit(self, commit: messages.Commit) -> None:
        self.ended = commit.end_lsn > self._limit
        if self._passing or self.ended:
            return
        if self._ignored:
            self.items.append(Ignored(self._ignored))
            self._ignored = 0
        self.items.append(Boundary(position_of(commit.end_lsn)))

    def _relation(self, data: bytes) -> None:
        relation = messages.parse_relation(data)
        self._relations[relation.oid] = data
        task = self._tasks.get(relation.table)
        if task is None:
            self._tables[relation.oid] = None
            return
        schema = stream_schema(relation, task, self._catalogue)
        self._tables[relation.oid] = Layout(relation, task, schema)

    def _table(self, oid: int) -> Layout | None:
        try:
            return self._tables[oid]
        except KeyError:
            raise messages.MalformedMessage(f"no relation message for oid {oid}") from None

    def _row(self, lsn: int, data: bytes) -> None:
        layout = self._table(messages.relation_of(data))
        if layout is None:
            self._ignored += 1
            return
        if self._current.get(layout.table) is not layout.schema:
            self._announce(lsn, layout)
        try:
            row = layout.read(messages.parse_row_change(data))
        except messages.MALFORMED as error:
            self._put_aside(lsn, layout, data, error)
            return
        if row is None:
            self._ignored += 1
        elif row.moved:
            self._move(lsn, layout, row)
        else:
            self.items.append(self._record(layout, row, self._next(lsn) + "00", None, None))

    def _move(self, lsn: int, layout: Layout, row: Row) -> None:
        order = self._next(lsn)
        for phase, half in halves(row):
            self.items.append(self._record(layout, half, f"{order}{phase:02x}", phase, order))

    def _put_aside(self, lsn: int, layout: Layout, data: bytes, error: Exception) -> None:
        """A row that moved leaves its old key all the same."""
        order, context = self._next(lsn), self._relations[messages.relation_of(data)]
        gone, what = put_aside(layout, context, data, error)
        if gone is not None:
            self.items.append(self._record(layout, gone, f"{order}{DEPARTS:02x}", DEPARTS, order))
        record = self._control(layout, Operation.UNREADABLE, f"{order}{ARRIVES if gone else 0:02x}")
        moved = {"phase": ARRIVES, "link_id": order} if gone else {}
        after = canonical(to_plain(what.told))
        self.items.append(replace(record, key=what.key, after=after, **moved))  # type: ignore[arg-type]

    def _truncate(self, lsn: int, truncate: messages.Truncate) -> None:
        for oid in truncate.oids:
            layout = self._table(oid)
            if layout is None:
                self._ignored += 1
                continue
            if self._current.get(layout.table) is not layout.schema:
                self._announce(lsn, layout)
            self.items.append(self._control(layout, Operation.TRUNCATE, self._next(lsn) + "00"))

    def _announce(self, lsn: int, layout: Layout) -> None:
        """Say the schema of the records that follow; and, where it is not what the target holds, as a record too."""
        held = layout.task.control.schema if layout.task.control else None
        before = self._current.get(layout.table, held)
        self._current[layout.table] = layout.schema
        if layout.schema.schema_id not in self._announced:
            self._announced.add(layout.schema.schema_id)
            self.items.append(layout.schema)
        if before is None or shape(before) != shape(layout.schema):
            unclear = unclear_columns(layout.schema, layout.task, self._catalogue)
            record = self._control(layout, Operation.SCHEMA, self._behind(lsn))
            after = canonical(to_plain(layout.schema))
            self.items.append(replace(record, after=after, warnings=("initial_unknown",) if unclear else ()))

    def _next(self, lsn: int) -> str:
        """The order key of the next change, up to the phase."""
        self._ordinal += 1
        if lsn > self._lsn:
            self._lsn = lsn
        return f"{self._commit_prefix}{self._lsn:016x}{self._ordinal:08x}"

    def _behind(self, lsn: int) -> str:
        """An order key between the change before and the next one. Takes no ordinal: whether a schema is told depends
        on where the window starts, and a change must have one order key in every window."""
        return f"{self._commit_prefix}{max(lsn, self._lsn):016x}{self._ordinal:08x}{BEHIND}"

    def _record(self, layout: Layout, row: Row, order_key: str, phase: int | None, link_id: str | None) -> ChangeRecord:
        """All fields by place: this runs once per row, and names would cost as much as the rest of it."""
        op, key_before, key, before, after, before_complete, after_complete, warnings, _ = row
        return ChangeRecord(
            layout.table,
            op,
            order_key,
            layout.schema_id,
            key_before,
            key,
            before,
            after,
            before_complete,
            after_complete,
            (),
            phase,
            link_id,
            None,
            self._tx_id,
            self._ordinal,
            self._commit_ts,
            self._position,
            order_key,
            "none",
            warnings,
        )

    def _control(self, layout: Layout, op: str, order_key: str) -> ChangeRecord:
        return ChangeRecord(
            layout.table,
            op,
            order_key,
            layout.schema_id,
            tx_id=self._tx_id,
            tx_seq=self._ordinal,
            commit_ts=self._commit_ts,
            position=self._position,
            event_id=order_key,
        )


def _unreadable(lsn: int, data: bytes, error: Exception) -> IntegrityBroken:
    """The bytes themselves may hold values, so only their length and first letter are told."""
    return IntegrityBroken(
        Problem(
            "SRC030",
            "a message of the replication slot cannot be understood",
            where=f"WAL position {lsn_text(lsn)}",
            found=f"{type(error).__name__}: {error}"
            if isinstance(error, messages.MalformedMessage)
            else f"{type(error).__name__} in a message {data[:1]!r} of {len(data)} bytes",
            allowed="pgoutput, protocol version 1, in UTF-8",
            data="still in the slot: nothing of this window was sealed",
            do="check that source and provider versions go together; resync the table if the source is right",
        )
    )
