"""The binlog as a stream: probed on the worker, read window by window. Server settings alone limit its retention."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from typing import Any

from airflow_cdc_provider.connectors.mysql_statements.alter_table import redefined_columns
from airflow_cdc_provider.connectors.mysql_statements.table_renames import names_of
from airflow_cdc_provider.connectors.source import SourceStatus, StreamItem, StreamSplit
from airflow_cdc_provider.connectors.sources.mysql import binlog
from airflow_cdc_provider.connectors.sources.mysql.alterations import may_change
from airflow_cdc_provider.connectors.sources.mysql.binlog import BinlogEvent, parse_query, read_events
from airflow_cdc_provider.connectors.sources.mysql.catalog import (
    BINLOG_RETENTION,
    CatalogTable,
    ServerInfo,
    binlog_retention,
    exists,
    fetch_all,
    read_binlog_end,
    read_binlog_files,
    read_clock,
    read_collations,
    read_server,
    read_tables,
    read_variables,
)
from airflow_cdc_provider.connectors.sources.mysql.client import MysqlClient
from airflow_cdc_provider.connectors.sources.mysql.decode import BinlogDecoder
from airflow_cdc_provider.connectors.sources.mysql.decoder_settings import DecoderSettings
from airflow_cdc_provider.connectors.sources.mysql.grants import limited_tables
from airflow_cdc_provider.connectors.sources.mysql.gtids import GTIDS, parse_gtid
from airflow_cdc_provider.connectors.sources.mysql.identities import names_now, renamed_meanwhile
from airflow_cdc_provider.connectors.sources.mysql.known_objects import read_objects
from airflow_cdc_provider.connectors.sources.mysql.options import MysqlOptions
from airflow_cdc_provider.connectors.sources.mysql.positions import (
    FILE,
    FIRST_EVENT_POS,
    GTID,
    POS,
    BinlogPosition,
    binlog_position,
    file_number,
    position_of,
)
from airflow_cdc_provider.connectors.sources.mysql.replication import require_logged
from airflow_cdc_provider.connectors.sources.mysql.statements import Effect, Statement, parse_statement
from airflow_cdc_provider.connectors.sources.mysql.table_map import parse_table_map, table_id_and_name
from airflow_cdc_provider.connectors.sources.mysql.visibility import wait_for_logged
from airflow_cdc_provider.connectors.sources.mysql.writes import KnownObjects, Write
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.log.positions import Position
from airflow_cdc_provider.core.log.retained_log import RetainedLog

PROBE_BYTES = 64 << 20
"""How much of the binlog the worker searches for changes of our tables. A longer binlog is read by a run."""

IDLE_BYTES = 16 << 20
"""How far the binlog must have grown before an empty window advances our position."""


@dataclass(frozen=True)
class StreamProbe:
    """``has_changes``: of our tables. ``complete``: the probe reached the limit; ``gtid`` is the last transaction."""

    has_changes: bool
    complete: bool
    gtid: str


class Binlog:
    def __init__(self, client: MysqlClient, options: MysqlOptions) -> None:
        self.client = client
        self.options = options

    def open(self) -> Position:
        """With MySQL, every transaction before the position is visible. Raises SourceUnavailable (CPY007), and
        CheckFailed for a replica that does not log what it replicates."""
        with self.client.session("open") as connection:
            require_logged(connection, self.client.address, self.client.replicator)
            end, server = read_binlog_end(connection, self.client), read_server(connection)
            if not server.is_mariadb:
                wait_for_logged(connection, self.client)
            return position_of(end.file, end.pos, _gtid_at(connection, server, end.file, end.pos))

    def status(self, position: Position, tables: Sequence[str]) -> SourceStatus:
        """Raises CheckFailed for a replica that does not log what it replicates."""
        with self.client.session("status") as connection:
            require_logged(connection, self.client.address, self.client.replicator)
            self._require_available(connection, position)
            at, end = read_clock(connection), read_binlog_end(connection, self.client)
            start, limit = binlog_position(position), BinlogPosition(file_number(end.file), end.pos)
            if limit <= start:
                return SourceStatus(False, position, at=at)
            self._require_same_binlog(connection, read_server(connection), position)
        probe = self._probe(position, limit, tables)
        end_position = position_of(end.file, end.pos, probe.gtid if probe.complete else "")
        idle = not probe.has_changes and probe.complete
        advanced = limit.number > start.number or limit.pos - start.pos >= IDLE_BYTES
        return SourceStatus(probe.has_changes, end_position, end_position if idle and advanced else None, at=at)

    def has_changes(self, lo: Position, hi: Position, table: str) -> bool:
        """Whether anything between the positions may have changed the table."""
        return self._probe(lo, binlog_position(hi), [table]).has_changes

    def retained_log(self, position: Position | None) -> RetainedLog:
        """Raises PositionLost if the server no longer has the position."""
        with self.client.session("retained_log") as connection:
            if position is not None:
                self._require_available(connection, position)
            files = read_binlog_files(connection)
            keeps = binlog_retention(read_variables(connection, *BINLOG_RETENTION))
        oldest = {FILE: next(iter(files)), POS: str(FIRST_EVENT_POS)}
        with self.client.session("retained_log") as connection:
            events = self._events(connection, oldest, self.options.server_id + 1)
            created = next(event.timestamp for event in events if event.type == binlog.FORMAT)
        since = datetime.fromtimestamp(created, UTC)
        if position is None:
            return RetainedLog(since=since, keeps=keeps)
        start = binlog_position(position)
        size = sum(size for name, size in files.items() if file_number(name) >= start.number) - start.pos
        return RetainedLog(size, since, keeps=keeps)

    def read(self, split: StreamSplit, tasks: Sequence[TableTask], epoch: int) -> Iterator[StreamItem]:
        limit = binlog_position(split.limit)
        with self.client.session("describe") as connection:
            self._require_available(connection, split.lo)
            server = read_server(connection)
            self._require_same_binlog(connection, server, split.lo)
            tables = read_tables(connection, self.options.databases)
            collations = read_collations(connection, server)
            end = read_binlog_end(connection, self.client)
            row_image = read_variables(connection, "binlog_row_image").get("binlog_row_image", "FULL").upper()
            limited = _limited(connection, tasks, tables, server)
        binlog_end = BinlogPosition(file_number(end.file), end.pos)
        names = {task.table: (task.table,) for task in tasks} | self._names_of_renamed(split.lo, tasks)
        altered = self._last_alterations(split.lo, binlog_end, names, server, row_image == "FULL")

        def redefined(table: str) -> frozenset[str]:
            return self._redefined_columns(split.lo, binlog_end, names[table])

        first_names = {task.table: names[task.table][0] for task in tasks if task.renamed_to}
        confined = self._confined(split.lo)
        settings = DecoderSettings(
            tables, collations, server.is_mariadb, altered, redefined, first_names, limited, confined
        )
        decoder = BinlogDecoder(tasks, settings, epoch, split.lo.get(GTID, ""), limit)
        with self.client.session("read") as connection:
            for event in self._events(connection, split.lo, self.options.server_id):
                decoder.feed(event)
                yield from decoder.items
                decoder.items.clear()
                if decoder.ended:
                    break
        decoder.end(split.limit[FILE])
        yield from decoder.items

    def _events(self, connection: Any, position: Position, server_id: int) -> Iterator[BinlogEvent]:
        """The protocol cannot request an offset beyond 4 GiB; no position has such an offset."""
        return read_events(connection, server_id, position[FILE], max(FIRST_EVENT_POS, int(position[POS])))

    def _probe(self, position: Position, limit: BinlogPosition, tables: Sequence[str]) -> StreamProbe:
        """With another server_id than the reader's, which the server would otherwise disconnect."""
        ours, gtid, seen = set(tables), position.get(GTID, ""), 0
        writes: set[Write] = set()
        with self.client.session("probe") as connection:
            for event in self._events(connection, position, self.options.server_id + 1):
                if event.end > event.start and BinlogPosition(file_number(event.file), event.start) >= limit:
                    break
                if event.type in GTIDS:
                    gtid = parse_gtid(event)
                statement = parse_statement(parse_query(event)) if event.type in binlog.QUERIES else None
                if _may_concern(event, statement, ours):
                    return StreamProbe(True, False, "")
                if statement and statement.write:
                    writes.add(statement.write)
                seen += event.end - event.start
                if seen > PROBE_BYTES:
                    return StreamProbe(True, False, "")
        confined = self._confined(position)
        if not all(confined(write) for write in writes):
            return StreamProbe(True, False, "")
        return StreamProbe(False, True, gtid)

    def _confined(self, lo: Position) -> Callable[[Write], bool]:
        """Whether a statement after ``lo`` that is logged as text writes rows of the table only that it names."""
        known = cache(lambda: self._known_objects(lo))

        def confined(write: Write) -> bool:
            if write.is_confined:
                return True
            objects = known()
            return objects is not None and objects.confine(write)

        return confined

    def _known_objects(self, lo: Position) -> KnownObjects | None:
        """What the catalog says of every moment since ``lo``; None if it cannot."""
        with self.client.session("objects") as connection:
            objects, end = read_objects(connection), read_binlog_end(connection, self.client)
        if objects is None:
            return None
        tables, limit = set(objects.plain_tables), BinlogPosition(file_number(end.file), end.pos)
        with self.client.session("definitions") as connection:
            for _, statement in self._statements(connection, lo, limit):
                if statement.effect is Effect.DEFINE:
                    return None
                if statement.effect is Effect.REPLACE_TABLE:
                    tables -= set(statement.affected(tables))
        return KnownObjects(frozenset(tables), objects.functions)

    def _names_of_renamed(self, lo: Position, tasks: Sequence[TableTask]) -> dict[str, tuple[str, ...]]:
        """The names after ``lo`` of each table whose renames are followed, first to last. Raises SourceUnavailable if
        tables are renamed at this time."""
        renamed = {task.table: task.control.identity if task.control else None for task in tasks if task.renamed_to}
        if not renamed:
            return {}
        identities = {table: identity for table, identity in renamed.items() if identity is not None}
        with self.client.session("renames") as connection:
            before = read_binlog_end(connection, self.client)
            names = names_now(connection, identities) or {}
            missing = sorted(renamed.keys() - {table for table, name in names.items() if exists(connection, name)})
            end = read_binlog_end(connection, self.client)
            statements = self._statements(connection, lo, BinlogPosition(file_number(end.file), end.pos))
            renames = [(position, rename) for position, statement in statements for rename in statement.renames]
        if missing or any(position >= BinlogPosition(file_number(before.file), before.pos) for position, _ in renames):
            raise renamed_meanwhile(missing, self.client.address)
        return {table: names_of(name, [rename for _, rename in renames]) for table, name in names.items()}

    def _statements(
        self, connection: Any, lo: Position, end: BinlogPosition
    ) -> Iterator[tuple[BinlogPosition, Statement]]:
        """Those before ``end``, with their positions."""
        for event in self._events(connection, lo, self.options.server_id + 1):
            position = BinlogPosition(file_number(event.file), event.start)
            if position >= end:
                return
            if event.type in binlog.QUERIES:
                yield position, parse_statement(parse_query(event))

    def _last_alterations(
        self,
        lo: Position,
        end: BinlogPosition,
        names: Mapping[str, Sequence[str]],
        server: ServerInfo,
        full_images: bool,
    ) -> dict[str, BinlogPosition] | None:
        """The position of the last ALTER of each of our tables, up to ``end``, where the catalog was read. None if the
        binlog has column names and full images: then these positions are not needed. ``names``: of each table."""
        tables = {name: table for table, some in names.items() for name in some}
        altered: dict[str, BinlogPosition] = {}
        with self.client.session("definitions") as connection:
            for event in self._events(connection, lo, self.options.server_id):
                position = BinlogPosition(file_number(event.file), event.start)
                if position >= end:
                    break
                ours = event.type == binlog.TABLE_MAP and table_id_and_name(event.body)[1] in tables
                if full_images and ours and _has_names(event.body, server):
                    return None
                if event.type in binlog.QUERIES:
                    statement = parse_statement(parse_query(event))
                    if statement.effect in (Effect.ALTER, Effect.REPLACE_TABLE):
                        altered |= dict.fromkeys((tables[name] for name in statement.affected(tables)), position)
        return altered

    def _redefined_columns(self, lo: Position, end: BinlogPosition, names: Sequence[str]) -> frozenset[str]:
        """The columns, in lower case, that statements before ``end`` redefine. ``names``: of the table."""
        columns: set[str] = set()
        with self.client.session("definitions") as connection:
            for _, statement in self._statements(connection, lo, end):
                if statement.effect is Effect.ALTER and statement.affected(names):
                    columns |= set(redefined_columns(statement.clauses))
        return frozenset(columns)

    def _require_available(self, connection: Any, position: Position) -> None:
        """Raises PositionLost if no binlog file of the server contains the position."""
        files = read_binlog_files(connection)
        file, pos = position[FILE], int(position[POS])
        if file not in files:
            first = next(iter(files), "none")
            raise self.client.position_lost(f"{file} does not exist; the oldest file is {first}")
        if pos > files[file]:
            raise self.client.position_lost(
                f"{file} ends at {files[file]}, before our position {pos}: it is not the file that was read"
            )

    def _require_same_binlog(self, connection: Any, server: ServerInfo, position: Position) -> None:
        """The same transaction must end at our position: a server that was reset reuses the file names. Raises
        PositionLost."""
        gtid = position.get(GTID, "")
        if not gtid:
            return
        if server.is_mariadb:
            found = _gtid_at(connection, server, position[FILE], int(position[POS]))
            same = set(gtid.split(",")) <= set(found.split(","))
        else:
            ((same,),) = fetch_all(connection, "SELECT GTID_SUBSET(%s, @@GLOBAL.gtid_executed)", (gtid,))
            found = "not in gtid_executed"
        if not same:
            raise self.client.position_lost(
                f"transaction {gtid} does not end at {position[FILE]}:{position[POS]} ({found}): the binlog was reset"
            )


