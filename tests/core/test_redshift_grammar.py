"""Every statement for Redshift is one that its guide shows; what only PostgreSQL has is refused."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any, cast

import pytest

from airflow_cdc_provider.core.spec.definition import OnDelete
from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.core.table.merge_plan import DELETED, KNOWN, OP, ORDER, MergePlan
from airflow_cdc_provider.core.table.published_cut import Cut, CutTable
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType, TableSchema
from airflow_cdc_provider.core.table.states import State, TableState
from airflow_cdc_provider.sandbox.standins.redshift_grammar import refusal
from airflow_cdc_provider.targets.database import control
from airflow_cdc_provider.targets.database.cuts import create_cut_table, create_view, invalidate_cut, write_cut
from airflow_cdc_provider.targets.database.merge_sql import merge_statements
from airflow_cdc_provider.targets.database.server import Server
from airflow_cdc_provider.targets.database.sql import (
    add_columns,
    column_list,
    create_control_table,
    staged_column_list,
)
from airflow_cdc_provider.targets.postgres.sql import PostgresSql
from airflow_cdc_provider.targets.redshift import catalog
from airflow_cdc_provider.targets.redshift.files import load_statements, unload_statement
from airflow_cdc_provider.targets.redshift.options import Json
from airflow_cdc_provider.targets.redshift.sql import RedshiftSql

LOGICAL = {
    **{kind.value: LogicalType(kind) for kind in Kind if kind is not Kind.DECIMAL},
    "decimal": LogicalType(Kind.DECIMAL, 19, 2),
    "deep": LogicalType(Kind.DECIMAL, 38, 38),
    'a "Name"': LogicalType(Kind.TEXT),
}
INITIAL: dict[Kind, str] = {
    **dict.fromkeys(Kind, "1"),
    Kind.BOOLEAN: "true",
    Kind.TEXT: '"it\'s \\\\"',
    Kind.JSON: '"{}"',
    Kind.UUID: '"x"',
    Kind.BYTES: '"AP8="',
    Kind.DATE: '"2025-01-01"',
    Kind.TIMESTAMP: '"2025-01-01"',
    Kind.TIMESTAMPTZ: '"2025-01-01Z"',
}
URL = "s3://lake/stage/x"
DIALECTS = [RedshiftSql("Shop", json) for json in Json]
RECORD = ControlRecord("shop", "t", "log", "me", "one", 1, 3, "f0", State(TableState.REPLICATING, "now"), nonce="n")


def schemas() -> Iterator[TableSchema]:
    """Keys of every type, nullable and not, of one column and of all; and no key."""
    for nullable in (False, True):
        columns = tuple(Column(name, kind, nullable) for name, kind in LOGICAL.items())
        for key in ((), tuple(LOGICAL), *((name,) for name in LOGICAL)):
            yield TableSchema("public.t", columns, key)


def plans(schema: TableSchema) -> Iterator[MergePlan]:
    added = tuple(
        Column(f"new_{name}", kind, initial=initial)
        for name, kind in LOGICAL.items()
        for initial in ("null", INITIAL[kind.kind])
    )
    for on_delete, partial, truncated, not_older, new in product(OnDelete, *[(False, True)] * 3, ((), added)):
        if schema.key or on_delete is not OnDelete.SOFT:
            yield MergePlan(schema, on_delete, partial, truncated, not_older, new)


class Recorder:
    """A cursor that keeps statements, as the driver sends them, and finds one row of nothing."""

    rowcount = 1

    def __init__(self) -> None:
        self.statements: list[str] = []

    def execute(self, statement: str, parameters: Any = None) -> None:
        assert statement.count("%s") == len(parameters or ())
        self.statements.append(statement.replace("%s", "$1"))

    def fetchone(self) -> tuple[Any, ...]:
        return (0,)

    def fetchall(self) -> list[tuple[Any, ...]]:
        return []


@dataclass(frozen=True)
class _Server:
    sql: RedshiftSql

    def comment(self, cursor: Any, table: str) -> str:
        return ""


def refused(statements: Iterator[str]) -> set[str]:
    return {f"{why}: {statement}" for statement in set(statements) if (why := refusal(statement))}


@pytest.mark.parametrize("sql", DIALECTS, ids=lambda sql: sql.json)
def test_every_merge_is_a_merge_of_redshift(sql: RedshiftSql) -> None:
    target, staged = sql.table("t"), sql.table("_cdc_s")
    assert not refused(
        statement.text
        for schema in schemas()
        for plan in plans(schema)
        for statement in merge_statements(sql, target, staged, plan)
    )


@pytest.mark.parametrize("sql", DIALECTS, ids=lambda sql: sql.json)
def test_every_table_and_every_load_is_one_of_redshift(sql: RedshiftSql) -> None:
    def statements() -> Iterator[str]:
        for schema in schemas():
            copied = [*schema.names, *([ORDER] if schema.key else []), DELETED]
            for cluster_by in ((), ("int64", "text")):
                layout = sql.layout(schema, cluster_by)
                yield from sql.create_table("t", column_list(sql, schema, True), "cdc:1", False, layout)
                yield from sql.create_table("s", staged_column_list(sql, schema), "", True, layout)
            for columns in (copied, [*schema.names, ORDER, OP, KNOWN]):
                for role in ("default", "arn:aws:iam::123456789012:role/x/loader"):
                    yield from load_statements(sql, "_cdc_s", schema, columns, URL, role)
            yield from add_columns(sql, "t", schema.columns)
            read = ", ".join(f"{sql.read_expressions(one)[0]} AS {sql.quoted(one.name)}" for one in schema.columns)
            yield unload_statement(f"SELECT {read} FROM {sql.table('t')}", URL, "default")

    assert not refused(statements())


def test_every_statement_about_our_own_tables_is_one_of_redshift() -> None:
    sql, cursor = DIALECTS[0], Recorder()
    for statement in (*create_control_table(sql, "t"), *create_cut_table(sql), create_view(sql, ["_a", "_b"])):
        cursor.execute(statement)
    for command in (
        control.insert(sql, "t", "id", RECORD),
        control.advance(sql, "t", "id", RECORD, RECORD),
        *control.delete(sql, "t", ["id"]),
        *write_cut(sql, Cut("shop", 3, "now", (CutTable("t", 3, "id"), CutTable("u", 3, "id")))),
        invalidate_cut(sql, "t"),
    ):
        command.execute(cursor)
    control.records(cast(Server, _Server(sql)), cursor, "t")
    for query in (catalog.COMMENT, catalog.COLUMNS, catalog.TABLES, catalog.GRANTS):
        cursor.execute(query, ("shop", "t"))
    for kind in ("user", "role", "group", "public"):
        cursor.execute(catalog.grant(sql.table("t"), "SELECT", kind, "bob", True))
    assert len(cursor.statements) > 15
    assert not refused(iter(cursor.statements))


ONLY_POSTGRES = [
    'INSERT INTO "t" ("n") VALUES (1) ON CONFLICT DO NOTHING',
    'INSERT INTO "t" ("n") VALUES (1) RETURNING "n"',
    'INSERT INTO "t" ("n") SELECT 1 FROM (VALUES (1)) AS v',
    'DELETE FROM "t" AS x WHERE x."n" = 1',
    'DELETE FROM "t" x WHERE x."n" = 1',
    'DELETE FROM "t" WHERE "n" = 1 RETURNING "n"',
    'UPDATE "t" SET "n" = 1 WHERE "m" IS NOT DISTINCT FROM "o"',
    'UPDATE "t" SET ("n", "m") = (1, 2)',
    'SELECT 1 FROM "t" WHERE "n" IS DISTINCT FROM 2',
    'SELECT ROW("n", "m")::VARCHAR(10) FROM "t"',
    'SELECT "n"::TEXT FROM "t"',
    'SELECT "n"::UUID FROM "t"',
    'SELECT CAST("n" AS BYTEA) FROM "t"',
    'SELECT STRING_AGG("n", \',\') FROM "t"',
    "SELECT pg_advisory_xact_lock(1)",
    'SELECT ENCODE("b", \'hex\') FROM "t"',
    'SELECT GENERATE_SERIES(1, 2) FROM "t"',
    'SELECT DISTINCT ON ("n") "n" FROM "t"',
    'SELECT "n" FROM "t" FOR UPDATE',
    'SELECT COUNT(*) FILTER (WHERE "n" = 1) FROM "t"',
    'SELECT "j" -> \'a\' FROM "t"',
    'SELECT "n" FROM "t" WHERE "n" = ANY ($1)',
    'SELECT 1 FROM "t" AS a WHERE NOT EXISTS (SELECT 1 FROM "u" AS b WHERE a."n" = b."n" OR b."n" IS NULL)',
    'SELECT pg_last_unload_count() FROM "t"',
    'CREATE INDEX "i" ON "t" ("n")',
    'CREATE UNLOGGED TABLE "t" ("n" INTEGER)',
    'CREATE TABLE "t" ("n" TEXT)',
    'CREATE TABLE "t" ("n" INTEGER CHECK ("n" > 0))',
    'CREATE TABLE "t" ("j" JSONB)',
    'CREATE TABLE "t" ("s" VARCHAR(9) COLLATE "C")',
    'CREATE TABLE "t" (LIKE "u")PARTITION BY RANGE ("n")',
    'CREATE TABLE "T" ("n" INTEGER)',
    'ALTER TABLE "t" ADD COLUMN "a" INTEGER, ADD COLUMN "b" INTEGER',
    'ALTER TABLE "t" ADD COLUMN IF NOT EXISTS "a" INTEGER',
    'ALTER TABLE "t" ALTER COLUMN "a" SET NOT NULL',
    'DROP TABLE "t", "u"',
    'LOCK TABLE "t" IN EXCLUSIVE MODE',
    'LOCK "t" NOWAIT',
    "SAVEPOINT one",
    "SET LOCAL statement_timeout TO 5",
    "SET lock_timeout TO '5s'",
    'TRUNCATE "t"',
    'VACUUM "t"',
    'MERGE INTO "t" USING "s" ON "t"."n" = "s"."n" WHEN MATCHED AND "s"."d" THEN DELETE',
    'COPY "t" FROM STDIN',
    'COPY "t" ("n") FROM \'s3://b/m\' IAM_ROLE default FORMAT AS PARQUET MANIFEST',
    "COPY \"t\" FROM 's3://b/m' ACCESS_KEY_ID 'a' SECRET_ACCESS_KEY 'b' FORMAT AS PARQUET MANIFEST",
    "UNLOAD ('SELECT 1::TEXT') TO 's3://b/r' IAM_ROLE default FORMAT AS PARQUET MANIFEST MAXFILESIZE 5 MB",
    'DELETE FROM "t"; DELETE FROM "u"',
    "SELECT 1 -- a comment",
]


@pytest.mark.parametrize("statement", ONLY_POSTGRES)
def test_what_only_postgres_accepts_is_refused(statement: str) -> None:
    try:
        assert refusal(statement)
    except ValueError as error:
        assert str(error).startswith("no token")


def test_the_statements_of_the_postgres_target_are_refused() -> None:
    sql = PostgresSql("shop")
    schema = TableSchema("public.t", (Column("id", LogicalType(Kind.INT64), True), Column("v", LogicalType(Kind.TEXT))))
    keyed = TableSchema("public.t", schema.columns, ("id",))
    merges = [
        statement.text
        for one in (schema, keyed)
        for statement in merge_statements(sql, sql.table("t"), sql.table("s"), MergePlan(one, OnDelete.HARD))
    ]
    created = sql.create_table("t", column_list(sql, schema, False), "", True)
    assert all(refusal(text) for text in created)
    assert {text.split()[0] for text in merges if refusal(text)} == {"DELETE", "INSERT"}
