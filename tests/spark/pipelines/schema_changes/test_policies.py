"""What each target makes of schema changes of PostgreSQL under each policy: one table per case and target."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import psycopg
import pytest
from _pytest.mark import ParameterSet
from pyspark.sql import SparkSession

from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo, Secrets
from airflow_cdc_provider.core.spec.definition import Definition, Source, Staging, TableRule, Target
from airflow_cdc_provider.core.spec.schema_policy import OnChange, OnDrop, SchemaPolicy
from airflow_cdc_provider.sandbox.postgres import EmbeddedPostgres
from tests.spark.databases import Database
from tests.spark.pipelines.schema_changes.statements import (
    SAME,
    STOPPED,
    Case,
    Chosen,
    StatementsPipeline,
    Truth,
    alter,
)
from tests.spark.targets_of_kinds import FEATURES, rows_of, target_of_kind

pytestmark = [pytest.mark.jvm, pytest.mark.server]

DATABASE = "policies"
SLOTS = "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE database = %s"
TARGETS = ("postgres", "mysql", "iceberg", "delta", FEATURES)
MAKE = (
    "CREATE TABLE {t} (id int PRIMARY KEY, a smallint, b int NOT NULL, v text, n numeric(10,2), r real, d date)",
    "INSERT INTO {t} SELECT k, k * 10, k * 100, 'v' || k, k / 8.0, k / 8.0, '2026-01-01'::date + k"
    " FROM generate_series(1, 3) k",
)
ROWS = ("INSERT INTO {t} (id, a, b) VALUES (4, 40, 400)", "UPDATE {t} SET a = a + 1 WHERE id = 1")
FOLLOW = SchemaPolicy(rename=OnChange.APPLY, narrow=OnChange.APPLY, change_key=OnChange.APPLY)


@dataclass(frozen=True)
class Expected:
    """``stopped``: the targets that stop; the others are equal to the source. ``gone``: a column that these targets do
    not have any more."""

    policy: SchemaPolicy
    statements: tuple[str, ...]
    stopped: tuple[str, ...] = ()
    gone: str = ""
    rows: tuple[str, ...] = ROWS


CASES = {
    "integers grow": Expected(SchemaPolicy(), alter("ALTER a TYPE int", "ALTER b TYPE bigint"), ("delta",)),
    "the key grows": Expected(SchemaPolicy(), alter("ALTER id TYPE bigint"), ("delta",)),
    "more digits": Expected(SchemaPolicy(), alter("ALTER n TYPE numeric(14,2)"), ("delta",)),
    "more decimals": Expected(SchemaPolicy(), alter("ALTER n TYPE numeric(14,4)"), ("delta", "iceberg")),
    "real to double": Expected(SchemaPolicy(), alter("ALTER r TYPE float8"), ("delta", "mysql")),
    "date to timestamp": Expected(SchemaPolicy(), alter("ALTER d TYPE timestamp"), ("delta", "iceberg")),
    "other values with a wider type": Expected(SchemaPolicy(), alter("ALTER b TYPE bigint USING b * 7"), TARGETS),
    "widening is refused": Expected(SchemaPolicy(widen=OnChange.STOP), alter("ALTER b TYPE bigint"), TARGETS),
    "rename": Expected(FOLLOW, alter("RENAME v TO v2"), ("delta",)),
    "rename, and a new one under the old name": Expected(FOLLOW, alter("RENAME v TO v2", "ADD v text")),
    "rename of the key": Expected(
        FOLLOW, alter("RENAME id TO number"), ("delta",), rows=("INSERT INTO {t} (number, a, b) VALUES (4, 40, 400)",)
    ),
    "rename and a wider type": Expected(
        FOLLOW,
        alter("RENAME b TO b2", "ALTER b2 TYPE bigint"),
        ("delta",),
        rows=("INSERT INTO {t} (id, a, b2) VALUES (4, 40, 400)",),
    ),
    "names move on": Expected(
        FOLLOW,
        alter("RENAME b TO c", "RENAME a TO b"),
        rows=("INSERT INTO {t} (id, b, c) VALUES (4, 40, 400)",),
    ),
    "a name passes to another column": Expected(
        replace(FOLLOW, drop_column=OnDrop.DROP),
        alter("DROP a", "RENAME b TO a"),
        rows=("INSERT INTO {t} (id, a) VALUES (4, 40)",),
    ),
    "two columns swap their names": Expected(FOLLOW, alter("RENAME a TO x", "RENAME b TO a", "RENAME x TO b")),
    "rename is refused": Expected(SchemaPolicy(), alter("RENAME v TO v2"), TARGETS),
    "drop, kept": Expected(SchemaPolicy(), alter("DROP v")),
    "drop, dropped": Expected(SchemaPolicy(drop_column=OnDrop.DROP), alter("DROP v"), ("delta",), gone="v"),
    "drop, without values": Expected(SchemaPolicy(drop_column=OnDrop.SET_NULL), alter("DROP v"), ("delta",)),
    "drop is refused": Expected(SchemaPolicy(drop_column=OnDrop.STOP), alter("DROP v"), TARGETS),
    "add is refused": Expected(SchemaPolicy(add_column=OnChange.STOP), alter("ADD z int"), TARGETS),
    "a narrower type is copied": Expected(FOLLOW, alter("ALTER b TYPE smallint")),
    "another output is copied": Expected(FOLLOW, alter("ALTER v TYPE char(9)")),
    "another key is copied": Expected(FOLLOW, alter("DROP CONSTRAINT {t}_pkey", "ADD PRIMARY KEY (b)")),
}
IN_EVERY_RUN = {
    ("integers grow", True),
    ("rename, and a new one under the old name", False),
    ("rename of the key", True),
    ("drop, kept", False),
    ("drop, dropped", True),
    ("drop, without values", False),
    ("add is refused", True),
    ("a narrower type is copied", True),
}
CASE_NUMBERS = {name: number for number, name in enumerate(CASES)}


def case_of(name: str) -> Case:
    one = CASES[name]
    return Case(name, one.statements, MAKE, one.rows, number=CASE_NUMBERS[name])


@dataclass(kw_only=True)
class PolicyPipeline(StatementsPipeline):
    """``kind``: one of TARGETS; ``database``: of the target, if it is one."""

    kind: str
    server: EmbeddedPostgres
    database: Database | None = None

    @property
    def secrets(self) -> Secrets:
        server = self.server
        source = ConnectionInfo("db", server.host, server.port, server.user, server.password, schema=DATABASE)
        return Secrets(source, self.database.connection if self.database else ConnectionInfo())

    def truth(self, table: str) -> Truth:
        with psycopg.connect(self.server.dsn(DATABASE)) as connection:
            cursor = connection.execute(f"SELECT * FROM public.{table}".encode())
            result, names = cursor.pgresult, [column.name for column in cursor.description or ()]
            assert result is not None
            values = [[result.get_value(row, at) for at in range(len(names))] for row in range(result.ntuples)]
            return names, Counter(tuple(value and value.decode() for value in row) for row in values)

    def _copy(self, table: str) -> Iterator[dict[str, Any]]:
        name = self.target(f"public.{table}")
        return rows_of(self.replicator().targets.only, name, self.database, self.spark)


def parameters(cases: Iterable[str], in_every_run: Collection[tuple[str, bool]]) -> list[ParameterSet]:
    return [
        pytest.param(name, busy, marks=() if (name, busy) in in_every_run else pytest.mark.nightly)
        for name in cases
        for busy in (False, True)
    ]


def chosen_names(request: pytest.FixtureRequest) -> list[tuple[str, bool]]:
    """The cases of this file that this session runs."""
    specs = (getattr(item, "callspec", None) for item in request.session.items if item.path == request.path)
    found = [(spec.params["name"], spec.params["busy"]) for spec in specs if spec and "name" in spec.params]
    return list(dict.fromkeys(found))


@pytest.fixture(
    scope="module",
    params=[pytest.param(kind, marks=() if kind == "postgres" else pytest.mark.nightly) for kind in TARGETS],
)
def pipeline(
    postgres: EmbeddedPostgres,
    spark: SparkSession,
    tmp_path_factory: pytest.TempPathFactory,
    request: pytest.FixtureRequest,
) -> Iterator[PolicyPipeline]:
    kind, folder = request.param, tmp_path_factory.mktemp("policies")
    tables = [(case_of(name), busy) for name, busy in chosen_names(request)]
    with contextlib.ExitStack() as stack:
        target, database = stack.enter_context(target_of_kind(kind, DATABASE, folder, request))
        source = stack.enter_context(source_database(postgres, tables))
        rules = tuple(
            TableRule(f"public.{case.table(busy)}", schema_changes=CASES[case.name].policy) for case, busy in tables
        )
        definition = policy_definition(folder, target, rules)
        made = PolicyPipeline(folder, spark, definition, "public", kind=kind, server=postgres, database=database)
        made.run_cases(tables, lambda table, statements: execute(source, table, statements))
        yield made


def policy_definition(folder: Path, target: Target, rules: tuple[TableRule, ...]) -> Definition:
    return Definition(
        name=DATABASE,
        source=Source("postgres", "source", options={"publication": "cdc"}),
        target=target,
        tables=rules,
        staging=Staging(f"{folder}/staging"),
    )


@contextlib.contextmanager
def source_database(postgres: EmbeddedPostgres, tables: Chosen) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(postgres.dsn(), autocommit=True) as server:
        server.execute(f"CREATE DATABASE {DATABASE}")
        with psycopg.connect(postgres.dsn(DATABASE), autocommit=True) as connection:
            for case, busy in tables:
                execute(connection, case.table(busy), case.make)
            connection.execute("CREATE PUBLICATION cdc FOR ALL TABLES")
            yield connection
        server.execute(SLOTS, [DATABASE])
        server.execute(f"DROP DATABASE {DATABASE} WITH (FORCE)")


def execute(connection: psycopg.Connection[Any], table: str, statements: tuple[str, ...]) -> None:
    for statement in statements:
        connection.execute(statement.replace("{t}", table).encode())


@pytest.mark.parametrize(("name", "busy"), parameters(CASES, IN_EVERY_RUN))
def test_a_target_follows_or_stops(pipeline: PolicyPipeline, name: str, busy: bool) -> None:
    table, one = case_of(name).table(busy), CASES[name]
    expected = STOPPED if pipeline.kind in one.stopped else SAME
    assert pipeline.found[table] == expected, pipeline.row(table)
    if one.gone and expected == SAME:
        assert one.gone not in next(iter(pipeline._copy(table)))


def test_a_dropped_column_is_kept_or_loses_its_values(pipeline: PolicyPipeline) -> None:
    kept, emptied = (
        list(pipeline._copy(case_of(name).table(False))) for name in ("drop, kept", "drop, without values")
    )
    assert sorted(row["v"] for row in kept) == ["v1", "v2", "v3"]
    if pipeline.kind != "delta":
        assert [row["v"] for row in emptied] == [None, None, None]
