"""An error of a server is what it means there: for a retry, for a permission, or for somebody who changes something."""

from __future__ import annotations

import psycopg
import pymysql
import pytest

from airflow_cdc_provider.connectors.sources.jdbc_poll.error_codes import error_codes, meaning_of
from airflow_cdc_provider.connectors.sources.mysql.client import MysqlClient
from airflow_cdc_provider.connectors.sources.postgres.source import PostgresSource
from airflow_cdc_provider.core.connections import mysql_errors, oracle_errors, postgres_errors, sqlserver_errors
from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.connections.error_classes import ErrorClass
from airflow_cdc_provider.core.errors import Blocked, CdcError, CheckFailed, SourceUnavailable, TargetUnavailable
from airflow_cdc_provider.core.spec.definition import Source
from airflow_cdc_provider.sandbox.mariadb import EmbeddedMariaDB
from airflow_cdc_provider.targets.mysql.server import MysqlServer
from airflow_cdc_provider.targets.postgres.server import PostgresServer
from tests.connectors.conftest import Database
from tests.connectors.polled_database import Polling
from tests.connectors.test_jdbc_poll_zones_and_keys import of
from tests.mariadb import mariadb_only
from tests.pooler_front import PoolerFront

pytestmark = pytest.mark.server

RAISE = "DO $$ BEGIN RAISE EXCEPTION 'the server''s own words' USING ERRCODE = '{}'; END $$"


@pytest.mark.parametrize(
    ("state", "error", "code"),
    [
        ("40001", SourceUnavailable, "CON013"),
        ("57014", SourceUnavailable, "CON013"),
        ("53400", SourceUnavailable, "CON016"),
        ("22021", CheckFailed, "CON015"),
        ("22012", CheckFailed, "CON015"),
        ("25P04", CheckFailed, "CON015"),
        ("42883", CheckFailed, "CON015"),
        ("XX001", CheckFailed, "CON015"),
        ("42501", CheckFailed, "SRC010"),
        ("ZZ123", SourceUnavailable, "CON017"),
    ],
)
def test_a_state_of_postgresql_has_its_meaning(
    database: Database, state: str, error: type[CdcError], code: str
) -> None:
    session = database.source.client.session("test")
    with pytest.raises(error, match=rf"{code}.*the server's own words") as caught, session as connection:
        connection.execute(RAISE.format(state))
    assert caught.value.problems[0].do != "try again" and state in str(caught.value)
    with pytest.raises(error, match=code), of(database).source.database.session() as polled:
        polled.exec_driver_sql(RAISE.format(state))


@pytest.mark.parametrize(
    ("state", "error", "code"),
    [
        ("40001", TargetUnavailable, "TGT064"),
        ("53100", TargetUnavailable, "TGT092"),
        ("42883", Blocked, "TGT091"),
        ("25P04", Blocked, "TGT091"),
        ("22021", Blocked, "TGT063"),
        ("P0001", Blocked, "TGT091"),
        ("27000", Blocked, "TGT091"),
        ("38001", Blocked, "TGT091"),
        ("23505", Blocked, r"TGT063.*unique index that the server names"),
        ("23514", Blocked, r"TGT063.*constraint that the server names"),
        ("42501", CheckFailed, "TGT062"),
        ("ZZ123", TargetUnavailable, "TGT093"),
    ],
)
def test_a_state_of_a_target_has_its_meaning(database: Database, state: str, error: type[CdcError], code: str) -> None:
    server = database.server
    info = ConnectionInfo("db", server.host, server.port, "postgres", server.password, database.name)
    with pytest.raises(error, match=code), PostgresServer(info, "public", "r").session("read") as connection:
        connection.execute(RAISE.format(state))


NO_PARAMETER = "SELECT '%d'"
"""The client library refuses it if there are parameters, and the server never sees it."""
GOODBYE = "SELECT pg_terminate_backend(pg_backend_pid())"


def test_an_error_of_the_client_library_is_no_lost_connection(database: Database) -> None:
    session = database.source.client.session("test")
    with pytest.raises(SourceUnavailable, match=r"CON017.*ProgrammingError: .*%d"), session as connection:
        connection.execute(NO_PARAMETER, (1,))
    with pytest.raises(SourceUnavailable, match="CON017"), of(database).source.database.session() as polled:
        polled.exec_driver_sql(NO_PARAMETER, (1,))
    server = database.server
    info = ConnectionInfo("db", server.host, server.port, "postgres", server.password, database.name)
    target = PostgresServer(info, "public", "r").session("read")
    with pytest.raises(TargetUnavailable, match=r"TGT093.*ProgrammingError"), target as connection:
        connection.execute(NO_PARAMETER, (1,))


