"""Streams the messages of a slot. No position is ever confirmed, so the slot does not advance and the next read gets
the same messages."""

from __future__ import annotations

import select
import struct
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from airflow_cdc_provider.connectors.sources.postgres.positions import lsn_text

if TYPE_CHECKING:
    from psycopg import Connection
    from psycopg.pq.abc import PGconn

DATA, KEEPALIVE, STATUS = b"w"[0], b"k"[0], b"r"
DATA_HEAD = struct.Struct("!xq16x")
AT_ONCE, AT_ONCE_BYTES = 4096, 4 << 20
"""Limits of the messages that are yielded, and decoded, together."""
ASK_AFTER_S = 1.0
"""An idle server may not send its position unless asked."""
NO_POSITION = 0
"""In a status: nothing is confirmed."""


def stream_messages(
    connection: Connection[Any], slot: str, publications: str, lo: int, limit: int
) -> Iterator[list[tuple[int, bytes]]]:
    """The messages of all transactions whose commit record starts at or after ``lo``, in chunks, each message with its
    LSN (a relation message has none: it gets that of the previous message). Ends when everything up to ``limit`` was
    sent; later transactions may follow.

    ``connection`` is a replication session and cannot be used for anything else afterwards. ``publications``: a list of
    SQL identifiers. Raises psycopg.Error."""
    pgconn = connection.pgconn
    _start(pgconn, slot, publications, lo)
    readable = select.poll()
    readable.register(pgconn.socket, select.POLLIN)
    server_lsn = lsn = lo
    received: list[tuple[int, bytes]] = []
    room = AT_ONCE_BYTES
    while True:
        size, data = pgconn.get_copy_data(1)
        if size > 0 and data[0] == DATA:
            (message_lsn,) = DATA_HEAD.unpack_from(data)
            lsn = message_lsn or lsn
            received.append((lsn, bytes(data[DATA_HEAD.size :])))
            room -= size
            if room < 0 or len(received) == AT_ONCE:
                yield received
                received, room = [], AT_ONCE_BYTES
        elif size > 0 and data[0] == KEEPALIVE:
            server_lsn, _, reply_requested = struct.unpack("!xqqb", data)
            if server_lsn >= limit:
                break
            if reply_requested:
                _send_status(pgconn, server_lsn, request_reply=False)
        elif size == 0:
            if not readable.poll(ASK_AFTER_S * 1000):
                _send_status(pgconn, server_lsn, request_reply=True)
            pgconn.consume_input()
        else:
            raise _stream_error(pgconn)
    yield received


def _start(pgconn: PGconn, slot: str, publications: str, lo: int) -> None:
    from psycopg.errors import error_from_result
    from psycopg.pq import ExecStatus

    names = publications.replace("'", "''")
    options = f"proto_version '1', publication_names '{names}'"
    started = pgconn.exec_(f'START_REPLICATION SLOT "{slot}" LOGICAL {lsn_text(lo)} ({options})'.encode())
    if started.status != ExecStatus.COPY_BOTH:
        raise error_from_result(started)


def _send_status(pgconn: PGconn, written: int, *, request_reply: bool) -> None:
    """Send a status that confirms nothing. A server that shuts down waits until everything is ``written``."""
    pgconn.put_copy_data(struct.pack("!cqqqqb", STATUS, written, NO_POSITION, NO_POSITION, 0, request_reply))
    pgconn.flush()


def _stream_error(pgconn: PGconn) -> Exception:
    from psycopg import OperationalError
    from psycopg.errors import error_from_result
    from psycopg.pq import ExecStatus

    result = pgconn.get_result()
    if result is not None and result.status == ExecStatus.FATAL_ERROR:
        return error_from_result(result)
    return OperationalError("the server ended the stream")
