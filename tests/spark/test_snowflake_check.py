"""The check of Snowflake before any job starts, and the tags of its queries."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import requests

from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.errors import Problem
from airflow_cdc_provider.core.spec.definition import Target
from airflow_cdc_provider.sandbox.snowflake import EmbeddedSnowflake
from airflow_cdc_provider.staging.change_log import ChangeLog
from airflow_cdc_provider.staging.local_store import LocalStore
from airflow_cdc_provider.targets.snowflake.target import SnowflakeTarget

pytestmark = pytest.mark.server

DATABASE = "CHECKS"


class Checked:
    """A schema of the test's own."""

    def __init__(self, server: EmbeddedSnowflake, folder: Path) -> None:
        self.server, self.folder = server, folder
        self.schema = f"C{uuid.uuid4().hex.upper()}"

    def target(self, schema: str = "", **extra: str) -> SnowflakeTarget:
        info = self.server.connection
        connection = replace(info, extra={**info.extra, **extra})
        kind = Target("snowflake", options={"database": DATABASE, "schema": schema or self.schema})
        return SnowflakeTarget(kind, connection, "r", ChangeLog(LocalStore(str(self.folder))), ConnectionInfo())

    def deny(self, words: str) -> None:
        """The next statement that begins with these words."""
        requests.post(f"http://127.0.0.1:{self.server.port}/deny/{words}", timeout=10).raise_for_status()


@pytest.fixture
def checked(snowflake_server: EmbeddedSnowflake, tmp_path: Path) -> Iterator[Checked]:
    checked = Checked(snowflake_server, tmp_path)
    with checked.target("PUBLIC").server.session("create") as connection:
        cursor = connection.cursor()
        cursor.execute(f"CREATE DATABASE IF NOT EXISTS {DATABASE}")
        cursor.execute(f"CREATE SCHEMA {DATABASE}.{checked.schema}")
    yield checked


def only(problems: list[Problem]) -> Problem:
    (problem,) = problems
    return problem


def test_a_check_loads_a_file_and_leaves_no_table(checked: Checked) -> None:
    target = checked.target()
    assert target.check(()) == []
    with target.server.session("read") as connection:
        assert target.server.tables_like(connection.cursor(), "_cdc") == []


@pytest.mark.parametrize("words", ["CREATE TABLE", "CREATE STAGE", "COPY INTO"])
def test_missing_privileges_are_reported_with_the_statements_that_grant_them(checked: Checked, words: str) -> None:
    checked.deny(words)
    problem = only(checked.target(role="CDC", warehouse="LOADING").check(()))
    assert problem.code == "TGT062"
    assert problem.do == (
        "GRANT USAGE, OPERATE ON WAREHOUSE LOADING TO ROLE CDC;"
        f' GRANT USAGE ON DATABASE "{DATABASE}" TO ROLE CDC;'
        f' GRANT USAGE, CREATE TABLE, CREATE VIEW, CREATE STAGE ON SCHEMA "{DATABASE}"."{checked.schema}" TO ROLE CDC;'
    )


def test_a_schema_that_is_missing_or_not_granted_is_reported_with_the_statements(checked: Checked) -> None:
    problem = only(checked.target("NOWHERE", role="CDC").check(()))
    assert problem.code == "TGT052"
    assert problem.do.startswith(f'CREATE SCHEMA IF NOT EXISTS "{DATABASE}"."NOWHERE"; GRANT USAGE ON DATABASE')
    assert "GRANT USAGE, CREATE TABLE" in problem.do


@pytest.mark.parametrize(("window", "tag"), [(None, "cdc:r:load"), (7, "cdc:r:load:7")])
def test_each_session_has_a_tag_with_replicator_purpose_and_window(
    checked: Checked, window: int | None, tag: str
) -> None:
    with checked.target().server.session("load", window) as connection:
        cursor = connection.cursor()
        cursor.execute("SHOW PARAMETERS LIKE 'QUERY_TAG' IN SESSION")
        assert [row[1] for row in cursor.fetchall()] == [tag]