def _limited(
    connection: Any, tasks: Sequence[TableTask], tables: Mapping[str, CatalogTable], server: ServerInfo
) -> frozenset[str]:
    of_task = {task.table: tables[task.name_in_source] for task in tasks if task.name_in_source in tables}
    limited = limited_tables(connection, of_task.values(), server.is_mariadb)
    return frozenset(name for name, table in of_task.items() if table.schema.table in limited)


def _has_names(body: bytes, server: ServerInfo) -> bool:
    try:
        return parse_table_map(body, server.is_mariadb).has_names
    except binlog.Malformed:
        return False


def _gtid_at(connection: Any, server: ServerInfo, file: str, pos: int) -> str:
    """The last GTID of each domain up to a position of MariaDB. MySQL has no function for this: all GTIDs so far."""
    if not server.is_mariadb:
        ((executed,),) = fetch_all(connection, "SELECT @@GLOBAL.gtid_executed")
        return str(executed).replace("\n", "")
    ((gtids,),) = fetch_all(connection, "SELECT BINLOG_GTID_POS(%s, %s)", (file, pos))
    return str(gtids or "")


def _may_concern(event: BinlogEvent, statement: Statement | None, ours: Iterable[str]) -> bool:
    """``statement``: of a query. It may also concern tables that it does not name."""
    if event.type == binlog.TABLE_MAP:
        return table_id_and_name(event.body)[1] in ours
    if statement is None:
        return event.type not in binlog.HARMLESS
    if statement.effect is Effect.NONE or (statement.effect is Effect.ALTER and not may_change(statement.clauses)):
        return False
    return bool(statement.affected(list(ours)))
