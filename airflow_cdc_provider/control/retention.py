"""Staging behind the cursors: what no table needs any more and ``staging.retain`` has kept long enough.

A window's manifest goes first, then its files: a folder without a manifest is rubbish to everybody. Table schemas,
decisions of operators and the highest fence of each table stay for ever: they grow with what people do, not with time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from urllib.parse import unquote

from airflow_cdc_provider.control.fences import commit_fence
from airflow_cdc_provider.control.open_window import decided_at
from airflow_cdc_provider.control.replicator import Replicator
from airflow_cdc_provider.core.decisions.steps import StepKind
from airflow_cdc_provider.core.errors import Fenced, Problem
from airflow_cdc_provider.core.failpoints import failpoint
from airflow_cdc_provider.core.log import change_log
from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.core.table.state_rows import LEASE_S, Claim, Lane

CONTROLS_EVERY_WINDOWS = 100
"""How often control records are looked through: each time every target table is asked how far back it reaches."""

Log = Callable[[str], None]

BATCHED = (StepKind.STAGE.value, "reconcile.replay", StepKind.VERIFY.value)


@dataclass(frozen=True)
class TableProgress:
    """How far a table has come: ``passed`` is the window behind which it needs none of the log. ``control`` and
    ``target`` are set where its cursor lags behind that, because the windows between held nothing for it."""

    table: str
    target: str
    passed: int
    control: ControlRecord | None


def clean(replicator: Replicator, run_id: str, stands: Iterable[TableProgress], now: str, tell: Log) -> None:
    """Remove old windows and control records, the batches of this run, and the step files of old runs. An error is
    logged and stops neither the run nor the rest of the cleaning: what is left, a later run removes.

    Nothing is removed while another run follows the stream: it reads the windows that a quiet table is moved over here.
    """
    if not replicator.state.acquire(replicator.name, Lane.STREAM, run_id, LEASE_S):
        tell("another run follows the stream: it cleans up at its end")
        return
    stands = list(stands)
    chores: tuple[tuple[str, Callable[[], None]], ...] = (
        ("windows and control records", lambda: _clean_log(replicator, run_id, stands, now)),
        ("batches of this run", lambda: _clean_batches(replicator, run_id)),
        ("step files of old runs", lambda: _clean_runs(replicator, run_id, now)),
    )
    for what, chore in chores:
        try:
            chore()
        # Whatever it is: the data are in their tables, and the run is judged by them.
        except Exception as error:
            tell(f"cleaning up the {what} failed, the next run tries again: {type(error).__name__} {error}")


def _clean_log(replicator: Replicator, run_id: str, stands: list[TableProgress], now: str) -> None:
    claims = replicator.state.claims(replicator.name)
    old = _clean_windows(replicator, run_id, stands, claims, now)
    if any(number % CONTROLS_EVERY_WINDOWS == 0 for number in old):
        copied = {claim.table for claim in claims if claim.run_id != run_id}
        clean_controls(replicator, [stand for stand in stands if stand.table not in copied])


def clean_controls(replicator: Replicator, stands: Iterable[TableProgress]) -> None:
    """Control records that no version a table can be taken back to names any more."""
    for stand in stands:
        replicator.log.remove_old_controls(stand.table, replicator.target.oldest_token(stand.table, stand.target))


def _clean_windows(
    replicator: Replicator, run_id: str, stands: list[TableProgress], claims: Iterable[Claim], now: str
) -> list[int]:
    log = replicator.log
    copying = (claim.sealed_window for claim in claims)
    limit = min([log.sealed() - 1, *copying, *(stand.passed for stand in stands)])
    numbers = [int(name) for name in log.store.names(change_log.WINDOWS)]
    old = _too_old(replicator, [number for number in numbers if number <= limit], now)
    if not old:
        return old
    for stand in stands:
        if stand.control is not None and stand.control.window < old[-1]:
            _move_cursor(replicator, run_id, stand, stand.control)
            failpoint("clean.moved")
    for number in old:
        log.store.delete(change_log.manifest_path(number))
        failpoint("clean.manifest")
        log.store.delete(change_log.window_folder(number))
    return old


def _too_old(replicator: Replicator, numbers: list[int], now: str) -> list[int]:
    """The leading windows that are older than ``staging.retain``. One without a manifest was half removed before."""
    before = datetime.fromisoformat(now) - replicator.definition.staging.retain
    old = []
    for number in numbers:
        known = replicator.log.store.exists(change_log.manifest_path(number))
        if known and datetime.fromisoformat(replicator.log.manifest(number).sealed_at) >= before:
            break
        old.append(number)
    return old


def _move_cursor(replicator: Replicator, run_id: str, stand: TableProgress, control: ControlRecord) -> None:
    """A table without changes keeps its cursor for as long as the log holds the windows after it. Before they go, its
    cursor is moved over them, by a commit without data. Raises Fenced where somebody moved the table meanwhile."""
    held = replicator.target.state(stand.table, stand.target)
    if held.control is None or held.control.token != control.token:
        raise Fenced(
            Problem("FEN003", f"somebody moved {stand.table} meanwhile", where=stand.table, do="the next run cleans up")
        )
    commit_fence(
        replicator,
        stand.table,
        stand.target,
        held,
        run_id,
        window=stand.passed,
        hi=replicator.log.manifest(stand.passed).hi,
        manifest_sha256=replicator.log.manifest_sha256(stand.passed),
    )


def _clean_batches(replicator: Replicator, run_id: str) -> None:
    """Batches are for the merge of their own run."""
    run, store = replicator.run(run_id), replicator.log.store
    attempts = [step.attempt for task in BATCHED for f in run.submissions(task) if (step := f.step()) is not None]
    for folder in store.names("batches") if attempts else []:
        table = change_log.table_of_folder(folder)
        for attempt in attempts:
            store.delete(change_log.batch_folder(table, attempt))
            failpoint("clean.batch")


def _clean_runs(replicator: Replicator, run_id: str, now: str) -> None:
    """Run ids sort by time within their kind (``scheduled__…``, ``manual__…``): the oldest of each kind come first. A
    run that died before it had decided is as old as the next one of its kind that had. One that still copies is kept,
    however long that takes."""
    store = replicator.log.store
    before = datetime.fromisoformat(now) - replicator.definition.staging.retain
    runs = sorted(map(unquote, store.names(change_log.STEPS)))
    kept = {run_id, *(claim.run_id for claim in replicator.state.claims(replicator.name))}
    for _, kind in groupby(runs, key=lambda name: name.partition("__")[0]):
        older: list[str] = []
        for other in kind:
            decided = decided_at(replicator, other)
            if other in kept or (decided is not None and decided >= before):
                break
            older.append(other)
            if decided is not None:
                for gone in older:
                    _clean_batches(replicator, gone)
                    store.delete(change_log.run_plan_path(gone).removesuffix("/plan.json"))
                older.clear()
