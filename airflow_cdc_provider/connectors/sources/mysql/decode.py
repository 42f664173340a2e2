"""Decodes binlog events to the items of a stream. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from airflow_cdc_provider.connectors.changed_columns import changed_columns
from airflow_cdc_provider.connectors.source import Boundary, HoleFound, Ignored, StreamItem
from airflow_cdc_provider.connectors.sources.mysql import binlog
from airflow_cdc_provider.connectors.sources.mysql.binlog import BinlogEvent, parse_query
from airflow_cdc_provider.connectors.sources.mysql.dead_letters import undecoded_record
from airflow_cdc_provider.connectors.sources.mysql.decoder_settings import DecoderSettings
from airflow_cdc_provider.connectors.sources.mysql.grants import may_hold_others
from airflow_cdc_provider.connectors.sources.mysql.gtids import parse_gtid
from airflow_cdc_provider.connectors.sources.mysql.known_columns import ColumnsOfCopies
from airflow_cdc_provider.connectors.sources.mysql.positions import (
    FILE,
    MAX_REQUEST_POS,
    POS,
    BinlogPosition,
    file_number,
    order_prefix,
    position_of,
)
from airflow_cdc_provider.connectors.sources.mysql.records import RecordBuilder, position_text
from airflow_cdc_provider.connectors.sources.mysql.row_event import parse_rows, table_id_of
from airflow_cdc_provider.connectors.sources.mysql.row_images import UNREADABLE, RowReader
from airflow_cdc_provider.connectors.sources.mysql.schemas import (
    AmbiguousSchema,
    binlog_schema,
    columns_maybe_rewritten,
    columns_with_unknown_defaults,
)
from airflow_cdc_provider.connectors.sources.mysql.statements import Effect, Statement, parse_statement
from airflow_cdc_provider.connectors.sources.mysql.table_map import TableMap, parse_table_map, table_id_and_name
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.errors import IntegrityBroken
from airflow_cdc_provider.core.log.change_log import UNLOGGED
from airflow_cdc_provider.core.log.change_records import ChangeRecord, Operation, canonical
from airflow_cdc_provider.core.log.positions import Position
from airflow_cdc_provider.core.serde import to_plain
from airflow_cdc_provider.core.table.schema import TableSchema

STANDALONE = 1
"""Flag of MariaDB's GTID event: the next statement is a transaction of its own."""

REPLACED = "the table was dropped, replaced or renamed, or lost rows without a log"
STATEMENT_LOGGED = "a statement was logged instead of the rows that it changed"
LAST_PHASE = "ff"
NO_TABLE = 0xFFFFFF
"""The table id of the dummy event that ends a statement without rows."""


