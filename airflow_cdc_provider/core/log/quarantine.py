"""Records that cannot be applied: what is told of them, kept, listed and decided. Pure.

A record is bad where its decoder does not understand it, where the target cannot hold one of its values, or where it
comes later than an unordered source had promised. It waits in the carry-over of its table, and so does everything of
its key behind it, until an operator decides or until the key is told whole again.
"""

from __future__ import annotations

import hashlib
import json
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from airflow_cdc_provider.core.errors import Problem
from airflow_cdc_provider.core.log.change_log import quarantine_path, seal, unseal
from airflow_cdc_provider.core.log.change_records import ChangeRecord, Operation, canonical
from airflow_cdc_provider.core.serde import from_plain, to_plain
from airflow_cdc_provider.core.spec.definition import Quarantine
from airflow_cdc_provider.core.table.schema import TableSchema

DISCARDED = "discarded"
"""What is counted of records that are lost by decision."""

RECORD_CODEC = "change record"
"""The codec of records that were decoded well: their bytes are the record itself, as JSON."""


@dataclass(frozen=True)
class UndecodedRecord:
    """What ``after`` of an ``unreadable`` change record says. ``raw`` are the bytes as they came, ``context`` those
    without which nobody can read them, both in base64; ``codec`` says how. ``op`` is empty where not even that is
    known. ``known``: the columns that were understood, as canonical values; ``columns``: those that were not, none
    where the message as a whole was not."""

    codec: str
    raw: str
    reason: str
    context: str = ""
    op: str = ""
    known: dict[str, Any] = field(default_factory=dict)
    columns: tuple[str, ...] = ()


@dataclass(frozen=True)
class BadRecord:
    """A file under ``quarantine/``. ``first_seen`` is UTC in ISO form, ``raw`` base64. ``record`` is what the change
    log holds of it."""

    id: str
    table: str
    window: int
    position: str
    codec: str
    raw: str
    reason: str
    first_seen: str
    record: ChangeRecord

    def encode(self) -> bytes:
        return seal(to_plain(self))

    @classmethod
    def decode(cls, content: bytes, where: str) -> BadRecord:
        return from_plain(cls, unseal(content, where))


@dataclass(frozen=True)
class QuarantinedRecord:
    """A record in quarantine, as the listing of a carry-over names it. ``behind``: how many records of its key wait for
    it."""

    id: str
    window: int
    since: str
    reason: str
    behind: int = 0


@dataclass(frozen=True)
class QuarantineList:
    waiting: tuple[QuarantinedRecord, ...] = ()

    def encode(self) -> bytes:
        return seal(to_plain(self))

    @classmethod
    def decode(cls, content: bytes, where: str) -> QuarantineList:
        return from_plain(cls, unseal(content, where))


def record_id(record: ChangeRecord) -> str:
    """Twelve hex digits that name a record for good."""
    name = [record.table, *record_key(record)]
    if own_key(record) is None and (what := undecoded(record)):
        name.append(what.raw)
    return hashlib.sha256("\n".join(name).encode()).hexdigest()[:12]


def undecoded(record: ChangeRecord) -> UndecodedRecord | None:
    """What an ``unreadable`` record says; None for any other."""
    if record.op != Operation.UNREADABLE:
        return None
    return from_plain(UndecodedRecord, json.loads(record.after or "{}"))


def bad_record(record: ChangeRecord, window: int, reason: str, now: str) -> BadRecord:
    what = undecoded(record)
    raw = b64encode(json.dumps(to_plain(record), ensure_ascii=False).encode()).decode("ascii")
    codec, raw = (what.codec, what.raw) if what else (RECORD_CODEC, raw)
    return BadRecord(
        record_id(record), record.table, window, record.position, codec, raw, reason, first_seen=now, record=record
    )


def own_key(record: ChangeRecord) -> str | None:
    """The key that the record is an entry of. An unreadable one has it in ``key``, whatever it may be."""
    return record.key_before if record.op == Operation.DELETE else record.key


class RecordKey(NamedTuple):
    """What names a record of a table. Its order key alone does not: all rows that a connector's own copy met stand at
    one place of the source's log. ``key`` is empty where nobody knows it."""

    key: str
    order_key: str


def record_key(record: ChangeRecord) -> RecordKey:
    return RecordKey(own_key(record) or "", record.order_key)


def is_insert(record: ChangeRecord) -> bool:
    """Without it there is no row for the partial changes behind it."""
    unreadable = undecoded(record)
    return (unreadable.op if unreadable else record.op) == Operation.INSERT


