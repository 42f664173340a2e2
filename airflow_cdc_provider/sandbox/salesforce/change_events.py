"""From a committed transaction to its change events: what is told together, what becomes a gap, what overflows."""

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

LARGEST_EVENT_BYTES = 1_000_000
MOST_MERGED = 100
AUDIT_SLOTS = (MODIFIED, MODIFIED_BY)


@dataclass(frozen=True)
class Event:
    """``entity`` is the object's name; ``payload`` bare Avro under the schema ``schema_id``."""

    entity: str
    schema_id: str
    payload: bytes


@dataclass(frozen=True)
class Rules:
    """``overflow``: from how many changes of a transaction on its entities are told instead of its records.

    An update counts as many changes as it changes fields. ``merge``: the same change of several records is one event.
    """

    overflow: int = 100_000
    merge: bool = True


@dataclass
class Told:
    """One event to be: an operation, and the records that it is told for."""

    operation: Operation
    slots: tuple[int, ...]
    ids: list[str] = field(default_factory=list)
    overflown: bool = False


def coalesced(operations: Iterable[Operation]) -> list[Operation]:
    """Updates melt into what was done to the record before: the first change type, the last values."""
    found: list[Operation] = []
    last: dict[str, int] = {}
    for operation in operations:
        index = last.get(operation.id)
        if index is not None and operation.kind == "UPDATE" and found[index].kind != "DELETE":
            first = found[index]
            system, as_gap = operation.system and first.system, operation.as_gap or first.as_gap
            found[index] = replace(operation, kind=first.kind, before=first.before, system=system, as_gap=as_gap)
        else:
            last[operation.id] = len(found)
            found.append(operation)
    return found


def changed_slots(schema: EventSchema, operation: Operation) -> tuple[int, ...]:
    """Of an update, those that events carry. What a user changes always tells LastModifiedDate, too."""
    before, after = operation.before, operation.after
    if before is None:
        return ()
    written = compress(range(len(after)), map(is_not, before, after))
    slots = {slot for slot in written if before[slot] != after[slot] and slot in schema.places}
    if slots and not operation.system and MODIFIED in schema.places:
        slots.add(MODIFIED)
    return tuple(sorted(slots))


def tell(operations: Iterable[Operation], schemas: Mapping[str, EventSchema], rules: Rules) -> list[Told | None]:
    """In order of their sequence numbers; None where an object is not captured, whose number is used up all the same.

    ``schemas`` holds the captured objects.
    """
    told: list[Told | None] = []
    changes = 0
    for operation in operations:
        schema = schemas.get(operation.type.name)
        if schema is None:
            told.append(None)
            continue
        slots = changed_slots(schema, operation) if operation.kind == "UPDATE" else ()
        if operation.kind == "UPDATE":
            if not slots:
                continue
            changes += max(1, sum(slot not in AUDIT_SLOTS for slot in slots))
        else:
            changes += 1
        overflown = changes > rules.overflow
        previous = told[-1] if told else None
        if rules.merge and previous is not None and _merges(previous, operation, slots, overflown):
            previous.ids.append(operation.id)
        else:
            told.append(Told(operation, slots, [operation.id], overflown))
    return told


def _merges(previous: Told, operation: Operation, slots: tuple[int, ...], overflown: bool) -> bool:
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
        and len(previous.ids) < MOST_MERGED
        and operation.id not in previous.ids
        and all(first.after[slot] == operation.after[slot] for slot in slots)
        and not any(_long(first, slot) for slot in slots)
    )


def _long(operation: Operation, slot: int) -> bool:
    """A diff of long text fits one record only."""
    name = operation.type.stored[slot]
    known = operation.type.by_name.get(name)
    return known is not None and known.long_text


