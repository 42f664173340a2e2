"""Archived records: every reader of an object agrees that they exist. The copies must equal the ledger."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.decisions.commands import CommandKind
from airflow_cdc_provider.core.spec.definition import TableRule
from airflow_cdc_provider.sandbox.salesforce import SalesforceOrg
from airflow_cdc_provider.sandbox.salesforce.channels import Member
from tests.spark.pipelines.polling.pipeline import PollingPipeline, Rows, definition
from tests.spark.pipelines.salesforce.pipeline import salesforce_pipeline

pytestmark = [pytest.mark.jvm, pytest.mark.server]

DAY_S = 86_400
LATER_S = 400


@pytest.fixture
def org() -> Iterator[SalesforceOrg]:
    """Ten tasks, of which one is archived and one deleted."""
    with SalesforceOrg(keepalive_s=0.05) as org:
        org.channels.selected.append(Member("Task"))
        ids = org.load("Task", [{"Subject": f"T{number}"} for number in range(10)])
        org.archive("Task", ids[:1])
        with org.transaction() as tx:
            tx.delete("Task", ids[9])
        yield org


def subjects(org: SalesforceOrg) -> dict[str, str]:
    """Of the records that exist."""
    every = org.ledger.state("Task", everything=True)
    return {one: row["Subject"] for one, row in every.items() if not row["IsDeleted"]}


def test_case_25_a_copy_a_resync_and_a_comparison_keep_archived_records(
    org: SalesforceOrg, tmp_path: Path, spark: SparkSession
) -> None:
    crm = salesforce_pipeline(org, tmp_path, spark, "Task")

    def copied() -> dict[str, str]:
        return {one: row["Subject"] for one, row in crm.rows("Task").items()}

    crm.run_successfully()
    assert copied() == subjects(org) and len(copied()) == 9
    org.archive("Task", sorted(copied())[1:2])
    crm.run_until_idle()
    assert copied() == subjects(org) and len(copied()) == 9
    for command in (CommandKind.VERIFY, CommandKind.RESYNC):
        crm.record_command(command, "Task")
        crm.run_successfully()
        assert copied() == subjects(org) and len(copied()) == 9


def test_polls_and_key_audits_keep_archived_records(org: SalesforceOrg, tmp_path: Path, spark: SparkSession) -> None:
    org.clock.freeze()

    def truth(table: str) -> Rows:
        return {one: {"Subject": subject} for one, subject in subjects(org).items()}

    extra = {"consumer_key": org.client_id, "consumer_secret": org.client_secret, "instance_url": org.instance_url}
    options = {"objects": ["Task"], "key_audit": float(DAY_S)}
    plan = definition(tmp_path, "salesforce_poll", options, [TableRule("Task")])
    crm = PollingPipeline(tmp_path, spark, plan, ConnectionInfo("crm", extra=extra), "Id", truth)
    crm.run_successfully()
    assert crm.differences() == []
    org.archive("Task", sorted(subjects(org))[1:2])
    for seconds in (LATER_S, DAY_S, LATER_S):
        org.clock.advance(seconds)
        crm.run_successfully()
        assert crm.differences() == []
