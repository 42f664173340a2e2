"""The change events of a committed transaction: which changes are merged, become a gap, or overflow."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import compress
from operator import is_not
from typing import Any

from airflow_cdc_provider.sandbox.salesforce.bitmaps import field_bitmaps
from airflow_cdc_provider.sandbox.salesforce.clock import milliseconds
from airflow_cdc_provider.sandbox.salesforce.event_schema import EventSchema
from airflow_cdc_provider.sandbox.salesforce.ids import NO_RECORD
from airflow_cdc_provider.sandbox.salesforce.objects import MODIFIED, MODIFIED_BY, Row
from airflow_cdc_provider.sandbox.salesforce.operations import Operation
from airflow_cdc_provider.sandbox.salesforce.textdiff import text_diff

MAX_EVENT_BYTES = 1_000_000
MAX_MERGED = 100
AUDIT_SLOTS = (MODIFIED, MODIFIED_BY)


@dataclass(frozen=True)
class Event:
    """``entity`` is the object's name; ``payload`` is Avro without a container, encoded with ``schema_id``."""

    entity: str
    schema_id: str
    payload: bytes


@dataclass(frozen=True)
class Rules:
    """``overflow``: the number of changes in a transaction after which overflow events replace change events.

    An update counts one change per field. ``merge``: equal changes of several records are one event.
    """

    overflow: int = 100_000
    merge: bool = True


@dataclass
class PlannedEvent:
    """An operation, and the records with the same change. ``overflown``: it is part of an overflow event."""

    operation: Operation
    slots: tuple[int, ...]
    ids: list[str] = field(default_factory=list)
    overflown: bool = False


def coalesced(operations: Iterable[Operation]) -> list[Operation]:
    """Merge updates into the previous operation on the record: the first change type with the last values."""
    merged: list[Operation] = []
    last: dict[str, int] = {}
    for operation in operations:
        index = last.get(operation.id)
        if index is not None and operation.kind == "UPDATE" and merged[index].kind != "DELETE":
            first = merged[index]
            system, as_gap = operation.system and first.system, operation.as_gap or first.as_gap
            merged[index] = replace(operation, kind=first.kind, before=first.before, system=system, as_gap=as_gap)
        else:
            last[operation.id] = len(merged)
            merged.append(operation)
    return merged


def changed_slots(schema: EventSchema, operation: Operation) -> tuple[int, ...]:
    """The changed slots of an update that events contain. LastModifiedDate is always one of them, if a user made it."""
    before, after = operation.before, operation.after
    if before is None:
        return ()
    written = compress(range(len(after)), map(is_not, before, after))
    slots = {slot for slot in written if before[slot] != after[slot] and slot in schema.positions}
    if slots and not operation.system and MODIFIED in schema.positions:
        slots.add(MODIFIED)
    return tuple(sorted(slots))


def plan_events(
    operations: Iterable[Operation], schemas: Mapping[str, EventSchema], rules: Rules
) -> list[PlannedEvent | None]:
    """The events in the order of their sequence numbers.

    None for an object that is not captured, which takes a sequence number, too. ``schemas`` has the captured objects.
    """
    planned: list[PlannedEvent | None] = []
    changes = 0
    for operation in operations:
        schema = schemas.get(operation.type.name)
        if schema is None:
            planned.append(None)
            continue
        slots = changed_slots(schema, operation) if operation.kind == "UPDATE" else ()
        if operation.kind == "UPDATE":
            if not slots:
                continue
            changes += max(1, sum(slot not in AUDIT_SLOTS for slot in slots))
        else:
            changes += 1
        overflown = changes > rules.overflow
        previous = planned[-1] if planned else None
        if rules.merge and previous is not None and _merges(previous, operation, slots, overflown):
            previous.ids.append(operation.id)
        else:
            planned.append(PlannedEvent(operation, slots, [operation.id], overflown))
    return planned


def _merges(previous: PlannedEvent, operation: Operation, slots: tuple[int, ...], overflown: bool) -> bool:
    first = previous.operation
    if overflown and previous.overflown and first.type is operation.type:
        return True
    return (
        operation.kind in ("UPDATE", "DELETE")
        and first.kind == operation.kind
        and first.type is operation.type
        and (first.second, first.user, first.origin) == (operation.second, operation.user, operation.origin)
        and (first.as_gap, previous.overflown) == (operation.as_gap, overflown)
        and previous.slots == slots
        and len(previous.ids) < MAX_MERGED
        and operation.id not in previous.ids
        and all(first.after[slot] == operation.after[slot] for slot in slots)
        and not any(_is_long_text(first, slot) for slot in slots)
    )


def _is_long_text(operation: Operation, slot: int) -> bool:
    """Its events contain a diff, which is valid for one record only."""
    field = operation.type.by_name.get(operation.type.stored[slot])
    return field is not None and field.long_text


