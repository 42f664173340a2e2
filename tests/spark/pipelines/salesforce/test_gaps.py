"""Incomplete records of a Salesforce stream: gaps, diffs of texts, joined names. The copies must equal the ledger."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from airflow_cdc_provider.core.spec.definition import TableRule
from airflow_cdc_provider.core.table.states import TableState
from airflow_cdc_provider.sandbox.salesforce import SalesforceOrg
from airflow_cdc_provider.sandbox.salesforce.faults import HttpFault
from tests.connectors import salesforce_copy
from tests.model.seeds import seed
from tests.spark.pipelines.salesforce.pipeline import (
    LATER_S,
    TABLES,
    SalesforcePipeline,
    Writer,
    salesforce_pipeline,
)

pytestmark = [pytest.mark.jvm, pytest.mark.server]

SEED = seed()


@pytest.fixture
def org() -> Iterator[SalesforceOrg]:
    with SalesforceOrg(keepalive_s=0.05) as org:
        yield org


@pytest.fixture
def crm(org: SalesforceOrg, tmp_path: Path, spark: SparkSession) -> SalesforcePipeline:
    """Three objects with all their columns, copied once."""
    Writer(org, f"{SEED}").fill(30)
    made = salesforce_pipeline(org, tmp_path, spark, *TABLES)
    made.definition = replace(made.definition, tables=tuple(map(TableRule, TABLES)))
    made.run_successfully()
    org.clock.advance(LATER_S)
    return made


def test_case_21_records_of_a_gap_wait_for_the_org_and_equal_its_rows(
    org: SalesforceOrg, crm: SalesforcePipeline
) -> None:
    complete, changed, gone, kept = sorted(org.ledger.state("Account"))[:4]
    (contact, *_) = sorted(org.ledger.state("Contact"))
    with org.transaction(as_gap=True) as tx:
        tx.update("Account", changed, {"Phone": "in the gap"})
        tx.delete("Account", gone)
        tx.insert("Account", {"Name": "Born in a gap"})
    with org.transaction() as tx:
        tx.update("Account", changed, {"BillingCity": "behind it"})
        tx.update("Account", complete, {"Phone": "complete"})
        tx.update("Contact", contact, {"FirstName": "Ada"})
    org.gap("Account", [kept])
    org.faults.http.append(HttpFault("POST .*/composite/sobjects/Account", 403, "REQUEST_LIMIT_EXCEEDED", times=50))
    dag_run = crm.run()
    assert not dag_run.green
    row = crm.replicator().state.tables("crm")["Account"]
    assert (row.state, row.control and row.control.carry.dirty) == (TableState.FAILING, 4)
    assert crm.rows("Account")[complete]["Phone"] == "complete", "all other records are applied"
    assert crm.rows("Account")[changed]["Phone"] != "in the gap" and gone in crm.rows("Account")
    assert crm.rows("Contact")[contact]["FirstName"] == "Ada"

    org.faults.clear()
    with org.transaction() as tx:
        tx.update("Account", kept, {"Phone": "newer"})
    crm.run_successfully()
    assert crm.differences() == []
    assert crm.control("Account").carry.waiting == 0


def test_case_47_a_record_to_fetch_that_was_purged_without_an_event_is_deleted(
    org: SalesforceOrg, crm: SalesforcePipeline
) -> None:
    purged, kept = sorted(org.ledger.state("Contact"))[:2]
    with org.transaction() as tx:
        tx.update_many("Contact", [purged, kept], {"FirstName": "Ada"})
    org.faults.lose_events = 1
    with org.transaction() as tx:
        tx.delete("Contact", purged)
    with org.transaction() as tx:
        tx.purge("Contact", purged)
    crm.run_successfully()
    assert crm.differences() == [] and purged not in crm.rows("Contact")
    assert crm.control("Contact").carry.waiting == 0


def test_case_22_copies_equal_the_org_after_incomplete_events(org: SalesforceOrg, crm: SalesforcePipeline) -> None:
    writer = salesforce_copy.Writer(org, random.Random(SEED))
    for _ in range(3):
        for _ in range(25):
            writer.transact()
        crm.run()
    crm.run_until_idle()
    assert crm.differences() == [], f"CDC_SEED={SEED}"
    assert [crm.control(table).carry.waiting for table in TABLES] == [0, 0, 0]
