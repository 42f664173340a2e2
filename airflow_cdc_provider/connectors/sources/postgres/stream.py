"""The replication slot: created once, inspected cheaply, read window by window, advanced last."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from airflow_cdc_provider.connectors.source import SourceStatus, StreamItem, StreamSplit
from airflow_cdc_provider.connectors.sources.postgres import messages
from airflow_cdc_provider.connectors.sources.postgres.added_tables import ensure_members
from airflow_cdc_provider.connectors.sources.postgres.catalog import read_catalog, read_clock_and_end, table_oids
from airflow_cdc_provider.connectors.sources.postgres.client import PostgresClient
from airflow_cdc_provider.connectors.sources.postgres.create_slots import PLUGIN, create_main_slot
from airflow_cdc_provider.connectors.sources.postgres.decode import HEAD_BYTES, ROW_LETTERS, PgoutputDecoder
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
    no_table,
    quoted,
    require_publication,
    unpublished,
)
from airflow_cdc_provider.connectors.sources.postgres.replication import stream_messages
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.errors import PositionLost, SourceUnavailable, raise_problems
from airflow_cdc_provider.core.failpoints import failpoint
from airflow_cdc_provider.core.log.positions import Position
from airflow_cdc_provider.core.log.retained_log import RetainedLog

if TYPE_CHECKING:
    from psycopg import Connection
    from psycopg.errors import Diagnostic

WAIT_FOR_SLOT_S = 10.0

SLOT = """
SELECT s.confirmed_flush_lsn::text, s.restart_lsn::text, coalesce(s.wal_status, 'lost'), s.active_pid,
       a.application_name, s.safe_wal_size
FROM pg_replication_slots s LEFT JOIN pg_stat_activity a ON a.pid = s.active_pid
WHERE s.slot_name = %s AND s.slot_type = 'logical' AND s.plugin = 'pgoutput' AND s.database = current_database()
"""

PEEK = """
SELECT lsn, xid, data FROM pg_logical_slot_peek_binary_changes(
    %(slot)s, %(limit)s, %(changes)s, 'proto_version', '1', 'publication_names', %(publication)s)
