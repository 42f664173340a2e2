"""No session with PostgreSQL inherits a setting that shapes, limits, cuts or delays a statement."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest
import sqlalchemy as sa

from airflow_cdc_provider.connectors.sources.jdbc_poll.database import Database as PolledDatabase
from airflow_cdc_provider.connectors.sources.jdbc_poll.options import JdbcPollOptions
from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.connections.postgres_settings import SETTINGS
from airflow_cdc_provider.core.errors import CheckFailed, PositionLost
from airflow_cdc_provider.targets.database.server import COMMITTING
from airflow_cdc_provider.targets.postgres.server import PostgresServer
from tests.connectors.conftest import Database, records
from tests.connectors.polled_database import Polling, images
from tests.connectors.postgres_inherited import INHERITED

pytestmark = pytest.mark.server

HOSTILE: Mapping[str, str] = {
    "transaction_timeout": "'10min'",
    "statement_timeout": "'10min'",
    "lock_timeout": "'10min'",
    "idle_in_transaction_session_timeout": "'10min'",
    "idle_session_timeout": "'10min'",
    "tcp_user_timeout": "'10min'",
    "wal_sender_timeout": "'10min'",
    "vacuum_cost_delay": "'1ms'",
    "debug_logical_replication_streaming": "immediate",
    "client_encoding": "LATIN1",
    "datestyle": "'SQL, DMY'",
    "intervalstyle": "sql_standard",
    "timezone": "'Asia/Tokyo'",
    "timezone_abbreviations": "'India'",
    "extra_float_digits": "0",
    "bytea_output": "escape",
    "xmlbinary": "hex",
    "xmloption": "document",
    "lc_monetary": "'C.UTF-8'",
    "lc_numeric": "'C.UTF-8'",
    "lc_time": "'C.UTF-8'",
    "quote_all_identifiers": "on",
    "search_path": "evil, pg_catalog",
    "array_nulls": "off",
    "backslash_quote": "on",
    "standard_conforming_strings": "off",
    "transform_null_equals": "on",
    "default_transaction_deferrable": "on",
    "default_transaction_isolation": "serializable",
    "default_transaction_read_only": "on",
    "client_min_messages": "error",
    "exit_on_error": "on",
    "row_security": "on",
    "restrict_nonsystem_relation_kind": "'view, foreign-table'",
    "gin_fuzzy_search_limit": "1",
    "ignore_checksum_failure": "on",
    "zero_damaged_pages": "on",
}
EVIL = (
    "CREATE SCHEMA evil",
    "CREATE FUNCTION evil.set_config(text, text, boolean) RETURNS text LANGUAGE sql AS $$SELECT 'nothing is set'$$",
    "CREATE FUNCTION evil.current_setting(text, boolean) RETURNS text LANGUAGE sql AS $$SELECT $1$$",
    "CREATE FUNCTION evil.same(text, text) RETURNS boolean LANGUAGE sql AS $$SELECT false$$",
    "CREATE OPERATOR evil.<> (LEFTARG = text, RIGHTARG = text, FUNCTION = evil.same)",
)
SETTABLE = "SELECT name FROM pg_settings WHERE context IN ('user', 'superuser', 'backend', 'superuser-backend')"
VALUES = """
CREATE TABLE item (id int PRIMARY KEY, f float8, r real, d date, at timestamp, zoned timestamptz, span interval,
  raw bytea, price money, note text, updated_at timestamptz NOT NULL DEFAULT now() - interval '1 minute')
"""
ROW = """
INSERT INTO item VALUES (%s, 0.1::float8 + 0.2, 16777217::real, '2026-02-01', '2026-02-01 10:00', '2026-02-01 10:00+02',
  '1 day 02:00', '\\x00ff', 12.50, E'a\\\\b ☃')
