"""Unlogged changes by statements, as the catalog shows them."""

from __future__ import annotations

import pytest

from airflow_cdc_provider.connectors.sources.postgres.source import PostgresSource
from airflow_cdc_provider.core.table.identity import unlogged_changes
from tests.connectors.conftest import Database

TABLE = "public.t"
PLAIN = ("CREATE TABLE t (id int PRIMARY KEY, a int, v varchar(10), g int GENERATED ALWAYS AS (id + 1) STORED)",)
ROW = "INSERT INTO t (id) VALUES (1)"
ENUM_TYPE = "CREATE TYPE mood AS ENUM ('sad', 'ok')"
DOMAIN = "CREATE DOMAIN whole AS int"
NESTED = (
    "CREATE TABLE t (id int PRIMARY KEY, a int) PARTITION BY RANGE (id)",
    "CREATE TABLE middle PARTITION OF t FOR VALUES FROM (0) TO (100) PARTITION BY RANGE (id)",
    "CREATE TABLE leaf PARTITION OF middle FOR VALUES FROM (0) TO (10)",
)
ATTACHED = "ATTACH PARTITION leaf FOR VALUES FROM (0) TO (10)"
NEW = "CREATE TABLE new (id int PRIMARY KEY, a int)"
UNLOGGED_LEAF = "CREATE UNLOGGED TABLE new PARTITION OF middle FOR VALUES FROM (10) TO (20)"
JOINS = "ALTER TABLE middle ATTACH PARTITION new FOR VALUES FROM (10) TO (20)"


def enum(column: str, *before: str) -> tuple[str, ...]:
    return (ENUM_TYPE, *before, f"CREATE TABLE t (id int PRIMARY KEY, m {column})")


