"""Polled tables of real servers: types, clocks, equal timestamps, rights."""

from __future__ import annotations

from base64 import b64decode
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import psycopg
import pymysql
import pytest

from airflow_cdc_provider.connectors.sources.polling.canonical import canonical_value
from airflow_cdc_provider.connectors.sources.polling.positions import parse_position
from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.errors import CheckFailed, SourceUnavailable
from airflow_cdc_provider.core.log.change_records import ChangeRecord
from airflow_cdc_provider.core.spec.other_kinds import OtherKind
from airflow_cdc_provider.core.table.schema import Column, Kind
from airflow_cdc_provider.sandbox.mariadb import EmbeddedMariaDB
from airflow_cdc_provider.sandbox.postgres import EmbeddedPostgres
from tests.connectors.conftest import Database
from tests.connectors.polled_database import Polling, images
from tests.mariadb import mariadb_only

pytestmark = pytest.mark.server

POSTGRES = "postgresql+psycopg"
WIDE = """
CREATE TABLE wide (
  id bigint PRIMARY KEY, small smallint, price numeric(12,2), free numeric, real4 real, float8 double precision,
  flag boolean, note text, code char(5), born date, at timestamp, zoned timestamptz, clock time, span interval,
  doc jsonb, plain json, uid uuid, raw bytea, list int[], net inet, updated_at timestamptz NOT NULL DEFAULT now())
"""
VALUES = """
INSERT INTO wide VALUES (1, -5, 1234.50, 1e3, 0.1, 1e300, true, 'a "b" ☃', 'ab', '2026-02-01', '2026-02-01 10:00:00.25',
 '2026-02-01 10:00:00+02', '10:00', '1 day 2 hours', '{"a": 1.50}', '{"a":1.50}',
 '6b1b36cb-05a4-4d6a-a2f2-6b8a4f2a0c11', '\\x00ff', '{1,2}', '10.0.0.1', now() - interval '1 minute')
"""


def of(database: Database, **options: Any) -> Polling:
    server = database.server
    info = ConnectionInfo("db", server.host, server.port, "postgres", server.password, database.name)
    return Polling(POSTGRES, info, **options)


def test_a_row_of_postgresql_has_the_same_bytes_in_copy_and_interval(database: Database) -> None:
    database.sql(WIDE, VALUES, "INSERT INTO wide (id, updated_at) VALUES (2, now() - interval '1 minute')")
    polling = of(database, timestamp_latency=120)
    polling.position = polling.source.open_stream(["public.wide"])
    task = polling.task("public.wide")
    polling.copy(task)
    (_, row), (_, empty) = images(polling.window(task))
    assert row | {"updated_at": ""} == {
        "id": 1, "small": -5, "price": "1234.50", "free": "1000", "real4": 0.1, "float8": 1e300, "flag": True,
        "note": 'a "b" ☃', "code": "ab   ", "born": "2026-02-01", "at": "2026-02-01T10:00:00.250000",
        "zoned": "2026-02-01T08:00:00Z", "clock": "10:00:00", "span": "P1DT2H", "doc": '{"a": 1.50}',
        "plain": '{"a":1.50}', "uid": "6b1b36cb-05a4-4d6a-a2f2-6b8a4f2a0c11", "raw": "AP8=", "list": "{1,2}",
        "net": "10.0.0.1/32", "updated_at": "",
    }  # fmt: skip
    assert all(empty[name] is None for name in empty.keys() - {"id", "updated_at"})
    copied = polling.rows["public.wide"]["[1]"]
    assert copied.pop("real4") == pytest.approx(0.1, rel=1e-7)
    for column in (one for one in task.schema.columns if one.name in copied):
        assert canonical_value(column.type, copied[column.name]) == canonical_value(column.type, _typed(row, column)), (
            column
        )


def _typed(row: dict[str, Any], column: Column) -> Any:
    """The canonical value in the type of a copied column."""
    value = row[column.name]
    match column.type.kind:
        case Kind.DECIMAL:
            return Decimal(value)
        case Kind.DATE:
            return date.fromisoformat(value)
        case Kind.TIMESTAMP | Kind.TIMESTAMPTZ:
            return datetime.fromisoformat(value)
        case Kind.BYTES:
            return b64decode(value)
        case _:
            return value


