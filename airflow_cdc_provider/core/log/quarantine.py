"""Bad records: their files, listings, corrections and error messages. Pure.

A record is bad if it cannot be decoded, if the target cannot hold one of its values, or if an unordered source delivers
it later than it guarantees. It waits in the carry-over of its table together with all later records of its key, until
an operator decides or until a later change has the complete row.
"""

from __future__ import annotations

import hashlib
import json
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from airflow_cdc_provider.core.errors import Problem
from airflow_cdc_provider.core.log.change_log import SealedFile, quarantine_path
from airflow_cdc_provider.core.log.change_records import ChangeRecord, Operation, canonical
from airflow_cdc_provider.core.serde import from_plain, to_plain
from airflow_cdc_provider.core.spec.definition import Quarantine
from airflow_cdc_provider.core.table.schema import TableSchema
from airflow_cdc_provider.core.table.source_names import in_shell

DISCARDED = "discarded"
"""Name of the count of records that an operator discarded."""

LONGEST_ID = 64

RECORD_CODEC = "change record"
"""The codec of records that could be decoded: their bytes are the change record as JSON."""

WITHHELD_CODEC = "withheld"
"""The codec of records without their bytes, which contain values that the copy must not have."""


@dataclass(frozen=True)
class UndecodedRecord:
    """The content of ``after`` in an ``unreadable`` change record. ``raw``: the original bytes; ``context``: further
    bytes that decoding requires; both in base64, in the format ``codec``. ``op``: empty if unknown. ``known``: the
    columns that could be decoded, as canonical values. ``columns``: those that could not; empty if the message as a
    whole could not be decoded. ``version``: the same each time that the source delivers this state of the row; empty
    if it delivers it once. ``schema_id``: the schema in which the bytes are decoded, if the record has lost columns
    since; else empty."""

    codec: str
    raw: str
    reason: str
    context: str = ""
    op: str = ""
    known: dict[str, Any] = field(default_factory=dict)
    columns: tuple[str, ...] = ()
    version: str = ""
    schema_id: str = ""


def without_bytes(content: UndecodedRecord) -> UndecodedRecord:
    return replace(content, codec=WITHHELD_CODEC, raw="", context="")


@dataclass(frozen=True)
class BadRecord(SealedFile):
    """A file under ``quarantine/``. ``first_seen``: UTC in ISO 8601 format. ``raw``: base64. ``record``: the record in
    the change log."""

    id: str
    table: str
    window: int
    position: str
    codec: str
    raw: str
    reason: str
    first_seen: str
    record: ChangeRecord


@dataclass(frozen=True)
class QuarantinedRecord:
    """An entry of the listing of a carry-over. ``behind``: the number of later records of its key that wait for it."""

    id: str
    window: int
    since: str
    reason: str
    behind: int = 0


@dataclass(frozen=True)
class QuarantineList(SealedFile):
    waiting: tuple[QuarantinedRecord, ...] = ()


def record_id(record: ChangeRecord) -> str:
    """A stable id of twelve hex digits."""
    key, content = record_key(record), undecoded(record) if record.after else None
    parts = [record.table, key.key, (content.version if content else "") or key.order_key]
    if own_key(record) is None and content:
        parts.append(content.raw or record.event_id)
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:12]


def is_record_id(text: str) -> bool:
    """Whether the text can be the name of a file of a bad record."""
    return text.isascii() and text.isalnum() and len(text) <= LONGEST_ID


def undecoded(record: ChangeRecord) -> UndecodedRecord | None:
    """The content of an ``unreadable`` record; None for other records."""
    if record.op != Operation.UNREADABLE:
        return None
    return from_plain(UndecodedRecord, json.loads(record.after or "{}"))


def bad_record(record: ChangeRecord, window: int, reason: str, now: str) -> BadRecord:
    content = undecoded(record)
    raw = b64encode(json.dumps(to_plain(record), ensure_ascii=False).encode()).decode("ascii")
    codec, raw = (content.codec, content.raw) if content else (RECORD_CODEC, raw)
    return BadRecord(
        record_id(record), record.table, window, record.position, codec, raw, reason, first_seen=now, record=record
    )


def own_key(record: ChangeRecord) -> str | None:
    """The key that the record changes. An unreadable record has it in ``key``, whatever its operation."""
    return record.key_before if record.op == Operation.DELETE else record.key


class RecordKey(NamedTuple):
    """Identifies a record within its table. The order key alone does not: all rows of a connector's own snapshot have
    the same position in the source's log. ``key``: empty if unknown."""

    key: str
    order_key: str


def record_key(record: ChangeRecord) -> RecordKey:
    return RecordKey(own_key(record) or "", record.order_key)


