"""From the events of the binlog to the items of a stream. Pure: events in, items out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from airflow_cdc_provider.connectors.new_columns import new_columns
from airflow_cdc_provider.connectors.source import Boundary, HoleFound, Ignored, StreamItem
from airflow_cdc_provider.connectors.sources.mysql import binlog
from airflow_cdc_provider.connectors.sources.mysql.binlog import BinlogEvent, gtid_of, query_of
from airflow_cdc_provider.connectors.sources.mysql.catalog import CatalogTable
from airflow_cdc_provider.connectors.sources.mysql.dead_letters import undecoded_record
from airflow_cdc_provider.connectors.sources.mysql.known_columns import KnownColumns
from airflow_cdc_provider.connectors.sources.mysql.positions import (
    FILE,
    LARGEST_START,
    POS,
    BinlogPosition,
    number_of,
    order_prefix,
    position_of,
)
from airflow_cdc_provider.connectors.sources.mysql.records import RowRecords, place_text
from airflow_cdc_provider.connectors.sources.mysql.row_event import rows_of, table_of
from airflow_cdc_provider.connectors.sources.mysql.row_images import UNREADABLE, RowReader
from airflow_cdc_provider.connectors.sources.mysql.schemas import (
    UnclearSchema,
    binlog_schema,
    shape,
    unclear_columns,
    value_losses,
)
from airflow_cdc_provider.connectors.sources.mysql.statements import Means, meaning
from airflow_cdc_provider.connectors.sources.mysql.table_map import TableMap, head_of, parse_table_map
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.errors import IntegrityBroken, Problem
from airflow_cdc_provider.core.log.change_log import UNLOGGED
from airflow_cdc_provider.core.log.change_records import ChangeRecord, Operation, canonical
from airflow_cdc_provider.core.serde import to_plain
from airflow_cdc_provider.core.table.schema import TableSchema

STANDALONE = 1
"""Of MariaDB's GTID events: a statement that is a transaction by itself follows."""

BEHIND = "ff"
NO_TABLE = 0xFFFFFF
"""Stands for the end of a statement that told rows of no table."""


@dataclass(frozen=True)
class DecoderSettings:
    """What is known beside the stream. ``altered``: table → the place of the last statement that altered it, as far as
    the catalogue may know of it; None where that was not asked for, since the binlog tells all that is needed.
    ``redefined``: the columns of a table, in small letters, that statements up to there give another definition."""

    tables: Mapping[str, CatalogTable]
    collations: Mapping[int, str]
    mariadb: bool
    altered: Mapping[str, BinlogPosition] | None = None
    redefined: Callable[[str], Collection[str]] = lambda _table: ()