def test_a_connection_that_ended_is_lost(database: Database) -> None:
    session = database.source.client.session("test")
    with pytest.raises(SourceUnavailable, match=r"CON013.*connection lost"), session as connection:
        with pytest.raises(psycopg.OperationalError):
            connection.execute(GOODBYE)
        connection.execute("SELECT 1")


def test_what_somebody_gave_to_a_table_of_postgresql_is_named(database: Database) -> None:
    """No retry helps against a publication that lists a table without key, or a trigger that raises an error."""
    server = database.server
    info = ConnectionInfo("db", server.host, server.port, "postgres", server.password, database.name)
    for statement in (
        "CREATE TABLE listed (v int)",
        "INSERT INTO listed VALUES (1)",
        "CREATE PUBLICATION everything FOR ALL TABLES",
        "CREATE FUNCTION forbid() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION $$no$$; END'",
        "CREATE TABLE guarded (v int)",
        "CREATE TRIGGER guard AFTER INSERT ON guarded FOR EACH ROW EXECUTE FUNCTION forbid()",
    ):
        database.sql(statement)
    target = PostgresServer(info, "public", "r")
    with pytest.raises(Blocked, match=r'TGT091.*"listed".*REPLICA IDENTITY FULL'), target.session("commit") as session:
        session.execute("DELETE FROM public.listed")
    with (
        pytest.raises(Blocked, match=r"TGT091.*function public\.forbid\(\).*trigger"),
        target.session("commit") as session,
    ):
        session.execute("INSERT INTO public.guarded VALUES (1)")


def test_a_byte_that_is_no_text_stops_its_table_alone(database: Database) -> None:
    name, server = f"ascii_{database.name}", database.server
    database.sql(f"CREATE DATABASE {name} ENCODING 'SQL_ASCII' LOCALE 'C' TEMPLATE template0")
    with psycopg.connect(server.dsn(name), autocommit=True, client_encoding="SQL_ASCII") as own:
        own.execute("CREATE TABLE dirty (id int PRIMARY KEY, t text)")
        own.execute("CREATE TABLE clean (id int PRIMARY KEY, t text)")
        own.execute("INSERT INTO dirty VALUES (1, E'\\xff')")
        own.execute("INSERT INTO clean VALUES (1, 'x')")
        own.execute("CREATE PUBLICATION cdc FOR ALL TABLES")
    info = ConnectionInfo("db", server.host, server.port, "postgres", server.password, name)
    database.source.drop_stream()
    database.source = PostgresSource(
        Source("postgres", "db", options={"publication": "cdc"}), info, database.replicator
    )
    with database.source.copy(database.task("public.clean"), 1, {}, 1) as copy:
        assert database.copied(copy) == [{"id": 1, "t": "x"}]
    dirty = database.source.copy(database.task("public.dirty"), 1, {}, 1)
    with pytest.raises(CheckFailed, match=r"CON015.*22021") as caught, dirty as copy:
        database.copied(copy)
    assert "encoding" in caught.value.problems[0].do


def test_a_login_without_a_free_session_has_a_limit(database: Database) -> None:
    name = f"few_{database.name}"
    database.sql(f"CREATE ROLE {name} LOGIN PASSWORD 'secret' CONNECTION LIMIT 0")
    with pytest.raises(SourceUnavailable, match=r"CON016.*CONNECTION LIMIT"):
        database.source_as(name, "secret").tables()
    database.sql(f"DROP ROLE {name}")


def test_a_pooler_is_found_by_check_and_not_retried(database: Database) -> None:
    database.sql("CREATE TABLE item (id int PRIMARY KEY)")
    database.publish("item")
    start = database.source.open_stream(["public.item"])
    with PoolerFront(database.server.port) as front:
        info = ConnectionInfo("db", "127.0.0.1", front.port, "postgres", database.server.password, database.name)
        source = PostgresSource(Source("postgres", "db", options={"publication": "cdc"}), info, database.replicator)
        task = database.task("public.item")
        (problem,) = source.check([task])
        assert problem.code == "SRC011" and "pooler" in problem.do and "unsupported startup parameter" in problem.found
        (split,) = source.splits(start, database.now())
        with pytest.raises(CheckFailed, match="SRC011"):
            list(source.read(split, [task], 1))


@mariadb_only
@pytest.mark.parametrize(
    ("number", "error", "code"),
    [
        (1213, SourceUnavailable, "CON013"),
        (1226, SourceUnavailable, "CON016"),
        (1153, CheckFailed, "CON015"),
        (1142, CheckFailed, "SRC010"),
        (31999, SourceUnavailable, "CON017"),
    ],
)
def test_a_number_of_mariadb_has_its_meaning(
    mariadb: EmbeddedMariaDB, number: int, error: type[CdcError], code: str
) -> None:
    info = ConnectionInfo("db", mariadb.host, mariadb.port, mariadb.user, mariadb.password, "mysql")
    signal = f"SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = {number}, MESSAGE_TEXT = 'the server''s own words'"
    session = MysqlClient(info, "r").session("test")
    with pytest.raises(error, match=f"{code}.*the server's own words"), session as connection:
        connection.cursor().execute(signal)
    with pytest.raises(error, match=code), Polling("mysql+pymysql", info).source.database.session() as polled:
        polled.exec_driver_sql(signal)