def encode(
    told: Sequence[Told | None], schemas: Mapping[str, EventSchema], key: str, number: int, now: str
) -> list[Event]:
    """``key`` is the transaction's, ``number`` the database's commit number, ``now`` this second."""
    events: list[Event] = []
    overflown: dict[str, Operation] = {}
    sequence = 0
    for one in told:
        if one is not None and one.overflown:
            overflown[one.operation.type.name] = one.operation
            continue
        sequence += 1
        if one is None:
            continue
        schema = schemas[one.operation.type.name]
        events.append(_event(one, schema, key, sequence, number, now))
    for name, operation in overflown.items():
        sequence += 1
        header = _header(operation, [NO_RECORD], "GAP_OVERFLOW", key, sequence, number)
        events.append(Event(name, schemas[name].id, schemas[name].encode(header, {})))
    return events


def gap(schema: EventSchema, ids: Sequence[str], kind: str, second: str, user: str, key: str, number: int) -> Event:
    """An event about records whose change could not be told. ``ids`` may also be ``["001*"]``."""
    header = _plain_header(schema.type.name, ids, kind, "", key, 1, second, number, user)
    return Event(schema.type.name, schema.id, schema.encode(header, {}))


def _event(one: Told, schema: EventSchema, key: str, sequence: int, number: int, now: str) -> Event:
    operation = one.operation
    name = operation.type.name
    if not operation.as_gap:
        header = _header(operation, one.ids, operation.kind, key, sequence, number)
        body: Mapping[str, Any] = {}
        if operation.kind in ("CREATE", "UNDELETE"):
            body = schema.body(operation.after, now)
        elif operation.kind == "UPDATE":
            body = _changes(schema, operation, one.slots, header)
        payload = schema.encode(header, body)
        if len(payload) <= LARGEST_EVENT_BYTES:
            return Event(name, schema.id, payload)
    header = _header(replace(operation, origin=""), one.ids, f"GAP_{operation.kind}", key, sequence, number)
    return Event(name, schema.id, schema.encode(header, {}))


def _changes(
    schema: EventSchema, operation: Operation, slots: Sequence[int], header: dict[str, Any]
) -> Mapping[str, Any]:
    """The changed values; fills in the three lists of the header."""
    after, before = operation.after, operation.before
    body: dict[str, Any] = {}
    changed, nulled, diffs = _Marks(), _Marks(), _Marks()
    for slot in slots:
        position, member = schema.places[slot]
        known = schema.field(position)
        if known.members and known.event_type == "Switchable_PersonName" and _is_person(schema, after):
            if member is None:
                continue  # the whole name of a person follows from its parts
        elif known.event_type == "Switchable_PersonName" and member is not None:
            continue
        if member is None:
            body[known.name] = schema.value(known, after)
            if known.long_text and before is not None and before[slot] is not None and after[slot] is not None:
                diff = text_diff(before[slot], after[slot])
                if diff is not None:
                    body[known.name] = diff
                    diffs.whole(position)
            changed.whole(position)
            if after[slot] is None:
                nulled.whole(position)
            continue
        # Of a custom geolocation both parts are told when one changes.
        members = range(len(known.members)) if known.event_type == "Location" and known.custom else [member]
        record = body.setdefault(known.name, {})
        for index in members:
            label, part = known.members[index]
            record[label] = schema.member(part, after)
            changed.part(position, index)
            if record[label] is None:
                nulled.part(position, index)
    header["changedFields"], header["nulledFields"], header["diffFields"] = changed.told, nulled.told, diffs.told
    return body


class _Marks:
    """Positions of fields, and of members in compounds, on their way into a list of bitmaps."""

    def __init__(self) -> None:
        self._whole: set[int] = set()
        self._parts: dict[int, set[int]] = {}

    def whole(self, position: int) -> None:
        self._whole.add(position)

    def part(self, position: int, member: int) -> None:
        self._parts.setdefault(position, set()).add(member)

    @property
    def told(self) -> list[str]:
        if not self._whole and not self._parts:
            return []
        return field_bitmaps(self._whole, self._parts)


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
