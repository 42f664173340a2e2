"""A plain copy of the sandbox org's objects, and a random writer."""

from __future__ import annotations

import json
import random
from collections import defaultdict
from collections.abc import Iterable, Iterator
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

from airflow_cdc_provider.connectors.duplicates import drop_duplicates
from airflow_cdc_provider.connectors.source import Boundary, StreamItem
from airflow_cdc_provider.connectors.sources.salesforce.fetch import fetch
from airflow_cdc_provider.connectors.sources.salesforce.options import SalesforceOptions
from airflow_cdc_provider.connectors.sources.salesforce.org import Org
from airflow_cdc_provider.connectors.sources.salesforce.positions import channel_position, position_of
from airflow_cdc_provider.connectors.sources.salesforce.query import existing
from airflow_cdc_provider.connectors.sources.salesforce.stream import read_stream
from airflow_cdc_provider.connectors.sources.salesforce.table_layout import EventLayout
from airflow_cdc_provider.connectors.sources.salesforce.types import ObjectSchema
from airflow_cdc_provider.connectors.sources.salesforce.values import from_json
from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.log.change_records import ChangeRecord
from airflow_cdc_provider.core.log.positions import Position
from airflow_cdc_provider.core.spec.definition import TableRule
from airflow_cdc_provider.core.table.states import TableState
from airflow_cdc_provider.sandbox.salesforce import SalesforceOrg

CHANNEL = "/data/ChangeEvents"
TABLES = ("Account", "Contact", "Invoice__c")
Row = dict[str, Any]


class Copy:
    """A plain copy of three objects: rows by id; records with unknown values are fetched at the end."""

    def __init__(self, sandbox: SalesforceOrg, channel: str = CHANNEL) -> None:
        self.sandbox = sandbox
        self.channel = channel
        options = SalesforceOptions(
            pubsub_endpoint=sandbox.pubsub_endpoint, pubsub_tls=False, idle=timedelta(seconds=5), channel=channel
        )
        extra = {"consumer_key": sandbox.client_id, "consumer_secret": sandbox.client_secret}
        info = ConnectionInfo("crm", extra={**extra, "instance_url": sandbox.instance_url})
        self.org = Org(info, options, "crm")
        self.org.http._sleep = self.org.pubsub._sleep = lambda seconds: None
        self.rows: defaultdict[str, dict[str, Row]] = defaultdict(dict)
        self.seen: set[str] = set()
        with self.org.pubsub.connected() as pubsub:
            self.position: Position = position_of(channel, pubsub.latest_position(channel))

    def describe(self, table: str) -> ObjectSchema:
        return self.org.rest.describe(table)

    def task(self, table: str) -> TableTask:
        return TableTask(table, table, self.describe(table).schema, TableRule(table), "0" * 64, TableState.REPLICATING)

    def copy(self, *tables: str) -> None:
        for table in tables:
            schema = self.describe(table).schema
            self.rows[table] = {}
            with self.org.bulk.query(schema, existing(schema)) as job:
                for page in job.pages:
                    self._put(table, self.org.bulk.page(page, schema).to_pylist())
            assert len(self.rows[table]) == job.rows

    def _put(self, table: str, rows: Iterable[Row]) -> None:
        for row in rows:
            self.rows[table][row["Id"]] = {name: plain(value) for name, value in row.items()}

    def drain(self) -> list[StreamItem]:
        """One window: all items up to its last boundary."""
        with self.org.pubsub.connected() as pubsub:
            tasks = [self.task(table) for table in TABLES]
            items = read_stream(pubsub, self.org.rest, self.org.options, self.position, tasks, 1)
            taken = list(drop_duplicates(items, self.seen))
        while taken and not isinstance(taken[-1], Boundary):
            taken.pop()
        if taken and isinstance(taken[-1], Boundary):
            self.position = taken[-1].position
        return taken

    def catch_up(self) -> list[ChangeRecord]:
        """Windows until there are no more; then the records of gaps, overflows and unknown values are fetched."""
        changes: list[ChangeRecord] = []
        while window := self.drain():
            changes += [item for item in window if isinstance(item, ChangeRecord)]
            assert all(record.op != "unreadable" for record in changes)
            self.seen |= {record.event_id for record in changes}
            if channel_position(self.position, self.channel).replay_id == self._tip():
                break
        to_fetch: defaultdict[str, set[str]] = defaultdict(set)
        for record in sorted(changes, key=lambda record: record.order_key):
            self._apply(record, to_fetch)
        for table, ids in to_fetch.items():
            self._fetch(table, sorted(ids))
        self.copy(*{record.table for record in changes if record.op == "overflow"})
        return changes

    def _tip(self) -> bytes:
        with self.org.pubsub.connected() as pubsub:
            return pubsub.latest_position(self.channel).replay_id

    def _apply(self, record: ChangeRecord, to_fetch: defaultdict[str, set[str]]) -> None:
        rows, key = self.rows[record.table], json.loads(record.key or record.key_before or "[null]")[0]
        if record.op == "gap" or record.refetch or (record.op == "update" and key not in rows):
            to_fetch[record.table].add(key)  # an update without its row: it was deleted before the copy was made
        if record.op == "delete":
            rows.pop(key, None)
        elif record.op in ("update", "upsert"):
            rows[key] = {**rows.get(key, {}), **json.loads(record.after or "{}")}

    def _fetch(self, table: str, ids: list[str]) -> None:
        fetched = fetch(self.org.rest, self.describe(table).schema, ids, self.describe)
        for one in (*fetched.deleted, *fetched.missing):
            self.rows[table].pop(one, None)
        for one, found in fetched.rows.items():
            self.rows[table][one] = json.loads(found.after)

    def differences(self) -> list[str]:
        """Where the copy differs from the ledger, without columns that events do not contain."""
        return [line for table in TABLES for line in self._different(table)]

    def _different(self, table: str) -> Iterator[str]:
        schema = self.describe(table).schema
        unsent = self.unsent(table)
        ledger = self.sandbox.ledger.state(table)
        if ledger.keys() != self.rows[table].keys():
            yield f"{table}: ids {sorted(ledger.keys() ^ self.rows[table].keys())[:3]}"
        for one in ledger.keys() & self.rows[table].keys():
            for column in schema.columns:
                expected = json.loads(from_json(column.type)(ledger[one][column.name]))
                found = self.rows[table][one].get(column.name)
                if column.name not in unsent and expected != found:
                    yield f"{table}.{column.name}: {found!r}, but the ledger has {expected!r}"

    def unsent(self, table: str) -> frozenset[str]:
        name = f"{table.removesuffix('c')}ChangeEvent" if table.endswith("__c") else f"{table}ChangeEvent"
        found = self.describe(table)
        with self.org.pubsub.connected() as pubsub:
            event = pubsub.schema(pubsub.topic(f"/data/{name}").schema_id)
        return EventLayout(event, found, found.schema).unsent | found.snapshot_only


