"""The binlog as a stream: looked at on the worker, read window by window. The server keeps it by its own clock."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from airflow_cdc_provider.connectors.source import RetainedLog, SourceStatus, StreamItem, StreamSplit
from airflow_cdc_provider.connectors.sources.mysql import binlog
from airflow_cdc_provider.connectors.sources.mysql.alterations import may_change, redefined_columns
from airflow_cdc_provider.connectors.sources.mysql.binlog import BinlogEvent, events, gtid_of, query_of
from airflow_cdc_provider.connectors.sources.mysql.catalog import (
    ServerFacts,
    ask,
    read_collations,
    read_end,
    read_files,
    read_server,
    read_tables,
    variables,
)
from airflow_cdc_provider.connectors.sources.mysql.client import MysqlClient
from airflow_cdc_provider.connectors.sources.mysql.decode import BinlogDecoder, DecoderSettings
from airflow_cdc_provider.connectors.sources.mysql.options import MysqlOptions
from airflow_cdc_provider.connectors.sources.mysql.positions import (
    FILE,
    GTID,
    HEAD_BYTES,
    POS,
    BinlogPosition,
    binlog_position,
    number_of,
    position_of,
)
from airflow_cdc_provider.connectors.sources.mysql.statements import Means, meaning
from airflow_cdc_provider.connectors.sources.mysql.table_map import head_of, parse_table_map
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.log.positions import Position

LOOK_BYTES = 64 << 20
"""How much of the binlog a worker looks through for changes of our tables. Where there is more, a run finds out."""

IDLE_BYTES = 16 << 20
"""How far others must have written before an empty window moves our position on."""

TELLING = frozenset({binlog.XA_PREPARE, binlog.TRANSACTION_PAYLOAD, binlog.INCIDENT})
QUERIES = frozenset({binlog.QUERY, binlog.MARIADB_QUERY_COMPRESSED})
GTIDS = frozenset({binlog.GTID, binlog.MARIADB_GTID})


@dataclass(frozen=True)
class StreamProbe:
    """``anything`` for our tables; ``whole``: seen to the end, which is behind the transaction ``gtid``."""

    anything: bool
    whole: bool
    gtid: str


class Binlog:
    def __init__(self, client: MysqlClient, options: MysqlOptions) -> None:
        self.client = client
        self.options = options

    def open(self) -> Position:
        with self.client.session("open") as connection:
            end = read_end(connection, self.client)
            return position_of(end.file, end.pos, _gtid_at(connection, read_server(connection), end.file, end.pos))

    def status(self, position: Position, tables: Sequence[str]) -> SourceStatus:
        with self.client.session("status") as connection:
            self._served(connection, position)
            end = read_end(connection, self.client)
            here, limit = binlog_position(position), BinlogPosition(number_of(end.file), end.pos)
            if limit <= here:
                return SourceStatus(False, position)
            self._same(connection, read_server(connection), position)
        look = self._look(position, limit, tables)
        upto = position_of(end.file, end.pos, look.gtid if look.whole else "")
        far = limit.number > here.number or limit.pos - here.pos >= IDLE_BYTES
        return SourceStatus(look.anything, upto, upto if far and look.whole and not look.anything else None)

    def retained_log(self, position: Position | None) -> RetainedLog:
        """Raises PositionLost where the position is no longer served."""
        with self.client.session("retained_log") as connection:
            if position is not None:
                self._served(connection, position)
            files = read_files(connection)
        oldest = {FILE: next(iter(files)), POS: str(HEAD_BYTES)}
        with self.client.session("retained_log") as connection:
            told = self._events(connection, oldest, self.options.server_id + 1)
            made = next(event.timestamp for event in told if event.type == binlog.FORMAT)
        since = datetime.fromtimestamp(made, UTC)
        if position is None:
            return RetainedLog(since=since)
        here = binlog_position(position)
        return RetainedLog(
            sum(size for name, size in files.items() if number_of(name) >= here.number) - here.pos, since
        )

    def read(self, partition: StreamSplit, tasks: Sequence[TableTask], epoch: int) -> Iterator[StreamItem]:
        limit = binlog_position(partition.limit)
        with self.client.session("describe") as connection:
            self._served(connection, partition.lo)
            server = read_server(connection)
            self._same(connection, server, partition.lo)
            found = read_tables(connection, self.options.databases)
            collations = read_collations(connection, server)
            end = read_end(connection, self.client)
            whole = variables(connection, "binlog_row_image").get("binlog_row_image", "FULL").upper() == "FULL"
        upto = BinlogPosition(number_of(end.file), end.pos)
        altered = self._altered(partition.lo, upto, tasks, server, whole)

        def redefined(table: str) -> frozenset[str]:
            return self._redefined(partition.lo, upto, table)

        setting = DecoderSettings(found, collations, server.is_mariadb, altered, redefined)
        decoder = BinlogDecoder(tasks, setting, epoch, partition.lo.get(GTID, ""), limit)
        with self.client.session("read") as connection:
            for event in self._events(connection, partition.lo, self.options.server_id):
                decoder.feed(event)
                yield from decoder.items
                decoder.items.clear()
                if decoder.ended:
                    break
        decoder.end(partition.limit[FILE])
        yield from decoder.items

    def _events(self, connection: Any, position: Position, server_id: int) -> Iterator[BinlogEvent]:
        """The protocol cannot ask for a place behind 4 GiB; none is ever told as a position."""
        return events(connection, server_id, position[FILE], max(HEAD_BYTES, int(position[POS])))

    def _look(self, position: Position, limit: BinlogPosition, tables: Sequence[str]) -> StreamProbe:
        """As another replica than the one that reads, so that it is not sent away."""
        ours, gtid, seen = set(tables), position.get(GTID, ""), 0
        with self.client.session("probe") as connection:
            for event in self._events(connection, position, self.options.server_id + 1):
                if event.end > event.start and BinlogPosition(number_of(event.file), event.start) >= limit:
                    break
                if event.type in GTIDS:
                    gtid = gtid_of(event)
                if _tells(event, ours):
                    return StreamProbe(True, False, "")
                seen += event.end - event.start
                if seen > LOOK_BYTES:
                    return StreamProbe(True, False, "")
        return StreamProbe(False, True, gtid)

    def _altered(
        self, lo: Position, end: BinlogPosition, tasks: Sequence[TableTask], server: ServerFacts, whole_images: bool
    ) -> dict[str, BinlogPosition] | None:
        """Where our tables were altered last, up to what the catalogue knows. None where the binlog tells names itself,
        and all columns of a new row: then nobody needs to know."""
        names = [task.table for task in tasks]
        altered: dict[str, BinlogPosition] = {}
        with self.client.session("definitions") as connection:
            for event in self._events(connection, lo, self.options.server_id):
                place = BinlogPosition(number_of(event.file), event.start)
                if place >= end:
                    break
                ours = event.type == binlog.TABLE_MAP and head_of(event.body)[1] in names
                if whole_images and ours and _is_named(event.body, server):
                    return None
                if event.type in QUERIES:
                    statement = meaning(query_of(event))
                    if statement.means in (Means.ALTERS, Means.REPLACES):
                        altered |= dict.fromkeys(statement.of(names), place)
        return altered

    def _redefined(self, lo: Position, end: BinlogPosition, table: str) -> frozenset[str]:
        """The columns, in small letters, that statements up to ``end`` give another definition."""
        found: set[str] = set()
        with self.client.session("definitions") as connection:
            for event in self._events(connection, lo, self.options.server_id + 1):
                if BinlogPosition(number_of(event.file), event.start) >= end:
                    break
                if event.type in QUERIES:
                    statement = meaning(query_of(event))
                    if statement.means is Means.ALTERS and statement.of([table]):
                        found |= set(redefined_columns(statement.clauses))
        return frozenset(found)

    def _served(self, connection: Any, position: Position) -> None:
        """Raises PositionLost where the server's files lack our position."""
        files = read_files(connection)
        file, pos = position[FILE], int(position[POS])
        if file not in files:
            first = next(iter(files), "none")
            raise self.client.lost(f"{file} is gone; the oldest file is {first}")
        if pos > files[file]:
            raise self.client.lost(f"{file} ends at {files[file]}, before our position {pos}: it is another one")

    def _same(self, connection: Any, server: ServerFacts, position: Position) -> None:
        """The transaction that ended at our position must still be the one there: a server that was reset writes files
        of the same names. Raises PositionLost."""
        gtid = position.get(GTID, "")
        if not gtid:
            return
        if server.is_mariadb:
            there = _gtid_at(connection, server, position[FILE], int(position[POS]))
            known = set(gtid.split(",")) <= set(there.split(","))
        else:
            ((known,),) = ask(connection, "SELECT GTID_SUBSET(%s, @@GLOBAL.gtid_executed)", (gtid,))
            there = "not in gtid_executed"
        if not known:
            raise self.client.lost(
                f"transaction {gtid} does not end at {position[FILE]}:{position[POS]} ({there}): the binlog was reset"
            )


def _is_named(body: bytes, server: ServerFacts) -> bool:
    try:
        return parse_table_map(body, server.is_mariadb).is_named
    except binlog.Malformed:
        return False


def _gtid_at(connection: Any, server: ServerFacts, file: str, pos: int) -> str:
    """The last transactions up to a place, one for each domain; MySQL does not tell them by place."""
    if not server.is_mariadb:
        return ""
    ((told,),) = ask(connection, "SELECT BINLOG_GTID_POS(%s, %s)", (file, pos))
    return str(told or "")


def _tells(event: BinlogEvent, ours: Iterable[str]) -> bool:
    """Whether the event might be about one of our tables."""
    if event.type == binlog.TABLE_MAP:
        return head_of(event.body)[1] in ours
    if event.type not in QUERIES:
        return event.type in TELLING
    statement = meaning(query_of(event))
    if statement.means is Means.NOTHING or (statement.means is Means.ALTERS and not may_change(statement.clauses)):
        return False
    return bool(statement.of(list(ours)))
