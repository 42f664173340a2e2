"""The org without its servers: its records, settings and event bus, and how a commit changes them."""

from __future__ import annotations

import random
import secrets
import threading
import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from airflow_cdc_provider.sandbox.salesforce import objects as o
from airflow_cdc_provider.sandbox.salesforce.bulk_jobs import BulkJobs
from airflow_cdc_provider.sandbox.salesforce.bus import Bus
from airflow_cdc_provider.sandbox.salesforce.catalog import catalog, custom_object
from airflow_cdc_provider.sandbox.salesforce.change_events import (
    Event,
    Rules,
    coalesced,
    encode,
    gap_event,
    plan_events,
)
from airflow_cdc_provider.sandbox.salesforce.channels import Channels, Member
from airflow_cdc_provider.sandbox.salesforce.clock import Clock, stamp
from airflow_cdc_provider.sandbox.salesforce.cursors import Cursors
from airflow_cdc_provider.sandbox.salesforce.faults import Faults
from airflow_cdc_provider.sandbox.salesforce.fields import Field
from airflow_cdc_provider.sandbox.salesforce.ids import record_id
from airflow_cdc_provider.sandbox.salesforce.ledger import Ledger, RowChange
from airflow_cdc_provider.sandbox.salesforce.oauth import App, Tokens
from airflow_cdc_provider.sandbox.salesforce.operations import fitted
from airflow_cdc_provider.sandbox.salesforce.schemas import Schemas
from airflow_cdc_provider.sandbox.salesforce.storage import Store
from airflow_cdc_provider.sandbox.salesforce.transactions import API_ORIGIN, Transaction
from airflow_cdc_provider.sandbox.salesforce.users import User
from airflow_cdc_provider.sandbox.salesforce.values import stored

CAPTURED = ("Account", "Contact", "Invoice__c")
RECYCLE_BIN_S = 15 * 86_400
# A floating-point number does not represent it exactly.
FIRST_COMMIT_NUMBER = 10**18


