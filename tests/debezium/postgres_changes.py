"""The changes in a PostgreSQL that Debezium captures: every type, and every kind of change."""

from __future__ import annotations

from typing import Any

import psycopg
from psycopg.rows import dict_row

from airflow_cdc_provider.sandbox.postgres import EmbeddedPostgres
from tests.debezium.connection_settings import connection_settings

PREFIX = "pg"
DATABASE = "shop"
KEYED = (
    "public.kinds",
    "public.arrays",
    "public.people",
    "public.whole",
    "public.pairs",
    "public.emptied",
    "public.changing",
)
KEYLESS = "public.keyless"

READ_AS = {
    "public.kinds": {
        **dict.fromkeys(("at3", "at6", "doc", "docb", "mood", "span4", "bits"), "{}::text"),
        **dict.fromkeys(("numbers", "words"), "to_json({})::text"),
        "atz": "replace((atz AT TIME ZONE 'UTC')::text, '+00', 'Z')",
        "money": "money::numeric",
        "one_bit": "one_bit::int::boolean",
        # Bits arrive with the maximum length of their column.
        "varbits": "lpad(varbits::text, 12, '0')",
        # NaN arrives as null.
        "free": "nullif(free, 'NaN')",
        # A year has 365.25 days there, a month a twelfth of that.
        "span": "(extract(epoch FROM span - date_trunc('month', span)) * 1000000)::bigint"
        " + (extract(year FROM span) * 12 + extract(month FROM span))::bigint * 2629800000000",
    },
    "public.arrays": {
        **dict.fromkeys(
            ("prices", "free", "days", "at3", "at6", "moments", "flags", "halves", "uids", "moods", "hosts"),
            "to_json({})::text",
        ),
        "zoned": "replace(to_json(zoned)::text, '+00:00', 'Z')",
        "blobs": "(SELECT to_json(array_agg(encode(one, 'base64')))::text FROM unnest(blobs) one)",
        "docs": "to_json(docs::text[])::text",
    },
}
"""How a column is read where the change log has another form than the driver."""

TABLES = """
CREATE TYPE mood AS ENUM ('sad', 'so so', 'happy');
CREATE TABLE kinds (
    id int PRIMARY KEY, small smallint, big bigint, price numeric(20, 4), free numeric, single real,
    double double precision, flag boolean, fixed char(5), short varchar(20), long text, bytes bytea, day date,
    at3 time(3), at6 time(6), atz timetz, moment timestamp, moment3 timestamp(3), zoned timestamptz, span interval,
    uid uuid, doc json, docb jsonb, numbers int[], words text[], mood mood, host inet, money money, one_bit bit(1),
    bits bit(12), varbits varbit(12), span4 int4range
);
CREATE TABLE arrays (
    id int PRIMARY KEY, prices numeric(20, 4)[], free numeric[], days date[], at3 time(3)[], at6 time[],
    moments timestamp[], zoned timestamptz[], blobs bytea[], flags boolean[], halves real[], uids uuid[], docs jsonb[],
    moods mood[], hosts inet[]
);
CREATE TABLE people (id int PRIMARY KEY, name text, wide text, blob bytea, amount numeric(10, 2));
ALTER TABLE people ALTER wide SET STORAGE EXTERNAL, ALTER blob SET STORAGE EXTERNAL;
CREATE TABLE whole (id int PRIMARY KEY DEFERRABLE INITIALLY DEFERRED, name text, wide text);
ALTER TABLE whole REPLICA IDENTITY FULL;
ALTER TABLE whole ALTER wide SET STORAGE EXTERNAL;
CREATE TABLE pairs (a int, b text, value numeric(8, 3), PRIMARY KEY (a, b));
CREATE TABLE emptied (id int PRIMARY KEY, name text);
CREATE TABLE changing (id int PRIMARY KEY, name text, gone text);
CREATE TABLE keyless (name text, amount int);
ALTER TABLE keyless REPLICA IDENTITY FULL;
"""

