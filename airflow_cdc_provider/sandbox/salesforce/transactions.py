"""A transaction of the org. Its rows carry the second of the statement, and nobody sees them before the commit.

So a commit can be late: rows appear that are older than others which were visible long before. Open transactions hold
back only those who want to change the same records.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from airflow_cdc_provider.sandbox.salesforce import objects as o
from airflow_cdc_provider.sandbox.salesforce.catalog import PERSON_FIELDS
from airflow_cdc_provider.sandbox.salesforce.clock import Clock
from airflow_cdc_provider.sandbox.salesforce.errors import ApiError, no_such_field
from airflow_cdc_provider.sandbox.salesforce.ids import full
from airflow_cdc_provider.sandbox.salesforce.objects import ObjectType, Row
from airflow_cdc_provider.sandbox.salesforce.operations import Kind, Operation, Purge
from airflow_cdc_provider.sandbox.salesforce.storage import Deletion, Store, Table
from airflow_cdc_provider.sandbox.salesforce.values import stored

API_ORIGIN = "com/salesforce/api/rest/66.0;client=sandbox"
AUDIT = ("CreatedDate", "CreatedById", "LastModifiedDate", "LastModifiedById")


class Transaction:
    """``with org.transaction() as tx`` commits at the end, and rolls back after an exception.

    ``origin`` is what events say in ``changeOrigin``. ``coalesce``: several changes of one record make one event.
    ``as_gap``: its events come out as gap events. Refusals are ApiError, with the org's codes.
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
        """The new record's id. ``audit`` back-dates CreatedDate and LastModifiedDate, as data loads may."""
        with self._store.lock:
            table = self._store.table(name)
            known = self._checked(table.type, values, inserting=True)
            if table.type.name == "Account" and known.get("LastName"):
                return self._insert_person(table, known, audit)
            return self._insert(table, known, audit)

    def update(self, name: str, record: str, values: Mapping[str, Any], system: bool = False) -> None:
        """``system``: the org itself does it (geocoding, renamed picklist values): LastModifiedDate stays."""
        self.update_many(name, [record], values, system)

    def update_many(self, name: str, records: Iterable[str], values: Mapping[str, Any], system: bool = False) -> None:
        """The same change on different records, in one statement: of all of them, or of none."""
        with self._store.lock:
            table = self._store.table(name)
            known = self._checked(table.type, values, inserting=False)
            second = self._clock.second()
            slots = [(table.type.slots[field], value) for field, value in known.items()]
            if not system:
                slots += [(o.MODIFIED, second), (o.MODIFIED_BY, self.user)]
            slots.append((o.MODSTAMP, second))
            found = [self._live(table, full(record)) for record in records]
            for before in found:
                self._hold(before[o.ID])
            for before in found:
                after = list(before)
                for slot, value in slots:
                    after[slot] = value
                self._change("UPDATE", table, before, self.named(table.type, after, known), second, system)
                if "PersonContactId" in table.type.slots:
                    self._update_contact(table, before, known)

    def delete(self, name: str, *records: str, master: str | None = None) -> None:
        """Into the Recycle Bin, with the children that a parent takes along. ``master``: the winner of a merge."""
        with self._store.lock:
            table = self._store.table(name)
            second, group = self._clock.second(), str(uuid.uuid4())
            doomed = [self._live(table, full(record)) for record in records]
            self._delete(table, doomed, second, group, master)

    def undelete(self, name: str, *records: str) -> None:
        """Out of the Recycle Bin, with everything the same delete took along. Children come as changes of their own."""
        with self._store.lock:
            second = self._clock.second()
            for record in records:
                binned = self._store.table(name).deletions.get(full(record))
                if binned is None:
                    raise ApiError(400, "UNDELETE_FAILED", f"entity is not in recycle bin: {record}")
                for table in self._store.tables.values():
                    group = [key for key, one in table.deletions.items() if one.group == binned.group]
                    for key in group:
                        self._undelete(table, key, second)

    def purge(self, name: str, *records: str) -> None:
        """A hard delete: empties the Recycle Bin of these records. No event tells of it."""
        with self._store.lock:
            table = self._store.table(name)
            for record in map(full, records):
                if record not in table.deletions:
                    raise ApiError(400, "INVALID_ID_FIELD", f"not in the Recycle Bin: {record}")
                self.purges.append(Purge(table.type, record, self._clock.second()))

    def merge(self, name: str, winner: str, *losers: str, values: Mapping[str, Any] | None = None) -> None:
        """Losers are deleted and know their master; their children move to the winner. Nothing says "merge"."""
        with self._store.lock:
            gone = [full(loser) for loser in losers]
            for table in self._store.tables.values():
                for field in table.type.fields:
                    if name in field.refers_to and field.cascade:
                        slot = table.type.slots[field.name]
                        moved = [row[o.ID] for row in self._current(table) if row[slot] in gone]
                        self.update_many(table.type.name, moved, {field.name: winner})
            self.delete(name, *gone, master=full(winner))
            self.update(name, winner, values or {})

    def _insert(self, table: Table, known: Mapping[str, Any], audit: Mapping[str, str] | None) -> str:
        object_type, second, record = table.type, self._clock.second(), table.next_id()
        row: list[Any] = [None] * len(object_type.stored)
        for field in object_type.fields:
            if field.kind == "boolean":
                row[object_type.slots[field.name]] = False
        audit = audit or {}
        row[: o.ARCHIVED + 1] = [record, False, second, self.user, second, self.user, second, False]
        row[o.CREATED] = audit.get("CreatedDate", second)
        row[o.MODIFIED] = audit.get("LastModifiedDate", second)
        if "OwnerId" in object_type.slots:
            row[object_type.slots["OwnerId"]] = self.user
        for name, value in known.items():
            row[object_type.slots[name]] = value
        name_field = object_type.by_name.get("Name")
        if name_field and name_field.auto_number:
            table.last_auto_number += 1
            row[object_type.slots["Name"]] = name_field.auto_number.format(table.last_auto_number)
        self._hold(record)
        self._change("CREATE", table, None, self.named(object_type, row, known), second)
        return record

    def _insert_person(self, table: Table, known: dict[str, Any], audit: Mapping[str, str] | None) -> str:
        """Two records, of which one is shown as part of the other."""
        account = self._insert(table, known | {"IsPersonAccount": True}, audit)
        mirrored = {PERSON_FIELDS[name]: value for name, value in known.items() if name in PERSON_FIELDS}
        contacts = self._store.table("Contact")
        contact = self._insert(contacts, mirrored | {"AccountId": account, "IsPersonAccount": True}, audit)
        row = list(self.rows[account])
        row[table.type.slots["PersonContactId"]] = contact
        self.rows[account] = tuple(row)
        self.operations[-2] = replace(self.operations[-2], after=tuple(row))
        return account

    def _update_contact(self, table: Table, account: Row, known: Mapping[str, Any]) -> None:
        contact = account[table.type.slots["PersonContactId"]]
        mirrored = {PERSON_FIELDS[name]: value for name, value in known.items() if name in PERSON_FIELDS}
        if contact and mirrored:
            self.update("Contact", contact, mirrored)

    def _delete(self, table: Table, doomed: list[Row], second: str, group: str, master: str | None = None) -> None:
        for before in doomed:
            self._hold(before[o.ID])
            after = list(before)
            after[o.DELETED], after[o.MODSTAMP] = True, second
            after[o.MODIFIED], after[o.MODIFIED_BY] = second, self.user
            if master:
                after[table.type.slots["MasterRecordId"]] = master
            self.deletions[before[o.ID]] = Deletion(second, group)
            self._change("DELETE", table, before, tuple(after), second)
        gone = {row[o.ID] for row in doomed}
        for children in self._store.tables.values():
            for field in children.type.fields:
                if field.cascade and table.type.name in field.refers_to:
                    slot = children.type.slots[field.name]
                    orphans = [row for row in self._current(children) if row[slot] in gone]
                    if orphans:
                        self._delete(children, orphans, second, group)

    def _undelete(self, table: Table, record: str, second: str) -> None:
        self._hold(record)
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

    def _hold(self, record: str) -> None:
        if self._store.holders.setdefault(record, self.key) != self.key:
            message = f"unable to obtain exclusive access to this record or 1 records: {record}"
            raise ApiError(400, "UNABLE_TO_LOCK_ROW", message)

    def _live(self, table: Table, record: str) -> Row:
        row = self.rows.get(record) or table.rows.get(record)
        if row is None:
            raise ApiError(404, "NOT_FOUND", "The requested resource does not exist")
        if row[o.DELETED]:
            raise ApiError(404, "ENTITY_IS_DELETED", "entity is deleted")
        return table.type.fit(row)

    def _current(self, table: Table) -> list[Row]:
        """Live rows as this transaction sees them."""
        seen = [self.rows.get(record, row) for record, row in table.rows.items()]
        seen += [row for key, row in self.rows.items() if key[:3] == table.type.prefix and key not in table.rows]
        return [table.type.fit(row) for row in seen if not row[o.DELETED]]

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
        needed = [] if inserting is False else _required(object_type, known)
        needed += [name for name, value in known.items() if value is None and not object_type.by_name[name].nillable]
        missing = sorted({name for name in needed if known.get(name) is None})
        if missing and not (object_type.name == "Account" and known.get("LastName")):
            message = f"Required fields are missing: [{', '.join(missing)}]"
            raise ApiError(400, "REQUIRED_FIELD_MISSING", message, missing)
        return known

    @staticmethod
    def named(object_type: ObjectType, row: list[Any], known: Mapping[str, Any]) -> Row:
        """A person's full name follows from its parts."""
        if "LastName" in object_type.slots and ("LastName" in known or "FirstName" in known):
            slots = object_type.slots
            name = " ".join(part for part in (row[slots["FirstName"]], row[slots["LastName"]]) if part)
            row[slots["Name"]] = name or None
        return tuple(row)


def _required(object_type: ObjectType, known: Mapping[str, Any]) -> list[str]:
    """Fields that a new record must have and that the org does not fill by itself."""
    by_itself = (*AUDIT, "OwnerId")
    return [
        field.name
        for field in object_type.fields
        if not field.nillable and field.writable and field.kind != "boolean" and field.name not in by_itself
    ]