def plain(value: Any) -> Any:
    """A value of a typed row, in the form of canonical JSON."""
    if isinstance(value, datetime):
        return f"{value.replace(tzinfo=None).isoformat()}Z"
    if isinstance(value, date):
        return value.isoformat()
    return f"{value:f}" if isinstance(value, Decimal) else value


TEXTS = [None, "x", "NA", 'a "b",\nc', "Grüße ☃", " y ", "l1\r\nl2\r\nl3"]
CHANGES: dict[str, dict[str, list[Any]]] = {
    "Account": {
        "Name": ["Acme", "Engines", "Zoo"],
        "Phone": [None, "1", "22"],
        "BillingStreet": TEXTS,
        "BillingLatitude": [None, 12.5, -3.333333],
        "ShippingCity": ["Ulm", None],
        "Description": ["\r\n".join(f"line {n} {w}" for n in range(80)) for w in "abc"] + [None, "short"],
        "Amount_Owed__c": [None, 0, 12.34, -0.01],
        "NumberOfEmployees": [None, 7],
        "Regions__c": ["EU;US", None],
    },
    "Contact": {
        "LastName": ["King", "Byron"],
        "FirstName": ["Ada", None],
        "MailingCountry": ["Italy", None],
        "Birthdate": ["1815-12-10", None],
        "DoNotCall": [True, False],
    },
    "Invoice__c": {
        "Amount__c": [None, 0.1, 100],
        "Quantity__c": [1.000001, None],
        "Weight__c": [12, 3_000_000_000],
        "Discount__c": [12.25, None],
        "Issued__c": ["2026-03-01", None],
        "Due__c": ["2026-03-01T12:00:00Z", None],
        "Call_At__c": ["09:30:00.000Z", None],
        "Paid__c": [True, False],
        "Tags__c": ["a;b", None],
        "Terms__c": TEXTS,
        "Place__Latitude__s": [1.5, None],
        "Place__Longitude__s": [-1.5, None],
    },
}


COORDINATES = {"Place__Latitude__s", "Place__Longitude__s"}


class Writer:
    """Random transactions, one after another."""

    def __init__(self, sandbox: SalesforceOrg, chance: random.Random) -> None:
        self.sandbox = sandbox
        self.chance = chance
        self.bin: list[tuple[str, str]] = []

    def live(self, table: str) -> list[str]:
        return sorted(self.sandbox.ledger.state(table))

    def values(self, table: str, most: int) -> Row:
        names = set(self.chance.sample(sorted(CHANGES[table]), self.chance.randint(1, most)))
        if names & COORDINATES:  # an event contains both coordinates, whichever changed
            names |= COORDINATES
        return {name: self.chance.choice(CHANGES[table][name]) for name in sorted(names)}

    def transact(self) -> None:
        if self.chance.random() < 0.3:
            self.sandbox.clock.advance(1)
        with self.sandbox.transaction(coalesce=self.chance.random() < 0.7, as_gap=self.chance.random() < 0.1) as tx:
            touched: set[str] = set()
            for _ in range(self.chance.randint(1, 5)):
                table = self.chance.choice(TABLES)
                free = [one for one in self.live(table) if one not in touched]
                action = self.chance.random()
                if action < 0.35 or not free:
                    first = {"Account": {"Name": "New"}, "Contact": {"LastName": "New"}, "Invoice__c": {}}[table]
                    tx.insert(table, {**first, **self.values(table, 4)})
                elif action < 0.8:
                    some = self.chance.sample(free, min(len(free), self.chance.choice([1, 1, 3])))
                    tx.update_many(table, some, self.values(table, 3))
                elif action < 0.9 and table == "Invoice__c":
                    one = self.chance.choice(free)
                    tx.delete(table, one)
                    touched.add(one)
                    self.bin.append((table, one))
                elif self.bin:
                    table, one = self.bin.pop()
                    if one not in touched:
                        tx.undelete(table, one)
                        touched.add(one)
        if self.chance.random() < 0.1 and (known := self.live("Account")):
            self.sandbox.gap("Account", self.chance.sample(known, min(2, len(known))))
        if self.chance.random() < 0.1:
            self.sandbox.bus.repeat(self.chance.randint(1, 3))