BEFORE = """
INSERT INTO kinds (id) VALUES (0);
INSERT INTO kinds VALUES (
    1, -32768, -9223372036854775808, -1234567890123456.7891, 1e-20, -1.5, 1e300, true, 'ab', 'naïve', E'tab\\t"q"\\n',
    '\\x00ff10', '0001-01-01', '00:00:00', '23:59:59.999999', '12:30:00.5+05:30', '1969-12-31 23:59:59.999999',
    '2024-02-29 12:00:00.123', '2024-06-01 12:00:00.123456+02', '1 year 2 mons 3 days 04:05:06.7',
    '00000000-0000-0000-0000-000000000001', '{"b": 1,  "a": [1, null]}', '{"b": 1.50, "a": "é"}', '{1,NULL,3}',
    '{"a,b",NULL,"q\\"x"}', 'so so', '10.0.0.1/8', '-12.34', B'1', B'000011110000', B'101', '[1,5)'
);
INSERT INTO arrays VALUES (
    1, '{-1234567890123456.7891, 0, NULL}', '{1.5, NULL, 1e20}', '{2024-02-29, NULL, 0001-01-01}', '{12:34:56.5}',
    '{23:59:59.999, 00:00:00}', '{2024-02-29 12:34:56.123456, NULL}', '{2024-02-29 12:34:56.123456+02}',
    '{"\\\\x00ff", NULL}', '{t, f, NULL}', '{1.5, NaN}', '{11111111-2222-3333-4444-555555555555}',
    array['{"a": [1, "x"]}'::jsonb, NULL], '{happy}', '{10.0.0.1/8}'
);
INSERT INTO arrays (id) VALUES (2);
INSERT INTO people SELECT n, 'p' || n, repeat(chr(64 + n), 2500), decode(repeat('0' || n, 2500), 'hex'), n * 1.25
    FROM generate_series(1, 6) n;
INSERT INTO whole SELECT n, 'w' || n, repeat(chr(96 + n), 2500) FROM generate_series(1, 4) n;
INSERT INTO pairs SELECT n, chr(96 + n), n / 8.0 FROM generate_series(1, 4) n;
INSERT INTO emptied SELECT n, 'e' || n FROM generate_series(1, 3) n;
INSERT INTO changing SELECT n, 'c' || n, 'g' || n FROM generate_series(1, 3) n;
INSERT INTO keyless VALUES ('same', 1), ('same', 1), ('other', NULL);
"""