class BinlogDecoder:
    """Feed it events in order; it appends what they mean to ``items``. ``ended`` is set at the ``limit``, which is the
    end of a transaction."""

    def __init__(
        self, tasks: Sequence[TableTask], setting: DecoderSettings, epoch: int, gtid: str, limit: BinlogPosition
    ) -> None:
        self.items: list[StreamItem] = []
        self.ended = False
        self._tasks = {task.table: task for task in tasks}
        self._setting, self._epoch, self._gtid, self._limit = setting, epoch, gtid, limit
        self._maps: dict[int, tuple[str, bytes]] = {}
        self._layouts: dict[bytes, tuple[RowReader, TableMap] | None] = {}
        self._current: dict[str, TableSchema] = {}
        self._known = {task.table: KnownColumns(task) for task in tasks}
        self._announced: set[str] = set()
        self._touched: dict[str, None] = {}
        self._open = False
        self._tx_id = ""
        self._tx_seq = 0
        self._ignored: Counter[str] = Counter()

    def feed(self, event: BinlogEvent) -> None:
        """Raises IntegrityBroken (SRC030), naming the place, where an event cannot be understood that might be about
        anything."""
        if event.end > event.start and BinlogPosition(number_of(event.file), event.start) >= self._limit:
            self.ended = True
            return
        try:
            self._feed(event)
        except binlog.MALFORMED as error:
            raise _unreadable(event, error) from error

    def end(self, file: str) -> None:
        """Everything up to the limit, in ``file``, was fed."""
        if self._tell_new_columns(file):
            self.items.append(Boundary(position_of(file, self._limit.pos, self._gtid)))

    def _tell_new_columns(self, file: str) -> bool:
        """Those of tables that show no row with them up to the limit."""
        order_key = f"{order_prefix(self._epoch, file, self._limit.pos - 1)}{'f' * 8}{BEHIND}"
        place = canonical({FILE: file, POS: self._limit.pos})
        items = new_columns(self._tasks.values(), self._current, order_key, place, self._has_defaults)
        self._current |= {item.table: item for item in items if isinstance(item, TableSchema)}
        self.items += items
        return bool(items)

    def _has_defaults(self, task: TableTask, columns: frozenset[str]) -> bool:
        described = self._setting.tables.get(task.table)
        return any(one.default for one in (described.columns if described else ()) if one.name in columns)

    def _feed(self, event: BinlogEvent) -> None:
        if event.type in binlog.ROWS:
            self._rows(event)
            return
        match event.type:
            case binlog.TABLE_MAP:
                number, table = head_of(event.body)
                self._maps[number] = (table, event.body)
            case binlog.XID:
                self._end(event)
            case binlog.QUERY | binlog.MARIADB_QUERY_COMPRESSED:
                self._query(event)
            case binlog.MARIADB_GTID:
                self._gtid = self._tx_id = gtid_of(event)
                self._open = not event.body[12] & STANDALONE
            case binlog.GTID:
                self._gtid = self._tx_id = gtid_of(event)
            case binlog.ROTATE:
                self._rotate(event)
            case binlog.XA_PREPARE:
                self._holes(
                    event, self._touched, "a transaction was prepared (XA); whether it is committed is not told"
                )
                self._end(event)
            case binlog.PARTIAL_UPDATE:
                table = self._maps.get(table_of(event.body), ("", b""))[0]
                told = "documents came as differences (binlog_row_value_options = PARTIAL_JSON)"
                self._holes(event, [table] if table in self._tasks else [], told)
            case binlog.TRANSACTION_PAYLOAD:
                self._holes(event, [""], "a transaction came compressed (binlog_transaction_compression = ON)")
                self._end(event)
            case binlog.INCIDENT:
                self._holes(event, [""], "the server says that events were lost")
                self._end(event)

    def _end(self, event: BinlogEvent) -> None:
        """The end of a transaction. Behind what the protocol can ask for none is told: a new file follows at once.
        Where that is the limit, a hole may end the window here."""
        self._close()
        if BinlogPosition(number_of(event.file), event.end) >= self._limit:
            self._tell_new_columns(event.file)
        if event.end <= LARGEST_START:
            self.items.append(Boundary(position_of(event.file, event.end, self._gtid)))

    def _close(self) -> None:
        self.items += [Ignored(count, table) for table, count in self._ignored.items()]
        self._ignored.clear()
        self._open, self._tx_id, self._tx_seq = False, "", 0
        self._touched.clear()

    def _rotate(self, event: BinlogEvent) -> None:
        """A transaction that a crash cut off was never committed; its rows may stand in the log all the same."""
        self._maps.clear()
        if self._open:
            self._holes(event, self._touched, "the server ended in the middle of a transaction")
        file, pos = event.body[8:].decode(), int.from_bytes(event.body[:8], "little")
        if self._open or event.end > event.start:
            self._close()
            self.items.append(Boundary(position_of(file, pos, self._gtid)))

    def _query(self, event: BinlogEvent) -> None:
        query = query_of(event)
        statement = meaning(query)
        ours = statement.of(self._tasks)
        match statement.means:
            case Means.BEGINS:
                self._open = True
                self._tx_id = self._tx_id or f"{event.file}:{event.start}"
                return
            case Means.COMMITS:
                self._end(event)
                return
            case Means.ROLLS_BACK | Means.UNDOES:
                self._holes(event, self._touched, "rows were told and then rolled back")
                if statement.means is Means.ROLLS_BACK:
                    self._end(event)
                return
            case Means.EMPTIES:
                for table in ours:
                    self._truncate(event, self._tasks[table])
            case Means.CHANGES:
                self._holes(event, ours, "a statement was logged instead of the rows that it changed")
            case Means.REPLACES:
                self._holes(event, ours, "the table was dropped, replaced or renamed, or lost rows untold")
            case Means.ALTERS:
                for table in ours:
                    if reasons := self._known[table].alter(statement, query.strict):
                        self._holes(event, [table], "; ".join(reasons))
        if not self._open:
            self._end(event)

    def _rows(self, event: BinlogEvent) -> None:
        number = table_of(event.body)
        if number == NO_TABLE:
            return
        if number not in self._maps:
            raise binlog.Malformed("rows of a table that was not told")
        table, raw = self._maps[number]
        if table not in self._tasks:
            self._ignored[table] += 1
            return
        self._touched[table] = None
        if raw not in self._layouts:
            self._layouts[raw] = self._layout(event, self._tasks[table], raw)
        known = self._layouts[raw]
        if known is None:
            return
        layout, found = known
        if self._current.get(table) is not layout.schema:
            self._announce(event, layout)
        make = RowRecords(layout, self._epoch, event, self._tx_id)
        for number, change in enumerate(rows_of(event.type, event.body, found)):
            self._tx_seq += 1
            make.at(number, self._tx_seq)
            try:
                row = layout.read(change)
            except UNREADABLE as error:
                gone, what = undecoded_record(layout, raw, self._setting.mariadb, event.type, change, error)
                self.items += make.put_aside(gone, what.key, canonical(to_plain(what.record)))
                continue
            if row is None:
                self._ignored[""] += 1
            else:
                self.items += make.of(row)

    def _layout(self, event: BinlogEvent, task: TableTask, raw: bytes) -> tuple[RowReader, TableMap] | None:
        """None where nobody can tell the columns of then."""
        try:
            found = parse_table_map(raw, self._setting.mariadb)
        except binlog.Malformed as error:
            self._holes(event, [task.table], f"the binlog tells of the table what cannot be read: {error}")
            return None
        altered = self._setting.altered
        place = (altered or {}).get(task.table)
        later = place is not None and place >= BinlogPosition(number_of(event.file), event.start)
        try:
            told = binlog_schema(found, task, self._setting.tables.get(task.table), self._setting.collations, later)
        except UnclearSchema as error:
            self._holes(event, [task.table], str(error))
            return None
        if changed := value_losses(task, told):
            words = f"values may have been changed, untold, when columns were altered: {', '.join(changed)}"
            self._holes(event, [task.table], words)
        if later_ordinary := self._generated(task.table, told.schema):
            words = f"column {', '.join(later_ordinary)} was a generated one, and was made an ordinary one later"
            self._holes(event, [task.table], words)
        return RowReader(task, told, defaults_known=altered is not None and not later), found

    def _generated(self, table: str, schema: TableSchema) -> list[str]:
        """The binlog tells generated columns like ordinary ones, and the catalogue is that of behind the window."""
        unexplained = self._known[table].unexplained(schema)
        return sorted(unexplained & set(self._setting.redefined(table))) if unexplained else []

    def _announce(self, event: BinlogEvent, layout: RowReader) -> None:
        """Say the schema of the records that follow; and, where it is not what the target holds, as a record too."""
        held = layout.task.control.schema if layout.task.control else None
        before = self._current.get(layout.table, held)
        self._current[layout.table] = layout.schema
        self._known[layout.table].show(layout.schema)
        if layout.schema_id not in self._announced:
            self._announced.add(layout.schema_id)
            self.items.append(layout.schema)
        if before is None or shape(before) != shape(layout.schema):
            record = self._control(event, layout.schema, Operation.SCHEMA, _behind(self._epoch, event))
            unclear = unclear_columns(layout.task, layout.told)
            after = canonical(to_plain(layout.schema))
            self.items.append(replace(record, after=after, warnings=("initial_unknown",) if unclear else ()))

    def _truncate(self, event: BinlogEvent, task: TableTask) -> None:
        schema = self._current.get(task.table)
        if schema is None:
            schema = self._current[task.table] = task.schema
            self._announced.add(schema.schema_id)
            self.items.append(schema)
        order_key = f"{order_prefix(self._epoch, event.file, event.start)}{0:010x}"
        self.items.append(self._control(event, schema, Operation.TRUNCATE, order_key))

    def _control(self, event: BinlogEvent, schema: TableSchema, op: str, order_key: str) -> ChangeRecord:
        return ChangeRecord(
            schema.table,
            op,
            order_key,
            schema.schema_id,
            tx_id=self._tx_id or f"{event.file}:{event.start}",
            tx_seq=self._tx_seq,
            commit_ts=datetime.fromtimestamp(event.timestamp, UTC),
            position=place_text(event),
            event_id=order_key,
        )

    def _holes(self, event: BinlogEvent, tables: Iterable[str], detail: str) -> None:
        order_key = f"{order_prefix(self._epoch, event.file, event.start)}{0:010x}"
        self.items += [HoleFound(table, UNLOGGED, order_key, detail) for table in tables]


def _behind(epoch: int, event: BinlogEvent) -> str:
    """An order key between the event before and the rows of this one, the same in every window."""
    return f"{order_prefix(epoch, event.file, event.start - 1)}{'f' * 8}{BEHIND}"


def _unreadable(event: BinlogEvent, error: Exception) -> IntegrityBroken:
    """The bytes themselves may hold values, so only their number and the type of the event are told."""
    return IntegrityBroken(
        Problem(
            "SRC030",
            "an event of the binlog cannot be understood",
            where=f"{event.file}, position {event.start}",
            found=f"type {event.type}, {len(event.body)} bytes: "
            + (str(error) if isinstance(error, binlog.Malformed) else type(error).__name__),
            allowed="the row binlog of MySQL 8 or MariaDB 10.6 and later",
            data="still in the binlog: nothing of this window was sealed",
            do="check that source and provider versions go together; resync the table if the source is right",
        )
    )
