"""A database whose tables, columns, defaults and values have hostile texts, and a replicator of it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from airflow_cdc_provider.core.connections.connection_info import Secrets
from airflow_cdc_provider.core.spec.definition import Definition, Source, Staging, TableRule, Target
from airflow_cdc_provider.core.table.equal_names import without_case
from tests.hostile_texts import TEXTS, VARIABLES, ZERO, names
from tests.spark.databases import Database
from tests.spark.pipelines.pipeline import Pipeline

SCHEMA, ID = "hostile", "id ${java.version}"
ADDED, MORE = "added ' \\ %s ${env:PATH} {0}", 'more " `'
DEFAULT = 'it\'s ${env:PATH} \\ %s %(x)s :x ? {0} "q" -- /* {{ 1 }}'
TABLES = (
    *VARIABLES[:1],
    *VARIABLES[4:5],
    "%s %(x)s",
    "a.b",
    "it's \"`",
    "{0} {fn now()}",
    ";--",
    "..",
    "/x",
    "\\",
    "?*",
)
WHITE_SPACE = " \t\n\v\f\r"


@dataclass
class HostileDatabase(Pipeline):
    database: Database
    quoted: Callable[[str], str]
    columns: tuple[str, ...]
    tables_of_names: tuple[str, ...]
    values: tuple[str, ...]
    seen: list[str] = field(default_factory=list)

    @property
    def secrets(self) -> Secrets:
        return Secrets(self.database.connection)

    def full(self, table: str) -> str:
        return f"{SCHEMA}.{self.quoted(table)}"

    def execute_with(self, statement: str, *parameters: Any) -> list[Any]:
        """Names in ``statement`` are quoted."""
        with self.database.session() as cursor:
            cursor.execute(statement, parameters or None)
            return list(cursor.fetchall()) if cursor.description else []

    def create(self) -> None:
        text = (
            "text"
            if self.database.kind == "postgres"
            else "varchar(300) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin"
        )
        self.database.execute(
            f"CREATE TABLE {SCHEMA}.keyed (k {text} PRIMARY KEY, v {text})",
            f"CREATE TABLE {SCHEMA}.named ({self.quoted(ID)} int PRIMARY KEY, "
            + ", ".join(f"{self.quoted(name)} varchar(40)" for name in self.columns)
            + ")",
            *(f"CREATE TABLE {self.full(name)} (id int PRIMARY KEY, v {text})" for name in self.tables_of_names),
        )
        for value in self.values:
            self.execute_with(f"INSERT INTO {SCHEMA}.keyed VALUES (%s, %s)", value, value)
        for number in range(6):
            self.insert_named(number)
        for name in self.tables_of_names:
            self.database.execute(f"INSERT INTO {self.full(name).replace('%', '%')} VALUES (1, 'a'), (2, 'b')")

    def insert_named(self, number: int) -> None:
        listed = ", ".join(map(self.quoted, (ID, *self.columns)))
        values = ", ".join(f"'{number} {index}'" for index in range(len(self.columns)))
        self.database.execute(f"INSERT INTO {SCHEMA}.named ({listed}) VALUES ({number}, {values})")

    def truth(self, table: str) -> list[dict[str, Any]]:
        with self.database.session() as cursor:
            cursor.execute(f"SELECT * FROM {self.full(table)}")
            columns = [column[0] for column in cursor.description]
            return [dict(zip(columns, row, strict=True)) for row in cursor.fetchall()]

    def located(self, table: str) -> str:
        return self.replicator().targets.only.locate(self.target(f"{SCHEMA}.{table}"))

    def require_exact(self) -> None:
        for table, key in (("keyed", "k"), ("named", ID), *((name, "id") for name in self.tables_of_names)):
            truth = self.truth(table)
            found = self.copied_rows(f"{SCHEMA}.{table}", key, *truth[0])
            assert found == {row[key]: row for row in truth}, table


def backticks(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def double_quotes(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def fits_mysql(name: str) -> bool:
    return max(map(ord, name)) <= 0xFFFF and name == name.rstrip(WHITE_SPACE) and len(name) <= 64


@contextlib.contextmanager
def hostile_database(
    folder: Path, spark: SparkSession, database: Database, source: Source, every: bool
) -> Iterator[HostileDatabase]:
    """``every``: all texts are names."""
    postgres = database.kind == "postgres"
    candidates = [name for name in names() if without_case(name) != without_case(ID) and not name.startswith("_cdc_")]
    different = {without_case(name): name for name in candidates if postgres or fits_mysql(name)}
    omitted = {"_metadata", "ctid", "xmin", "tableoid", "oid"}
    columns = tuple(name for name in different.values() if name not in omitted)[int(postgres) :: 2 if every else 12]
    tables = tuple(name for name in (TABLES if every else TABLES[:5]) if postgres or fits_mysql(name))
    definition = Definition(
        name=SCHEMA,
        source=source,
        target=Target("delta", f"{folder}/lake"),
        tables=(
            *(TableRule(f"{SCHEMA}.{name}") for name in ("keyed", "named")),
            *(TableRule(f"{SCHEMA}.{name}", target=f"t{n}") for n, name in enumerate(tables)),
        ),
        staging=Staging(f"{folder}/staging"),
    )
    values = TEXTS if postgres else (*TEXTS, *ZERO)
    quoted = double_quotes if postgres else backticks
    yield HostileDatabase(folder, spark, definition, database, quoted, columns, tables, values)
