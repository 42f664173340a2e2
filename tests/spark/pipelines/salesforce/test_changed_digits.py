"""The digits of a number field change while a window is open, or before a row is fetched."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from airflow_cdc_provider.connectors.sources.salesforce.rest import Rest
from airflow_cdc_provider.connectors.sources.salesforce.types import ObjectSchema
from airflow_cdc_provider.core.decisions.commands import CommandKind
from airflow_cdc_provider.sandbox.salesforce import SalesforceOrg
from airflow_cdc_provider.sandbox.salesforce.fields import double
from tests.faults.worker import request
from tests.spark.pipelines.salesforce.pipeline import LATER_S, SalesforcePipeline, salesforce_pipeline

pytestmark = [pytest.mark.jvm, pytest.mark.server]

NUMBER = double("A__c", 8, 0)


@pytest.fixture
def org() -> Iterator[SalesforceOrg]:
    with SalesforceOrg(keepalive_s=0.05) as org:
        org.change_field("Invoice__c", NUMBER)
        org.load("Invoice__c", [{"A__c": 1.0}, {"A__c": 2.0}])
        yield org


@pytest.fixture
def crm(org: SalesforceOrg, tmp_path: Path, spark: SparkSession) -> SalesforcePipeline:
    made = salesforce_pipeline(org, tmp_path, spark, "Invoice__c")
    made.run_successfully()
    org.clock.advance(LATER_S)
    return made


def require_copied_again(crm: SalesforcePipeline) -> None:
    """The stream reports the new type; the target cannot alter its column."""
    dag_run = crm.run()
    assert any("SCH001" in line and "column A__c changed" in line for line in dag_run.problems), dag_run.problems
    request(crm.replicator(), CommandKind.RESYNC, {"tables": crm.tables, "key": "the new type"})
    crm.run_until_idle()
    assert crm.differences() == []


def test_values_with_more_digits_in_a_window_that_was_described_before_are_exact(
    org: SalesforceOrg, crm: SalesforcePipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = sorted(org.ledger.state("Invoice__c"))
    describe = Rest.describe

    def describe_and_change(rest: Rest, entity: str) -> ObjectSchema:
        found = describe(rest, entity)
        monkeypatch.setattr(Rest, "describe", describe)
        org.retype_field("Invoice__c", replace(NUMBER, precision=12, scale=2))
        with org.transaction() as tx:
            tx.update("Invoice__c", first, {"A__c": 40.25})
            tx.update("Invoice__c", second, {"A__c": 1234567890.0})
        return found

    monkeypatch.setattr(Rest, "describe", describe_and_change)
    with org.transaction() as tx:
        tx.update("Invoice__c", first, {"A__c": 3.0})
    crm.run_successfully()
    assert crm.rows("Invoice__c")[first]["A__c"] == "3"
    require_copied_again(crm)
    assert {row["A__c"] for row in crm.rows("Invoice__c").values()} == {"40.25", "1234567890.00"}


def test_a_row_that_is_fetched_after_its_field_was_changed_waits_for_the_event_with_the_new_type(
    org: SalesforceOrg, crm: SalesforcePipeline
) -> None:
    first, _ = sorted(org.ledger.state("Invoice__c"))

    def change_before(task: str) -> None:
        if task == "stage":
            org.retype_field("Invoice__c", replace(NUMBER, precision=10, scale=2))
            with org.transaction() as tx:
                tx.update("Invoice__c", first, {"A__c": 40.25})

    org.gap("Invoice__c", [first])
    dag_run = crm.run(between=change_before)
    assert any("SRC056" in line and "it is decimal(10,2) now" in line for line in dag_run.problems), dag_run.problems
    assert crm.rows("Invoice__c")[first]["A__c"] == "1"
    require_copied_again(crm)
    assert crm.rows("Invoice__c")[first]["A__c"] == "40.25"
