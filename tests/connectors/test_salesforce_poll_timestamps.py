"""The timestamp columns of polled Salesforce objects, against the sandbox org."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from airflow_cdc_provider.core.errors import CheckFailed
from airflow_cdc_provider.sandbox.salesforce import SalesforceOrg
from airflow_cdc_provider.sandbox.salesforce.fields import moment
from tests.connectors.test_salesforce_poll import LATER_S, crm, records

pytestmark = pytest.mark.server


@pytest.fixture
def org() -> Iterator[SalesforceOrg]:
    with SalesforceOrg() as org:
        org.clock.freeze()
        yield org


@pytest.mark.parametrize("column", ["Nothing__c", "systemmodstamp", "Birthdate", "Due__c"])
def test_an_object_without_its_timestamp_column_is_refused_alone_in_each_run(org: SalesforceOrg, column: str) -> None:
    """No such field, another case, no time of day, and one that no query can filter."""
    due = replace(org.store.table("Invoice__c").type.by_name["Due__c"], can_filter=False)
    org.store.retype_field("Invoice__c", due)
    table = {"Birthdate": "Contact", "Due__c": "Invoice__c"}.get(column, "Account")
    copy = crm(org, objects=[table, "Organization"], timestamp_columns={table: column})
    tasks = [copy.task(table), copy.task("Organization")]
    (found,) = copy.source.check([tasks[0]])
    assert {name: problem.code for name, problem in copy.source.refused(tasks).items()} == {table: "SRC062"}
    assert replace(found, table="") == replace(copy.source.refused(tasks)[table], table="")
    org.clock.advance(LATER_S)
    with org.transaction() as tx:
        tx.update("Organization", *org.ledger.state("Organization"), {"Name": "New"}, system=True)
    org.clock.advance(LATER_S)
    limit = copy.source.status(copy.position, copy.tables).limit
    assert limit.keys() == {table, "Organization"}
    by_table = {split.table: split for split in copy.source.splits(copy.position, limit)}
    assert len(records(list(copy.source.read(by_table["Organization"], tasks[1:], 1)))) == 1
    with pytest.raises(CheckFailed, match="SRC062"):
        list(copy.source.read(by_table[table], tasks[:1], 1))
    with pytest.raises(CheckFailed, match="SRC062"), copy.source.copy(tasks[0], 1, copy.position, 4):
        pass


def test_a_field_that_is_hidden_between_two_runs_is_refused_in_the_second(org: SalesforceOrg) -> None:
    org.store.add_field("Account", moment("Changed_At__c"))
    copy = crm(org, objects=["Account"], timestamp_columns={"Account": "Changed_At__c"})
    task = copy.task("Account")
    assert copy.source.refused([task]) == {}
    org.integration.hidden.add(("Account", "Changed_At__c"))
    copy.source.tables()
    assert copy.source.refused([task])["Account"].code == "SRC062"
    org.clock.advance(LATER_S)
    assert copy.source.status(copy.position, ["Account"]).limit.keys() == {"Account"}
