"""A transaction of the org. Its rows have the time of their statement and are visible after the commit.

So rows may appear that are older than visible ones. An open transaction locks the records that it changes.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from airflow_cdc_provider.sandbox.salesforce import objects as o
from airflow_cdc_provider.sandbox.salesforce.catalog import PERSON_FIELDS
from airflow_cdc_provider.sandbox.salesforce.clock import Clock
from airflow_cdc_provider.sandbox.salesforce.errors import ApiError, is_deleted, no_such_field, not_found
from airflow_cdc_provider.sandbox.salesforce.ids import full
from airflow_cdc_provider.sandbox.salesforce.objects import ObjectType, Row
from airflow_cdc_provider.sandbox.salesforce.operations import Kind, Operation, Purge
from airflow_cdc_provider.sandbox.salesforce.storage import Deletion, Store, Table
from airflow_cdc_provider.sandbox.salesforce.values import stored

API_ORIGIN = "com/salesforce/api/rest/66.0;client=sandbox"
AUDIT = ("CreatedDate", "CreatedById", "LastModifiedDate", "LastModifiedById")


class Transaction:
    """``with org.transaction() as tx`` commits at the end, and rolls back after an exception.

    ``origin`` is ``changeOrigin`` in events. ``coalesce``: several changes of one record become one event. ``as_gap``:
    all events are gap events. Statements raise ApiError with the org's error codes.
    """

    def __init__(
        self,
        store: Store,
        clock: Clock,
        finish: Callable[[Transaction, bool], None],
        user: str,
        origin: str = API_ORIGIN,
        coalesce: bool = True,
        as_gap: bool = False,
    ) -> None:
        self.key = str(uuid.uuid4())
        self.started = clock.second()
        self.operations: list[Operation] = []
        self.purges: list[Purge] = []
        self.deletions: dict[str, Deletion | None] = {}
        self.rows: dict[str, Row] = {}
        self.user, self.origin, self.coalesce, self.as_gap = user, origin, coalesce, as_gap
        self.open = True
        self._store, self._clock, self._finish = store, clock, finish

    def __enter__(self) -> Transaction:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if self.open:
            self._end(commit=kind is None)

    def commit(self) -> None:
        self._end(commit=True)

    def rollback(self) -> None:
        self._end(commit=False)

    def _end(self, commit: bool) -> None:
        if not self.open:
            raise RuntimeError(f"transaction {self.key} has already ended")
        self.open = False
        self._finish(self, commit)
        with self._store.lock:
            for record in [record for record, holder in self._store.holders.items() if holder == self.key]:
                del self._store.holders[record]

    def insert(self, name: str, values: Mapping[str, Any], audit: Mapping[str, str] | None = None) -> str:
        """The new record's id. ``audit`` sets CreatedDate and LastModifiedDate to the past, as data loads may."""
        with self._store.lock:
            table = self._store.table(name)
            known = self._checked(table.type, values, inserting=True)
            if table.type.name == "Account" and known.get("LastName"):
                return self._insert_person(table, known, audit)
            return self._insert(table, known, audit)

    def update(self, name: str, record: str, values: Mapping[str, Any], system: bool = False) -> None:
        """``system``: a change by the org (geocoding, renamed picklist values), which keeps LastModifiedDate."""
        self.update_many(name, [record], values, system)

    def update_many(self, name: str, records: Iterable[str], values: Mapping[str, Any], system: bool = False) -> None:
        """The same change of several records in one statement, which changes all of them or none."""
        with self._store.lock:
            table = self._store.table(name)
            known = self._checked(table.type, values, inserting=False)
            second = self._clock.second()
            slots = [(table.type.slots[field], value) for field, value in known.items()]
            if not system:
                slots += [(o.MODIFIED, second), (o.MODIFIED_BY, self.user)]
            slots.append((o.MODSTAMP, second))
            rows = [self._existing(table, full(record)) for record in records]
            for before in rows:
                self._lock(before[o.ID])
            for before in rows:
                after = list(before)
                for slot, value in slots:
                    after[slot] = value
                self._change("UPDATE", table, before, self.with_full_name(table.type, after, known), second, system)
                if "PersonContactId" in table.type.slots:
                    self._update_contact(table, before, known)

    def delete(self, name: str, *records: str, master: str | None = None) -> None:
        """Move records and their children to the Recycle Bin. ``master``: the winner of a merge."""
        with self._store.lock:
            table = self._store.table(name)
            second, group = self._clock.second(), str(uuid.uuid4())
            rows = [self._existing(table, full(record)) for record in records]
            self._delete(table, rows, second, group, master)

    def undelete(self, name: str, *records: str) -> None:
        """Restore records and all others of the same delete. Each of them has a change event."""
        with self._store.lock:
            second = self._clock.second()
            for record in records:
                deletion = self._store.table(name).deletions.get(full(record))
                if deletion is None:
                    raise ApiError(400, "UNDELETE_FAILED", f"entity is not in recycle bin: {record}")
                for table in self._store.tables.values():
                    group = [key for key, one in table.deletions.items() if one.group == deletion.group]
                    for key in group:
                        self._undelete(table, key, second)

    def purge(self, name: str, *records: str) -> None:
        """Remove records from the Recycle Bin, without events."""
        with self._store.lock:
            table = self._store.table(name)
            for record in map(full, records):
                if record not in table.deletions:
                    raise ApiError(400, "INVALID_ID_FIELD", f"not in the Recycle Bin: {record}")
                self.purges.append(Purge(table.type, record, self._clock.second()))

    def merge(self, name: str, winner: str, *losers: str, values: Mapping[str, Any] | None = None) -> None:
        """Delete the losers, whose MasterRecordId becomes the winner, and move their children to the winner.

        The events are those of updates and deletes.
        """
        with self._store.lock:
            loser_ids = [full(loser) for loser in losers]
            for table in self._store.tables.values():
                for field in table.type.fields:
                    if name in field.refers_to and field.cascade:
                        slot = table.type.slots[field.name]
                        children = [row[o.ID] for row in self._current(table) if row[slot] in loser_ids]
                        self.update_many(table.type.name, children, {field.name: winner})
            self.delete(name, *loser_ids, master=full(winner))
            self.update(name, winner, values or {})

    def _insert(self, table: Table, known: Mapping[str, Any], audit: Mapping[str, str] | None) -> str:
        object_type, second, record = table.type, self._clock.second(), table.next_id()
        row, audit = object_type.new_row(record, second, self.user), audit or {}
        row[o.CREATED] = audit.get("CreatedDate", second)
        row[o.MODIFIED] = audit.get("LastModifiedDate", second)
        for name, value in known.items():
            row[object_type.slots[name]] = value
        table.set_auto_number(row)
        self._lock(record)
        self._change("CREATE", table, None, self.with_full_name(object_type, row, known), second)
        return record

    def _insert_person(self, table: Table, known: dict[str, Any], audit: Mapping[str, str] | None) -> str:
        """A person account is an account and a contact with the same values."""
        account = self._insert(table, known | {"IsPersonAccount": True}, audit)
        contact_values = _contact_values(known) | {"AccountId": account, "IsPersonAccount": True}
        contact = self._insert(self._store.table("Contact"), contact_values, audit)
        row = list(self.rows[account])
        row[table.type.slots["PersonContactId"]] = contact
        self.rows[account] = tuple(row)
        self.operations[-2] = replace(self.operations[-2], after=tuple(row))
        return account

    def _update_contact(self, table: Table, account: Row, known: Mapping[str, Any]) -> None:
        contact = account[table.type.slots["PersonContactId"]]
        contact_values = _contact_values(known)
        if contact and contact_values:
            self.update("Contact", contact, contact_values)

    def _delete(self, table: Table, rows: list[Row], second: str, group: str, master: str | None = None) -> None:
        for before in rows:
            self._lock(before[o.ID])
            after = list(before)
            after[o.DELETED], after[o.MODSTAMP] = True, second
            after[o.MODIFIED], after[o.MODIFIED_BY] = second, self.user
            if master:
                after[table.type.slots["MasterRecordId"]] = master
            self.deletions[before[o.ID]] = Deletion(second, group)
            self._change("DELETE", table, before, tuple(after), second)
        deleted = {row[o.ID] for row in rows}
        for child_table in self._store.tables.values():
            for field in child_table.type.fields:
                if field.cascade and table.type.name in field.refers_to:
                    slot = child_table.type.slots[field.name]
                    children = [row for row in self._current(child_table) if row[slot] in deleted]
                    if children:
                        self._delete(child_table, children, second, group)

    def _undelete(self, table: Table, record: str, second: str) -> None:
        self._lock(record)
        before = table.type.fit(self.rows.get(record) or table.rows[record])
        after = list(before)
        after[o.DELETED], after[o.MODSTAMP] = False, second
        after[o.MODIFIED], after[o.MODIFIED_BY] = second, self.user
        self.deletions[record] = None
        self._change("UNDELETE", table, before, tuple(after), second)

    def _change(
        self, kind: Kind, table: Table, before: Row | None, after: Row, second: str, system: bool = False
    ) -> None:
        record, origin = after[o.ID], "" if system else self.origin
        self.rows[record] = after
        self.operations.append(
            Operation(kind, table.type, record, before, after, second, self.user, origin, self.as_gap, system)
        )

    def _lock(self, record: str) -> None:
        if self._store.holders.setdefault(record, self.key) != self.key:
            message = f"unable to obtain exclusive access to this record or 1 records: {record}"
            raise ApiError(400, "UNABLE_TO_LOCK_ROW", message)

    def _existing(self, table: Table, record: str) -> Row:
        row = self.rows.get(record) or table.rows.get(record)
        if row is None:
            raise not_found()
        if row[o.DELETED]:
            raise is_deleted()
        return table.type.fit(row)

    def _current(self, table: Table) -> list[Row]:
        """Rows that are not deleted, with the changes of this transaction."""
        rows = [self.rows.get(record, row) for record, row in table.rows.items()]
        rows += [row for key, row in self.rows.items() if key[:3] == table.type.prefix and key not in table.rows]
        return [table.type.fit(row) for row in rows if not row[o.DELETED]]

    def _checked(self, object_type: ObjectType, values: Mapping[str, Any], inserting: bool) -> dict[str, Any]:
        known = {}
        for name, value in values.items():
            field = object_type.by_lower_name.get(name.lower())
            if field is None:
                raise no_such_field(name, object_type.name)
            if not field.writable or field.name in AUDIT:
                message = f"Unable to create/update fields: {name}. Please check the security settings of this field."
                raise ApiError(400, "INVALID_FIELD_FOR_INSERT_UPDATE", message, [name])
            known[field.name] = stored(field, value)
        required = _required(object_type) if inserting else []
        required += [name for name in known if not object_type.by_name[name].nillable]
        missing = sorted({name for name in required if known.get(name) is None})
        if missing and not (object_type.name == "Account" and known.get("LastName")):
            message = f"Required fields are missing: [{', '.join(missing)}]"
            raise ApiError(400, "REQUIRED_FIELD_MISSING", message, missing)
        return known

    @staticmethod
    def with_full_name(object_type: ObjectType, row: list[Any], known: Mapping[str, Any]) -> Row:
        """Set a person's full name from its parts."""
        if "LastName" in object_type.slots and ("LastName" in known or "FirstName" in known):
            slots = object_type.slots
            name = " ".join(part for part in (row[slots["FirstName"]], row[slots["LastName"]]) if part)
            row[slots["Name"]] = name or None
        return tuple(row)


def _contact_values(account_values: Mapping[str, Any]) -> dict[str, Any]:
    """The values of a person account that its contact has, too."""
    return {PERSON_FIELDS[name]: value for name, value in account_values.items() if name in PERSON_FIELDS}


def _required(object_type: ObjectType) -> list[str]:
    """Fields that a new record must have, without those that the org sets."""
    set_by_org = (*AUDIT, "OwnerId")
    return [
        field.name
        for field in object_type.fields
        if not field.nillable and field.writable and field.kind != "boolean" and field.name not in set_by_org
    ]
