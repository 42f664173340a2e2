"""A replicator from one kind of database into any target, and the comments of columns on both sides."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from deltalake import DeltaTable
from pyspark.sql import SparkSession

from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo, Secrets
from airflow_cdc_provider.core.spec.columns import Columns
from airflow_cdc_provider.core.spec.definition import Definition, Source, Staging, TableRule, Target
from airflow_cdc_provider.targets.delta.target import DeltaTarget
from airflow_cdc_provider.targets.iceberg.target import IcebergTarget
from tests.spark.databases import Database
from tests.spark.pipelines.pipeline import Pipeline

SCHEMA, TABLE, COPY = "commented", "commented.t", "commented_t"
MAKE = (
    f"CREATE TABLE {TABLE} (id int PRIMARY KEY, v varchar(20), n int, mail varchar(20), note varchar(20))",
    f"INSERT INTO {TABLE} VALUES (1, 'a', 10, 'a@b', 'x'), (2, 'b', 20, 'c@d', 'y')",
)
TYPES = {"id": "int NOT NULL", "v": "varchar(20)", "n": "int", "mail": "varchar(20)", "note": "varchar(20)"}
FOUND = {
    "postgres": "SELECT attname, col_description(attrelid, attnum) FROM pg_attribute"
    " WHERE attrelid = '{schema}.{table}'::regclass AND col_description(attrelid, attnum) IS NOT NULL",
    "mysql": "SELECT column_name, column_comment FROM information_schema.columns"
    " WHERE table_schema = '{schema}' AND table_name = '{table}' AND column_comment <> ''",
}
PUBLISH = f"CREATE PUBLICATION {SCHEMA} FOR TABLES IN SCHEMA {SCHEMA}"
LEAVE = (
    f"DROP PUBLICATION {SCHEMA}",
    f"SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name LIKE '%{SCHEMA}%'",
)


@dataclass
class Commented(Pipeline):
    """``source``: has the table. ``database``: of the target, if it is one."""

    source: Database
    database: Database | None

    @property
    def secrets(self) -> Secrets:
        return Secrets(self.source.connection, self.database.connection if self.database else ConnectionInfo())

    def comment(self, column: str, text: str) -> None:
        """At the source. A statement of its own, not by the product's way to write literals."""
        with self.source.session() as cursor:
            if self.source.kind == "postgres":
                cursor.execute("SELECT quote_literal(%s)", [text])
                cursor.execute(f"COMMENT ON COLUMN {TABLE}.{column} IS {cursor.fetchone()[0]}")
            else:
                cursor.execute("SELECT QUOTE(%s)", [text])
                (literal,) = cursor.fetchone()
                cursor.execute(f"ALTER TABLE {TABLE} MODIFY {column} {TYPES[column]} COMMENT {literal}")

    def widen(self) -> None:
        mysql = self.source.kind == "mysql"
        change = f"MODIFY n bigint COMMENT '{comments_in(self.source, 't')['n']}'" if mysql else "ALTER n TYPE bigint"
        self.source.execute(f"ALTER TABLE {TABLE} {change}", f"UPDATE {TABLE} SET n = n + 1")

    def copied(self) -> dict[str, str]:
        """The comments of the copy, by another library."""
        target = self.replicator().targets.only
        if isinstance(target, IcebergTarget):
            with target.open(COPY) as (_, table):
                return {field.name: field.doc for field in table.schema().fields if field.doc}
        if isinstance(target, DeltaTarget):
            fields = json.loads(DeltaTable(target.locate(COPY)).schema().to_json())["fields"]
            return {field["name"]: field["metadata"]["comment"] for field in fields if "comment" in field["metadata"]}
        assert self.database
        return comments_in(self.database, COPY)

    def rows(self) -> int:
        if self.database:
            return int(self.database.execute(f"SELECT count(*) FROM {self.database.schema}.{COPY}")[0][0])
        target = self.replicator().targets.only
        if isinstance(target, IcebergTarget):
            with target.open(COPY) as (_, table):
                return int(table.scan().to_arrow().num_rows)
        return len(self.copied_rows(TABLE, "id"))


def comments_in(database: Database, table: str) -> dict[str, str]:
    return dict(database.execute(FOUND[database.kind].format(schema=database.schema, table=table)))


@contextlib.contextmanager
def commented(
    folder: Path, spark: SparkSession, source: Database, kind: str, database: Database | None
) -> Iterator[Commented]:
    """The table has no comments yet. ``kind``: of the target."""
    postgres = source.kind == "postgres"
    source.execute(*MAKE, *([PUBLISH] if postgres else []))
    options = {"publication": SCHEMA} if postgres else {"databases": (SCHEMA,)}
    definition = Definition(
        name=SCHEMA,
        source=Source(source.kind, "source", options=options),
        target=database.target if database else Target(kind, f"{folder}/lake"),
        tables=(TableRule(TABLE, columns=Columns(exclude=("note",), mask={"mail": 0})),),
        staging=Staging(f"{folder}/staging"),
    )
    try:
        yield Commented(folder, spark, definition, source, database)
    finally:
        if postgres:
            source.execute(*LEAVE)
