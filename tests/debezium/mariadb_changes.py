"""The changes in a MariaDB that Debezium captures: every type, and every kind of change."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pymysql
from pymysql.constants import FIELD_TYPE
from pymysql.converters import conversions, convert_datetime
from pymysql.cursors import DictCursor

from airflow_cdc_provider.sandbox.mariadb import EmbeddedMariaDB
from tests.debezium.connection_settings import connection_settings

PREFIX = "my"
DATABASE = "shop"
KEYED = ("shop.kinds", "shop.people", "shop.pairs", "shop.emptied", "shop.changing")

READ_AS = {
    "shop.kinds": {
        **dict.fromkeys(("at0", "at6"), "CAST({} AS char)"),
        **dict.fromkeys(("flag", "one_bit"), "{} + 0"),
        "bits": "LPAD(BIN(bits), 12, '0')",
    }
}
"""How a column is read where the change log has another form than the driver."""

TABLES = (
    """CREATE TABLE kinds (
        id int PRIMARY KEY, tiny tinyint, small smallint unsigned, medium mediumint, big bigint, huge bigint unsigned,
        price decimal(20, 4), wide decimal(60, 10), single float, `double` double, flag tinyint(1), one_bit bit(1),
        bits bit(12), fixed char(5), short varchar(20), `long` longtext, bytes blob, some varbinary(10), day date,
        at0 time, at6 time(6), moment datetime, moment3 datetime(3), moment6 datetime(6), zoned timestamp(6) NULL,
        y year, mood enum('sad', 'so so', 'happy'), tags set('a', 'b', 'c'), doc json
    ) CHARACTER SET utf8mb4""",
    "CREATE TABLE people (id int PRIMARY KEY, name varchar(50), notes text, amount decimal(10, 2))",
    "CREATE TABLE pairs (a int, b varchar(10), value decimal(8, 3), PRIMARY KEY (a, b))",
    "CREATE TABLE emptied (id int PRIMARY KEY, name varchar(10))",
    "CREATE TABLE changing (id int PRIMARY KEY, name varchar(10), gone varchar(10))",
)

BEFORE = (
    "INSERT INTO kinds (id) VALUES (0)",
    r"""INSERT INTO kinds VALUES (
        1, -128, 0, -8388608, -9223372036854775808, 18446744073709551615, -1234567890123456.7891,
        12345678901234567890123456789012345678901234567890.0123456789, -1.5, 1e300, 1, b'1', b'000011110000', 'ab',
        'naïve 🙂', 'tab\t"q"\n', x'00ff10', x'00', '1000-01-01', '-838:59:59', '23:59:59.999999',
        '1000-01-01 00:00:00',
        '2024-02-29 12:00:00.123', '1969-12-31 23:59:59.999999', '2024-06-01 12:00:00.123456', 1901, 'so so', 'a,c',
        '{"b": 1,  "a": [1, null]}'
    )""",
    "INSERT INTO people SELECT seq, CONCAT('p', seq), REPEAT('x', 1000 + seq), seq * 1.25 FROM seq_1_to_8",
    "INSERT INTO pairs VALUES (1, 'a', 0.125), (2, 'b', 0.25), (3, 'c', 0.375), (4, 'd', 0.5)",
    "INSERT INTO emptied VALUES (1, 'e1'), (2, 'e2')",
    "INSERT INTO changing VALUES (1, 'c1', 'g1'), (2, 'c2', 'g2'), (3, 'c3', 'g3')",
)

AFTER = (
    """INSERT INTO kinds VALUES (
        2, 127, 65535, 8388607, 9223372036854775807, 9223372036854775808, 9999999999999999.9999, 0, 0, -0.0, 0, b'0',
        b'111111111111', '', '', '', '', '', '9999-12-31', '838:59:59', '-00:00:00.000001', '9999-12-31 23:59:59',
        '1970-01-01', '9999-12-31 23:59:59.999999', '1970-01-01 00:00:01', 2155, 'happy', '', 'null'
    )""",
    "UPDATE kinds SET small = NULL, price = 0, doc = NULL, tags = 'b', zoned = NULL WHERE id = 1",
    # One statement with many rows; keys that move, onto one another, and away and back.
    "UPDATE people SET amount = amount + 1 WHERE id < 5",
    "UPDATE people SET id = id + 100 WHERE id IN (3, 4) ORDER BY id DESC",
    "BEGIN; DELETE FROM people WHERE id = 1; INSERT INTO people (id, name) VALUES (1, 'back'); COMMIT",
    "BEGIN; UPDATE people SET id = 0 WHERE id = 5; UPDATE people SET id = 5 WHERE id = 6; "
    "UPDATE people SET id = 6 WHERE id = 0; COMMIT",
    "REPLACE INTO people VALUES (7, 'replaced', NULL, NULL)",
    "INSERT INTO people VALUES (8, 'n', 'n', 1) ON DUPLICATE KEY UPDATE name = 'upserted'",
    "UPDATE pairs SET b = 'moved' WHERE a = 1; DELETE FROM pairs WHERE a = 2; UPDATE pairs SET value = -1 WHERE a = 3",
    "TRUNCATE emptied",
    "INSERT INTO emptied VALUES (2, 'after')",
    "ALTER TABLE changing ADD COLUMN more decimal(6, 2)",
    "UPDATE changing SET more = 1.5 WHERE id = 1; INSERT INTO changing VALUES (4, 'c4', 'g4', 2)",
    "ALTER TABLE changing DROP COLUMN gone",
    "UPDATE changing SET name = 'after' WHERE id = 2; DELETE FROM changing WHERE id = 3",
    "BEGIN; INSERT INTO people VALUES (9, 'never', NULL, NULL); ROLLBACK",
)


def prepare(server: EmbeddedMariaDB) -> None:
    with _session(server) as session, session.cursor() as cursor:
        cursor.execute(f"CREATE DATABASE {DATABASE}")
        cursor.execute(f"USE {DATABASE}")
        for statement in (*TABLES, *BEFORE):
            cursor.execute(statement)
        session.commit()


def apply_changes(server: EmbeddedMariaDB) -> None:
    with _session(server, database=DATABASE, autocommit=True) as session, session.cursor() as cursor:
        for statements in AFTER:
            for statement in statements.split("; "):
                cursor.execute(statement)


def final_rows(server: EmbeddedMariaDB) -> dict[str, list[dict[str, Any]]]:
    """Table → its rows."""
    with _session(server, database=DATABASE, cursorclass=DictCursor) as session, session.cursor() as cursor:
        return {table: _rows(cursor, table) for table in KEYED}


def _rows(cursor: DictCursor, table: str) -> list[dict[str, Any]]:
    cursor.execute(f"SELECT * FROM {table} LIMIT 0")
    expressions = READ_AS.get(table, {})
    quoted = [(column[0], f"`{column[0]}`") for column in cursor.description or ()]
    chosen = ", ".join(f"{expressions.get(name, '{}').format(column)} AS {column}" for name, column in quoted)
    cursor.execute(f"SELECT {chosen} FROM {table} ORDER BY 1")
    return list(cursor.fetchall())


def connector(server: EmbeddedMariaDB, prefix: str = PREFIX, server_id: int = 4711) -> dict[str, str]:
    return {
        "connector.class": "io.debezium.connector.mariadb.MariaDbConnector",
        "topic.prefix": prefix,
        **connection_settings(server),
        "database.server.id": str(server_id),
        "database.include.list": DATABASE,
        "provide.transaction.metadata": "true",
        "skipped.operations": "none",
        "column.propagate.source.type": ".*",
        "schema.history.internal": "io.debezium.storage.file.history.FileSchemaHistory",
        "schema.history.internal.file.filename": f"{prefix}.history",
    }


def _session(server: EmbeddedMariaDB, **more: Any) -> pymysql.Connection[Any]:
    return pymysql.connect(
        host=server.host,
        port=server.port,
        user=server.user,
        password=server.password,
        charset="utf8mb4",
        init_command="SET time_zone = '+00:00'",
        conv=conversions | {FIELD_TYPE.TIMESTAMP: _moment},
        **more,
    )


def _moment(text: str) -> datetime:
    moment: datetime = convert_datetime(text)
    return moment.replace(tzinfo=UTC)