@mariadb_only
@pytest.mark.parametrize(
    ("columns", "statement", "found"),
    [
        ("id int, more int NOT NULL", "(id) VALUES (1)", r"TGT091.*1364.*'more'.*default"),
        ("id int, CHECK (id > 1)", "(id) VALUES (1)", r"TGT063.*4025.*constraint that the server names"),
        ("id int, v int UNIQUE", "VALUES (1, 2), (3, 2)", r"TGT063.*1062.*'v'.*unique index that the server names"),
        ("id int, v int AS (id + 1)", "(id, v) VALUES (1, 2)", r"TGT091.*1906.*'v'.*plain"),
        (
            "id int) PARTITION BY RANGE (id) (PARTITION p VALUES LESS THAN (1)",
            "VALUES (5)",
            r"TGT091.*1526.*partition for",
        ),
    ],
)
def test_what_somebody_gave_to_a_table_of_mariadb_is_named(
    mariadb: EmbeddedMariaDB, columns: str, statement: str, found: str
) -> None:
    info = ConnectionInfo("db", mariadb.host, mariadb.port, mariadb.user, mariadb.password, "mysql")
    session = MysqlServer(info, "mysql", "r").session("load")
    with pytest.raises(Blocked, match=found), session as connection:
        cursor = connection.cursor()
        cursor.execute(f"CREATE OR REPLACE TABLE mysql.altered ({columns})")
        cursor.execute(f"INSERT INTO mysql.altered {statement}")


@mariadb_only
@pytest.mark.parametrize("number", [1442, 1644, 3105, 3819])
def test_an_error_that_no_retry_cures_blocks_a_target_of_mariadb(mariadb: EmbeddedMariaDB, number: int) -> None:
    info = ConnectionInfo("db", mariadb.host, mariadb.port, mariadb.user, mariadb.password, "mysql")
    session = MysqlServer(info, "mysql", "r").session("load")
    with pytest.raises(Blocked), session as connection:
        connection.cursor().execute(f"SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = {number}, MESSAGE_TEXT = 'no'")


def test_more_columns_than_mariadb_can_hold_are_refused_for_good(mariadb: EmbeddedMariaDB) -> None:
    info = ConnectionInfo("db", mariadb.host, mariadb.port, mariadb.user, mariadb.password, "mysql")
    columns = ", ".join(f"c{number} int" for number in range(1100))
    session = MysqlServer(info, "mysql", "r").session("load")
    with pytest.raises(Blocked, match=r"TGT091.*columns.exclude"), session as connection:
        connection.cursor().execute(f"CREATE TABLE mysql.wide ({columns}) ENGINE=InnoDB")


def test_a_driver_of_odbc_has_the_number_of_sql_server_in_its_text() -> None:
    error = psycopg.Error(
        "42S02", "[42S02] [Microsoft][ODBC Driver 18] Invalid object name 'x'. (208) (SQLExecDirectW)"
    )
    assert error_codes(error) == ("42S02", 208)
    assert meaning_of("mssql", "42S02", 208, "").kind is ErrorClass.RETRY
    assert meaning_of("mssql", "08S01", 0, "").kind is ErrorClass.RETRY
    assert meaning_of("mssql", "22018", 245, "").kind is ErrorClass.PERMANENT
    assert meaning_of("mssql", "HY000", 99999, "").kind is ErrorClass.UNKNOWN


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        ("ORA-01722: invalid number", ErrorClass.PERMANENT),
        ("ORA-01031: insufficient privileges", ErrorClass.PERMISSION),
        ("ORA-00060: deadlock detected", ErrorClass.RETRY),
        ("ORA-01652: unable to extend temp segment", ErrorClass.LIMIT),
        ("ORA-65535: what is this", ErrorClass.UNKNOWN),
        ("no code at all", ErrorClass.UNKNOWN),
    ],
)
def test_a_number_of_oracle_has_its_meaning(words: str, kind: ErrorClass) -> None:
    assert oracle_errors.meaning(words).kind is kind


def test_a_code_has_one_meaning_and_says_what_to_do() -> None:
    for errors in (postgres_errors, mysql_errors, sqlserver_errors, oracle_errors):
        for code, meaning in errors.ERRORS.items():
            assert meaning.do or meaning.kind is ErrorClass.PERMISSION, code
            assert meaning.do != "try again"
    assert int(mysql_errors.CREATE_FAILED) == pymysql.constants.ER.CANT_CREATE_TABLE
