"""The bad records of a batch: found, resolved by operator decisions, and stored under ``quarantine/`` before any commit
counts them.

There are few of them, or the table stops: so the driver processes them one by one.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from airflow_cdc_provider.core.decisions.operator_decisions import DecisionKind, OperatorDecision
from airflow_cdc_provider.core.failpoints import failpoint
from airflow_cdc_provider.core.log.carry_over import Carried, CarryOver
from airflow_cdc_provider.core.log.change_log import DataFile, carry_folder, quarantine_path
from airflow_cdc_provider.core.log.change_records import ChangeRecord, Operation
from airflow_cdc_provider.core.log.quarantine import (
    QuarantinedRecord,
    QuarantineList,
    RecordKey,
    apply_correction,
    bad_record,
    record_id,
    record_key,
    undecoded,
)
from airflow_cdc_provider.core.spec.definition import TableRule
from airflow_cdc_provider.core.table.schema import TableSchema
from airflow_cdc_provider.staging.change_log import ChangeLog
from spark_jobs.folds.key_groups import entry_keys
from spark_jobs.quarantine.present_columns import PresentColumns
from spark_jobs.quarantine.row_filter import UnknownOperand, selected
from spark_jobs.windows import driver_reads
from spark_jobs.windows.driver_reads import CarriedRecord, read_window_records
from spark_jobs.windows.log_reader import WindowSlice
from spark_jobs.windows.parquet_files import open_parquet

LISTING_FILE = "listing.json"


@dataclass(frozen=True)
class BadRecord:
    """``since``: when it was first found; empty for a new one."""

    record: ChangeRecord
    window: int
    reason: str
    since: str = ""

    @property
    def id(self) -> str:
        return record_id(self.record)

    @property
    def as_carried(self) -> CarriedRecord:
        return CarriedRecord(self.record, Carried.QUARANTINED, self.since or None, self.reason)


class CorrectedRecord(NamedTuple):
    """``records`` replace ``bad``."""

    bad: BadRecord
    records: tuple[ChangeRecord, ...]


@dataclass(frozen=True)
class Resolution:
    """``open``: no decision helps yet. ``discarded``: by decision."""

    open: tuple[BadRecord, ...]
    corrected: tuple[CorrectedRecord, ...]
    discarded: tuple[ChangeRecord, ...]

    @property
    def corrected_records(self) -> list[ChangeRecord]:
        return [record for entry in self.corrected for record in entry.records]

    @property
    def decided_records(self) -> list[str]:
        """The ids of those that were corrected or discarded."""
        return [*(entry.bad.id for entry in self.corrected), *map(record_id, self.discarded)]


def unreadable_records(log: ChangeLog, windows: Sequence[WindowSlice], after: str) -> list[BadRecord]:
    """Records above the order key that no decoder understood. The counts of a window show whether it has any."""
    with_unreadable = [window for window in windows if window.part.counts.get(Operation.UNREADABLE.value)]
    filters = [("op", "=", Operation.UNREADABLE.value), ("order_key", ">", after)]
    records = read_window_records(log, with_unreadable, filters)
    return [BadRecord(record, window, message.reason) for window, record in records if (message := undecoded(record))]


def read_bad_records(
    log: ChangeLog, windows: Sequence[WindowSlice], reasons: Mapping[RecordKey, str]
) -> list[BadRecord]:
    """These records, each with the reason why it is bad."""
    order_keys = sorted({entry.order_key for entry in reasons})
    records = read_window_records(log, windows, [("order_key", "in", order_keys)]) if reasons else []
    return [BadRecord(record, window, why) for window, record in records if (why := reasons.get(record_key(record)))]


def quarantined_records(log: ChangeLog, carry: CarryOver) -> list[BadRecord]:
    """The records in quarantine."""
    windows = {record.id: record.window for record in log.quarantined_records(carry)}
    rows = driver_reads.read_carried_records(log, carry, Carried.QUARANTINED)
    return [BadRecord(row.record, windows[record_id(row.record)], row.reason or "", row.since or "") for row in rows]


def apply_decisions(
    bad: Iterable[BadRecord],
    decisions: Mapping[str, OperatorDecision],
    reread: Callable[[ChangeRecord], list[ChangeRecord]],
    rule: TableRule,
    schema: TableSchema,
    present: PresentColumns,
) -> Resolution:
    """Sort the bad records by the decision about each. ``schema``: of the table now, whose columns the values of a
    decision have. Rows that the filter of the ``rule`` does not take leave the copy."""
    open_, replaced, discarded = list[BadRecord](), list[CorrectedRecord](), list[ChangeRecord]()
    for entry in bad:
        decision = decisions.get(entry.id)
        if decision is None:
            open_.append(entry)
        elif decision.kind is DecisionKind.DISCARD:
            discarded.append(entry.record)
        else:
            records = _corrected(entry.record, decision.values, reread, schema, present)
            if any(record.op == Operation.UNREADABLE for record in records):
                open_.append(entry)
                continue
            try:
                changes = selected(entry.record, decision.values, records, rule, schema)
                replaced.append(CorrectedRecord(entry, tuple(changes)))
            except UnknownOperand as error:
                open_.append(replace(entry, reason=str(error)))
    return Resolution(tuple(open_), tuple(replaced), tuple(discarded))


def _corrected(
    record: ChangeRecord,
    values: Mapping[str, Any],
    reread: Callable[[ChangeRecord], list[ChangeRecord]],
    schema: TableSchema,
    present: PresentColumns,
) -> list[ChangeRecord]:
    result = apply_correction(present.record(record), values, schema)
    if result.op != Operation.UNREADABLE:
        return [result]
    return [apply_correction(present.record(decoded), values, schema) for decoded in reread(record)]


def write_bad_records(log: ChangeLog, table: str, bad: Iterable[BadRecord], now: str) -> None:
    """Write each record once; one that was found earlier exists already."""
    for entry in bad:
        stored = bad_record(entry.record, entry.window, entry.reason, now)
        log.store.create(quarantine_path(table, stored.id), stored.encode())
    failpoint("quarantine.after_write")


def write_listing(log: ChangeLog, table: str, attempt: str, carry: CarryOver, bad: Iterable[BadRecord]) -> CarryOver:
    """The carry-over with a file that lists the records in quarantine."""
    if not carry.quarantined:
        return carry
    parked: Counter[str] = Counter()
    since: dict[RecordKey, str] = {}
    for file in carry.files:
        with open_parquet(log.store, file.path) as parquet:
            for batch in parquet.iter_batches(columns=["kind", "op", "key", "key_before", "order_key", "since"]):
                piece = pa.Table.from_batches([batch])
                parked_rows = piece.filter(pc.equal(piece["kind"], Carried.PARKED.value))
                parked.update(_own_keys(parked_rows))
                quarantined = piece.filter(pc.equal(piece["kind"], Carried.QUARANTINED.value))
                entries = map(RecordKey, _own_keys(quarantined), quarantined["order_key"].to_pylist())
                since.update(zip(entries, quarantined["since"].to_pylist(), strict=True))
    waiting = [
        QuarantinedRecord(entry.id, entry.window, since[key], entry.reason, parked[key.key])
        for entry in bad
        if (key := record_key(entry.record)) in since
    ]
    content = QuarantineList(tuple(waiting)).encode()
    path = f"{carry_folder(table, attempt)}/{LISTING_FILE}"
    log.store.write(path, content)
    digest = hashlib.sha256(content).hexdigest()
    return replace(carry, listing=DataFile(path, len(waiting), len(content), digest))


def _own_keys(records: pa.Table) -> list[str]:
    keys: list[str] = pc.fill_null(entry_keys(records), "").to_pylist()
    return keys
