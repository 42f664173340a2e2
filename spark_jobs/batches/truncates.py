"""The TRUNCATEs in the windows of a batch: which one ends it, and which ones do not count."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pyarrow.compute as pc

from airflow_cdc_provider.core.decisions.operator_decisions import answer_to
from airflow_cdc_provider.core.decisions.truncates import is_ignored, may_be_applied, question_about_truncate
from airflow_cdc_provider.core.log.carry_over import Truncate
from airflow_cdc_provider.core.log.change_records import Operation
from airflow_cdc_provider.core.spec.schema_policy import SchemaPolicy
from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.staging.change_log import ChangeLog
from spark_jobs.batches.batch_stats import batch_stats
from spark_jobs.windows.driver_reads import read_window_records
from spark_jobs.windows.log_reader import WindowSlice

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Truncates:
    """``waiting``: the window with the first TRUNCATE that may not be applied; None if there is none. ``ignored``:
    windows whose TRUNCATEs an operator has decided to ignore."""

    waiting: int | None = None
    ignored: frozenset[int] = frozenset()


def find_truncates(
    log: ChangeLog, control: ControlRecord, windows: Sequence[WindowSlice], policy: SchemaPolicy
) -> Truncates:
    """Reads the order keys of windows with a TRUNCATE: one below the floor of the copy does not count."""
    truncated = [window for window in windows if Operation.TRUNCATE in window.part.counts]
    decisions = log.decisions() if truncated else []
    ignored = set()
    for window in truncated:
        decision = answer_to(decisions, question_about_truncate(control, window.window))
        if is_ignored(decision):
            ignored.add(window.window)
        elif not may_be_applied(policy, decision) and last_truncate(log, [window], control.floor):
            return Truncates(window.window, frozenset(ignored))
    return Truncates(ignored=frozenset(ignored))


def truncates_in(log: ChangeLog, windows: Iterable[WindowSlice], floor: str) -> tuple[Truncate, ...]:
    """Those above the floor, in their order."""
    truncated = [window for window in windows if Operation.TRUNCATE in window.part.counts]
    filters = (pc.field("order_key") > floor) & (pc.field("op") == Operation.TRUNCATE.value)
    found = (record for _, record in read_window_records(log, truncated, filters))
    return tuple(sorted({Truncate(one.order_key, _microseconds(one.commit_ts)) for one in found}))


def _microseconds(at: datetime | None) -> int | None:
    return None if at is None else (at - EPOCH) // timedelta(microseconds=1)


def last_truncate(log: ChangeLog, windows: Iterable[WindowSlice], floor: str) -> str | None:
    """The order key of the last one above the floor."""
    truncated = [window for window in windows if Operation.TRUNCATE in window.part.counts]
    return batch_stats(log, truncated, floor).truncated_at if truncated else None