"""

# The LSN of a commit message is the end of the commit record. One commit is returned to show that there was any.
PENDING_CHANGES = f"""
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
SELECT xid::text, data FROM ({PEEK}) peeked WHERE get_byte(data, 0) = {messages.TRUNCATE} AND lsn > %(position)s::pg_lsn
"""

# A publication whose row is newer than the slot's horizon was altered within the WAL that the slot has yet to decode.
PUBLICATION_ALTERED = """
SELECT age(p.xmin) <= age(s.catalog_xmin)
FROM pg_publication p, pg_replication_slots s WHERE p.pubname = %s AND s.slot_name = %s
"""
DECODE_ALL = f"SELECT count(*) FROM ({PEEK}) peeked"
SKIPPED_CHANGES = "55000"
"""Changes made while the publication was dropped or had another name: servers since version 18 skip them with a warning
of this SQLSTATE, older ones fail."""


@dataclass(frozen=True)
class Slot:
    """``holder`` is the application name of the session that uses the slot now, empty if there is none. ``free_bytes``:
    WAL that can be written before the server removes what the slot requires; None without a limit."""

    confirmed: int
    restart: int
    wal_status: str
    holder_pid: int | None
    holder: str
    free_bytes: int | None


class ReplicationSlot:
    def __init__(self, client: PostgresClient, options: PostgresOptions) -> None:
        self.client = client
        self.options = options

    def open(self, tables: Sequence[str]) -> Position:
        with self.client.session("open") as connection:
            catalog = read_catalog(connection, tables)
            missing = [table for table in tables if table not in catalog.tables]
            raise_problems(no_table(table, self.client.location) for table in missing)
            members = [catalog.tables[table] for table in tables]
            ensure_members(connection, self.options.publication, members, self.client.replicator, self.client.location)
            if self._find(connection) is not None:
                return position_of(self._existing(connection).confirmed)
            return position_of(create_main_slot(self.client, connection, self.options.slot))

    def status(self, position: Position, tables: Sequence[str]) -> SourceStatus:
        """The publication is queried after the limit is taken: a table that is in it then, with the same membership,
        was in it up to the limit."""
        with self.client.session("status") as connection:
            self._require_served(connection, position)
            require_publication(connection, self.options.publication, tables, self.client.location)
            self._claim(connection, take_over=False)
            at, flushed = read_clock_and_end(connection)
            lo = lsn_of(position)
            with self._decoding_errors():
                has_changes = flushed > lo and self._has_changes(connection, lo, flushed, tables)
                if has_changes:
                    self._require_complete(connection, flushed)
            # The end of a page may be inside a record that spans two pages; every other flush position ends a record.
            far = flushed - lo >= WAL_SEGMENT_BYTES and flushed % WAL_PAGE_BYTES != 0
            idle = position_of(flushed) if far and not has_changes else None
            outside = unpublished(
                connection, self.options.publication, tables, self.client.replicator, self.client.location
            )
            return SourceStatus(has_changes, position_of(flushed), idle, outside, at)

    def truncates(self, connection: Connection[Any], position: Position, oid: int) -> set[str]:
        """The transactions after ``position`` with a TRUNCATE of the table."""
        self._claim(connection, take_over=False)
        flushed = parse_lsn(_scalar(connection, "SELECT pg_current_wal_flush_lsn()::text"))
        parameters = {**self._peek(flushed, None), "position": lsn_text(lsn_of(position))}
        with self._decoding_errors():
            truncates = connection.execute(TRUNCATES.encode(), parameters)
        return {xid for xid, data in truncates if oid in messages.parse_truncate(bytes(data)).oids}

    def read(self, split: StreamSplit, tables: Sequence[TableTask], epoch: int) -> Iterator[StreamItem]:
        lo, limit = lsn_of(split.lo), lsn_of(split.limit)
        with self.client.session("read", autocommit=False) as connection:
            catalog = read_catalog(connection, [task.name_in_source for task in tables])
            self._require_served(connection, split.lo)
            require_publication(connection, self.options.publication, list(catalog.tables), self.client.location)
            connection.commit()
            self._claim(connection, take_over=True)
        decoder = PgoutputDecoder(tables, catalog, epoch, lo, limit)
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
            if self._find(connection) is None:
                return
            self._claim(connection, take_over=True)
            connection.execute("SELECT pg_drop_replication_slot(%s)", (self.options.slot,))

    def retained_log(self) -> RetainedLog:
        with self.client.session("retained_log") as connection:
            slot = self._find(connection)
            if slot is None or not slot.restart:
                return RetainedLog()
            end = parse_lsn(_scalar(connection, "SELECT pg_current_wal_flush_lsn()::text"))
            return RetainedLog(max(0, end - slot.restart), free_bytes=slot.free_bytes, end=end)

    def _find(self, connection: Connection[Any]) -> Slot | None:
        row = connection.execute(SLOT, (self.options.slot,)).fetchone()
        if row is None:
            return None
        confirmed, restart, wal_status, pid, holder, free_bytes = row
        return Slot(
            parse_lsn(confirmed or "0/0"), parse_lsn(restart or "0/0"), wal_status, pid, holder or "", free_bytes
        )

    def _existing(self, connection: Connection[Any]) -> Slot:
        slot = self._find(connection)
        if slot is None:
            raise self._lost(f"no logical slot {self.options.slot} of {PLUGIN} in this database")
        if slot.wal_status == "lost":
            raise self._lost(f"slot {self.options.slot} is invalid: the server removed WAL that the slot requires")
        return slot

    def _require_served(self, connection: Connection[Any], position: Position) -> None:
        slot = self._existing(connection)
        if slot.confirmed > lsn_of(position):
            raise self._lost(
                f"slot {self.options.slot} is at {lsn_text(slot.confirmed)}, beyond {lsn_text(lsn_of(position))}: "
                "another program advanced it"
            )

    def _lost(self, found: str) -> PositionLost:
        return PositionLost.of(
            "SRC013",
            "the source no longer serves our position",
            where=self.client.location,
            found=found,
            allowed="a slot that no other program reads",
            data="the target tables remain at their cursors; later changes are not in the change log",
            do=f"airflow cdc resync {self.client.replicator}",
        )

    def _claim(self, connection: Connection[Any], *, take_over: bool) -> None:
        """Wait until no session uses the slot. A session of ours is terminated if its process has ended, or with
        ``take_over`` (the caller owns the stream). One on another host is terminated after a wait."""
        give_up = time.monotonic() + WAIT_FOR_SLOT_S
        while (slot := self._find(connection)) and slot.holder_pid:
            ours = slot.holder.startswith(self.client.session_prefix)
            timed_out = time.monotonic() > give_up
            alive = _is_process_alive(slot.holder)
            if ours and (take_over or alive is False or (timed_out and alive is None)):
                connection.execute("SELECT pg_terminate_backend(%s, 5000)", (slot.holder_pid,))
            elif timed_out:
                raise SourceUnavailable.of(
                    "SRC015",
                    f"slot {self.options.slot} is in use",
                    where=self.client.location,
                    found=f"process {slot.holder_pid} ({slot.holder or 'no application name'})",
                    do="end that session, or give this replicator a slot of its own",
                )
            time.sleep(0.05)

    def _peek(self, limit: int, changes: int | None) -> dict[str, object]:
        return {
            "slot": self.options.slot,
            "limit": lsn_text(limit),
            "changes": changes,
            "publication": quoted(self.options.publication),
        }

    def _has_changes(self, connection: Connection[Any], lo: int, limit: int, tables: Sequence[str]) -> bool:
        """The first transaction often suffices, or that there is none; otherwise the server decodes all of them."""
        oids = table_oids(connection, tables)
        for changes in (1, None):
            parameters = {**self._peek(limit, changes), "position": lsn_text(lo)}
            pending = [bytes(row[0]) for row in connection.execute(PENDING_CHANGES, parameters)]
            if not pending or _touches(pending, set(tables), oids):
                return bool(pending)
        return False

    def _require_complete(self, connection: Connection[Any], limit: int) -> None:
        """Raises PositionLost if the server would skip changes. This decodes all of them, so it is done only if the
        publication was altered since the slot was advanced."""
        row = connection.execute(PUBLICATION_ALTERED, (self.options.publication, self.options.slot)).fetchone()
        if row and row[0]:
            skipped = _collect_warnings(connection)
            connection.execute(DECODE_ALL.encode(), self._peek(limit, None))
            if skipped:
                raise self._changes_skipped()

    @contextmanager
    def _decoding_errors(self) -> Iterator[None]:
        """Up to version 17 the server fails at the first change that was made while the publication did not exist."""
        from psycopg.errors import UndefinedObject

        try:
            yield
        except UndefinedObject as error:
            raise self._changes_skipped() from error

    def _changes_skipped(self) -> PositionLost:
        return self._lost(f"changes made while publication {self.options.publication} did not exist are not available")

    def _messages(self, lo: int, limit: int) -> Iterator[list[tuple[int, bytes]]]:
        slot, publications = self.options.slot, quoted(self.options.publication)
        with self.client.session("read", replication=True) as connection, self._decoding_errors():
            skipped = _collect_warnings(connection)
            for received in stream_messages(connection, slot, publications, lo, limit):
                if skipped:
                    raise self._changes_skipped()
                yield received


def _touches(pending: Sequence[bytes], tables: set[str], oids: set[int]) -> bool:
    """Whether ``pending`` contains a change of one of the tables, which may have had another name or oid then. Row
    changes are cut to their head."""
    relations = [messages.parse_relation(data) for data in pending if data[0] == messages.RELATION]
    ours = oids | {relation.oid for relation in relations if relation.table in tables}
    truncated = [messages.parse_truncate(data).oids for data in pending if data[0] == messages.TRUNCATE]
    changed = {int.from_bytes(data[1:HEAD_BYTES]) for data in pending if data[0] in ROW_LETTERS}
    return not ours.isdisjoint(changed.union(*truncated))


def _is_process_alive(application_name: str) -> bool | None:
    """Whether the process of one of our sessions is alive; None if it runs on another host."""
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


def _collect_warnings(connection: Connection[Any]) -> list[str]:
    """The server's warnings about skipped changes. The list is filled while the session is used."""
    warnings: list[str] = []

    def add(warning: Diagnostic) -> None:
        if warning.sqlstate == SKIPPED_CHANGES:
            warnings.append(warning.message_primary or "")

    connection.add_notice_handler(add)
    return warnings


def _scalar(connection: Connection[Any], query: str) -> str:
    row = connection.execute(query.encode()).fetchone()
    assert row is not None
    return str(row[0])
