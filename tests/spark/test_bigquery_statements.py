"""Every statement that the life of a table sends to BigQuery is analyzed by GoogleSQL's own analyzer."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from airflow_cdc_provider.core.decisions.steps import Outcome, StepKind
from airflow_cdc_provider.core.table.published_cut import Cut, CutTable
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType, TableSchema
from airflow_cdc_provider.targets.bigquery.jobs import Jobs
from airflow_cdc_provider.targets.registry import open_targets
from airflow_cdc_provider.targets.target import ReleasesTables
from tests.core.googlesql import Catalogue, Columns
from tests.core.googlesql import Path as TablePath
from tests.spark.contract.bigquery_kit import bigquery_kit
from tests.spark.contract.control_records import control
from tests.spark.contract.kit_table import KitTable

pytestmark = [pytest.mark.jvm, pytest.mark.server, pytest.mark.nightly]

SCHEMA = TableSchema(
    "public.t",
    (
        Column("id", LogicalType(Kind.INT64), nullable=False),
        Column("v", LogicalType(Kind.TEXT)),
        Column("doc", LogicalType(Kind.JSON)),
    ),
    ("id",),
)
CREATED = re.compile(r"CREATE TABLE IF NOT EXISTS ((?:`[^`]+`\.?)+) \((.*?)\) (?:DEFAULT|PARTITION|CLUSTER|OPTIONS)")
FIXED_COLLATION = " DEFAULT COLLATE ''"
"""The analyzer does not take it in this statement."""
COPIED = re.compile(r"TABLE ((?:`[^`]+`\.?)+) COPY ((?:`[^`]+`\.?)+)")
COUNTS = ("_cdc_rows_deleted", "_cdc_rows_updated", "_cdc_rows_inserted")


def test_a_copy_with_documents_is_loaded_merged_published_and_left(
    spark: SparkSession, tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[str] = []
    query = Jobs.query

    def recorded(jobs: Jobs, sql: str, *given: Any, **named: Any) -> Any:
        sent.append(sql)
        return query(jobs, sql, *given, **named)

    monkeypatch.setattr(Jobs, "query", recorded)
    with bigquery_kit(spark, tmp_path, request.getfixturevalue) as kit:
        kit.target = replace(kit.target, options={**kit.target.options, "json": "json"})
        table = KitTable(kit, tmp_path, SCHEMA)
        assert table.job(StepKind.STAGE, ()).tables.check([]) == []
        table.copy([{"id": 1, "v": "a", "doc": '{"a": 1}'}])
        changed = {"id": 1, "v": "b", "doc": '{"a": 2}'}
        assert table.apply([table.update(changed), table.insert(changed | {"id": 2})]).outcome is Outcome.DONE
        identity = table.target_state().identity
        cut = CutTable("t", control(table).window, identity, table.target_state().version)
        table.job_tables().publish_cut(Cut("hand", 1, "2026-01-01T00:00:00Z", (cut,)))
        target = open_targets(table.definition, table.secrets, table.log).only
        assert isinstance(target, ReleasesTables)
        target.withdraw_cut()
        target.release("public.t", "t")
        target.drop("t", identity)

    verbs = ("CREATE TABLE", "PARSE_JSON", "CREATE OR REPLACE VIEW", "DELETE FROM", "DROP VIEW", "DROP TABLE", "UPDATE")
    assert [verb for verb in verbs if not any(verb in sql for sql in sent)] == []
    catalogue = Catalogue(created(sent), COUNTS)
    for sql in sent:
        catalogue.check_script(sql.replace(FIXED_COLLATION, ""))


def created(statements: Sequence[str]) -> dict[TablePath, Columns]:
    """The tables that the statements create, and those that files with documents are loaded into as texts."""
    tables: dict[TablePath, Columns] = {}
    for sql in statements:
        if found := CREATED.match(sql):
            columns = dict(re.findall(r"`([^`]+)` ([A-Z0-9]+)", found[2]))
            tables[path(found[1])] = columns
            *above, name = path(found[1])
            tables[(*above, f"{name}_texts")] = {c: "STRING" if k == "JSON" else k for c, k in columns.items()}
        if found := COPIED.search(sql):
            tables[path(found[1])] = tables[path(found[2])]
    return tables


def path(name: str) -> TablePath:
    return tuple(name.strip("`").split("`.`"))