"""


@pytest.fixture
def hostile(database: Database) -> Iterator[ConnectionInfo]:
    """A superuser with all of these settings. Its own sessions see them, ours do not."""
    name, server = f"hostile_{database.name}", database.server
    known = {row[0] for row in database.connection.execute("SELECT lower(name) FROM pg_settings")}
    database.sql(f"CREATE ROLE {name} LOGIN SUPERUSER PASSWORD 'secret'", *EVIL)
    database.sql(*(f"ALTER ROLE {name} SET {one} = {value}" for one, value in HOSTILE.items() if one in known))
    yield ConnectionInfo("db", server.host, server.port, name, "secret", database.name)
    database.sql(f"DROP ROLE {name}")


def polled(info: ConnectionInfo, driver: str) -> PolledDatabase:
    return PolledDatabase(info, JdbcPollOptions(driver=driver, timestamp_column="updated_at"))


@contextmanager
def polling_session(info: ConnectionInfo, driver: str, autocommit: bool) -> Iterator[Any]:
    """As the other sessions: ``execute`` takes a text."""
    with polled(info, driver).session(autocommit) as connection:
        yield _Texts(connection)


class _Texts:
    def __init__(self, connection: sa.Connection) -> None:
        self.execute = connection.exec_driver_sql


def sessions(database: Database, info: ConnectionInfo) -> Iterator[tuple[str, Mapping[str, str], Any]]:
    """Each kind of session with a server: its name, the settings that it must have, and how it is opened."""
    client = database.source_as(info.login, info.password).client
    for purpose in ("check", "copy", "compare", "catalog"):
        yield purpose, SETTINGS, client.session(purpose)
    yield "stream", SETTINGS, client.session("read", replication=True)
    for driver in ("postgresql+psycopg", "postgresql+psycopg2"):
        yield f"{driver} poll", SETTINGS, polling_session(info, driver, autocommit=True)
        yield f"{driver} copy", SETTINGS, polling_session(info, driver, autocommit=False)
    server = PostgresServer(info, "public", "r")
    for purpose in ("commit", "load", "read"):
        idle = "60s" if purpose in COMMITTING else "0"
        own = {"lock_timeout": "120s", "idle_in_transaction_session_timeout": idle}
        yield purpose, {**SETTINGS, **own}, server.session(purpose)


def test_every_setting_of_the_server_is_fixed_or_may_be_inherited_for_a_reason(database: Database) -> None:
    settable = {name.lower() for (name,) in database.connection.execute(SETTABLE)}
    assert settable - SETTINGS.keys() - INHERITED.keys() == set(), "classify these"
    assert SETTINGS.keys() & INHERITED.keys() == set()
    assert SETTINGS.keys() == HOSTILE.keys(), "a value that a role might have"


def test_no_kind_of_session_inherits_a_setting_of_its_role(database: Database, hostile: ConnectionInfo) -> None:
    def seen(connection: Any, name: str) -> str:
        return str(connection.execute(f"SHOW {name}").fetchone()[0])

    known = {row[0] for row in database.connection.execute("SELECT lower(name) FROM pg_settings")}
    with database.connect() as own:
        for kind, settings, opened in sessions(database, hostile):
            with opened as connection:
                for name in settings.keys() & known:
                    own.execute("SELECT set_config(%s, %s, false)", (name, settings[name]))
                    assert seen(connection, name) == seen(own, name), f"{name} of {kind}"


def test_a_setting_that_only_a_superuser_can_change_is_refused_by_name(database: Database) -> None:
    name = f"damaged_{database.name}"
    database.sql(f"CREATE ROLE {name} LOGIN PASSWORD 'secret'", f"ALTER ROLE {name} SET zero_damaged_pages = on")
    with pytest.raises(CheckFailed, match="zero_damaged_pages"):
        database.source_as(name, "secret").tables()
    database.sql(f"DROP ROLE {name}")


def test_copy_stream_and_poll_of_a_hostile_role_have_the_same_values(
    database: Database, hostile: ConnectionInfo
) -> None:
    database.sql(VALUES)
    database.publish("item")
    start = database.source.open_stream([])
    for number in (1, 2):
        database.connection.execute(ROW.replace("%s", str(number)).encode())
    own = database.source
    database.source = database.source_as(hostile.login, hostile.password)
    task = database.task("public.item")
    with own.copy(task, 1, {}, 4) as copy:
        expected = database.copied(copy)
    with ExitStack() as stack:
        seen = database.copied(stack.enter_context(database.source.copy(task, 1, {}, 4)))
    assert seen == expected and seen[0]["f"] == 0.30000000000000004 and len(seen) == 2
    changed = records(database.read(start, task))
    database.source = own
    assert [one.after for one in changed] == [one.after for one in records(database.read(start, task))]

    polling = Polling("postgresql+psycopg", hostile, timestamp_latency=120, schemas=["public"])
    polling.position = polling.source.open_stream(["public.item"])
    polled_task = polling.task("public.item")
    polling.copy(polled_task)
    row = polling.rows["public.item"]["[1]"]
    assert (row["f"], row["r"], row["span"]) == (0.30000000000000004, 16777216.0, "P1DT2H")
    assert (row["price"], row["note"]) == (expected[0]["price"], "a\\b ☃")
    (_, image), _ = images(polling.window(polled_task))
    assert (image["f"], image["r"], image["span"]) == (0.30000000000000004, 16777216.0, "P1DT2H")


def test_the_default_schema_of_a_poll_is_that_of_its_role(database: Database) -> None:
    name, server = f"shop_{database.name}", database.server
    database.sql(
        "CREATE SCHEMA shop",
        "CREATE TABLE shop.t (id int PRIMARY KEY, updated_at timestamptz)",
        f"CREATE ROLE {name} LOGIN SUPERUSER PASSWORD 'secret'",
        f"ALTER ROLE {name} SET search_path = shop",
    )
    info = ConnectionInfo("db", server.host, server.port, name, "secret", database.name)
    assert [table.table for table in Polling("postgresql+psycopg", info).source.tables()] == ["shop.t"]
    database.sql(f"DROP ROLE {name}")


def test_a_role_that_gets_no_warnings_learns_of_skipped_changes(database: Database, hostile: ConnectionInfo) -> None:
    """Since version 18 the server skips changes with a warning."""
    database.sql("CREATE TABLE item (id int PRIMARY KEY)")
    database.publish("item")
    start = database.source.open_stream(["public.item"])
    database.sql("ALTER PUBLICATION cdc RENAME TO mislaid", "INSERT INTO item VALUES (1)")
    database.sql("ALTER PUBLICATION mislaid RENAME TO cdc", "INSERT INTO item VALUES (2)")
    (split,) = database.source.splits(start, database.now())
    with pytest.raises(PositionLost, match="SRC013"):
        list(database.source_as(hostile.login, hostile.password).read(split, [database.task("public.item")], 1))
