"""No session with MySQL or MariaDB inherits a setting that shapes, limits, cuts or delays a statement."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pymysql
import pytest

from airflow_cdc_provider.connectors.sources.jdbc_poll.database import Database
from airflow_cdc_provider.connectors.sources.jdbc_poll.options import JdbcPollOptions
from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.connections.mysql_settings import SETTINGS, setting_name
from airflow_cdc_provider.sandbox.mariadb import EmbeddedMariaDB
from airflow_cdc_provider.targets.mysql.server import MysqlServer, own_settings
from tests.connectors.mysql_database import Shop, fold, records
from tests.connectors.mysql_inherited import INHERITED
from tests.connectors.polled_database import Polling, images
from tests.mariadb import IS_MYSQL, embedded

pytestmark = pytest.mark.server

HOSTILE: Mapping[str, str] = {
    "wait_timeout": "900",
    "interactive_timeout": "900",
    "net_read_timeout": "900",
    "net_write_timeout": "900",
    "lock_wait_timeout": "900",
    "innodb_lock_wait_timeout": "900",
    "max_execution_time": "900000",
    "max_statement_time": "900",
    "idle_transaction_timeout": "900",
    "idle_readonly_transaction_timeout": "900",
    "idle_write_transaction_timeout": "900",
    "max_session_mem_used": "1000000000",
    "tmp_disk_table_size": "1000000000",
    "character_set_client": "latin1",
    "character_set_results": "latin1",
    "collation_connection": "latin1_swedish_ci",
    "time_zone": "'+09:00'",
    "lc_time_names": "'de_DE'",
    "lc_messages": "'de_DE'",
    "div_precision_increment": "0",
    "group_concat_max_len": "4",
    "sql_mode": "'ANSI,NO_BACKSLASH_ESCAPES,PAD_CHAR_TO_FULL_LENGTH,HIGH_NOT_PRECEDENCE'",
    "sql_auto_is_null": "1",
    "sql_safe_updates": "1",
    "sql_quote_show_create": "0",
    "completion_type": "'CHAIN'",
    "foreign_key_checks": "0",
    "unique_checks": "0",
    "low_priority_updates": "1",
    "transaction_isolation": "'SERIALIZABLE'",
    "transaction_read_only": "1",
    "tx_isolation": "'SERIALIZABLE'",
    "tx_read_only": "1",
    "check_constraint_checks": "0",
    "old_mode": "'ZERO_DATE_TIME_CAST'",
    "sql_if_exists": "1",
    "system_versioning_asof": "'2020-01-01'",
    "show_gipk_in_create_table_and_information_schema": "0",
    "sql_select_limit": "1",
    "max_join_size": "1000000",
    "sql_big_selects": "0",
    "max_sort_length": "64",
    "cte_max_recursion_depth": "4",
    "max_recursive_iterations": "4",
}
SCOPES = """
SELECT lower(variable_name) FROM information_schema.system_variables WHERE variable_scope LIKE 'SESSION%'
"""
IN_MYSQL = """
SELECT variable_name FROM performance_schema.variables_metadata WHERE variable_scope LIKE 'SESSION%'
"""


@pytest.fixture(scope="module")
def hostile() -> Iterator[Shop]:
    """A server with all of these settings, which also ignores the character sets of its clients. The shop's own session
    is older."""
    with embedded(skip_character_set_client_handshake="", character_set_server="latin1") as server:
        shop = Shop(server)
        for name in known(shop.connection) & HOSTILE.keys():
            shop.sql(f"SET GLOBAL {name} = {HOSTILE[name]}")
        yield shop


def known(connection: Any) -> set[str]:
    cursor = connection.cursor()
    cursor.execute("SHOW VARIABLES WHERE variable_name NOT LIKE 'innodb_b%'")
    return {str(name) for name, _ in cursor.fetchall()}


def info(server: EmbeddedMariaDB, schema: str = "mysql") -> ConnectionInfo:
    return ConnectionInfo("db", server.host, server.port, server.user, server.password, schema)


def sessions(server: EmbeddedMariaDB) -> Iterator[tuple[str, Mapping[str, str], Any]]:
    """Each kind of session with a server: its name, the settings that it must have, and how it is opened."""
    from airflow_cdc_provider.connectors.sources.mysql.client import MysqlClient

    client = MysqlClient(info(server), "r")
    for purpose in ("check", "copy", "binlog"):
        yield purpose, SETTINGS, client.session(purpose)
    yield "split", SETTINGS, client.session("split", unbuffered=True)
    polled = Database(info(server), JdbcPollOptions(driver="mysql+pymysql", timestamp_column="updated_at"))
    for autocommit in (True, False):
        yield f"poll {autocommit}", SETTINGS, polled.session(autocommit)
    for purpose in ("commit", "load"):
        yield purpose, own_settings(purpose), MysqlServer(info(server), "mysql", "r").session(purpose)


def seen(connection: Any) -> dict[str, str]:
    raw = connection if hasattr(connection, "cursor") else connection.connection.driver_connection
    with raw.cursor() as cursor:
        cursor.execute("SHOW SESSION VARIABLES")
        return {str(name): str(value) for name, value in cursor.fetchall()}


def test_every_setting_of_the_server_is_fixed_or_may_be_inherited_for_a_reason(mariadb: EmbeddedMariaDB) -> None:
    own = pymysql.connect(host=mariadb.host, port=mariadb.port, user=mariadb.user, password=mariadb.password)
    cursor = own.cursor()
    try:
        cursor.execute(IN_MYSQL if IS_MYSQL else SCOPES)
    except pymysql.ProgrammingError:
        pytest.skip("this MySQL does not tell which settings a session has")
    fixed = {setting_name(key) for key in SETTINGS}
    assert {str(name) for (name,) in cursor.fetchall()} - fixed - INHERITED.keys() == set(), "classify these"
    assert fixed & INHERITED.keys() == set()
    assert fixed == HOSTILE.keys(), "a value that a server might have"


def test_no_kind_of_session_inherits_a_setting_of_its_server(mariadb: EmbeddedMariaDB, hostile: Shop) -> None:
    own = pymysql.connect(host=mariadb.host, port=mariadb.port, user=mariadb.user, password=mariadb.password)
    for kind, settings, opened in sessions(hostile.server):
        with own.cursor() as cursor:
            for name in known(own) & {setting_name(key) for key in settings}:
                value = next(value for key, value in settings.items() if setting_name(key) == name)
                cursor.execute(f"SET SESSION {name} = {value}")
        expected = seen(own)
        with opened as connection:
            found = seen(connection)
        for name in expected.keys() & {setting_name(key) for key in settings}:
            assert found[name] == expected[name], f"{name} of {kind}"


def test_copy_binlog_and_poll_of_a_hostile_server_have_the_values_of_the_rows(hostile: Shop) -> None:
    own = hostile
    own.sql(
        f"CREATE TABLE {own.name}.item (`key` varchar(40) CHARACTER SET utf8mb4, n int, name char(5), "
        "at timestamp NULL, note text CHARACTER SET utf8mb4, updated_at timestamp(6) NULL, PRIMARY KEY (`key`))",
        f"INSERT INTO {own.name}.item VALUES ('a', 1, 'ab', '2026-02-01 10:00:00', 'c:\\\\temp ☃', "
        "now(6) - interval 60 second), ('b', 2, 'ab', NULL, '☃', now(6) - interval 60 second)",
    )
    task = own.task("item")
    _, rows = own.copied(task)
    assert {key: (row["name"], row["note"]) for key, row in rows.items()} == {
        '["a"]': ("ab", "c:\\temp ☃"),
        '["b"]': ("ab", "☃"),
    }
    own.position = own.source.open_stream([])
    own.sql(f"UPDATE {own.name}.item SET n = n + 10 WHERE `key` IN ('a', 'b')")
    changed = records(own.window(task))
    fold(rows, changed)
    assert {row["n"] for row in rows.values()} == {11, 12} and len(changed) == 2

    polling = Polling("mysql+pymysql", info(own.server, own.name), timestamp_latency=120, page_rows=100)
    polling.position = polling.source.open_stream([f"{own.name}.item"])
    polled = polling.task(f"{own.name}.item")
    polling.copy(polled)
    assert len(polling.rows[f"{own.name}.item"]) == 2
    assert [(row["key"], row["name"], row["note"]) for _, row in images(polling.window(polled))] == [
        ("a", "ab", "c:\\temp ☃"),
        ("b", "ab", "☃"),
    ]