class OrgState:
    """``seed`` makes replay ids and commit numbers repeatable. ``captured``: the objects of the standard channel."""

    def __init__(self, seed: int = 1, rules: Rules | None = None, captured: Iterable[str] = CAPTURED) -> None:
        self.clock = Clock()
        self.rules = rules or Rules()
        self.faults = Faults()
        self.store = Store(catalog())
        self.ledger = Ledger(self.store)
        self.schemas = Schemas(self.store)
        self.bus = Bus(self.clock, seed)
        self.channels = Channels(self.store, [Member(name) for name in captured])
        self.bulk = BulkJobs(self.store, self.clock, self.faults)
        self.cursors = Cursors(self.clock)
        self._org_ids = random.Random(seed)
        self.org_id = ""
        self.instance = "SBX1"
        self.transactions: dict[str, Transaction] = {}
        self.delete_log_since = stamp(0)
        self.requests = 0
        self.request_limit = 1_000_000
        self.users: dict[str, User] = {}
        self.tokens = Tokens(self.clock, self.org_id, self.users)
        self._rename_org()
        self.integration = self.add_user("integration@sandbox.example")
        self.writer = self.add_user("writer@sandbox.example")
        app = App("sandbox-client", secrets.token_urlsafe(24), self.integration.username)
        self.client_id, self.client_secret = app.client_id, app.client_secret
        self.tokens.apps[app.client_id] = app
        self._commits = threading.Lock()
        self._random = random.Random(seed)
        self._commit_number = FIRST_COMMIT_NUMBER
        self._described_ms = dict.fromkeys(self.store.tables, self.clock.now_ms())

    def add_user(self, username: str) -> User:
        """A user with View All Data, unless restricted by ``access`` and ``hidden``."""
        table = self.store.table("User")
        user = User(record_id("005", table.last_number + 1), username)
        self.users[user.id] = user
        self.load("User", [{"Username": username, "LastName": username.partition("@")[0], "IsActive": True}], user)
        return user

    def transaction(
        self, user: User | None = None, origin: str = API_ORIGIN, coalesce: bool = True, as_gap: bool = False
    ) -> Transaction:
        """A new transaction, open until it is committed or rolled back."""
        by = (user or self.writer).id
        opened = Transaction(self.store, self.clock, self._finish, by, origin, coalesce, as_gap)
        self.transactions[opened.key] = opened
        return opened

    def load(self, name: str, records: Sequence[Mapping[str, Any]], owner: User | None = None) -> list[str]:
        """Create records without events, in one commit of the ledger. Only the types of values are checked."""
        with self.store.lock:
            table = self.store.table(name)
            object_type, second = table.type, self.clock.second()
            by = (owner or self.writer).id
            changes = []
            for values in records:
                record = table.next_id()
                row = object_type.new_row(record, second, by)
                for key, value in values.items():
                    row[object_type.slots[key]] = stored(object_type.by_name[key], value)
                table.set_auto_number(row)
                table.rows[record] = Transaction.with_full_name(object_type, row, values)
                changes.append(RowChange(name, record, table.rows[record]))
            self.ledger.append("", self.clock.now_ms(), changes)
            return [change.id for change in changes]

    def described_ms(self, name: str) -> int:
        """The time of the last change of an object's definition."""
        return self._described_ms[name]

    def create_object(self, name: str, prefix: str, fields: Sequence[Field]) -> None:
        """A custom object, in the standard channel. ``prefix``: three characters, of its record ids."""
        with self._commits:
            self.store.add(custom_object(name, prefix, fields))
            self.channels.selected.append(Member(name))
        self._described_ms[name] = self.clock.now_ms()

    def change_field(self, name: str, field: Field) -> None:
        """Add or replace a field. It is null in all rows, without an event."""
        with self._commits:
            self.store.add_field(name, field)
        self._described_ms[name] = self.clock.now_ms()

    def retype_field(self, name: str, field: Field) -> None:
        """Another precision or length, in which all values fit: they stay, without an event."""
        with self._commits:
            self.store.retype_field(name, field)
        self._described_ms[name] = self.clock.now_ms()

    def rename_field(self, name: str, old: str, new: str) -> None:
        """Another API name, without an event."""
        with self._commits:
            self.store.rename_field(name, old, new)
        self._described_ms[name] = self.clock.now_ms()

    def drop_field(self, name: str, field_name: str) -> None:
        with self._commits:
            self.store.drop_field(name, field_name)
        self._described_ms[name] = self.clock.now_ms()

    def convert_field(self, name: str, field: Field) -> None:
        """An incompatible conversion: the field becomes null in all rows, with one event for the whole object."""
        self.change_field(name, field)
        self.gap(name, [f"{self.store.table(name).type.prefix}*"])

    def gap(self, name: str, records: Sequence[str], kind: str = "GAP_UPDATE") -> None:
        """Publish a gap event with a transaction key of no transaction."""
        with self._commits, self.store.lock:
            schema = self.schemas.current(name)
            second, by = self.clock.second(), self.writer.id
            event = gap_event(schema, records, kind, second, by, str(uuid.uuid4()), self._next_commit())
            self._publish([event])

    def archive(self, name: str, records: Sequence[str]) -> None:
        """Exclude records from queries without deleting them. The event is GAP_DELETE."""
        with self.store.lock:
            table = self.store.table(name)
            changes = []
            for record in records:
                row = list(table.rows[record])
                row[o.ARCHIVED], row[o.MODSTAMP] = True, self.clock.second()
                table.rows[record] = tuple(row)
                changes.append(RowChange(table.type.name, record, tuple(row)))
            self.ledger.append(str(uuid.uuid4()), self.clock.now_ms(), changes)
        if name in self.channels.captured():
            self.gap(name, records, "GAP_DELETE")

    def empty_bin(self) -> None:
        """Purge records that were deleted more than 15 days ago, without events."""
        oldest = stamp(self.clock.now_ms() - RECYCLE_BIN_S * 1000)
        with self.store.lock:
            changes = []
            for table in self.store.tables.values():
                for record in [key for key, one in table.deletions.items() if one.second < oldest]:
                    del table.deletions[record], table.rows[record]
                    changes.append(RowChange(table.type.name, record, None))
            if changes:
                self.ledger.append(str(uuid.uuid4()), self.clock.now_ms(), changes)

    def migrate(self) -> None:
        """Move the org to another instance: same org id, all replay ids invalid, new commit numbers."""
        self.bus.reset()
        self._commit_number = FIRST_COMMIT_NUMBER
        self.instance = f"SBX{int(self.instance[3:]) + 1}"
        self._describe_org()

    def refresh(self) -> None:
        """Refresh a Salesforce sandbox from production: like ``migrate``, with another org id."""
        self.migrate()
        self._rename_org()
        self.tokens.expire()

    def _rename_org(self) -> None:
        self.org_id = self.tokens.org_id = record_id("00D", self._org_ids.randrange(10**9))
        self._describe_org()

    def _describe_org(self) -> None:
        """Write the only row of Organization."""
        table = self.store.table("Organization")
        row = table.type.new_row(self.org_id, self.clock.second(), "")
        for name, value in (("Name", "Sandbox"), ("InstanceName", self.instance), ("IsSandbox", True)):
            row[table.type.slots[name]] = value
        table.rows = {self.org_id: tuple(row)}

    def earliest_open(self) -> str | None:
        """The start of the oldest open transaction. Its changes may appear after later ones."""
        return min((one.started for one in self.transactions.values()), default=None)

    def _finish(self, transaction: Transaction, commit: bool) -> None:
        """Events are encoded before the rows change, so that a large transaction does not block readers."""
        try:
            if commit:
                with self._commits:
                    events = self._events(transaction)
                    with self.store.lock:
                        self.ledger.append(transaction.key, self.clock.now_ms(), self._apply(transaction))
                        self._publish(events)
        finally:
            del self.transactions[transaction.key]

    def _apply(self, transaction: Transaction) -> list[RowChange]:
        changes = []
        for record, row in transaction.rows.items():
            table = self.store.by_id(record)
            assert table is not None
            table.rows[record] = table.type.fit(row)
            changes.append(RowChange(table.type.name, record, table.rows[record]))
        for record, deletion in transaction.deletions.items():
            table = self.store.by_id(record)
            assert table is not None
            if deletion is None:
                table.deletions.pop(record, None)
            else:
                table.deletions[record] = deletion
                table.delete_log.append((deletion.second, record))
        for purge in transaction.purges:
            table = self.store.table(purge.type.name)
            table.rows.pop(purge.id, None)
            table.deletions.pop(purge.id, None)
            changes.append(RowChange(purge.type.name, purge.id, None))
        return changes

    def _events(self, transaction: Transaction) -> list[Event]:
        operations = [fitted(one, self.store.table(one.type.name).type) for one in transaction.operations]
        schemas = {name: self.schemas.current(name) for name in self.channels.captured()}
        planned = plan_events(coalesced(operations) if transaction.coalesce else operations, schemas, self.rules)
        return encode(planned, schemas, transaction.key, self._next_commit(), self.clock.second())

    def _publish(self, events: Sequence[Event]) -> None:
        """A fault may lose events: Salesforce does not guarantee their publication."""
        self.bus.publish([event for event in events if not self.faults.take("lose_events")])

    def _next_commit(self) -> int:
        self._commit_number += self._random.randrange(1, 1000)
        return self._commit_number