class BinlogDecoder:
    """Takes events in order and appends the decoded items to ``items``. Sets ``ended`` at the ``limit``, which is the
    end of a transaction."""

    def __init__(
        self, tasks: Sequence[TableTask], settings: DecoderSettings, epoch: int, gtid: str, limit: BinlogPosition
    ) -> None:
        self.items: list[StreamItem] = []
        self.ended = False
        self._tasks = {settings.first_names.get(task.table, task.table): task for task in tasks}
        self._settings, self._epoch, self._gtid, self._limit = settings, epoch, gtid, limit
        self._maps: dict[int, tuple[str, bytes]] = {}
        self._readers: dict[bytes, tuple[RowReader, TableMap] | None] = {}
        self._current: dict[str, TableSchema] = {}
        self._known = {task.table: ColumnsOfCopies(task) for task in tasks}
        self._announced: set[str] = set()
        self._touched: dict[str, None] = {}
        self._open = False
        self._reaches_all = False
        self._withheld: Boundary | None = None
        self._tx_id = ""
        self._tx_seq = 0
        self._ignored: Counter[str] = Counter()

    def feed(self, event: BinlogEvent) -> None:
        """Raises IntegrityBroken (SRC030) with the position if an event cannot be decoded that may concern any
        table."""
        if event.end > event.start and BinlogPosition(file_number(event.file), event.start) >= self._limit:
            self.ended = True
            return
        try:
            self._feed(event)
        except binlog.MALFORMED as error:
            raise _undecodable(event, error) from error

    def end(self, file: str) -> None:
        """Call it after all events up to the limit, which is in ``file``."""
        if self._add_new_columns(file):
            self.items.append(Boundary(position_of(file, self._limit.pos, self._gtid)))
        elif self._withheld is not None:
            self.items.append(self._withheld)

    def _add_new_columns(self, file: str) -> bool:
        """Adds the new columns of tables without a row that has them."""
        order_key = f"{order_prefix(self._epoch, file, self._limit.pos - 1)}{'f' * 8}{LAST_PHASE}"
        position = canonical({FILE: file, POS: self._limit.pos})
        items = changed_columns(self._tasks.values(), self._current, order_key, position, self._has_defaults)
        self._current |= {item.table: item for item in items if isinstance(item, TableSchema)}
        self.items += items
        return bool(items)

    def _has_defaults(self, task: TableTask, columns: frozenset[str]) -> bool:
        table = self._settings.tables.get(task.name_in_source)
        return any(column.default for column in (table.columns if table else ()) if column.name in columns)

    def _feed(self, event: BinlogEvent) -> None:
        if event.type in binlog.ROWS:
            self._rows(event)
            return
        if event.type in binlog.QUERIES:
            self._query(event)
            return
        match event.type:
            case binlog.TABLE_MAP:
                table_id, table = table_id_and_name(event.body)
                self._maps[table_id] = (table, event.body)
            case binlog.XID:
                self._end_transaction(event)
            case binlog.MARIADB_GTID:
                self._gtid = self._tx_id = parse_gtid(event)
                self._open = not event.body[12] & STANDALONE
            case binlog.GTID | binlog.GTID_TAGGED:
                self._gtid = self._tx_id = parse_gtid(event)
            case binlog.ROTATE:
                self._rotate(event)
            case binlog.XA_PREPARE:
                self._add_holes(
                    event, self._touched, "a transaction was prepared (XA), and its commit cannot be determined"
                )
                self._end_transaction(event)
            case binlog.PARTIAL_UPDATE:
                task = self._tasks.get(self._maps.get(table_id_of(event.body), ("", b""))[0])
                detail = "JSON documents were logged as partial updates (binlog_row_value_options = PARTIAL_JSON)"
                self._add_holes_of(event, [task] if task else [], detail)
            case binlog.TRANSACTION_PAYLOAD:
                detail = "a transaction was logged compressed (binlog_transaction_compression = ON)"
                self._add_holes(event, [""], detail)
                self._end_transaction(event)
            case binlog.INCIDENT:
                self._add_holes(event, [""], "the server reported lost events (INCIDENT)")
                self._end_transaction(event)
            case unknown if unknown not in binlog.HARMLESS:
                self._add_holes(event, [""], f"the binlog has an event of a type that is not known ({unknown})")
                if not self._open:
                    self._end_transaction(event)

    def _end_transaction(self, event: BinlogEvent) -> None:
        """Adds a boundary, unless the protocol cannot request its offset: then the next file starts here. New columns
        are added here at the limit, because a hole can end the window at this boundary."""
        self._reset_transaction()
        is_last = BinlogPosition(file_number(event.file), event.end) >= self._limit
        if is_last:
            self._add_new_columns(event.file)
        if event.end <= MAX_REQUEST_POS:
            self._add_boundary(position_of(event.file, event.end, self._gtid), is_last)

    def _add_boundary(self, position: Position, is_last: bool = False) -> None:
        """After a hole of all tables only the last one: each table is copied anyway, and with a window for each logged
        statement the rest of the binlog would be read again for each."""
        self._withheld = None
        if self._reaches_all and not is_last:
            self._withheld = Boundary(position)
        else:
            self.items.append(Boundary(position))

    def _reset_transaction(self) -> None:
        self.items += [Ignored(count, table) for table, count in self._ignored.items()]
        self._ignored.clear()
        self._open, self._tx_id, self._tx_seq = False, "", 0
        self._touched.clear()

    def _rotate(self, event: BinlogEvent) -> None:
        """The log may have rows of a transaction that a crash interrupted before its commit."""
        self._maps.clear()
        if self._open:
            self._add_holes(event, self._touched, "the server ended in the middle of a transaction")
        file, pos = event.body[8:].decode(), int.from_bytes(event.body[:8], "little")
        if self._open or event.end > event.start:
            self._reset_transaction()
            self._add_boundary(position_of(file, pos, self._gtid))

    def _query(self, event: BinlogEvent) -> None:
        query = parse_query(event)
        statement = parse_statement(query)
        followed = self._follow(statement)
        ours = [self._tasks[name] for name in statement.affected(self._tasks) if name not in followed]
        write = statement.write
        reaches_all = write is not None and (self._reaches_all or not self._settings.confined(write))
        if reaches_all:
            self._reaches_all = True
            self._add_holes(event, [""], STATEMENT_LOGGED)
        match statement.effect:
            case Effect.BEGIN:
                self._open = True
                self._tx_id = self._tx_id or f"{event.file}:{event.start}"
                return
            case Effect.COMMIT:
                self._end_transaction(event)
                return
            case Effect.ROLLBACK | Effect.ROLLBACK_TO_SAVEPOINT:
                self._add_holes(event, self._touched, "rows were logged and then rolled back")
                if statement.effect is Effect.ROLLBACK:
                    self._end_transaction(event)
                return
            case Effect.TRUNCATE:
                for task in ours:
                    self._truncate(event, task)
            case Effect.CHANGE_ROWS if not reaches_all:
                self._add_holes_of(event, ours, STATEMENT_LOGGED)
            case Effect.REPLACE_TABLE:
                self._add_holes_of(event, ours, REPLACED)
            case Effect.ALTER:
                for task in ours:
                    self._alter(event, task, statement, query.strict)
        if not self._open:
            self._end_transaction(event)

    def _follow(self, statement: Statement) -> frozenset[str]:
        """The new names of followed tables."""
        followed = set[str]()
        for before, after in statement.renames:
            if before in self._tasks and self._tasks[before].table in self._settings.first_names:
                self._tasks[after] = self._tasks.pop(before)
                followed = followed - {before} | {after}
        return frozenset(followed)

    def _rows(self, event: BinlogEvent) -> None:
        table_id = table_id_of(event.body)
        if table_id == NO_TABLE:
            return
        if table_id not in self._maps:
            raise binlog.Malformed("rows without a table map")
        name, raw = self._maps[table_id]
        task = self._tasks.get(name)
        if task is None:
            self._ignored[name] += 1
            return
        table = task.table
        self._touched[table] = None
        if raw not in self._readers:
            self._readers[raw] = self._reader(event, task, raw)
        known = self._readers[raw]
        if known is None:
            return
        reader, table_map = known
        if self._current.get(table) is not reader.schema:
            self._add_schema(event, reader)
        records = RecordBuilder(reader, self._epoch, event, self._tx_id)
        for number, change in enumerate(parse_rows(event.type, event.body, table_map)):
            self._tx_seq += 1
            records.start_row(number, self._tx_seq)
            try:
                row = reader.read(change)
            except UNREADABLE as error:
                withheld, mariadb = table in self._settings.limited, self._settings.mariadb
                departed, what = undecoded_record(reader, raw, mariadb, event.type, change, error, withheld)
                self.items += records.build_unreadable(departed, what.key, canonical(to_plain(what.record)))
                continue
            if row is None:
                self._ignored[""] += 1
            else:
                self.items += records.build(row)

    def _reader(self, event: BinlogEvent, task: TableTask, raw: bytes) -> tuple[RowReader, TableMap] | None:
        """None, and a hole, if the columns at this position cannot be determined, or the login may not select them."""
        if task.table in self._settings.limited and may_hold_others(task):
            self._add_holes(event, [task.table], "the login may not select all columns of the table")
            return None
        try:
            table_map = parse_table_map(raw, self._settings.mariadb)
        except binlog.Malformed as error:
            self._add_holes(event, [task.table], f"the table map of the binlog cannot be decoded: {error}")
            return None
        altered = self._settings.altered
        last = (altered or {}).get(task.table)
        later = last is not None and last >= BinlogPosition(file_number(event.file), event.start)
        table = self._settings.tables.get(task.name_in_source)
        try:
            found = binlog_schema(table_map, task, table, self._settings.collations, later)
        except AmbiguousSchema as error:
            self._add_holes(event, [task.table], str(error))
            return None
        for view in task.views:
            if rewritten := columns_maybe_rewritten(view, found):
                detail = f"values may have changed without a log when columns were altered: {', '.join(rewritten)}"
                self._add_hole(event, task, detail, [view.copy])
        if generated := self._formerly_generated(task.table, found.schema):
            detail = f"column {', '.join(generated)} was a generated column, and was made an ordinary column later"
            self._add_holes(event, [task.table], detail)
        return RowReader(task, found, defaults_known=altered is not None and not later), table_map

    def _formerly_generated(self, table: str, schema: TableSchema) -> list[str]:
        """Generated columns look like ordinary ones in the binlog, and the catalog shows them as of after the
        window."""
        unexplained = self._known[table].unexplained(schema)
        return sorted(unexplained & set(self._settings.redefined(table))) if unexplained else []

    def _add_schema(self, event: BinlogEvent, reader: RowReader) -> None:
        """Adds the schema of the next records, and a schema record if it differs from the previous one."""
        current = self._current.get(reader.table)
        known = [current] if current else [view.schema for view in reader.task.views]
        self._current[reader.table] = reader.schema
        self._known[reader.table].add_schema(reader.schema)
        if reader.schema_id not in self._announced:
            self._announced.add(reader.schema_id)
            self.items.append(reader.schema)
        if any(before is None or before.shape != reader.schema.shape for before in known):
            record = self._control(event, reader.schema, Operation.SCHEMA, _order_key_before(self._epoch, event))
            unknown = columns_with_unknown_defaults(reader.task, reader.found)
            after = canonical(reader.schema.plain())
            self.items.append(replace(record, after=after, warnings=("initial_unknown",) if unknown else ()))

    def _alter(self, event: BinlogEvent, task: TableTask, statement: Statement, strict: bool) -> None:
        known = self._known[task.table]
        changes = known.apply(statement, strict)
        for detail, copies in changes.items():
            self._add_hole(event, task, detail, copies)
        if renamed := known.renamed(statement, frozenset().union(*changes.values())):
            self._rename(event, renamed)

    def _rename(self, event: BinlogEvent, schema: TableSchema) -> None:
        """Adds the schema after a statement that renames columns: no row shows which ones are the same."""
        self._current[schema.table] = schema
        self._announced.add(schema.schema_id)
        record = self._control(event, schema, Operation.SCHEMA, _order_key_before(self._epoch, event))
        self.items += [schema, replace(record, after=canonical(schema.plain()))]

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
            position=position_text(event),
            event_id=order_key,
        )

    def _add_holes_of(self, event: BinlogEvent, tasks: Iterable[TableTask], detail: str) -> None:
        self._add_holes(event, [task.table for task in tasks], detail)

    def _add_hole(self, event: BinlogEvent, task: TableTask, detail: str, copies: Collection[str]) -> None:
        """``copies``: those that have it."""
        order_key = f"{order_prefix(self._epoch, event.file, event.start)}{0:010x}"
        some = () if len(copies) == len(task.views) else tuple(copies)
        self.items.append(HoleFound(task.table, UNLOGGED, order_key, detail, some))

    def _add_holes(self, event: BinlogEvent, tables: Iterable[str], detail: str) -> None:
        order_key = f"{order_prefix(self._epoch, event.file, event.start)}{0:010x}"
        self.items += [HoleFound(table, UNLOGGED, order_key, detail) for table in tables]


def _order_key_before(epoch: int, event: BinlogEvent) -> str:
    """An order key between the previous event and the rows of this one, the same in every window."""
    return f"{order_prefix(epoch, event.file, event.start - 1)}{'f' * 8}{LAST_PHASE}"


def _undecodable(event: BinlogEvent, error: Exception) -> IntegrityBroken:
    """The message has no bytes of the event, because they may contain values."""
    return IntegrityBroken.of(
        "SRC030",
        "an event of the binlog cannot be decoded",
        where=f"{event.file}, position {event.start}",
        found=f"type {event.type}, {len(event.body)} bytes: "
        + (str(error) if isinstance(error, binlog.Malformed) else type(error).__name__),
        allowed="the row binlog of MySQL 8 or MariaDB 10.6 and later",
        data="the event is still in the binlog; the window was not sealed",
        do="check that this provider version supports the source version; resync the table if the source is right",
    )