def is_insert(record: ChangeRecord) -> bool:
    """Whether later partial changes have no row without this record."""
    unreadable = undecoded(record)
    return (unreadable.op if unreadable else record.op) == Operation.INSERT


def max_bad_records(limits: Quarantine, records: int) -> int:
    """The maximum number of bad records in a window of ``records`` records."""
    return max(limits.max_rows, int(limits.max_share * records))


def apply_correction(record: ChangeRecord, values: Mapping[str, Any], schema: TableSchema) -> ChangeRecord:
    """The record with ``values`` in place of its own. The record is returned unchanged if they do not replace every
    column that could not be decoded and that the table still has. If no column could be decoded, they are the complete
    row."""
    unreadable = undecoded(record)
    if unreadable is None:
        return _with_values(record, record.op, {}, values, schema)
    required = schema.key if unreadable.op == Operation.DELETE and schema.key else schema.names
    if unreadable.columns or unreadable.known:
        required = tuple(name for name in unreadable.columns if name in schema.names)
    if set(required) - values.keys():
        return record
    op = unreadable.op or Operation.UPSERT
    delete = op == Operation.DELETE
    blank = replace(record, after=None, key=None if delete else record.key, key_before=record.key if delete else None)
    corrected = _with_values(blank, op, unreadable.known, values, schema)
    return corrected if own_key(corrected) is not None or not schema.key else record


def _with_values(
    record: ChangeRecord, op: str, known: Mapping[str, Any], values: Mapping[str, Any], schema: TableSchema
) -> ChangeRecord:
    delete = op == Operation.DELETE
    image = {**known, **json.loads((record.before if delete else record.after) or "{}"), **values}
    image = {name: image[name] for name in schema.names if name in image}
    complete = len(image) == len(schema.names)
    key = canonical([image[name] for name in schema.key]) if schema.key and set(schema.key) <= image.keys() else None
    if delete:
        key = key or record.key_before
        return replace(record, op=op, key_before=key, before=canonical(image), before_complete=complete)
    key = key or record.key
    return replace(
        record,
        op=op,
        key=key,
        key_before=record.key_before if op == Operation.INSERT else key,
        after=canonical(image),
        after_complete=complete or record.after_complete,
    )


def build_accounting(
    read: int, waited: int, applied: int, ignored: int, discarded: int, quarantined: int, held: int
) -> dict[str, int]:
    """Counts of the records that a batch read from the log, and of those that had ``waited`` in the carry-over, by
    outcome; every record has one outcome. ``superseded``: duplicates, and records that a newer record of the key or the
    copy replaces."""
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


STOPPING = frozenset({"QUA001", "QUA002", "QUA003"})
"""Codes of the problems of a table that bad records stop."""


@dataclass(frozen=True)
class BadRecordProblems:
    """The problems with which a bad record stops its table. ``record``: its id. ``staging``: the replicator's folder in
    staging."""

    replicator: str
    table: str
    window: int
    record: str
    reason: str
    staging: str

    def stop(self) -> Problem:
        what = f"a record of {self.table} cannot be applied: {self.reason} (window {self.window}, record {self.record})"
        return self._problem(
            "QUA001", what, f"{self._decide()}; or set on_bad_record: quarantine; then {self._resume()}"
        )

    def without_key(self) -> Problem:
        what = (
            f"a record of {self.table} cannot be applied, and its key is unknown: {self.reason}"
            f" (window {self.window}, record {self.record})"
        )
        return self._problem("QUA002", what, f"{self._decide()}; then {self._resume()}")

    def too_many(self, found: int, limit: int) -> Problem:
        what = f"window {self.window} contains {found:,} bad records of {self.table}, the first one: {self.reason}"
        do = f"correct their origin; or raise the table's quarantine limits, then {self._resume()}; or {self._resync()}"
        return replace(self._problem("QUA003", what, do), allowed=f"{limit:,} in a window of this size")

    def _problem(self, code: str, what: str, do: str) -> Problem:
        return Problem(
            code,
            what,
            where=f"{self.table}, window {self.window}",
            do=do,
            data=f"the record is stored in {self.staging}/{quarantine_path(self.table, self.record)} and in the change "
            f"log; the target contains everything up to window {self.window - 1}",
        )

    def _decide(self) -> str:
        quarantine = f"airflow cdc quarantine show {self.replicator} {self.record}"
        return f"{quarantine}, then `quarantine replay` with correct values, or `quarantine discard` with a reason"

    def _resume(self) -> str:
        return f"airflow cdc resume {self.replicator} --table {in_shell(self.table)}"

    def _resync(self) -> str:
        return f"airflow cdc resync {self.replicator} --table {in_shell(self.table)}"
