"""A replicator of the sandbox org, compared with the org's ledger."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from airflow_cdc_provider.connectors.sources.salesforce.source import SalesforceSource
from airflow_cdc_provider.connectors.sources.salesforce.table_layout import EventLayout
from airflow_cdc_provider.connectors.sources.salesforce.values import from_json
from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo, Secrets
from airflow_cdc_provider.core.spec.definition import (
    Columns,
    Definition,
    Reconcile,
    Resync,
    Source,
    Staging,
    TableRule,
    Target,
)
from airflow_cdc_provider.sandbox.salesforce import SalesforceOrg
from tests.connectors.salesforce_copy import CHANGES, plain
from tests.spark.pipelines.pipeline import Pipeline

TABLES = ("Account", "Contact", "Invoice__c")
LATER_S = 5
"""A change within the second in which the stream was opened may be a repetition: its row is fetched."""
CHANNEL = "/data/ChangeEvents"
FIRST = {"Account": {"Name": "New"}, "Contact": {"LastName": "New"}, "Invoice__c": {}}
FETCHED = {"Description"}
"""Long texts arrive as diffs, which need a fetch."""
LEFT_OUT = {"Contact": ("Name",)}
"""A name that is joined of its parts needs one, too."""


@dataclass
class SalesforcePipeline(Pipeline):
    org: SalesforceOrg

    @property
    def secrets(self) -> Secrets:
        extra = {"consumer_key": self.org.client_id, "consumer_secret": self.org.client_secret}
        return Secrets(ConnectionInfo("crm", extra={**extra, "instance_url": self.org.instance_url}))

    @cached_property
    def source(self) -> SalesforceSource:
        source = self.replicator().source
        assert isinstance(source, SalesforceSource)
        return source

    def rows(self, table: str) -> dict[str, dict[str, Any]]:
        """Id → row, with values as in canonical JSON."""
        copied = self.copied_rows(table, "Id")
        return {one: {name: plain(value) for name, value in row.items()} for one, row in copied.items()}

    def differences(self) -> list[str]:
        """The differences between the copies and the ledger; columns that no event contains are left out."""
        return [line for table in self.tables for line in self._different(table)]

    def _different(self, table: str) -> Iterator[str]:
        found = self.source.org.rest.describe(table)
        unsent = self.unsent(table)
        truth, rows = self.org.ledger.state(table), self.rows(table)
        if truth.keys() != rows.keys():
            yield f"{table}: ids {sorted(truth.keys() ^ rows.keys())[:3]}"
        for one in truth.keys() & rows.keys():
            for column in found.schema.columns:
                expected = json.loads(from_json(column.type)(truth[one][column.name]))
                if column.name not in unsent | set(LEFT_OUT.get(table, ())) and expected != rows[one][column.name]:
                    yield f"{table} {one}.{column.name}: {rows[one][column.name]!r}, in truth {expected!r}"

    def unsent(self, table: str) -> frozenset[str]:
        name = f"{table.removesuffix('c')}ChangeEvent" if table.endswith("__c") else f"{table}ChangeEvent"
        found = self.source.org.rest.describe(table)
        with self.source.org.pubsub.connected() as pubsub:
            event = pubsub.schema(pubsub.topic(f"/data/{name}").schema_id)
        return EventLayout(event, found, found.schema).unsent | found.snapshot_only


def salesforce_pipeline(org: SalesforceOrg, folder: Path, spark: SparkSession, *tables: str) -> SalesforcePipeline:
    options = {"pubsub_endpoint": org.pubsub_endpoint, "pubsub_tls": False, "idle": 5}
    made = Definition(
        name="crm",
        source=Source("salesforce", "crm", Reconcile.AUTO, options),
        target=Target("delta", f"{folder}/lake"),
        tables=tuple(TableRule(table, columns=Columns(exclude=LEFT_OUT.get(table, ()))) for table in tables),
        staging=Staging(f"{folder}/staging"),
        resync=Resync(),
    )
    return SalesforcePipeline(folder, spark, made, org)


class Writer:
    """Random transactions whose events contain all values: no fetch is needed to follow them."""

    def __init__(self, org: SalesforceOrg, seed: str) -> None:
        self.org = org
        self.chance = random.Random(seed)

    def fill(self, rows: int) -> None:
        for table in TABLES:
            self.org.load(table, [{**FIRST[table], **self.values(table, 5)} for _ in range(rows)])

    def transact(self, times: int = 1) -> None:
        for _ in range(times):
            with self.org.transaction(coalesce=self.chance.random() < 0.7) as tx:
                gone: set[str] = set()
                for _ in range(self.chance.randint(1, 6)):
                    table = self.chance.choice(TABLES)
                    live = sorted(self.org.ledger.state(table).keys() - gone)
                    act = self.chance.random()
                    if act < 0.3 or not live:
                        tx.insert(table, {**FIRST[table], **self.values(table, 4)})
                    elif act < 0.9:
                        some = self.chance.sample(live, min(len(live), self.chance.choice([1, 1, 3])))
                        tx.update_many(table, some, self.values(table, 3))
                    elif table == "Invoice__c":
                        one = self.chance.choice(live)
                        tx.delete(table, one)
                        gone.add(one)

    def values(self, table: str, most: int) -> dict[str, Any]:
        names = sorted(CHANGES[table].keys() - FETCHED)
        chosen = set(self.chance.sample(names, self.chance.randint(1, most)))
        if chosen & COORDINATES:  # an event contains both coordinates if one changed
            chosen |= COORDINATES
        return {name: self.chance.choice(CHANGES[table][name]) for name in sorted(chosen)}


COORDINATES = {"Place__Latitude__s", "Place__Longitude__s"}
