"""What a channel does not carry: a filter, and an object that left it for a while."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from airflow_cdc_provider.core.table.states import TableState
from airflow_cdc_provider.sandbox.salesforce import SalesforceOrg
from airflow_cdc_provider.sandbox.salesforce.channels import Member
from tests.spark.pipelines.salesforce.pipeline import SalesforcePipeline

pytestmark = [pytest.mark.jvm, pytest.mark.server]


def test_case_32_a_filter_of_the_channel_stops_its_table_which_is_copied_again_without_it(
    copied: Callable[..., SalesforcePipeline], org: SalesforceOrg
) -> None:
    crm = copied("Account", "Contact")
    members = org.channels.selected
    org.channels.selected = [
        replace(one, filter_expression="Name = 'x'") if one.entity == "Account" else one for one in members
    ]
    for table, name in (("Account", "Phone"), ("Contact", "FirstName")):
        with org.transaction() as tx:
            tx.update(table, min(org.ledger.state(table)), {name: "meanwhile"})
    dag_run = crm.run()
    assert not dag_run.green and any("SRC051" in line for line in dag_run.problems), dag_run.problems
    rows = crm.replicator().state.tables("crm")
    assert {table: row.state for table, row in rows.items()} == {
        "Account": TableState.BLOCKED,
        "Contact": TableState.REPLICATING,
    }
    org.channels.selected = members
    crm.run_until_idle()
    assert crm.differences() == []


def test_case_31_an_object_that_left_the_channel_between_two_runs_is_copied_again(
    copied: Callable[..., SalesforcePipeline], org: SalesforceOrg
) -> None:
    crm = copied("Account")
    members = org.channels.selected
    org.channels.selected = [one for one in members if one.entity != "Account"]
    with org.transaction() as tx:
        tx.update("Account", min(org.ledger.state("Account")), {"Phone": "meanwhile"})
    org.channels.selected = [*org.channels.selected, Member("Account")]
    crm.run_until_idle()
    assert crm.differences() == []
