"""Removes from staging what no table needs any more and what is older than ``staging.retain``.

A window's manifest is removed before its files: no process reads a folder without a manifest. Table schemas, operators'
decisions and the highest fencing token of each table are kept: they do not grow with time.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby

from airflow_cdc_provider.control.fences import commit_fence
from airflow_cdc_provider.control.first_copies import remove_lost_copies
from airflow_cdc_provider.control.replicator import LogInfo, Replicator
from airflow_cdc_provider.control.reports import remove_old_reports
from airflow_cdc_provider.core.errors import Fenced
from airflow_cdc_provider.core.failpoints import failpoint
from airflow_cdc_provider.core.log import change_log
from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.core.table.state_rows import LEASE_S, Claim, Lane
from airflow_cdc_provider.core.table.states import TAKES_CHANGES, WITHOUT_COPY
from airflow_cdc_provider.staging.run_files import RunFiles, all_runs

CONTROLS_EVERY_WINDOWS = 100
"""How often control records are cleaned. Each cleaning reads the oldest version of every target table."""

BATCH_TASKS = ("snapshot", "stage", "reconcile.resync", "reconcile.replay", "verify")
"""Tasks that write batches."""


@dataclass(frozen=True)
class TableProgress:
    """``passed``: the last window that the table needs no more. ``control`` is set if its cursor is lower, because the
    windows since contain no records of the table."""

    table: str
    target: str
    passed: int
    control: ControlRecord | None


def clean(replicator: Replicator, run_id: str, tables: Collection[str], now: str, log_info: LogInfo) -> None:
    """Remove old windows, control records and reports, the batches of this run, step files of old runs, and what first
    copies kept that cannot be continued. An error is logged and stops neither the run nor the rest of the cleanup: a
    later run removes what is left. ``tables``: of the run; windows that any other copy needs are kept, too.

    Nothing is removed while another run holds the stream lane: that run may read the windows.
    """
    if not replicator.state.acquire(replicator.name, Lane.STREAM, run_id, LEASE_S):
        log_info("another run holds the stream lane and cleans up when it ends")
        return
    cleanups: tuple[tuple[str, Callable[[], None]], ...] = (
        ("windows and control records", lambda: _clean_log(replicator, run_id, tables, now)),
        ("batches of this run", lambda: _clean_batches(replicator, run_id)),
        ("step files of old runs", lambda: _clean_runs(replicator, run_id, now)),
        ("first copies that cannot be continued", lambda: remove_lost_copies(replicator)),
        ("old reports", lambda: remove_old_reports(replicator, now)),
    )
    for what, cleanup in cleanups:
        try:
            cleanup()
        # Any error: the data are committed, and a failed cleanup must not fail the run.
        except Exception as error:
            log_info(f"cleanup of {what} failed, the next run retries: {type(error).__name__}: {error}")


def _clean_log(replicator: Replicator, run_id: str, tables: Collection[str], now: str) -> None:
    claims = replicator.state.claims(replicator.name)
    # After the claims: a run that copies a table writes its row before it releases the claim.
    progress = _progress(replicator, tables)
    expired = _clean_windows(replicator, run_id, progress, claims, now)
    if any(number % CONTROLS_EVERY_WINDOWS == 0 for number in expired):
        copied = {claim.table for claim in claims if claim.run_id != run_id}
        clean_controls(replicator, [one for one in progress if one.table in tables and one.table not in copied])


def _progress(replicator: Replicator, tables: Collection[str]) -> list[TableProgress]:
    """Of every copy in the index. One that the run does not know, because its table is not listed now or was added
    since, needs all windows after its cursor: this run does not move it."""
    log_id, found = replicator.log.identity(), []
    for row in replicator.state.tables(replicator.name).values():
        if row.state in WITHOUT_COPY or row.control is None or row.control.log_id != log_id:
            continue
        if row.table not in tables:
            found.append(TableProgress(row.table, row.target, row.control.window, None))
            continue
        idle = row.passed > row.control.window and row.control.state.name in TAKES_CHANGES
        passed = max(row.passed, row.window)
        found.append(TableProgress(row.table, row.target, passed, row.control if idle else None))
    return found


def clean_controls(replicator: Replicator, progress: Iterable[TableProgress]) -> None:
    """Remove control records that are older than every restorable version of their table."""
    for table in progress:
        oldest = replicator.targets.of(table.table).oldest_token(table.table, table.target)
        replicator.log.remove_old_controls(table.table, oldest)


def _clean_windows(
    replicator: Replicator, run_id: str, progress: list[TableProgress], claims: Iterable[Claim], now: str
) -> list[int]:
    log = replicator.log
    copying = (claim.sealed_window for claim in claims)
    limit = min([log.sealed() - 1, *copying, *(table.passed for table in progress)])
    numbers = [int(name) for name in log.store.names(change_log.WINDOWS)]
    expired = _expired_windows(replicator, [number for number in numbers if number <= limit], now)
    if not expired:
        return expired
    for table in progress:
        if table.control is not None and table.control.window < expired[-1]:
            _move_cursor(replicator, run_id, table, table.control)
            failpoint("clean.moved")
    for number in expired:
        log.store.delete(change_log.manifest_path(number))
        failpoint("clean.manifest")
        log.store.delete(change_log.window_folder(number))
    return expired


def _expired_windows(replicator: Replicator, numbers: list[int], now: str) -> list[int]:
    """The leading windows that are older than ``staging.retain``. One without a manifest was partly removed before."""
    before = datetime.fromisoformat(now) - replicator.definition.staging.retain
    expired = []
    for number in numbers:
        known = replicator.log.store.exists(change_log.manifest_path(number))
        if known and datetime.fromisoformat(replicator.log.manifest(number).sealed_at) >= before:
            break
        expired.append(number)
    return expired


def _move_cursor(replicator: Replicator, run_id: str, table: TableProgress, control: ControlRecord) -> None:
    """Move the cursor of a table without changes over the windows to remove, by a commit without data. Raises Fenced if
    the table has a newer commit."""
    current = replicator.targets.state(table.table, table.target)
    if current.control is None or current.control.token != control.token:
        raise Fenced.of(
            "FEN003", f"{table.table} has a newer commit", where=table.table, do="nothing: the next run cleans up"
        )
    commit_fence(
        replicator,
        table.table,
        table.target,
        current,
        run_id,
        window=table.passed,
        hi=replicator.log.manifest(table.passed).hi,
        manifest_sha256=replicator.log.manifest_sha256(table.passed),
    )


def _clean_batches(replicator: Replicator, run_id: str) -> None:
    """Only the merge of the same run reads a batch."""
    _remove_batches(replicator.run(run_id))


def _remove_batches(run: RunFiles) -> None:
    store = run.store
    steps = [step for task in BATCH_TASKS for files in run.submissions(task) if (step := files.step()) is not None]
    attempts = tuple({step.attempt for step in steps})
    for folder in store.names(change_log.BATCHES) if attempts else []:
        for batch in store.names(f"{change_log.BATCHES}/{folder}"):
            if batch.startswith(attempts):
                store.delete(f"{change_log.BATCHES}/{folder}/{batch}")
                failpoint("clean.batch")


def _clean_runs(replicator: Replicator, run_id: str, now: str) -> None:
    """Run ids sort by time within their kind (``scheduled__…``, ``manual__…``). A run without a decision is as old as
    the next run of its kind that has one. A run that is still copying is kept."""
    before = datetime.fromisoformat(now) - replicator.definition.staging.retain
    keep = {run_id, *(claim.run_id for claim in replicator.state.claims(replicator.name))}
    runs = (run for of_store in all_runs(replicator.log.store) for run in sorted(of_store, key=lambda one: one.run_id))
    for _, kind in groupby(runs, key=lambda run: (run.path.rpartition("/")[0], run.run_id.partition("__")[0])):
        older: list[RunFiles] = []
        for run in kind:
            decision = run.decision()
            if run.run_id in keep or (decision is not None and datetime.fromisoformat(decision["at"]) >= before):
                break
            older.append(run)
            if decision is not None:
                for removable in older:
                    _remove_batches(removable)
                    removable.delete()
                older.clear()
