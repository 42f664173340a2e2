"""Custom objects of the sandbox org, read as events and polled."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo, Secrets
from airflow_cdc_provider.core.spec.definition import Source
from airflow_cdc_provider.core.table.reported_changes import TableChange
from airflow_cdc_provider.sandbox.salesforce import SalesforceOrg
from airflow_cdc_provider.sandbox.salesforce.fields import double, text
from tests.spark.pipelines.schema_changes.reported.changing_source import Case, ChangingSource, Rows, texts

LATER_S = 400
NEW, TEXT, NUMBER = double("Z__c", 8, 0), text("V__c", 20), double("A__c", 8, 0)
FIELDS = (NUMBER, double("K__c", 8, 0), TEXT)


class ChangingSalesforce(ChangingSource):
    """Fields are named as the columns of the other sources, with ``__c``."""

    key = "Id"

    def __init__(self, org: SalesforceOrg) -> None:
        self.org = org

    @property
    def source(self) -> Source:
        endpoint = {"pubsub_endpoint": self.org.pubsub_endpoint, "pubsub_tls": False}
        return Source("salesforce", "crm", options={**endpoint, "idle": 2})

    @property
    def secrets(self) -> Secrets:
        extra = {"consumer_key": self.org.client_id, "consumer_secret": self.org.client_secret}
        return Secrets(ConnectionInfo("crm", extra={**extra, "instance_url": self.org.instance_url}))

    def name(self, case: Case) -> str:
        return f"{case}__c"

    def create(self, case: Case) -> None:
        number = len(self.org.store.tables)
        self.org.create_object(self.name(case), f"b{number:02}", FIELDS)
        self.org.load(self.name(case), [{"A__c": 10.0 * n, "K__c": float(n), "V__c": f"v{n}"} for n in (1, 2, 3)])

    def change(self, case: Case) -> None:
        name, org = self.name(case), self.org
        first = min(org.ledger.state(name))
        with org.transaction() as tx:
            tx.update(name, first, {"A__c": 11.0})
        match case.change:
            case TableChange.ADD_COLUMN:
                org.change_field(name, NEW)
            case TableChange.DROP_COLUMN:
                org.drop_field(name, "V__c")
            case TableChange.REPLACE_COLUMN:
                org.drop_field(name, "V__c")
                org.change_field(name, TEXT)
            case TableChange.RENAME_COLUMN:
                org.rename_field(name, "V__c", "V2__c")
            case TableChange.WIDEN:
                org.retype_field(name, replace(NUMBER, precision=12))
            case _:
                org.retype_field(name, replace(NUMBER, precision=6))
        with org.transaction() as tx:
            tx.insert(name, {"A__c": 40.0, "K__c": 4.0})

    def truth(self, case: Case) -> Rows:
        """Of the fields that the test writes: numbers are decimals in the copy."""
        rows = self.org.ledger.state(self.name(case))
        names = [field.name for field in self.org.store.table(self.name(case)).type.fields if field.custom]
        return texts({key: {name: _number(row[name]) for name in names} for key, row in rows.items()})


def _number(value: Any) -> Any:
    return int(value) if isinstance(value, float) else value


class PolledSalesforce(ChangingSalesforce):
    """The clock of the org stands still."""

    @property
    def source(self) -> Source:
        return Source("salesforce_poll", "crm", options={"objects": self.objects})

    @property
    def objects(self) -> list[str]:
        return [name for name in self.org.store.tables if name.endswith("__c") and name != "Invoice__c"]

    def before_run(self) -> None:
        """What was written is older than the latencies."""
        self.org.clock.advance(LATER_S)


@contextmanager
def changing_salesforce(kind: type[ChangingSalesforce]) -> Iterator[ChangingSalesforce]:
    with SalesforceOrg(captured=()) as org:
        if kind is PolledSalesforce:
            org.clock.freeze()
        yield kind(org)
