"""The replication slot: made once, looked at cheaply, read window by window, advanced last."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from airflow_cdc_provider.connectors.source import RetainedLog, SourceStatus, StreamItem, StreamSplit
from airflow_cdc_provider.connectors.sources.postgres import messages
from airflow_cdc_provider.connectors.sources.postgres.catalog import read_catalogue
from airflow_cdc_provider.connectors.sources.postgres.client import PostgresClient
from airflow_cdc_provider.connectors.sources.postgres.create_slots import PLUGIN, create_main_slot
from airflow_cdc_provider.connectors.sources.postgres.decode import ROW_LETTERS, PgoutputDecoder
from airflow_cdc_provider.connectors.sources.postgres.options import PostgresOptions
from airflow_cdc_provider.connectors.sources.postgres.positions import (
    WAL_PAGE_BYTES,
    WAL_SEGMENT_BYTES,
    lsn_of,
    lsn_text,
    parse_lsn,
    position_of,
)
from airflow_cdc_provider.connectors.sources.postgres.publication import (
    ensure_members,
    no_table,
    outside,
    quoted,
    require_publication,
)
from airflow_cdc_provider.connectors.sources.postgres.replication import stream_messages
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.errors import CheckFailed, PositionLost, Problem, SourceUnavailable
from airflow_cdc_provider.core.failpoints import failpoint
from airflow_cdc_provider.core.log.positions import Position

if TYPE_CHECKING:
    from psycopg import Connection
    from psycopg.errors import Diagnostic

WAIT_FOR_SLOT_S = 10.0

SLOT = """
SELECT s.confirmed_flush_lsn::text, s.restart_lsn::text, coalesce(s.wal_status, 'lost'), s.active_pid,
       a.application_name
FROM pg_replication_slots s LEFT JOIN pg_stat_activity a ON a.pid = s.active_pid
WHERE s.slot_name = %s AND s.slot_type = 'logical' AND s.plugin = 'pgoutput' AND s.database = current_database()
"""

PEEK = """
SELECT lsn, xid, data FROM pg_logical_slot_peek_binary_changes(
    %(slot)s, %(limit)s, %(changes)s, 'proto_version', '1', 'publication_names', %(publication)s)
"""

# The message of a commit carries the end of the commit record as its LSN. One commit tells that there was any at all.
NEWS = f"""
WITH peeked AS MATERIALIZED ({PEEK}),
     late AS (SELECT xid FROM peeked WHERE get_byte(data, 0) = {messages.COMMIT} AND lsn > %(position)s::pg_lsn)
SELECT DISTINCT CASE WHEN get_byte(data, 0) IN ({messages.RELATION}, {messages.TRUNCATE}) THEN data
                     ELSE substr(data, 1, 5) END
FROM peeked
WHERE get_byte(data, 0) = {messages.RELATION}
   OR xid IN (SELECT xid FROM late)
      AND get_byte(data, 0) IN ({messages.INSERT}, {messages.UPDATE}, {messages.DELETE}, {messages.TRUNCATE})
