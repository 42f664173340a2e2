"""The check of Redshift before any job starts, and the labels of its queries."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest

from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo, Secrets
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.errors import Problem
from airflow_cdc_provider.core.spec.definition import Definition, Source, Staging, TableRule, Target
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType, TableSchema
from airflow_cdc_provider.core.table.states import TableState
from airflow_cdc_provider.sandbox.redshift import USER, EmbeddedRedshift
from airflow_cdc_provider.staging.open_store import open_log
from airflow_cdc_provider.targets.database.target import DatabaseTarget
from airflow_cdc_provider.targets.registry import open_targets
from tests.buckets import Moto

pytestmark = pytest.mark.server


class Checked:
    """A schema of the test's own."""

    def __init__(self, server: EmbeddedRedshift, store: Moto, folder: Path) -> None:
        self.server, self.store, self.folder = server, store, folder
        self.schema = f"c{uuid.uuid4().hex}"

    def execute(self, *statements: str) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.server.postgres.dsn(), autocommit=True) as connection:
            cursor = connection.cursor()
            for statement in statements:
                cursor.execute(statement.encode())
            return list(cursor.fetchall()) if cursor.description else []

    def target(
        self, connection: ConnectionInfo | None = None, bucket: ConnectionInfo | None = None, **options: str
    ) -> DatabaseTarget:
        given = {"schema": self.schema, "stage": f"s3://{self.store.LAKE}/{self.schema}", **options}
        kind = Target("redshift", connection="warehouse", options=given)
        rules = (TableRule("public.t"),)
        definition = Definition(
            name="r", source=Source("postgres", "none"), target=kind, tables=rules, staging=Staging(str(self.folder))
        )
        secrets = Secrets(target=connection or self.server.connection, stage=bucket or self.store.connection)
        target = open_targets(definition, secrets, open_log(definition, ConnectionInfo())).only
        assert isinstance(target, DatabaseTarget)
        return target

    def tables(self) -> list[str]:
        query = f"SELECT relname FROM pg_class WHERE relnamespace = '{self.schema}'::regnamespace"
        return [name for (name,) in self.execute(query)]


@pytest.fixture
def checked(redshift_server: EmbeddedRedshift, warehouse_store: Moto, tmp_path: Path) -> Iterator[Checked]:
    checked = Checked(redshift_server, warehouse_store, tmp_path)
    checked.execute(f"CREATE SCHEMA {checked.schema} AUTHORIZATION {USER}")
    yield checked
    checked.execute(f"DROP SCHEMA {checked.schema} CASCADE")


def task(*names: str, **rule: object) -> TableTask:
    columns = tuple(Column(name, LogicalType(Kind.INT32), nullable=False) for name in names)
    made = TableRule("public.t", **rule)  # type: ignore[arg-type]
    return TableTask("public.t", "t", TableSchema("public.t", columns, names[:1]), made, "", TableState.PENDING)


def only(problems: list[Problem]) -> Problem:
    (problem,) = problems
    return problem


def test_a_check_loads_a_file_and_leaves_neither_table_nor_file(checked: Checked) -> None:
    assert checked.target().check((task("id", "n", cluster_by=("n",)),)) == []
    assert checked.tables() == [] and checked.store.keys(checked.schema) == []


def test_names_of_columns_that_redshift_keeps_and_that_differ_only_by_case_are_reported(checked: Checked) -> None:
    problems = checked.target().check((task("id", "oid"), task("a", "A")))
    assert [problem.code for problem in problems] == ["TGT084", "TGT014"]


def test_a_missing_schema_is_reported_with_the_statement_that_creates_it(checked: Checked) -> None:
    problem = only(checked.target(schema="Nowhere").check(()))
    assert (problem.code, problem.do) == ("TGT052", f'CREATE SCHEMA "nowhere" AUTHORIZATION "{USER}";')


def test_missing_privileges_are_reported_with_the_statements_that_grant_them(checked: Checked) -> None:
    poor = f"poor_{checked.schema}"
    checked.execute(f"CREATE ROLE {poor} LOGIN PASSWORD 'p'")
    connection = replace(checked.server.connection, login=poor, password="p")
    problem = only(checked.target(connection).check(()))
    assert problem.code == "TGT062"
    assert problem.do == (
        f'GRANT USAGE, CREATE ON SCHEMA "{checked.schema}" TO "{poor}";'
        f' GRANT ASSUMEROLE ON default TO "{poor}" FOR COPY, UNLOAD;'
    )
    checked.execute(f"DROP ROLE {poor}")


def test_a_wrong_password_and_an_unreachable_server_have_messages_of_their_own(checked: Checked) -> None:
    problem = only(checked.target(replace(checked.server.connection, password="wrong-one")).check(()))
    assert problem.code == "TGT061" and "wrong-one" not in str(problem)
    assert only(checked.target(replace(checked.server.connection, port=1)).check(())).code == "TGT060"


def test_a_stage_that_cannot_be_written_is_reported_with_its_location(checked: Checked) -> None:
    problem = only(checked.target(stage="s3://no-such-bucket/stage").check(()))
    assert (problem.code, problem.where) == ("TGT080", "s3://no-such-bucket/stage")
    assert checked.tables() == []


def test_tls_that_is_off_is_reported(checked: Checked) -> None:
    assert "ssl: false" in str(only(checked.target().tls_warnings()))


def test_each_query_has_a_label_with_replicator_purpose_and_window(checked: Checked) -> None:
    for window, label in ((None, "cdc:r:load"), (7, "cdc:r:load:7")):
        with checked.target().server.session("load", window) as connection:
            cursor = connection.cursor()
            cursor.execute("SELECT current_setting('query_group')")
            assert cursor.fetchone() == [label]