def max_bad_records(limits: Quarantine, records: int) -> int:
    """How many of the records of a window may be bad."""
    return max(limits.max_rows, int(limits.max_share * records))


def apply_correction(record: ChangeRecord, values: Mapping[str, Any], schema: TableSchema) -> ChangeRecord:
    """The record with ``values`` in the place of its own. It stays as unreadable as it was where they do not replace
    every column that was not understood. Where nothing was, they are the whole row as it is from there on."""
    unreadable = undecoded(record)
    if unreadable is None:
        return _with_values(record, record.op, {}, values, schema)
    needed = schema.key if unreadable.op == Operation.DELETE and schema.key else schema.names
    if set(unreadable.columns or needed) - values.keys():
        return record
    op = unreadable.op or Operation.UPSERT
    gone = op == Operation.DELETE
    blank = replace(record, after=None, key=None if gone else record.key, key_before=record.key if gone else None)
    given = _with_values(blank, op, unreadable.known, values, schema)
    return given if own_key(given) is not None or not schema.key else record


def _with_values(
    record: ChangeRecord, op: str, known: Mapping[str, Any], values: Mapping[str, Any], schema: TableSchema
) -> ChangeRecord:
    gone = op == Operation.DELETE
    image = {**known, **json.loads((record.before if gone else record.after) or "{}"), **values}
    image = {name: image[name] for name in schema.names if name in image}
    whole = len(image) == len(schema.names)
    key = canonical([image[name] for name in schema.key]) if schema.key and set(schema.key) <= image.keys() else None
    if gone:
        key = key or record.key_before
        return replace(record, op=op, key_before=key, before=canonical(image), before_complete=whole)
    key = key or record.key
    return replace(
        record,
        op=op,
        key=key,
        key_before=record.key_before if op == Operation.INSERT else key,
        after=canonical(image),
        after_complete=whole or record.after_complete,
    )


def build_accounting(
    read: int, waited: int, applied: int, ignored: int, discarded: int, quarantined: int, held: int
) -> dict[str, int]:
    """What became of the records that a batch has read, and of those that had ``waited`` for it: each is in one place.
    ``superseded``: a newer record of its key, or the copy, says what it says, or it came twice."""
    superseded = read + waited - applied - ignored - discarded - quarantined - held
    return {
        "read": read,
        "waited": waited,
        "applied": applied,
        "superseded": superseded,
        "ignored": ignored,
        DISCARDED: discarded,
        "quarantined": quarantined,
        "held": held,
    }


@dataclass(frozen=True)
class BadRecordProblems:
    """Why a bad record stops its table. ``record``: its id; ``place``: where staging is."""

    replicator: str
    table: str
    window: int
    record: str
    reason: str
    place: str

    def stop(self) -> Problem:
        what = f"a record of {self.table} cannot be applied: {self.reason} (window {self.window}, record {self.record})"
        return self._problem(
            "QUA001", what, f"{self._decide()}; or set on_bad_record: quarantine; then {self._resume()}"
        )

    def without_key(self) -> Problem:
        what = (
            f"a record of {self.table} cannot be applied, and nobody can tell its key: {self.reason}"
            f" (window {self.window}, record {self.record})"
        )
        return self._problem("QUA002", what, f"{self._decide()}; then {self._resume()}")

    def too_many(self, found: int, limit: int) -> Problem:
        what = f"window {self.window} holds {found:,} bad records of {self.table}, the first one: {self.reason}"
        do = f"mend what makes them; or raise the table's quarantine limits, then {self._resume()}; or {self._resync()}"
        return replace(self._problem("QUA003", what, do), allowed=f"{limit:,} in a window of this size")

    def _problem(self, code: str, what: str, do: str) -> Problem:
        return Problem(
            code,
            what,
            where=f"{self.table}, window {self.window}",
            do=do,
            data=f"what came stands in {self.place}/{quarantine_path(self.table, self.record)} and in the change log; "
            f"the target holds everything up to window {self.window - 1}",
        )

    def _decide(self) -> str:
        quarantine = f"airflow cdc quarantine show {self.replicator} {self.record}"
        return f"{quarantine}, then `quarantine replay` it with right values, or `discard` it with a reason"

    def _resume(self) -> str:
        return f"airflow cdc resume {self.replicator} --table {self.table}"

    def _resync(self) -> str:
        return f"airflow cdc resync {self.replicator} --table {self.table}"