UNION ALL
(SELECT data FROM peeked WHERE get_byte(data, 0) = {messages.COMMIT} LIMIT 1)
"""


TRUNCATES = f"""
SELECT data FROM ({PEEK}) peeked WHERE get_byte(data, 0) = {messages.TRUNCATE} AND lsn > %(position)s::pg_lsn
"""

# A publication whose row is younger than the slot's horizon was changed in what the slot has still to tell.
ALTERED = """
SELECT age(p.xmin) <= age(s.catalog_xmin)
FROM pg_publication p, pg_replication_slots s WHERE p.pubname = %s AND s.slot_name = %s
"""
WHOLE = f"SELECT count(*) FROM ({PEEK}) peeked"
PASSED_OVER = "55000"
"""Since version 18 changes made while the publication was away, dropped or under another name, raise nothing: the
server passes over them with a warning of this code. Older ones fail."""


@dataclass(frozen=True)
class Slot:
    """``holder`` is the application name of the session that uses it now, empty when nobody does."""

    confirmed: int
    restart: int
    wal_status: str
    holder_pid: int | None
    holder: str


class ReplicationSlot:
    def __init__(self, client: PostgresClient, options: PostgresOptions) -> None:
        self.client = client
        self.options = options

    def open(self, tables: Sequence[str]) -> Position:
        with self.client.session("open") as connection:
            catalogue = read_catalogue(connection, tables)
            missing = [table for table in tables if table not in catalogue.tables]
            if missing:
                raise CheckFailed(*(no_table(table, self.client.place) for table in missing))
            described = [catalogue.tables[table] for table in tables]
            ensure_members(connection, self.options.publication, described, self.client.place)
            if self.look(connection) is not None:
                return position_of(self._existing(connection).confirmed)
            return position_of(create_main_slot(self.client, connection, self.options.slot))

    def status(self, position: Position, tables: Sequence[str]) -> SourceStatus:
        """The publication is asked behind the limit: a table that is in it then, by the membership that it had, was in
        it up to the limit."""
        with self.client.session("status") as connection:
            self._served(connection, position)
            require_publication(connection, self.options.publication, tables, self.client.place)
            self._claim(connection, take_over=False)
            flushed = parse_lsn(_one(connection, "SELECT pg_current_wal_flush_lsn()::text"))
            lo = lsn_of(position)
            with self._decoded():
                anything = flushed > lo and self._anything(connection, lo, flushed, set(tables))
                if anything:
                    self._require_whole(connection, flushed)
            # A record may straddle a page, so an end of page need not be an end of record; any other place is one.
            far = flushed - lo >= WAL_SEGMENT_BYTES and flushed % WAL_PAGE_BYTES != 0
            idle = position_of(flushed) if far and not anything else None
            left_out = outside(connection, self.options.publication, tables, self.client.replicator, self.client.place)
            return SourceStatus(anything, position_of(flushed), idle, left_out)

    def truncates(self, connection: Connection[Any], position: Position, oid: int) -> bool:
        """Whether a TRUNCATE of the table is among the changes behind ``position``."""
        self._claim(connection, take_over=False)
        flushed = parse_lsn(_one(connection, "SELECT pg_current_wal_flush_lsn()::text"))
        parameters = {**self._peek(flushed, None), "position": lsn_text(lsn_of(position))}
        with self._decoded():
            found = connection.execute(TRUNCATES.encode(), parameters)
        return any(oid in messages.parse_truncate(bytes(data)).oids for (data,) in found)

    def read(self, partition: StreamSplit, tables: Sequence[TableTask], epoch: int) -> Iterator[StreamItem]:
        lo, limit = lsn_of(partition.lo), lsn_of(partition.limit)
        with self.client.session("read", autocommit=False) as connection:
            catalogue = read_catalogue(connection, [task.table for task in tables])
            self._served(connection, partition.lo)
            require_publication(connection, self.options.publication, list(catalogue.tables), self.client.place)
            connection.commit()
            self._claim(connection, take_over=True)
        decoder = PgoutputDecoder(tables, catalogue, epoch, lo, limit)
        for received in self._messages(lo, limit):
            decoder.feed(received)
            yield from decoder.items
            decoder.items.clear()
            if decoder.ended:
                break
        decoder.end()
        yield from decoder.items

    def acknowledge(self, position: Position) -> None:
        with self.client.session("acknowledge") as connection:
            slot = self._existing(connection)
            if lsn_of(position) <= slot.confirmed:
                return
            self._claim(connection, take_over=False)
            failpoint("ack.before")
            connection.execute(
                "SELECT pg_replication_slot_advance(%s, %s)", (self.options.slot, lsn_text(lsn_of(position)))
            )
            failpoint("ack.after")

    def drop(self) -> None:
        with self.client.session("drop") as connection:
            if self.look(connection) is None:
                return
            self._claim(connection, take_over=True)
            connection.execute("SELECT pg_drop_replication_slot(%s)", (self.options.slot,))

    def retained_log(self) -> RetainedLog:
        with self.client.session("retained_log") as connection:
            slot = self.look(connection)
            if slot is None or not slot.restart:
                return RetainedLog()
            end = parse_lsn(_one(connection, "SELECT pg_current_wal_flush_lsn()::text"))
            return RetainedLog(max(0, end - slot.restart))

    def look(self, connection: Connection[Any]) -> Slot | None:
        row = connection.execute(SLOT, (self.options.slot,)).fetchone()
        if row is None:
            return None
        confirmed, restart, wal_status, pid, holder = row
        return Slot(parse_lsn(confirmed or "0/0"), parse_lsn(restart or "0/0"), wal_status, pid, holder or "")

    def _existing(self, connection: Connection[Any]) -> Slot:
        slot = self.look(connection)
        if slot is None:
            raise self._lost(f"no logical slot {self.options.slot} of {PLUGIN} in this database")
        if slot.wal_status == "lost":
            raise self._lost(f"slot {self.options.slot} is invalid: the server removed WAL that it needs")
        return slot

    def _served(self, connection: Connection[Any], position: Position) -> Slot:
        slot = self._existing(connection)
        if slot.confirmed > lsn_of(position):
            raise self._lost(
                f"slot {self.options.slot} stands at {lsn_text(slot.confirmed)}, beyond {lsn_text(lsn_of(position))}: "
                "somebody else read from it"
            )
        return slot

    def _lost(self, found: str) -> PositionLost:
        return PositionLost(
            Problem(
                "SRC013",
                "the source no longer serves our position",
                where=self.client.place,
                found=found,
                allowed="a slot that only this replicator reads",
                data="the target tables stand at their cursors; changes after them are not in the log",
                do=f"airflow cdc resync {self.client.replicator}",
            )
        )

    def _claim(self, connection: Connection[Any], *, take_over: bool) -> None:
        """Wait until nobody uses the slot. A session of ours whose process is gone is ended; with ``take_over`` (the
        caller owns the stream) every session of ours. One on another host is waited for, then ended."""
        give_up = time.monotonic() + WAIT_FOR_SLOT_S
        while (slot := self.look(connection)) and slot.holder_pid:
            ours = slot.holder.startswith(self.client.session_prefix)
            waited = time.monotonic() > give_up
            alive = _alive_here(slot.holder)
            if ours and (take_over or alive is False or (waited and alive is None)):
                connection.execute("SELECT pg_terminate_backend(%s, 5000)", (slot.holder_pid,))
            elif waited:
                raise SourceUnavailable(
                    Problem(
                        "SRC015",
                        f"slot {self.options.slot} is in use",
                        where=self.client.place,
                        found=f"process {slot.holder_pid} ({slot.holder or 'no application name'})",
                        do="end that session, or give this replicator a slot of its own",
                    )
                )
            time.sleep(0.05)

    def _peek(self, limit: int, changes: int | None) -> dict[str, object]:
        return {
            "slot": self.options.slot,
            "limit": lsn_text(limit),
            "changes": changes,
            "publication": quoted(self.options.publication),
        }

    def _anything(self, connection: Connection[Any], lo: int, limit: int, tables: set[str]) -> bool:
        """The first transaction often answers, or that there is none; else all are looked at, on the server."""
        for changes in (1, None):
            parameters = {**self._peek(limit, changes), "position": lsn_text(lo)}
            found = [bytes(row[0]) for row in connection.execute(NEWS, parameters)]
            if not found or touches(found, tables):
                return bool(found)
        return False

    def _require_whole(self, connection: Connection[Any], limit: int) -> None:
        """Raises PositionLost where changes would be passed over. It takes a look at all of them, so only where the
        publication was altered since the slot stood still."""
        row = connection.execute(ALTERED, (self.options.publication, self.options.slot)).fetchone()
        if row and row[0]:
            skipped = _warnings(connection)
            connection.execute(WHOLE.encode(), self._peek(limit, None))
            if skipped:
                raise self._passed_over()

    @contextmanager
    def _decoded(self) -> Iterator[None]:
        """Up to version 17 the server fails at the first change that was made while the publication was away."""
        from psycopg.errors import UndefinedObject

        try:
            yield
        except UndefinedObject as error:
            raise self._passed_over() from error

    def _passed_over(self) -> PositionLost:
        return self._lost(f"changes were made while there was no publication {self.options.publication}: they are gone")

    def _messages(self, lo: int, limit: int) -> Iterator[list[tuple[int, bytes]]]:
        slot, publications = self.options.slot, quoted(self.options.publication)
        with self.client.session("read", replication=True) as connection, self._decoded():
            skipped = _warnings(connection)
            for received in stream_messages(connection, slot, publications, lo, limit):
                if skipped:
                    raise self._passed_over()
                yield received


def touches(found: Sequence[bytes], tables: set[str]) -> bool:
    """Whether one of the messages that NEWS gives back, rows cut to their head, is a change of one of the tables."""
    relations = [messages.parse_relation(data) for data in found if data[0] == messages.RELATION]
    ours = {relation.oid for relation in relations if relation.table in tables}
    truncated = [messages.parse_truncate(data).oids for data in found if data[0] == messages.TRUNCATE]
    changed = {int.from_bytes(data[1:5]) for data in found if data[0] in ROW_LETTERS}
    return not ours.isdisjoint(changed.union(*truncated))


def _alive_here(application_name: str) -> bool | None:
    """Whether the process behind one of our sessions lives; None where this host cannot tell."""
    host, _, pid = application_name.rpartition("@")[2].rpartition(".")
    if host != socket.gethostname()[:20] or not pid.isdecimal():
        return None
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _warnings(connection: Connection[Any]) -> list[str]:
    """Filled while the session is used: the server's words for changes that it has passed over."""
    told: list[str] = []

    def keep(warning: Diagnostic) -> None:
        if warning.sqlstate == PASSED_OVER:
            told.append(warning.message_primary or "")

    connection.add_notice_handler(keep)
    return told


def _one(connection: Connection[Any], query: str) -> str:
    row = connection.execute(query.encode()).fetchone()
    assert row is not None
    return str(row[0])
