"""Making slots. It waits for every transaction that is running, so it has a time limit and names who blocks it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from airflow_cdc_provider.connectors.postgres.client import Client
from airflow_cdc_provider.connectors.postgres.positions import parse_lsn
from airflow_cdc_provider.core.errors import Problem, SourceUnavailable

if TYPE_CHECKING:
    from psycopg import Connection

CREATE_LIMIT_S = 60
PLUGIN = "pgoutput"
FIRST_WITH_OPTION_LIST = 150000

BLOCKERS = """
SELECT 'process ' || pid || ', open since ' || date_trunc('second', xact_start) || ': ' || left(query, 200)
FROM pg_stat_activity
WHERE backend_xid IS NOT NULL AND datname = current_database() AND pid <> pg_backend_pid()
UNION ALL
SELECT 'prepared transaction ' || quote_literal(gid) || ', since ' || date_trunc('second', prepared)
FROM pg_prepared_xacts WHERE database = current_database()
"""


@dataclass(frozen=True)
class ExportedSnapshot:
    """``consistent_point``: a transaction is seen under ``name`` if and only if its commit record starts before it."""

    name: str
    consistent_point: int


def create_main_slot(client: Client, connection: Connection[Any], slot: str) -> int:
    """Where the new slot stands: the first transaction it serves commits at or after it."""
    connection.execute(_limit_sql())
    with _within_limit(client):
        row = connection.execute(
            "SELECT lsn::text FROM pg_create_logical_replication_slot(%s, %s)", (slot, PLUGIN)
        ).fetchone()
    connection.execute(b"RESET lock_timeout")
    assert row is not None
    return parse_lsn(row[0])


@contextmanager
def exported_snapshot(client: Client, slot: str) -> Iterator[ExportedSnapshot]:
    """A snapshot with its place in the WAL. It lasts as long as the context; the slot goes with it."""
    with client.session("copy", replication=True) as connection:
        connection.execute(_limit_sql())
        listed = connection.info.server_version >= FIRST_WITH_OPTION_LIST
        option = "(SNAPSHOT 'export')" if listed else "EXPORT_SNAPSHOT"
        with _within_limit(client):
            row = connection.execute(
                f'CREATE_REPLICATION_SLOT "{slot}" TEMPORARY LOGICAL {PLUGIN} {option}'.encode()
            ).fetchone()
        assert row is not None
        yield ExportedSnapshot(row[2], parse_lsn(row[1]))


def _limit_sql() -> bytes:
    return f"SET lock_timeout TO '{CREATE_LIMIT_S}s'".encode()


@contextmanager
def _within_limit(client: Client) -> Iterator[None]:
    from psycopg.errors import LockNotAvailable, QueryCanceled

    try:
        yield
    except (LockNotAvailable, QueryCanceled) as error:
        with client.session("blockers") as connection:
            blockers = [_without_literals(row[0]) for row in connection.execute(BLOCKERS)]
        raise SourceUnavailable(
            Problem(
                "SRC021",
                f"no replication slot within {CREATE_LIMIT_S} s: making one waits for running transactions",
                where=client.place,
                found="; ".join(blockers) or "the transactions have ended by now",
                do="let these transactions end, or end their sessions; the next run tries again",
            )
        ) from error


def _without_literals(query: str) -> str:
    """Quoted values and numbers of a query become ``?``; the words before its first colon are our own."""
    head, mark, body = query.partition(": ")
    body = re.sub(r"'(?:[^']|'')*('|$)|\$(\w*)\$.*?(\$\2\$|$)", "?", body, flags=re.DOTALL)
    return head + mark + re.sub(r"\b\d+(\.\d+)?\b", "?", " ".join(body.split()))
