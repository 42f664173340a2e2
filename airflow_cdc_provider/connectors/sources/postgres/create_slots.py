"""Creates slots. This waits for all running transactions, so it has a time limit and reports those that block it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from airflow_cdc_provider.connectors.sources.postgres.client import NONE_FREE, PostgresClient
from airflow_cdc_provider.connectors.sources.postgres.positions import parse_lsn
from airflow_cdc_provider.core.errors import SourceUnavailable

if TYPE_CHECKING:
    from psycopg import Connection

CREATE_LIMIT_S = 60
FREE_LIMIT_S = 60
FREE_EVERY_S = 0.2
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
    """The snapshot ``name`` contains a transaction if and only if its commit record starts before
    ``consistent_point``."""

    name: str
    consistent_point: int


def create_main_slot(client: PostgresClient, connection: Connection[Any], slot: str) -> int:
    """Returns the LSN of the new slot: the first transaction that it serves commits at or after it."""
    connection.execute(_limit_sql())
    with _within_limit(client):
        row = connection.execute(
            "SELECT lsn::text FROM pg_create_logical_replication_slot(%s, %s)", (slot, PLUGIN)
        ).fetchone()
    connection.execute(b"SET lock_timeout TO 0")
    assert row is not None
    return parse_lsn(row[0])


@contextmanager
def exported_snapshot(client: PostgresClient, slot: str) -> Iterator[ExportedSnapshot]:
    """A snapshot with its LSN. Snapshot and slot exist as long as the context. Waits if no slot or sender is free: the
    server frees them shortly after the session that used them has ended.

    Raises SourceUnavailable: SRC026 if none becomes free in time, SRC021 if running transactions take too long."""
    from tenacity import Retrying, retry_if_exception, stop_after_delay, wait_fixed

    free = Retrying(
        retry=retry_if_exception(_is_none_free),
        wait=wait_fixed(FREE_EVERY_S),
        stop=stop_after_delay(FREE_LIMIT_S),
        reraise=True,
    )
    session, snapshot = free(_export, client, slot)
    with session:
        yield snapshot


def _is_none_free(error: BaseException) -> bool:
    return isinstance(error, SourceUnavailable) and error.problems[0].code == NONE_FREE


def _export(client: PostgresClient, slot: str) -> tuple[ExitStack, ExportedSnapshot]:
    with ExitStack() as session:
        connection = session.enter_context(client.session("copy", replication=True))
        connection.execute(_limit_sql())
        has_option_list = connection.info.server_version >= FIRST_WITH_OPTION_LIST
        option = "(SNAPSHOT 'export')" if has_option_list else "EXPORT_SNAPSHOT"
        with _within_limit(client):
            row = connection.execute(
                f'CREATE_REPLICATION_SLOT "{slot}" TEMPORARY LOGICAL {PLUGIN} {option}'.encode()
            ).fetchone()
        assert row is not None
        return session.pop_all(), ExportedSnapshot(row[2], parse_lsn(row[1]))


def _limit_sql() -> bytes:
    return f"SET lock_timeout TO '{CREATE_LIMIT_S}s'".encode()


@contextmanager
def _within_limit(client: PostgresClient) -> Iterator[None]:
    from psycopg.errors import ConfigurationLimitExceeded, LockNotAvailable, QueryCanceled

    try:
        yield
    except ConfigurationLimitExceeded as error:
        raise client.none_free("replication slot", "max_replication_slots") from error
    except (LockNotAvailable, QueryCanceled) as error:
        with client.session("blockers") as connection:
            blockers = [_without_literals(row[0]) for row in connection.execute(BLOCKERS)]
        raise SourceUnavailable.of(
            "SRC021",
            f"no replication slot was created within {CREATE_LIMIT_S} s: this waits for running transactions",
            where=client.location,
            found="; ".join(blockers) or "the transactions have ended in the meantime",
            do="wait for these transactions, or end their sessions; the next run tries again",
        ) from error


def _without_literals(query: str) -> str:
    """Quoted values and numbers of a query become ``?``; the text before its first colon is from BLOCKERS."""
    head, mark, body = query.partition(": ")
    body = re.sub(r"'(?:[^']|'')*('|$)|\$(\w*)\$.*?(\$\2\$|$)", "?", body, flags=re.DOTALL)
    return head + mark + re.sub(r"\b\d+(\.\d+)?\b", "?", " ".join(body.split()))