AFTER = (
    # All types again, as changes: the largest values, NaN, infinity, empty values.
    """INSERT INTO kinds VALUES (
        2, 32767, 9223372036854775807, 9999999999999999.9999, 123456789012345678901234567890.123456789, 'NaN',
        '-Infinity', false, '', '', '', '', '9999-12-31', '12:00:00.123', '00:00:00.000001', '00:00:00-12',
        '9999-12-31 23:59:59.999999', '1970-01-01', '1970-01-01+00', '-1 mons +2 days -00:00:01',
        'ffffffff-ffff-ffff-ffff-ffffffffffff', 'null', '[]', '{}', '{}', 'happy', '::1', '92233720368547758.07', B'0',
        B'111111111111', B'', 'empty'
    )""",
    "UPDATE kinds SET small = NULL, price = 0, docb = NULL, numbers = '{4}', zoned = NULL WHERE id = 1",
    "INSERT INTO arrays SELECT 3, prices, free, days, at3, at6, moments, zoned, blobs, flags FROM arrays WHERE id = 1",
    "UPDATE arrays SET prices = '{0.0001}', halves = '{}', days = NULL WHERE id = 1",
    # Unchanged TOAST values are not sent.
    "UPDATE people SET name = 'short changed' WHERE id = 1",
    "UPDATE people SET wide = 'now short', amount = NULL WHERE id = 2",
    "UPDATE whole SET name = 'whole changed' WHERE id = 1",
    # Keys: a move with an unchanged TOAST value, a swap in one statement, away and back in one transaction.
    "UPDATE people SET id = 40, name = 'moved' WHERE id = 4",
    "UPDATE whole SET id = 5 - id WHERE id IN (1, 4)",
    "BEGIN; DELETE FROM people WHERE id = 3; INSERT INTO people (id, name) VALUES (3, 'back'); COMMIT",
    "BEGIN; UPDATE whole SET id = 30 WHERE id = 3; UPDATE whole SET id = 3 WHERE id = 4; COMMIT",
    "UPDATE pairs SET b = 'moved' WHERE a = 1; DELETE FROM pairs WHERE a = 2; UPDATE pairs SET value = -1 WHERE a = 3",
    "DELETE FROM whole WHERE id = 2",
    # A table that is emptied, and filled again in the same transaction.
    "BEGIN; TRUNCATE emptied; INSERT INTO emptied VALUES (2, 'after'); COMMIT",
    # Columns are added and dropped.
    "ALTER TABLE changing ADD COLUMN more numeric(6, 2)",
    "UPDATE changing SET more = 1.5 WHERE id = 1; INSERT INTO changing VALUES (4, 'c4', 'g4', 2)",
    "ALTER TABLE changing DROP COLUMN gone",
    "UPDATE changing SET name = 'after the drop' WHERE id = 2; DELETE FROM changing WHERE id = 3",
    # Messages without a table.
    "SELECT pg_logical_emit_message(true, 'note', 'inside'), pg_logical_emit_message(false, 'note', 'outside')",
    # Equal rows.
    "COPY keyless FROM PROGRAM 'printf \"same\\t1\\nsame\\t1\\n\"'",
    "DELETE FROM keyless WHERE ctid = (SELECT min(ctid) FROM keyless WHERE name = 'same')",
    "UPDATE keyless SET amount = 2 WHERE ctid = (SELECT max(ctid) FROM keyless WHERE name = 'same')",
)


def prepare(server: EmbeddedPostgres) -> None:
    with psycopg.connect(server.dsn(), autocommit=True) as session:
        session.execute(f"CREATE DATABASE {DATABASE}")
    with psycopg.connect(server.dsn(DATABASE)) as session:
        session.execute(TABLES)
        session.execute(BEFORE)


def apply_changes(server: EmbeddedPostgres) -> None:
    with psycopg.connect(server.dsn(DATABASE), autocommit=True) as session:
        for statement in AFTER:
            session.execute(statement)
    _commit_in_reverse(server)


def _commit_in_reverse(server: EmbeddedPostgres) -> None:
    """Two concurrent transactions: the first to write commits last."""
    with psycopg.connect(server.dsn(DATABASE)) as first, psycopg.connect(server.dsn(DATABASE)) as second:
        first.execute("UPDATE people SET name = 'first to write' WHERE id = 5")
        second.execute("UPDATE people SET name = 'first to commit' WHERE id = 6")
        second.commit()
        first.execute("UPDATE people SET name = 'last to commit' WHERE id = 5")


def final_rows(server: EmbeddedPostgres) -> dict[str, list[dict[str, Any]]]:
    """Table → its rows."""
    with psycopg.connect(server.dsn(DATABASE), row_factory=dict_row) as session:
        return {table: _rows(session, table) for table in (*KEYED, KEYLESS)}


def _rows(session: psycopg.Connection[dict[str, Any]], table: str) -> list[dict[str, Any]]:
    names = [column.name for column in session.execute(f"SELECT * FROM {table} LIMIT 0").description or ()]
    expressions = READ_AS.get(table, {})
    chosen = ", ".join(f"{expressions.get(name, name).format(name)} AS {name}" for name in names)
    return session.execute(f"SELECT {chosen} FROM {table} ORDER BY 1").fetchall()


def connector(server: EmbeddedPostgres, prefix: str = PREFIX) -> dict[str, str]:
    return {
        "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
        "topic.prefix": prefix,
        "plugin.name": "pgoutput",
        "slot.name": prefix,
        "publication.name": prefix,
        **connection_settings(server),
        "database.dbname": DATABASE,
        "provide.transaction.metadata": "true",
        "skipped.operations": "none",
        "include.unknown.datatypes": "true",
    }
