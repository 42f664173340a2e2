"""The lineage of copies, with the names that OpenLineage's own library gives to tables."""

from __future__ import annotations

from dataclasses import replace

import pytest
from openlineage.client.naming import dataset as naming

from airflow_cdc_provider.core.columns.copied import CopiedColumns
from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.decisions.steps import Outcome, StepKind, StepResult, TableResult, TableTask
from airflow_cdc_provider.core.lineage.copies import copies_of
from airflow_cdc_provider.core.lineage.dataset_names import DatasetName, source_dataset, target_dataset
from airflow_cdc_provider.core.spec.columns import AddedColumn, Columns
from airflow_cdc_provider.core.spec.definition import Source, TableRule, Target
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType, TableSchema
from airflow_cdc_provider.core.table.states import TableState

DB = ConnectionInfo("db", "db.example.com", 5433, schema="shop", extra={"project": "p", "account": "org-acc"})
TEXT, INT = LogicalType(Kind.TEXT), LogicalType(Kind.INT64)


@pytest.mark.parametrize(
    ("kind", "connection", "table", "expected"),
    [
        ("postgres", DB, "public.items", naming.Postgres("db.example.com", "5433", "shop", "public", "items")),
        ("mysql", replace(DB, port=None), "shop.items", naming.MySQL("db.example.com", "3306", "shop", "items")),
    ],
)
def test_source_tables_have_the_names_of_the_specification(
    kind: str, connection: ConnectionInfo, table: str, expected: naming.DatasetNaming
) -> None:
    found = source_dataset(Source(kind, "db"), connection, table)
    assert found == DatasetName(expected.get_namespace(), expected.get_name())


def test_sources_without_a_server_are_named_by_their_connection() -> None:
    salesforce = ConnectionInfo("crm", "https://acme.my.salesforce.com/")
    assert source_dataset(Source("salesforce", "crm"), salesforce, "Account") == DatasetName(
        "salesforce://acme.my.salesforce.com", "Account"
    )
    assert source_dataset(Source("files", ""), ConnectionInfo(), "public.items").namespace == "files"
    assert source_dataset(Source("sqlserver", "db"), DB, "dbo.items") == DatasetName(
        "mssql://db.example.com:5433", "shop.dbo.items"
    )


CLUSTER = replace(DB, host="main.abc123.eu-west-1.redshift.amazonaws.com", port=None)
TARGETS = [
    (Target("delta", "s3://lake/shop/"), DB, naming.S3("lake", "shop/items")),
    (Target("iceberg", "gs://lake/shop"), DB, naming.GCS("lake", "shop/items")),
    (Target("delta", "abfss://c@acc.dfs.core.windows.net/shop"), DB, naming.ABFSS("c", "acc", "shop/items")),
    (Target("delta", "/data/lake"), DB, naming.LocalFileSystem("/data/lake/items")),
    (
        Target("postgres", connection="db", options={"schema": "copies"}),
        DB,
        naming.Postgres("db.example.com", "5433", "shop", "copies", "items"),
    ),
    (
        Target("mysql", connection="db", options={"schema": "copies"}),
        DB,
        naming.MySQL("db.example.com", "5433", "copies", "items"),
    ),
    (
        Target("redshift", connection="db", options={"schema": "copies"}),
        CLUSTER,
        naming.Redshift("main", "eu-west-1", "5439", "shop", "copies", "items"),
    ),
    (Target("bigquery", connection="db", options={"dataset": "d"}), DB, naming.BigQuery("p", "d", "items")),
    (
        Target("snowflake", connection="db", options={"database": "D", "schema": "S"}),
        DB,
        naming.Snowflake("org", "acc", "D", "S", "ITEMS"),
    ),
]


@pytest.mark.parametrize(("target", "connection", "expected"), TARGETS, ids=lambda one: getattr(one, "type", ""))
def test_target_tables_have_the_names_of_the_specification(
    target: Target, connection: ConnectionInfo, expected: naming.DatasetNaming
) -> None:
    found = target_dataset(target, connection, "items")
    assert found == DatasetName(expected.get_namespace(), expected.get_name())


def test_other_targets_have_names_too() -> None:
    spanner = Target("spanner", connection="db", options={"instance": "i", "database": "d"})
    assert target_dataset(spanner, DB, "items") == DatasetName("spanner://p:i", "d.items")
    assert target_dataset(Target("delta", catalog="lake.shop"), DB, "items") == DatasetName("lake.shop", "items")


RULE = TableRule(
    "public.items",
    columns=Columns(rename={"name": "title"}, mask={"card": 4}, add=(AddedColumn("region", value="eu"),)),
)
SCHEMA = TableSchema("public.items", (Column("id", INT), Column("name", TEXT), Column("card", TEXT)), ("id",))
TASK = TableTask("public.items", "items", CopiedColumns(RULE, SCHEMA).copied_schema, RULE, "d1", TableState.REPLICATING)


def test_a_written_copy_names_the_column_that_each_of_its_columns_is_made_of() -> None:
    done = TableResult("public.items", Outcome.DONE, counts={"inserted": 2, "deleted": 1})
    [copy] = copies_of([TASK], StepResult(StepKind.MERGE, "a", (done,)))
    assert (copy.table, copy.target, copy.rows, copy.replaced, copy.identical) == (
        "public.items",
        "items",
        3,
        False,
        None,
    )
    found = {column.name: (column.source, column.converted, column.masked) for column in copy.columns}
    assert found == {
        "id": ("id", False, False),
        "title": ("name", False, False),
        "card": ("card", True, True),
        "region": ("", False, False),
    }


def test_a_first_copy_replaces_all_rows_and_a_failed_one_writes_none() -> None:
    done, failed = TableResult("public.items", Outcome.DONE, 7), TableResult("public.items", Outcome.FAILING)
    [copy] = copies_of([TASK], StepResult(StepKind.SNAPSHOT, "a", (done,)))
    assert (copy.rows, copy.replaced) == (7, True)
    assert copies_of([TASK], StepResult(StepKind.SNAPSHOT, "a", (failed,))) == []
    assert copies_of([TASK], StepResult(StepKind.EXTRACT, "a", (done,))) == []


def test_a_comparison_shows_whether_the_copy_is_identical() -> None:
    compared = TableResult("public.items", Outcome.DONE, detail={"identical": False})
    [copy] = copies_of([TASK], StepResult(StepKind.VERIFY, "a", (compared,)))
    assert (copy.rows, copy.identical) == (None, False)
