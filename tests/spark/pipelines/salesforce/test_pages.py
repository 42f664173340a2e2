"""A copy of a Salesforce object through Spark, page by page, against the sandbox org."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from airflow_cdc_provider.connectors.sources.salesforce.source import SalesforceSource
from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo, Secrets
from airflow_cdc_provider.core.decisions.steps import Step, StepKind, TableTask
from airflow_cdc_provider.core.spec.definition import Definition, Source, Staging, TableRule, Target
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType, TableSchema
from airflow_cdc_provider.core.table.states import TableState
from airflow_cdc_provider.sandbox.salesforce import SalesforceOrg
from airflow_cdc_provider.sandbox.salesforce.faults import HttpFault
from spark_jobs.copies.split_reads import read_splits

RULE = TableRule("*")


def step_of(definition: Definition, identity: dict[str, str]) -> Step:
    return Step(StepKind.SNAPSHOT, definition, "r1", "a1", "", "", "o1", "log-1", 1, identity, ())


@pytest.fixture
def sandbox() -> Iterator[SalesforceOrg]:
    with SalesforceOrg(keepalive_s=0.05) as org:
        yield org


@pytest.mark.jvm
@pytest.mark.server
@pytest.mark.parametrize("by_bulk", [True, False], ids=["bulk", "rest"])
def test_the_splits_of_a_copy_become_rows_of_the_tables_types(
    spark: SparkSession, sandbox: SalesforceOrg, by_bulk: bool
) -> None:
    values = {"Amount__c": "12.5", "Issued__c": "1815-12-10", "Due__c": "2026-03-01T12:00:00Z", "Paid__c": True}
    sandbox.load("Invoice__c", [{**values, "Number__c": str(n), "Terms__c": 'a "b",\nc'} for n in range(2500)])
    options = {"pubsub_endpoint": sandbox.pubsub_endpoint, "pubsub_tls": False}
    extra = {"consumer_key": sandbox.client_id, "consumer_secret": sandbox.client_secret}
    connection = ConnectionInfo("crm", extra={**extra, "instance_url": sandbox.instance_url})
    definition = Definition(
        name="crm",
        source=Source("salesforce", "crm", options=options),
        target=Target("delta"),
        tables=(TableRule("*"),),
        staging=Staging("/nowhere"),
    )
    source = SalesforceSource(definition.source, connection, "crm")
    schema = next(one for one in source.tables() if one.table == "Invoice__c")
    task = TableTask("Invoice__c", "invoice", schema, TableRule("Invoice__c"), "0" * 64, TableState.PENDING)
    if not by_bulk:
        no = "Entity 'Invoice__c' is not supported by the Bulk API."
        sandbox.faults.http.append(HttpFault("POST .*jobs/query", 400, "INVALIDENTITY", no))
    with source.copy(task, 1, source.open_stream([]), 1) as copy:
        step = step_of(definition, source.identity())
        frame = read_splits(spark, step, Secrets(connection), copy.read.splits, copy.schema, RULE).cache()
        assert frame.count() == 2500
        (row,) = frame.where("Number__c = '7'").select("*", F.unix_millis("Due__c").alias("due_ms")).collect()
    frame.unpersist()
    assert (str(row.Amount__c), row.Issued__c, row.Paid__c, row.Tags__c) == ("12.50", date(1815, 12, 10), True, None)
    assert (row.Terms__c, row.due_ms) == ('a "b",\nc', 1_772_366_400_000)


@pytest.mark.jvm
def test_a_table_without_splits_has_no_rows(spark: SparkSession) -> None:
    schema = TableSchema("Account", (Column("Id", LogicalType(Kind.TEXT), nullable=False),), ("Id",))
    definition = Definition(
        name="crm", source=Source("salesforce", "crm"), target=Target("delta"), tables=(), staging=Staging("/nowhere")
    )
    assert read_splits(spark, step_of(definition, {}), Secrets(ConnectionInfo("crm")), (), schema, RULE).count() == 0