REWRITTEN = "rewritten"
RENAMED_LABEL = "enum label sad was renamed to blue"
DOUBTED_LABEL = "an enum label was renamed, and has its former name again: sad"
DOUBTED_KEY = "the table got its primary key anew: rows may have had equal keys before"
KEY_RETURNS = ("ALTER TABLE t DROP CONSTRAINT t_pkey", "ALTER TABLE t ADD PRIMARY KEY (id)")
NEW_ATTRIBUTE = "the attributes of a composite type changed"
CASES: dict[str, tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]] = {
    "vacuum full": (PLAIN, ("VACUUM FULL t",), (REWRITTEN,)),
    "truncate": (PLAIN, ("TRUNCATE t",), ()),
    "truncate of another table": (
        (*PLAIN, "CREATE TABLE other (id int PRIMARY KEY)"),
        ("TRUNCATE other", "VACUUM FULL t"),
        (REWRITTEN,),
    ),
    "other values behind a truncate": (
        PLAIN,
        ("TRUNCATE t", ROW, "ALTER TABLE t ALTER a TYPE int USING a * 2 + 7"),
        (REWRITTEN,),
    ),
    "varchar to text": (PLAIN, ("ALTER TABLE t ALTER v TYPE text",), ()),
    "varchar longer": (PLAIN, ("ALTER TABLE t ALTER v TYPE varchar(20)",), ()),
    "varchar to char": (
        PLAIN,
        ("ALTER TABLE t ALTER v TYPE char(10)",),
        ("column v changed from character varying(10) to character(10)", REWRITTEN),
    ),
    "int to a domain of it": ((DOMAIN, *PLAIN), ("ALTER TABLE t ALTER a TYPE whole",), ()),
    "a generated column becomes an ordinary one": (
        PLAIN,
        ("ALTER TABLE t ALTER g DROP EXPRESSION",),
        ("column g was a generated column and is an ordinary column now",),
    ),
    "an enum label": (enum("mood"), ("ALTER TYPE mood RENAME VALUE 'sad' TO 'blue'",), (RENAMED_LABEL,)),
    "a new enum label": (enum("mood"), ("ALTER TYPE mood ADD VALUE 'new' BEFORE 'ok'",), ()),
    "an enum label in an array": (
        enum("mood[]"),
        ("ALTER TYPE mood RENAME VALUE 'sad' TO 'blue'",),
        (RENAMED_LABEL,),
    ),
    "an enum label in a domain": (
        enum("feeling", "CREATE DOMAIN feeling AS mood"),
        ("ALTER TYPE mood RENAME VALUE 'sad' TO 'blue'",),
        (RENAMED_LABEL,),
    ),
    "an enum label in a range": (
        enum("moods", "CREATE TYPE moods AS RANGE (subtype = mood)"),
        ("ALTER TYPE mood RENAME VALUE 'sad' TO 'blue'",),
        (RENAMED_LABEL,),
    ),
    "an enum label in a composite type": (
        enum("pair", "CREATE TYPE pair AS (a int, m mood)"),
        ("ALTER TYPE mood RENAME VALUE 'sad' TO 'blue'",),
        (RENAMED_LABEL,),
    ),
    "an enum label was renamed and renamed back": (
        enum("mood"),
        ("ALTER TYPE mood RENAME VALUE 'sad' TO 'blue'", "ALTER TYPE mood RENAME VALUE 'blue' TO 'sad'"),
        (DOUBTED_LABEL,),
    ),
    "the key left and returned, and whole rows were in the stream meanwhile": (
        PLAIN,
        ("ALTER TABLE t REPLICA IDENTITY FULL", *KEY_RETURNS, "ALTER TABLE t REPLICA IDENTITY DEFAULT"),
        (DOUBTED_KEY,),
    ),
    "the index of the key is built anew": (
        PLAIN,
        ("CREATE UNIQUE INDEX ON t (id)", "REINDEX TABLE t", "REINDEX TABLE CONCURRENTLY t"),
        (),
    ),
    "an attribute of a composite type": (
        enum("pair", "CREATE TYPE pair AS (a int, m mood)"),
        ("ALTER TYPE pair ADD ATTRIBUTE z int",),
        (NEW_ATTRIBUTE,),
    ),
    "another table of the name": (
        PLAIN,
        ("ALTER TABLE t RENAME TO old", *PLAIN),
        ("the table was replaced by another one of the same name",),
    ),
    "a leaf left and returned": (
        NESTED,
        ("ALTER TABLE middle DETACH PARTITION leaf", f"ALTER TABLE middle {ATTACHED}"),
        (REWRITTEN,),
    ),
    "a branch left and returned": (
        NESTED,
        (
            "ALTER TABLE t DETACH PARTITION middle",
            "ALTER TABLE t ATTACH PARTITION middle FOR VALUES FROM (0) TO (100)",
        ),
        (REWRITTEN,),
    ),
    "a truncate of the whole table": (NESTED, ("TRUNCATE t", "INSERT INTO t VALUES (7)"), ()),
    "a leaf is truncated after the whole table": (
        (*NESTED, "CREATE TABLE second PARTITION OF t FOR VALUES FROM (100) TO (200)"),
        ("TRUNCATE t", ROW.replace("1", "7"), "TRUNCATE leaf"),
        (REWRITTEN,),
    ),
    "a leaf was changed outside and returned before the whole table was truncated": (
        NESTED,
        (f"ALTER TABLE middle DETACH PARTITION leaf; ALTER TABLE middle {ATTACHED}", "TRUNCATE t"),
        (REWRITTEN,),
    ),
    "a leaf is rewritten": (NESTED, ("VACUUM FULL leaf",), (REWRITTEN,)),
    "a leaf is detached": (
        NESTED,
        ("ALTER TABLE middle DETACH PARTITION leaf",),
        ("partition public.leaf was detached or dropped with its rows",),
    ),
    "an empty leaf joins": (NESTED, (NEW, JOINS, "INSERT INTO t VALUES (10)"), ()),
    "a leaf joins with rows": (
        NESTED,
        (NEW, "INSERT INTO new VALUES (10)", JOINS),
        ("partition public.new was attached with rows in it",),
    ),
    "a leaf joins with rows and percent signs": (
        NESTED,
        (
            NEW,
            'ALTER TABLE new RENAME TO "5%s {off} %"',
            'INSERT INTO "5%s {off} %" VALUES (10)',
            JOINS.replace("new", '"5%s {off} %"'),
        ),
        ('partition public."5%s {off} %" was attached with rows in it',),
    ),
    "a leaf joins in the transaction that filled it": (
        NESTED,
        (f"BEGIN; {NEW}; INSERT INTO new VALUES (10); {JOINS}; COMMIT",),
        ("partition public.new was attached with rows in it",),
    ),
    "a leaf is filled before it is logged": (
        NESTED,
        (UNLOGGED_LEAF, "INSERT INTO t VALUES (10)", "ALTER TABLE new SET LOGGED"),
        (REWRITTEN,),
    ),
    "a leaf was not logged for some time": (
        NESTED,
        ("ALTER TABLE leaf SET UNLOGGED", "UPDATE t SET a = 7", "ALTER TABLE leaf SET LOGGED"),
        (REWRITTEN,),
    ),
    "a new leaf is logged before the whole table is truncated": (
        NESTED,
        (UNLOGGED_LEAF, "INSERT INTO t VALUES (10)", "ALTER TABLE new SET LOGGED", "TRUNCATE t"),
        (),
    ),
    "a leaf is filled in the transaction that attached it": (
        NESTED,
        (f"BEGIN; {NEW}; {JOINS}; INSERT INTO t VALUES (10); COMMIT",),
        (),
    ),
    "analyze, an index, a comment": (
        PLAIN,
        (
            "VACUUM ANALYZE t",
            "CREATE INDEX ON t (a)",
            "COMMENT ON TABLE t IS 'x'",
            "ALTER TABLE t ALTER a SET DEFAULT 7",
        ),
        (),
    ),
}


def unlogged(database: Database, source: PostgresSource, statements: tuple[str, ...]) -> tuple[str, ...]:
    database.sql(ROW)
    start = source.open_stream([TABLE])
    known, held = source.identities([TABLE])[TABLE], database.task(TABLE).schema
    database.sql(*statements)
    now = source.identities([TABLE])[TABLE]
    changes = unlogged_changes(known, now, held, database.task(TABLE).schema)
    left = source.not_streamed(TABLE, start, now, changes, truncated=False)
    return (*left.columns, *left.rows, *filter(None, [left.doubted]), *([REWRITTEN] if left.rewritten else []))


@pytest.mark.parametrize("name", CASES)
def test_unlogged_changes_are_found_in_the_catalog(database: Database, name: str) -> None:
    make, statements, expected = CASES[name]
    database.sql(*make)
    database.publish(*(["t", "other"] if "CREATE TABLE other" in " ".join(make) else ["t"]))
    assert unlogged(database, database.source, statements) == expected


def test_rows_of_a_partition_that_may_not_be_read_count_as_changed(database: Database) -> None:
    role = f"reader_{database.name}"
    database.sql(*NESTED, f"CREATE ROLE {role} LOGIN REPLICATION PASSWORD 'x'", f"GRANT SELECT ON t TO {role}")
    database.publish("t")
    source = database.source_as(role, "x")
    attached = (f"BEGIN; {NEW}; {JOINS}; INSERT INTO t VALUES (10); COMMIT",)
    assert unlogged(database, source, attached) == ("partition public.new was attached with rows in it",)