def test_more_rows_with_one_timestamp_than_a_page_are_read_by_a_text_key(database: Database) -> None:
    database.sql(
        "CREATE TABLE names (name text PRIMARY KEY, updated_at timestamptz NOT NULL)",
        "INSERT INTO names SELECT n || chr(97 + n % 26) || chr(65 + n % 26), now() - interval '1 minute' "
        "FROM generate_series(1, 950) n",
    )
    polling = of(database, page_rows=100)
    polling.position = polling.source.open_stream(["public.names"])
    items = polling.window(polling.task("public.names"))
    keys = [item.key for item in items if isinstance(item, ChangeRecord)]
    assert len(keys) == len(set(keys)) == 950


def test_a_commit_behind_the_high_mark_is_read_within_the_latencies(database: Database) -> None:
    database.sql("CREATE TABLE t (id int PRIMARY KEY, updated_at timestamptz NOT NULL)")
    polling = of(database)
    polling.position = polling.source.open_stream(["public.t"])
    task = polling.task("public.t")
    with database.connect(autocommit=False) as late:
        late.execute("INSERT INTO t VALUES (1, now() - interval '2 minutes')")
        database.sql("INSERT INTO t VALUES (2, now() - interval '1 minute')")
        assert [row["id"] for _, row in images(polling.window(task))] == [2]
        late.commit()
    assert sorted(row["id"] for _, row in images(polling.window(task))) == [1, 2]


def test_the_clock_of_the_server_counts_whatever_the_time_zones(database: Database) -> None:
    database.sql(f"ALTER DATABASE {database.name} SET timezone TO 'Asia/Tokyo'")
    polling = of(database)
    position = polling.source.open_stream(["public.t"])
    upto = parse_position(position["public.t"]).upto
    assert 0 < (datetime.now(UTC) - upto).total_seconds() < 1800


def test_a_missing_right_is_reported_and_no_row_is_emitted_as_deleted(database: Database) -> None:
    database.sql(
        "CREATE TABLE hidden (id int PRIMARY KEY, updated_at timestamptz NOT NULL DEFAULT now() - interval '1 minute')",
        "INSERT INTO hidden VALUES (1)",
        f"CREATE ROLE reader_{database.name} LOGIN PASSWORD 'secret'",
    )
    server = database.server
    info = ConnectionInfo("db", server.host, server.port, f"reader_{database.name}", "secret", database.name)
    polling = Polling(POSTGRES, info)
    polling.position = polling.source.open_stream(["public.hidden"])
    task = polling.task("public.hidden")
    assert polling.source.status(polling.position, ["public.hidden"]).has_changes, (
        "reading the table reports the problem"
    )
    with pytest.raises(CheckFailed, match="SRC010") as caught:
        polling.window(task)
    assert "secret" not in str(caught.value)
    database.sql(
        f"GRANT SELECT ON hidden TO reader_{database.name}",
        "ALTER TABLE hidden ENABLE ROW LEVEL SECURITY",
    )
    with pytest.raises(CheckFailed, match="SRC010"):
        polling.window(task)
    database.sql("DROP TABLE hidden", f"DROP ROLE reader_{database.name}")


def test_an_unreachable_server_can_be_retried(server: EmbeddedPostgres) -> None:
    with pytest.raises(SourceUnavailable, match="CON013"):
        Polling(POSTGRES, ConnectionInfo("db", server.host, 1, "postgres", "x", "postgres")).source.tables()


def test_a_table_is_polled_by_an_integer_column_in_splits(database: Database) -> None:
    database.sql(
        "CREATE TABLE big (id int PRIMARY KEY, updated_at timestamptz NOT NULL DEFAULT now())",
        "INSERT INTO big SELECT n FROM generate_series(1, 45000) n",
    )
    polling = of(database)
    polling.position = polling.source.open_stream(["public.big"])
    copy = polling.copy(polling.task("public.big"))
    assert len(copy.read.splits) == 4 and len(polling.rows["public.big"]) == 45000  # type: ignore[union-attr]


