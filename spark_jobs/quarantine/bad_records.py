"""The bad records of a batch: found, ruled upon, and kept under ``quarantine/`` before any commit counts them.

They are few, or the table stops: so they are looked after here, on the driver, one by one.
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
from airflow_cdc_provider.core.table.schema import TableSchema
from airflow_cdc_provider.staging.change_log import ChangeLog
from spark_jobs.folds.local_engine import entry_keys
from spark_jobs.windows import driver_reads
from spark_jobs.windows.driver_reads import CarriedRecord, landed
from spark_jobs.windows.log_reader import WindowSlice
from spark_jobs.windows.parquet_files import opened

LISTING = "listing.json"


@dataclass(frozen=True)
class Bad:
    """``since``: when it was met first; empty where that is now."""

    record: ChangeRecord
    window: int
    reason: str
    since: str = ""

    @property
    def id(self) -> str:
        return record_id(self.record)

    @property
    def carried(self) -> CarriedRecord:
        return CarriedRecord(self.record, Carried.QUARANTINED, self.since or None, self.reason)


class CorrectedRecord(NamedTuple):
    """``records`` are to be taken in the place of ``bad``."""

    bad: Bad
    records: tuple[ChangeRecord, ...]


@dataclass(frozen=True)
class Ruling:
    """``open``: nothing helps yet. ``given_up``: by decision."""

    open: tuple[Bad, ...]
    mended: tuple[CorrectedRecord, ...]
    given_up: tuple[ChangeRecord, ...]

    @property
    def back(self) -> list[ChangeRecord]:
        return [record for one in self.mended for record in one.records]


def unreadable(log: ChangeLog, windows: Sequence[WindowSlice], after: str) -> list[Bad]:
    """Records behind the order key that no decoder understood. The counts of a window say whether to look."""
    holding = [one for one in windows if one.part.counts.get(Operation.UNREADABLE.value)]
    found = landed(log, holding, [("op", "=", Operation.UNREADABLE.value), ("order_key", ">", after)])
    return [Bad(record, window, what.reason) for window, record in found if (what := undecoded(record))]


def named(log: ChangeLog, windows: Sequence[WindowSlice], reasons: Mapping[RecordKey, str]) -> list[Bad]:
    """These records, each with why it is bad."""
    places = sorted({entry.order_key for entry in reasons})
    found = landed(log, windows, [("order_key", "in", places)]) if reasons else []
    return [Bad(record, window, why) for window, record in found if (why := reasons.get(record_key(record)))]


def carried(log: ChangeLog, carry: CarryOver) -> list[Bad]:
    """What is in quarantine already."""
    known = {one.id: one for one in log.quarantined_records(carry)}
    rows = driver_reads.carried(log, carry, Carried.QUARANTINED)
    return [Bad(r.record, known[record_id(r.record)].window, r.reason or "", r.since or "") for r in rows]


def rule(
    bad: Iterable[Bad],
    decisions: Mapping[str, OperatorDecision],
    reread: Callable[[ChangeRecord], list[ChangeRecord]],
    schema: TableSchema,
) -> Ruling:
    """By what was decided about each."""
    open_, again, given_up = list[Bad](), list[CorrectedRecord](), list[ChangeRecord]()
    for one in bad:
        decision = decisions.get(one.id)
        if decision is None:
            open_.append(one)
        elif decision.kind is DecisionKind.DISCARD:
            given_up.append(one.record)
        else:
            records = _tried(one.record, decision.values, reread, schema)
            if any(record.op == Operation.UNREADABLE for record in records):
                open_.append(one)
            else:
                again.append(CorrectedRecord(one, tuple(records)))
    return Ruling(tuple(open_), tuple(again), tuple(given_up))


def _tried(
    record: ChangeRecord,
    values: Mapping[str, Any],
    reread: Callable[[ChangeRecord], list[ChangeRecord]],
    schema: TableSchema,
) -> list[ChangeRecord]:
    given = apply_correction(record, values, schema)
    if given.op != Operation.UNREADABLE:
        return [given]
    return [apply_correction(one, values, schema) for one in reread(record)]


def keep(log: ChangeLog, table: str, bad: Iterable[Bad], now: str) -> None:
    """Write down what came, once and for all. A record that was met before is there already."""
    for one in bad:
        kept = bad_record(one.record, one.window, one.reason, now)
        log.store.create(quarantine_path(table, kept.id), kept.encode())
    failpoint("quarantine.after_write")


def with_listing(log: ChangeLog, table: str, attempt: str, carry: CarryOver, bad: Iterable[Bad]) -> CarryOver:
    """The carry-over with a file that names what is in quarantine."""
    if not carry.quarantined:
        return carry
    parked: Counter[str] = Counter()
    in_it: dict[RecordKey, str] = {}
    for file in carry.files:
        with opened(log.store, file.path) as parquet:
            for batch in parquet.iter_batches(columns=["kind", "op", "key", "key_before", "order_key", "since"]):
                piece = pa.Table.from_batches([batch])
                behind = piece.filter(pc.equal(piece["kind"], Carried.PARKED.value))
                parked.update(_own_keys(behind))
                open_ = piece.filter(pc.equal(piece["kind"], Carried.QUARANTINED.value))
                entries = map(RecordKey, _own_keys(open_), open_["order_key"].to_pylist())
                in_it.update(zip(entries, open_["since"].to_pylist(), strict=True))
    waiting = [
        QuarantinedRecord(one.id, one.window, in_it[entry], one.reason, parked[entry.key])
        for one in bad
        if (entry := record_key(one.record)) in in_it
    ]
    content = QuarantineList(tuple(waiting)).encode()
    path = f"{carry_folder(table, attempt)}/{LISTING}"
    log.store.write(path, content)
    digest = hashlib.sha256(content).hexdigest()
    return replace(carry, listing=DataFile(path, len(waiting), len(content), digest))


def _own_keys(records: pa.Table) -> list[str]:
    keys: list[str] = pc.fill_null(entry_keys(records), "").to_pylist()
    return keys