def encode(
    planned: Sequence[PlannedEvent | None], schemas: Mapping[str, EventSchema], key: str, number: int, now: str
) -> list[Event]:
    """``key`` is the transaction's, ``number`` the database's commit number, ``now`` the current second."""
    events: list[Event] = []
    overflown: dict[str, Operation] = {}
    sequence = 0
    for event in planned:
        if event is not None and event.overflown:
            overflown[event.operation.type.name] = event.operation
            continue
        sequence += 1
        if event is None:
            continue
        schema = schemas[event.operation.type.name]
        events.append(_encoded(event, schema, key, sequence, number, now))
    for name, operation in overflown.items():
        sequence += 1
        header = _header(operation, [NO_RECORD], "GAP_OVERFLOW", key, sequence, number)
        events.append(Event(name, schemas[name].id, schemas[name].encode(header, {})))
    return events


def gap_event(
    schema: EventSchema, ids: Sequence[str], kind: str, second: str, user: str, key: str, number: int
) -> Event:
    """An event without values. ``ids`` may also be ``["001*"]``: all records of the object."""
    header = _plain_header(schema.type.name, ids, kind, "", key, 1, second, number, user)
    return Event(schema.type.name, schema.id, schema.encode(header, {}))


def _encoded(planned: PlannedEvent, schema: EventSchema, key: str, sequence: int, number: int, now: str) -> Event:
    operation = planned.operation
    name = operation.type.name
    if not operation.as_gap:
        header = _header(operation, planned.ids, operation.kind, key, sequence, number)
        body: Mapping[str, Any] = {}
        if operation.kind in ("CREATE", "UNDELETE"):
            body = schema.body(operation.after, now)
        elif operation.kind == "UPDATE":
            body = _changes(schema, operation, planned.slots, header)
        payload = schema.encode(header, body)
        if len(payload) <= MAX_EVENT_BYTES:
            return Event(name, schema.id, payload)
    header = _header(replace(operation, origin=""), planned.ids, f"GAP_{operation.kind}", key, sequence, number)
    return Event(name, schema.id, schema.encode(header, {}))


def _changes(
    schema: EventSchema, operation: Operation, slots: Sequence[int], header: dict[str, Any]
) -> Mapping[str, Any]:
    """The changed values. Sets the three lists of bitmaps in the header."""
    after, before = operation.after, operation.before
    body: dict[str, Any] = {}
    changed, nulled, diffs = _FieldPositions(), _FieldPositions(), _FieldPositions()
    for slot in slots:
        position, member = schema.positions[slot]
        field = schema.field(position)
        if field.members and field.event_type == "Switchable_PersonName" and _is_person(schema, after):
            if member is None:
                continue  # the parts of a person's name contain the change
        elif field.event_type == "Switchable_PersonName" and member is not None:
            continue
        if member is None:
            body[field.name] = schema.value(field, after)
            if field.long_text and before is not None and before[slot] is not None and after[slot] is not None:
                diff = text_diff(before[slot], after[slot])
                if diff is not None:
                    body[field.name] = diff
                    diffs.add(position)
            changed.add(position)
            if after[slot] is None:
                nulled.add(position)
            continue
        # The event contains both parts of a custom geolocation when one of them changes.
        members = range(len(field.members)) if field.event_type == "Location" and field.custom else [member]
        record = body.setdefault(field.name, {})
        for index in members:
            label, part = field.members[index]
            record[label] = schema.member(part, after)
            changed.add_member(position, index)
            if record[label] is None:
                nulled.add_member(position, index)
    header["changedFields"], header["nulledFields"] = changed.bitmaps(), nulled.bitmaps()
    header["diffFields"] = diffs.bitmaps()
    return body


class _FieldPositions:
    """Positions of fields, and of members of compound fields."""

    def __init__(self) -> None:
        self._fields: set[int] = set()
        self._members: dict[int, set[int]] = {}

    def add(self, position: int) -> None:
        self._fields.add(position)

    def add_member(self, position: int, member: int) -> None:
        self._members.setdefault(position, set()).add(member)

    def bitmaps(self) -> list[str]:
        return field_bitmaps(self._fields, self._members)


def _is_person(schema: EventSchema, row: Row) -> bool:
    return row[schema.type.slots["LastName"]] is not None


def _header(
    operation: Operation, ids: Sequence[str], kind: str, key: str, sequence: int, number: int
) -> dict[str, Any]:
    return _plain_header(
        operation.type.name, ids, kind, operation.origin, key, sequence, operation.second, number, operation.user
    )


def _plain_header(
    entity: str,
    ids: Sequence[str],
    kind: str,
    origin: str,
    key: str,
    sequence: int,
    second: str,
    number: int,
    user: str,
) -> dict[str, Any]:
    return {
        "entityName": entity,
        "recordIds": ids,
        "changeType": kind,
        "changeOrigin": origin,
        "transactionKey": key,
        "sequenceNumber": sequence,
        "commitTimestamp": milliseconds(second),
        "commitNumber": number,
        "commitUser": user,
        "nulledFields": [],
        "diffFields": [],
        "changedFields": [],
    }
