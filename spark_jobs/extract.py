"""Write one window of the stream and seal it. After an overflow or an unlogged change, do the same for the next window,
so that one copy repairs all of them.

A crash before the seal leaves files that no manifest names; the next attempt reads the same changes again. The seal is
atomic. After the seal, the next attempt adopts the window.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial

from airflow_cdc_provider.connectors.copied.reading import source_tasks, view_of
from airflow_cdc_provider.connectors.source_features import HasChannels, RestartsSnapshots
from airflow_cdc_provider.core.decisions.steps import (
    Outcome,
    Step,
    StepKind,
    StepResult,
    TableResult,
    TableTask,
    WindowResult,
)
from airflow_cdc_provider.core.errors import (
    CdcError,
    CheckFailed,
    IdentityChanged,
    Problem,
    SourceUnavailable,
    SourceUnreachable,
    StagingInvalid,
)
from airflow_cdc_provider.core.log.change_log import (
    RELOAD,
    REQUESTED,
    RESTART,
    UNLOGGED,
    Manifest,
    TableSlice,
    position_text,
)
from airflow_cdc_provider.core.log.copy_progress import Progress
from airflow_cdc_provider.core.log.positions import Position
from airflow_cdc_provider.core.log.server_orders import ServerOrder
from airflow_cdc_provider.core.log.snapshots import SourceSnapshot, merge_snapshots
from airflow_cdc_provider.core.spec.engines import EngineMode
from airflow_cdc_provider.core.table.copies import source_table
from airflow_cdc_provider.core.table.history import row_schema
from airflow_cdc_provider.core.table.schema import TableSchema
from airflow_cdc_provider.core.times import utc_now
from airflow_cdc_provider.staging.change_log import ChangeLog
from spark_jobs.runtime import harness
from spark_jobs.runtime.job import Job
from spark_jobs.runtime.parallel import RunSplits, run_in_driver, run_in_tasks
from spark_jobs.runtime.progress import report_progress
from spark_jobs.runtime.row_progress import read_progress
from spark_jobs.windows.changed_servers import known_orders, with_orders
from spark_jobs.windows.restarts import RESTART_SUFFIX, RestartedWindow, shorten_at_restarts
from spark_jobs.windows.split_reader import WindowSplit, land_split
from spark_jobs.windows.window_writer import OVERFLOW, LandedSplit, Limits, WindowEnd

UNREAD = "unread"
"""Why a window lacks changes of a table that could not be read."""


def run(job: Job) -> StepResult:
    job = of_source_tables(job)
    landed = [land_window(job)]
    while next_job := _next_window(job, landed[-1][0]):
        landed.append(land_window(next_job))
    manifests = [manifest for manifest, _ in landed]
    window = _sum_windows([window for _, window in landed])
    return job.result([_table_result(task, manifests, window.failed) for task in job.step.tables], window)


def land_window(
    job: Job, limits: Limits | None = None, restarts: Sequence[RestartedWindow] = ()
) -> tuple[Manifest, WindowResult]:
    """Write and seal ``step.window`` from ``step.lo`` to at most ``step.limit``; a window that is sealed already is
    adopted. Where a connector started to copy its tables again, the window is written once more, only up to there
    (``restarts``).

    Raises IdentityChanged or StagingInvalid where the window would not continue the log, SourceUnavailable and
    StagingUnavailable where a retry helps, PositionLost."""
    job = of_source_tables(job)
    step, log = job.step, job.log
    _require_log(log, step)
    if log.sealed() >= step.window:
        return _adopt(log.manifest(step.window))
    _require_continuous(log, step)
    with job.phase("read"), report_progress(f"window {step.window}", partial(_read_row_count, job)):
        read = _read_splits(job, _splits(job, limits or Limits()))
        landed = [part for _, part in read.landed]
    known = _known_snapshots(job)
    seen = [snapshot for part in landed for snapshot in part.snapshots]
    if isinstance(job.source, RestartsSnapshots):
        renamed = [task for task in step.tables if task.renamed_to]
        copies = {task.table: "" for task in renamed} | {task.renamed_to: task.table for task in renamed}
        names = [task.name_in_source for task in step.tables]
        limit, restarts = shorten_at_restarts(job.source, step.lo, step.limit, known, seen, restarts, copies, names)
        if limit != step.limit:
            shorter = replace(step, limit=dict(limit), attempt=f"{step.attempt}{RESTART_SUFFIX}")
            return land_window(replace(job, step=shorter), limits, restarts)
    with job.phase("seal"):
        resolved = {channel: at for part in landed for channel, at in part.resolved.items()}
        manifest = watermarked(job, _manifest(log, step, read), resolved)
        manifest = replace(manifest, snapshots=merge_snapshots([*known, *seen]))
        orders = [order for part in landed for order in part.orders]
        manifest = with_orders(manifest, _known_orders(job), orders, _channels(job))
        for restart in restarts:
            manifest = restart.mark(manifest)
        job.require_planned_source()
        for schema in {schema.schema_id: schema for part in landed for schema in part.schemas}.values():
            log.write_schema(schema)
        sealed = log.seal(manifest)
    if sealed.attempt != step.attempt:
        return _adopt(sealed)
    return sealed, replace(_window_result(sealed), cut=_end_reason(landed), failed=read.failed)


def of_source_tables(job: Job) -> Job:
    """With one task per table of the source: the change log is the same for all copies of a table."""
    step = job.step
    known = newest_schemas(job.log, step.tables, step.window - 1)
    tables = [_with_view(task, known.get(task.table)) for task in step.tables]
    return replace(job, step=replace(step, tables=tuple(source_tasks(tables))))


def _with_view(task: TableTask, logged: TableSchema | None) -> TableTask:
    """``logged``: the schema that the copy will have when it has applied the log; it keeps columns that are dropped."""
    if task.copies or task.control is None or task.control.schema is None or logged is None:
        return task
    kept = tuple(one for one in row_schema(task.control.schema).columns if one.name not in logged.names)
    schema = replace(logged, columns=(*logged.columns, *kept))
    return replace(task, copies=(view_of(replace(task, control=replace(task.control, schema=schema))),))


def _known_snapshots(job: Job) -> tuple[SourceSnapshot, ...]:
    """Those of the previous windows in this epoch."""
    if job.step.window == 1:
        return ()
    previous = job.log.manifest(job.step.window - 1)
    return previous.snapshots if previous.epoch == job.step.epoch else ()


def _channels(job: Job) -> Collection[str]:
    """Those that are read now. The position also has those of topics that were read under an earlier definition."""
    step = job.step
    return job.source.channels(step.limit) if isinstance(job.source, HasChannels) else {*step.lo, *step.limit}


def _known_orders(job: Job) -> tuple[ServerOrder, ...]:
    previous = job.log.manifest(job.step.window - 1) if job.step.window > 1 else None
    return known_orders(previous) if previous is not None and previous.epoch == job.step.epoch else ()


def _next_window(job: Job, manifest: Manifest) -> Job | None:
    """The job for the window after one with a hole that only a copy repairs; None where the stream has no further
    changes. A table that its source cannot stream has a hole of kind ``reload`` in each window, and no end of them."""
    reloads = (RELOAD,) if isinstance(job.connector, RestartsSnapshots) else ()
    if not any(hole.kind in (OVERFLOW, UNLOGGED, RESTART, *reloads) for hole in manifest.holes):
        return None
    status = job.source.status(manifest.hi, [task.table for task in job.step.tables])
    if not status.has_changes:
        return None
    return replace(job, step=replace(job.step, window=manifest.window + 1, lo=manifest.hi, limit=dict(status.limit)))


def newest_schemas(log: ChangeLog, tasks: Iterable[TableTask], window: int) -> dict[str, TableSchema]:
    """The schema of each table or copy at the end of ``window``: that of its last records in the log, else that of its
    rows in the target. Tables without a copy are left out: any first schema is accepted."""
    controls = {task.table: task.control for task in tasks if task.control}
    logged: dict[str, TableSchema] = {}
    oldest = min((control.window for control in controls.values()), default=window) + 1
    for number in range(window, max(oldest, log.oldest()) - 1, -1):
        if controls.keys() <= logged.keys():
            break
        parts = log.manifest(number).tables
        for table in [table for table in controls if table not in logged and number > controls[table].window]:
            part = parts.get(source_table(table))
            if part and part.schema_ids:
                logged[table] = log.schema(part.schema_ids[-1])
    copied = {
        table: row_schema(control.schema)
        for table, control in controls.items()
        if control.schema and table not in logged
    }
    return {**copied, **logged}


def _splits(job: Job, limits: Limits) -> list[WindowSplit]:
    step = job.step
    known = newest_schemas(job.log, step.tables, step.window - 1)
    streams = job.source.splits(step.lo, step.limit)
    return [WindowSplit(step, job.secrets, known, stream, number, limits) for number, stream in enumerate(streams)]


@dataclass(frozen=True)
class _ReadSplits:
    """``failed``: tables that could not be read, of a source that reads each table separately. A comparison has none:
    it needs its table. ``unread``: where they are to be read from."""

    landed: list[tuple[WindowSplit, LandedSplit]]
    failed: dict[str, Problem]
    unread: Position = field(default_factory=dict)


def _read_splits(job: Job, splits: Sequence[WindowSplit]) -> _ReadSplits:
    if not splits:
        return _ReadSplits([], {})
    results = _choose_reader(job, splits)(job, land_split, splits)
    job.peak_memory_bytes["share"] = max(result.peak_bytes for result in results)
    job.phases["land"] = round(max(result.duration_s for result in results), 3)
    pairs = list(zip(splits, results, strict=True))
    errors = [(split, result.error) for split, result in pairs if result.error]
    for split, error in errors:
        refused = isinstance(error, CheckFailed) and len(errors) == len(splits)
        if refused or job.step.kind is StepKind.VERIFY or not _is_of_table(split, error):
            raise error
    failed = {split.stream.table: error.problems[0] for split, error in errors}
    unread = {channel: at for split, _ in errors for channel, at in split.stream.lo.items()}
    return _ReadSplits([(split, result.landed) for split, result in pairs if result.landed], failed, unread)


def _is_of_table(split: WindowSplit, error: CdcError) -> bool:
    """Whether the error stops only the table that the split belongs to."""
    of_source = isinstance(error, SourceUnreachable) or not isinstance(error, (CheckFailed, SourceUnavailable))
    return bool(split.stream.table) and not of_source


def _choose_reader(job: Job, splits: Sequence[WindowSplit]) -> RunSplits:
    """Sources make several splits of many records only, except those that read each table separately."""
    small = len(splits) == 1 or all(split.stream.table for split in splits)
    local = small and job.step.definition.spark.engine is EngineMode.AUTO
    return run_in_driver if local else run_in_tasks


def _read_row_count(job: Job) -> Progress | None:
    records = read_progress(job.log.store, job.step)
    return Progress(records) if records else None


def _manifest(log: ChangeLog, step: Step, read: _ReadSplits) -> Manifest:
    landed = [part for _, part in read.landed]
    files = [written for part in landed for table in part.files.values() for written in table]
    times = [time for written in files for time in (written.commit_ts_min, written.commit_ts_max) if time]
    return Manifest(
        log_id=step.log_id,
        window=step.window,
        epoch=step.epoch,
        lo=step.lo,
        hi=_end_position(step.lo, read),
        previous_sha256=log.manifest_sha256(step.window - 1),
        attempt=step.attempt,
        sealed_at=utc_now(),
        tables={task.table: replace(_table_slice(task, landed), cut=_cut(task, read)) for task in step.tables},
        commit_ts_min=min(times).isoformat() if times else None,
        commit_ts_max=max(times).isoformat() if times else None,
        holes=tuple(hole for part in landed for hole in part.holes),
        ignored=sum(part.ignored for part in landed),
    )


def watermarked(job: Job, manifest: Manifest, resolved_times: Mapping[str, datetime]) -> Manifest:
    """The manifest with the resolved times of its channels (``resolved_times``: those reported in this window; a
    channel without one keeps that of the previous window) and the watermark, their minimum."""
    previous = job.log.manifest(manifest.window - 1) if manifest.window > 1 else None
    known = previous.resolved if previous is not None and previous.epoch == manifest.epoch else {}
    resolved = {**known, **{channel: at.isoformat() for channel, at in resolved_times.items()}}
    if not resolved or not isinstance(job.source, HasChannels):
        return manifest
    channels = set(job.source.channels(manifest.hi))
    complete = bool(channels) and channels <= resolved.keys()
    return replace(
        manifest, resolved=resolved, watermark=min(resolved[channel] for channel in channels) if complete else None
    )


def _end_position(lo: Position, read: _ReadSplits) -> dict[str, str]:
    """The end of the last transaction of each channel; the limit where the stream was read to it without a
    transaction; the begin where it could not be read."""
    hi = {**read.unread, **lo}
    for split, part in read.landed:
        if part.hi is not None:
            hi.update(part.hi)
        elif part.end is WindowEnd.LIMIT:
            hi.update(split.stream.limit)
    return hi


def _table_slice(task: TableTask, landed: Sequence[LandedSplit]) -> TableSlice:
    written = [file for part in landed for file in part.files.get(task.table, ())]
    counts: Counter[str] = Counter()
    for file in written:
        counts.update(file.counts)
    schema_ids = tuple(dict.fromkeys(schema_id for file in written for schema_id in file.schema_ids))
    files = tuple(file.file for file in written)
    return TableSlice(task.definition_sha256, schema_ids, files, dict(counts), task.log_sha256)


def _cut(task: TableTask, read: _ReadSplits) -> str:
    """Why the window lacks changes of the table that the source had."""
    if task.table in read.failed:
        return UNREAD
    parts = [part for split, part in read.landed if split.stream.table in ("", task.table)]
    return _end_reason([part for part in parts if not _is_requested(part)]).replace(WindowEnd.LIMIT.value, "")


def _is_requested(part: LandedSplit) -> bool:
    """Whether it ends with a hole that stands for no change: the source was read to its end."""
    return part.end is WindowEnd.HOLE and all(hole.kind in REQUESTED for hole in part.holes)


def _end_reason(landed: Sequence[LandedSplit]) -> str:
    return next((part.end.value for part in landed if part.end is not WindowEnd.LIMIT), WindowEnd.LIMIT.value)


def _adopt(manifest: Manifest) -> tuple[Manifest, WindowResult]:
    return manifest, replace(_window_result(manifest), adopted=True)


def _window_result(manifest: Manifest) -> WindowResult:
    files = [file for part in manifest.tables.values() for file in part.files]
    return WindowResult(
        manifest.window,
        manifest.lo,
        manifest.hi,
        records=sum(file.rows for file in files),
        files=len(files),
        bytes=sum(file.bytes for file in files),
    )


def _sum_windows(windows: Sequence[WindowResult]) -> WindowResult:
    return replace(
        windows[-1],
        lo=windows[0].lo,
        records=sum(window.records for window in windows),
        files=sum(window.files for window in windows),
        bytes=sum(window.bytes for window in windows),
        failed={table: problem for window in windows for table, problem in window.failed.items()},
    )


def _table_result(task: TableTask, manifests: Sequence[Manifest], failed: Mapping[str, Problem]) -> TableResult:
    last = manifests[-1].window
    if task.table in failed:
        return TableResult(task.table, Outcome.FAILING, window=last, problem=failed[task.table])
    parts = [part for manifest in manifests if (part := manifest.tables.get(task.table))]
    rows = sum(part.rows for part in parts)
    if not rows:
        return TableResult(task.table, Outcome.UNCHANGED, window=last)
    counts: Counter[str] = Counter()
    for part in parts:
        counts.update(part.counts)
    return TableResult(task.table, Outcome.DONE, rows, dict(counts), window=last)


def _require_log(log: ChangeLog, step: Step) -> None:
    actual = log.identity()
    if actual != step.log_id:
        raise IdentityChanged.of(
            "STG003",
            "the change log is not the one that this run was planned with",
            where=log.store.root,
            found=actual or "no LOG file",
            allowed=step.log_id,
            do="restore the staging folder that these tables were replicated from, or resync them",
            data="nothing was read or written",
        )


def _require_continuous(log: ChangeLog, step: Step) -> None:
    """A window starts where the previous one ended: no range of the stream is skipped."""
    if step.window == 1:
        return
    previous = log.manifest(step.window - 1)
    if previous.epoch == step.epoch and previous.hi != step.lo:
        raise StagingInvalid.of(
            "STG004",
            f"window {step.window} does not start where window {previous.window} ended",
            where=log.store.root,
            found=position_text(step.lo),
            allowed=position_text(previous.hi),
            do="start the run again: it plans from the current state of the log",
            data="nothing was read or written",
        )


if __name__ == "__main__":
    harness.main(run)