def test_rows_of_mariadb_are_polled_by_a_timestamp_that_the_server_maintains(mariadb: EmbeddedMariaDB) -> None:
    with pymysql.connect(
        host=mariadb.host, port=mariadb.port, user=mariadb.user, password=mariadb.password, autocommit=True
    ) as connection:
        cursor = connection.cursor()
        cursor.execute("CREATE DATABASE shop")
        cursor.execute(
            "CREATE TABLE shop.items (id bigint unsigned, lang varchar(5), n int unsigned, t tinyint, "
            "price decimal(10,3), note text, doc json, raw varbinary(5), kind enum('a','b'), tags set('x','y'), y year,"
            " at datetime(3),"
            " updated_at timestamp(6) NOT NULL, PRIMARY KEY (id, lang))"
        )
        cursor.execute("SET time_zone = '+05:00'")
        cursor.execute(
            "INSERT INTO shop.items VALUES (18446744073709551615, 'en', 4294967295, -1, 1.5, 'ü', '{\"a\": 1}', "
            "x'00ff', 'b', 'x,y', 2026, '2026-02-01 10:00:00.25', now(6) - interval 60 second)"
        )
        info = ConnectionInfo("db", mariadb.host, mariadb.port, mariadb.user, mariadb.password, "shop")
        polling = Polling("mysql+pymysql", info)
        polling.position = polling.source.open_stream(["shop.items"])
        task = polling.task("shop.items")
        copy = polling.copy(task)
        ((_, row),) = images(polling.window(task))
        stamp = datetime.fromisoformat(row.pop("updated_at"))
        assert 50 < (datetime.now(UTC) - stamp).total_seconds() < 1800
        assert row == {
            "id": "18446744073709551615", "lang": "en", "n": 4294967295, "t": -1, "price": "1.500", "note": "ü",
            "doc": '{"a": 1}', "raw": "AP8=", "kind": "b", "tags": "x,y", "y": row["y"],
            "at": "2026-02-01T10:00:00.250000",
        }  # fmt: skip
        assert polling.rows["shop.items"] and copy.rows == 1
        cursor.execute("UPDATE shop.items SET lang = 'de', updated_at = now(6) - interval 30 second")
        keys = [item.key for item in polling.window(task) if isinstance(item, ChangeRecord)]
        assert keys == ['["18446744073709551615","de"]'], "the old key is seen by the audit only"


def test_no_transaction_stays_open_between_two_pages(database: Database) -> None:
    """A page is one statement, so no session is idle in a transaction."""
    database.sql(
        "CREATE TABLE t (id int PRIMARY KEY, updated_at timestamptz NOT NULL DEFAULT now() - interval '1 min')"
    )
    database.sql("INSERT INTO t SELECT n FROM generate_series(1, 300) n")
    polling = of(database, page_rows=100)
    polling.position = polling.source.open_stream(["public.t"])
    task = polling.task("public.t")
    (split,) = polling.source.splits(polling.position, polling.source.status(polling.position, ["public.t"]).limit)
    reading = polling.source.read(split, [task], 1)
    for _ in range(50):
        next(reading)
    with psycopg.connect(database.server.dsn(database.name)) as other:
        row = other.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND state = 'idle in transaction'"
        ).fetchone()
    assert row == (0,)
    assert sum(isinstance(item, ChangeRecord) for item in reading) > 200


def test_what_is_no_table_is_named(database: Database) -> None:
    database.sql(
        "CREATE TABLE t (id int PRIMARY KEY, updated_at timestamptz)",
        "CREATE VIEW v AS SELECT * FROM t",
        "CREATE MATERIALIZED VIEW m AS SELECT * FROM t",
    )
    assert of(database).source.other_kinds() == {
        "public.v": OtherKind("a view"),
        "public.m": OtherKind("a materialized view"),
    }


@mariadb_only
def test_views_and_sequences_of_mariadb_are_named_and_a_versioned_table_has_its_present_rows(
    mariadb: EmbeddedMariaDB,
) -> None:
    login = {"host": mariadb.host, "port": mariadb.port, "user": mariadb.user, "password": mariadb.password}
    with pymysql.connect(**login) as connection, connection.cursor() as cursor:  # type: ignore[call-overload]
        for statement in (
            "CREATE DATABASE poll_kinds",
            "CREATE TABLE poll_kinds.t (id int PRIMARY KEY)",
            "CREATE VIEW poll_kinds.v AS SELECT * FROM poll_kinds.t",
            "CREATE SEQUENCE poll_kinds.s",
            "CREATE TABLE poll_kinds.kept (id int PRIMARY KEY) WITH SYSTEM VERSIONING",
        ):
            cursor.execute(statement)
    info = ConnectionInfo("db", mariadb.host, mariadb.port, mariadb.user, mariadb.password, "poll_kinds")
    source = Polling("mysql+pymysql", info, schemas=["poll_kinds"]).source
    assert source.other_kinds() == {
        "poll_kinds.v": OtherKind("a view"),
        "poll_kinds.s": OtherKind("a sequence"),
    }
    assert [schema.table for schema in source.tables()] == ["poll_kinds.kept", "poll_kinds.t"]
