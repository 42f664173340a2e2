"""The slot as a stream gives what its functions give, from a position to a limit, and confirms nothing."""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from types import SimpleNamespace
from typing import Any

import pytest
from psycopg.pq import ExecStatus

from airflow_cdc_provider.connectors.source import StreamSplit
from airflow_cdc_provider.connectors.sources.postgres import messages, replication
from airflow_cdc_provider.connectors.sources.postgres.positions import lsn_of
from airflow_cdc_provider.connectors.sources.postgres.replication import stream_messages
from airflow_cdc_provider.core.errors import SourceUnavailable
from airflow_cdc_provider.core.log.positions import Position
from airflow_cdc_provider.sandbox.postgres import EmbeddedPostgres
from airflow_cdc_provider.sandbox.server import STOP_LIMIT_S
from tests.blocks import unpacked
from tests.connectors.conftest import Database, records

ITEM = "public.item"
MUCH_BYTES = 4 << 20
"""More than a server writes into its log by itself in a second."""
PEEK = """
SELECT (lsn - '0/0'::pg_lsn)::int8, data
FROM pg_logical_slot_peek_binary_changes('{slot}', NULL, NULL, 'proto_version', '1', 'publication_names', 'cdc')
"""


def prepared(database: Database) -> Position:
    database.sql("CREATE TABLE item (id int PRIMARY KEY, name text)", "CREATE TABLE noise (n int)")
    database.publish("item")
    return database.source.open_stream([ITEM])


def streamed(database: Database, lo: Position) -> list[tuple[int, bytes]]:
    slot, limit = database.source.options.slot, lsn_of(database.now())
    with database.source.client.session("read", replication=True) as connection:
        return [one for some in stream_messages(connection, slot, '"cdc"', lsn_of(lo), limit) for one in some]


def test_the_stream_has_the_messages_of_the_functions_at_the_same_positions(database: Database) -> None:
    start = prepared(database)
    slot = database.source.options.slot
    database.sql("INSERT INTO item SELECT n, repeat('x', n) FROM generate_series(1, 300) n", "TRUNCATE item")
    first, second = database.connect(autocommit=False), database.connect(autocommit=False)
    for number, connection in enumerate((first, second, first)):
        connection.execute(f"INSERT INTO item VALUES ({number}, 'woven')".encode())
    for connection in (second, first):
        connection.commit()
        connection.close()
    peeked = database.connection.execute(PEEK.format(slot=slot).encode()).fetchall()
    assert len(peeked) > 300
    sent = streamed(database, start)
    assert [data for _, data in sent] == [bytes(data) for _, data in peeked]
    placed = [(ours, lsn) for (ours, data), (lsn, _) in zip(sent, peeked, strict=True) if data[0] != messages.RELATION]
    assert all(ours == lsn for ours, lsn in placed)


def test_changes_before_the_position_are_not_sent_again(database: Database) -> None:
    prepared(database)
    database.sql("INSERT INTO item VALUES (1, 'before')")
    place = database.now()
    database.sql("INSERT INTO item VALUES (2, 'behind')")
    sent = b"".join(data for _, data in streamed(database, place))
    assert b"behind" in sent and b"before" not in sent


def test_the_slot_does_not_advance(database: Database) -> None:
    start = prepared(database)
    place = "SELECT (confirmed_flush_lsn, restart_lsn)::text FROM pg_replication_slots WHERE slot_name = '{}'"
    before = database.ask(place.format(database.source.options.slot))
    database.sql("INSERT INTO item VALUES (1, 'x')", "CHECKPOINT", "INSERT INTO noise VALUES (1)")
    assert streamed(database, start)
    assert database.ask(place.format(database.source.options.slot)) == before


def test_a_limit_ahead_of_the_server_is_waited_for(database: Database) -> None:
    start = prepared(database)
    database.sql("INSERT INTO item VALUES (1, 'x')")
    ahead = {"slot": f"0/{lsn_of(database.now()) + MUCH_BYTES:X}"}
    with ThreadPoolExecutor(1) as pool:
        reading = pool.submit(database.read, start, database.task(ITEM), limit=ahead)
        time.sleep(0.5)
        assert not reading.done()
        database.sql("INSERT INTO noise SELECT generate_series(1, 100000)")
        assert [record.key for record in records(reading.result())] == ["[1]"]


def test_a_reader_may_take_longer_than_the_timeout_of_the_server(database: Database) -> None:
    start = prepared(database)
    database.sql(f"ALTER DATABASE {database.name} SET wal_sender_timeout = '500ms'")
    database.sql("INSERT INTO item SELECT n, repeat('x', 2000) FROM generate_series(1, 8000) n")
    (split,) = database.source.splits(start, database.now())
    items = unpacked(database.source.read(split, [database.task(ITEM)], epoch=1))
    seen = list(islice(items, 2))
    time.sleep(1.5)
    assert len(records([*seen, *items])) == 8000
    assert not database.ask("SELECT count(*) FROM pg_replication_slots WHERE active")


def test_a_server_that_is_shut_down_does_not_wait_for_a_window() -> None:
    with EmbeddedPostgres() as server:
        database = Database(server)
        start = prepared(database)
        database.sql("INSERT INTO item VALUES (1, 'x')")
        read = database.source.read(StreamSplit(start, {"slot": "FF/0"}, {}), [database.task(ITEM)], 1)
        with ThreadPoolExecutor(1) as pool:
            reading = pool.submit(list, read)
            while not database.ask("SELECT count(*) FROM pg_replication_slots WHERE active"):
                time.sleep(0.05)
            database.connection.close()
            began = time.monotonic()
            server.stop()
            assert time.monotonic() - began < STOP_LIMIT_S, "the server had to be killed"
            with pytest.raises(SourceUnavailable, match="CON013"):
                reading.result()


class Scripted:
    """A server that sends the messages of the script, None for silence. ``statuses``: those received."""

    def __init__(self, ours: socket.socket, script: Iterator[bytes | None]) -> None:
        self.script = script
        self.socket = ours.fileno()
        self.statuses: list[tuple[Any, ...]] = []
        self.pgconn = self

    def exec_(self, command: bytes) -> SimpleNamespace:
        assert command == (
            b"START_REPLICATION SLOT \"s\" LOGICAL 0/10 (proto_version '1', publication_names '\"it''s\"')"
        )
        return SimpleNamespace(status=ExecStatus.COPY_BOTH)

    def get_copy_data(self, _: int) -> tuple[int, bytes]:
        message = next(self.script)
        return (len(message), message) if message else (0, b"")

    def put_copy_data(self, status: bytes) -> None:
        self.statuses.append(struct.unpack("!cqqqqb", status))

    def flush(self) -> None: ...

    def consume_input(self) -> None: ...


def test_a_silent_server_is_asked_for_a_keepalive_and_nothing_is_ever_confirmed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(replication, "ASK_AFTER_S", 0.01)

    def alive(at: int, wants_answer: bool) -> bytes:
        return struct.pack("!cqqb", b"k", at, 0, wants_answer)

    data = struct.pack("!cqqq", b"w", 0x20, 0x20, 0) + b"data"
    script = [alive(0x12, False), None, alive(0x18, True), data, None, alive(0x30, False)]
    ours, theirs = socket.socketpair()
    with ours, theirs:
        server: Any = Scripted(ours, iter(script))
        assert list(stream_messages(server, "s", '"it\'s"', 0x10, 0x30)) == [[(0x20, b"data")]]
    assert server.statuses == [(b"r", 0x12, 0, 0, 0, 1), (b"r", 0x18, 0, 0, 0, 0), (b"r", 0x18, 0, 0, 0, 1)]
