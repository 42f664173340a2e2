"""A replicator of the sandbox org, its runs taken task by task as Airflow takes them, and the org's ledger as judge."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from airflow_cdc_provider.connectors.salesforce.layout import Layout
from airflow_cdc_provider.connectors.salesforce.source import SalesforceSource
from airflow_cdc_provider.connectors.salesforce.types import described
from airflow_cdc_provider.connectors.salesforce.values import from_json
from airflow_cdc_provider.control.replicator import Replicator, open_replicator
from airflow_cdc_provider.core.connections import ConnectionInfo, Secrets
from airflow_cdc_provider.core.cursors import ControlRecord
from airflow_cdc_provider.core.definition import (
    Columns,
    Definition,
    Reconcile,
    Resync,
    Source,
    Staging,
    TableRule,
    Target,
)
from airflow_cdc_provider.core.steps import TableResult
from airflow_cdc_provider.sandbox.salesforce import SalesforceOrg
from airflow_cdc_provider.state.store import StateStore
from tests.connectors.salesforce_copy import CHANGES, plain
from tests.faults import attempts
from tests.faults.road import Road

TABLES = ("Account", "Contact", "Invoice__c")
CHANNEL = "/data/ChangeEvents"
FIRST = {"Account": {"Name": "New"}, "Contact": {"LastName": "New"}, "Invoice__c": {}}
FETCHED = {"Description"}
"""Long texts come as diffs, which take a fetch."""
LEFT_OUT = {"Contact": ("Name",)}
"""A name that is joined of its parts takes one, too."""


@dataclass
class Scene:
    """What ``tests.faults.road`` runs: an org, a definition, a folder."""

    org: SalesforceOrg
    folder: Path
    spark: SparkSession
    definition: Definition

    @property
    def secrets(self) -> Secrets:
        extra = {"consumer_key": self.org.client_id, "consumer_secret": self.org.client_secret}
        return Secrets(ConnectionInfo("crm", extra={**extra, "instance_url": self.org.instance_url}))

    @property
    def state_url(self) -> str:
        return f"sqlite:///{self.folder}/state.db"

    def replicator(self) -> Replicator:
        return open_replicator(self.definition, self.secrets, StateStore(self.state_url))

    def run(self, **more: Any) -> Road:
        with attempts.operating(lambda _: self.secrets):
            return Road(self, **more).go()  # type: ignore[arg-type]

    def green(self, **more: Any) -> Road:
        road = self.run(**more)
        assert road.green, (road.states, road.said)
        return road

    def settle(self) -> None:
        """Runs until there is nothing to do."""
        for _ in range(9):
            if set(self.green().states) <= {"open_window", "close_window"}:
                return
        raise AssertionError("there is no end of it")

    def results(self, road: Road, task: str) -> dict[str, TableResult]:
        latest = self.replicator().run(road.run_id).latest(task)
        assert latest is not None
        return {one.table: one for one in latest[1].tables}

    def control(self, table: str) -> ControlRecord:
        control = self.replicator().target.held(table, self.target(table)).control
        assert control is not None
        return control

    def target(self, table: str) -> str:
        return self.replicator().target.table_name(table)

    @cached_property
    def source(self) -> SalesforceSource:
        source = self.replicator().source
        assert isinstance(source, SalesforceSource)
        return source

    def rows(self, table: str) -> dict[str, dict[str, Any]]:
        """Id → row, its values in the terms of canonical JSON."""
        place = self.replicator().target.locate(self.target(table))
        rows = self.spark.read.format("delta").load(place).toArrow().to_pylist()
        assert len({row["Id"] for row in rows}) == len(rows), "no key twice"
        return {row["Id"]: {name: plain(value) for name, value in row.items()} for row in rows}

    @property
    def tables(self) -> list[str]:
        return [rule.source for rule in self.definition.tables]

    def differences(self) -> list[str]:
        """What the copies hold otherwise than the ledger; columns that no event tells are left out."""
        return [line for table in self.tables for line in self._different(table)]

    def _different(self, table: str) -> Iterator[str]:
        found = described(self.source.org.rest.describe(table))
        untold = self.untold(table)
        truth, rows = self.org.ledger.state(table), self.rows(table)
        if truth.keys() != rows.keys():
            yield f"{table}: ids {sorted(truth.keys() ^ rows.keys())[:3]}"
        for one in truth.keys() & rows.keys():
            for column in found.schema.columns:
                expected = json.loads(from_json(column.type, print)(truth[one][column.name]))
                if column.name not in untold | set(LEFT_OUT.get(table, ())) and expected != rows[one][column.name]:
                    yield f"{table} {one}.{column.name}: {rows[one][column.name]!r}, in truth {expected!r}"

    def untold(self, table: str) -> frozenset[str]:
        name = f"{table.removesuffix('c')}ChangeEvent" if table.endswith("__c") else f"{table}ChangeEvent"
        found = described(self.source.org.rest.describe(table))
        with self.source.org.pubsub.connected() as pubsub:
            event = pubsub.schema(pubsub.topic(f"/data/{name}").schema_id)
        return Layout(event, found, found.schema).unsent | found.snapshot_only


def scene(org: SalesforceOrg, folder: Path, spark: SparkSession, *tables: str) -> Scene:
    options = {"pubsub_endpoint": org.pubsub_endpoint, "pubsub_tls": False, "idle": 5}
    made = Definition(
        name="crm",
        source=Source("salesforce", "crm", Reconcile.AUTO, options),
        target=Target("delta", f"{folder}/lake"),
        tables=tuple(TableRule(table, columns=Columns(exclude=LEFT_OUT.get(table, ()))) for table in tables),
        staging=Staging(f"{folder}/staging"),
        resync=Resync(),
    )
    return Scene(org, folder, spark, made)


class Writer:
    """Random transactions whose events tell everything: no fetch is needed to follow them."""

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
        if chosen & PLACE:  # an event tells both coordinates, whichever changed
            chosen |= PLACE
        return {name: self.chance.choice(CHANGES[table][name]) for name in sorted(chosen)}


PLACE = {"Place__Latitude__s", "Place__Longitude__s"}


def with_source(definition: Definition, **changes: Any) -> Definition:
    return replace(definition, source=replace(definition.source, **changes))
