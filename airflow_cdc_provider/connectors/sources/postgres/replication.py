"""The messages of a slot, as the server streams them. Only looked at: no place is ever confirmed, so the slot stays
where it is and the next look is told the same again."""

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
"""What is handed on, and decoded, together."""
ASK_AFTER_S = 1.0
"""A server that has nothing to tell may not say how far it is."""
NOTHING = 0
"""In a status: no place. The server takes it for a reader who keeps nothing."""


def stream_messages(
    connection: Connection[Any], slot: str, publications: str, lo: int, limit: int
) -> Iterator[list[tuple[int, bytes]]]:
    """What pgoutput says of all transactions whose commit record starts at or after ``lo``, each message with its LSN
    (the description of a table has none: it gets that of the message before), until everything up to ``limit`` has been
    told; transactions behind it may follow. Some at a time.

    ``connection`` is a replication session and cannot be used for anything else afterwards. ``publications``: as a list
    of SQL identifiers. Raises psycopg.Error."""
    # A reader that takes its time is no dead one: that the network tells.
    connection.execute("SET wal_sender_timeout TO 0")
    pgconn = connection.pgconn
    _start(pgconn, slot, publications, lo)
    readable = select.poll()
    readable.register(pgconn.socket, select.POLLIN)
    reached = lsn = lo
    received: list[tuple[int, bytes]] = []
    room = AT_ONCE_BYTES
    while True:
        size, data = pgconn.get_copy_data(1)
        if size > 0 and data[0] == DATA:
            (at,) = DATA_HEAD.unpack_from(data)
            lsn = at or lsn
            received.append((lsn, bytes(data[DATA_HEAD.size :])))
            room -= size
            if room < 0 or len(received) == AT_ONCE:
                yield received
                received, room = [], AT_ONCE_BYTES
        elif size > 0 and data[0] == KEEPALIVE:
            reached, _, wants_answer = struct.unpack("!xqqb", data)
            if reached >= limit:
                break
            if wants_answer:
                _tell(pgconn, reached, wants_answer=False)
        elif size == 0:
            if not readable.poll(ASK_AFTER_S * 1000):
                _tell(pgconn, reached, wants_answer=True)
            pgconn.consume_input()
        else:
            raise _ended(pgconn)
    yield received


def _start(pgconn: PGconn, slot: str, publications: str, lo: int) -> None:
    from psycopg.errors import error_from_result
    from psycopg.pq import ExecStatus

    names = publications.replace("'", "''")
    options = f"proto_version '1', publication_names '{names}'"
    started = pgconn.exec_(f'START_REPLICATION SLOT "{slot}" LOGICAL {lsn_text(lo)} ({options})'.encode())
    if started.status != ExecStatus.COPY_BOTH:
        raise error_from_result(started)


def _tell(pgconn: PGconn, written: int, *, wants_answer: bool) -> None:
    """A status that confirms nothing. A server that is being shut down waits until all has been written."""
    pgconn.put_copy_data(struct.pack("!cqqqqb", STATUS, written, NOTHING, NOTHING, 0, wants_answer))
    pgconn.flush()


def _ended(pgconn: PGconn) -> Exception:
    from psycopg import OperationalError
    from psycopg.errors import error_from_result
    from psycopg.pq import ExecStatus

    result = pgconn.get_result()
    if result is not None and result.status == ExecStatus.FATAL_ERROR:
        return error_from_result(result)
    return OperationalError("the server ended the stream")
