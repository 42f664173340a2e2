"""Land one window of the stream and seal it; behind an overflow, or where the stream left something untold, the next
one too, so that one copy serves them all.

Dies before the seal: files nobody names, the next attempt reads the same changes again. Dies in the seal: the manifest
stands or does not. Dies after it: the next attempt adopts the window.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial

from airflow_cdc_provider.connectors.source import HasChannels, RestartsSnapshots
from airflow_cdc_provider.core.decisions.steps import Outcome, Step, StepResult, TableResult, TableTask, WindowResult
from airflow_cdc_provider.core.errors import CheckFailed, IdentityChanged, Problem, StagingInvalid
from airflow_cdc_provider.core.log.change_log import RELOAD, RESTART, UNLOGGED, Manifest, TableSlice, position_text
from airflow_cdc_provider.core.log.positions import Position
from airflow_cdc_provider.core.log.snapshots import SourceSnapshot, merge_snapshots
from airflow_cdc_provider.core.table.schema import TableSchema
from airflow_cdc_provider.staging.change_log import ChangeLog
from spark_jobs.runtime import harness
from spark_jobs.runtime.job import Job
from spark_jobs.runtime.parallel import in_parallel
from spark_jobs.runtime.progress import Progress, reported
from spark_jobs.runtime.row_progress import read_progress
from spark_jobs.windows.restarts import RESTARTED, RestartedWindow, restarted
from spark_jobs.windows.split_reader import WindowSplit, land_split
from spark_jobs.windows.window_writer import OVERFLOW, Landed, Limits, WindowEnd


def run(job: Job) -> StepResult:
    landed = [land_window(job)]
    while following := _behind_overflow(job, landed[-1][0]):
        landed.append(land_window(following))
    manifests = [manifest for manifest, _ in landed]
    window = _joined([window for _, window in landed])
    return job.result([_table_result(task, manifests, window.failed) for task in job.step.tables], window)


def land_window(
    job: Job, limits: Limits | None = None, restarts: Sequence[RestartedWindow] = ()
) -> tuple[Manifest, WindowResult]:
    """Land and seal ``step.window`` from ``step.lo`` to at most ``step.limit``; a window that is sealed is adopted.
    Where a connector has copied its tables anew, it is landed once more, up to there (``restarts``).

    Raises IdentityChanged or StagingInvalid where the window would not join on to the log, SourceUnavailable and
    StagingUnavailable where a retry helps, PositionLost.
    """
    step, log = job.step, job.log
    _require_log(log, step)
    if log.sealed() >= step.window:
        return _adopted(log.manifest(step.window))
    _require_joint(log, step)
    with job.phase("read"), reported(f"window {step.window}", partial(_landed_so_far, job)):
        read = _run_shares(job, _shares(job, limits or Limits()))
        landed = [part for _, part in read.landed]
    known = _known_snapshots(job)
    seen = [one for part in landed for one in part.snapshots]
    if isinstance(job.source, RestartsSnapshots):
        limit, restarts = restarted(job.source, step.lo, step.limit, known, seen, restarts)
        if limit != step.limit:
            shorter = replace(step, limit=dict(limit), attempt=f"{step.attempt}{RESTARTED}")
            return land_window(replace(job, step=shorter), limits, restarts)
    with job.phase("seal"):
        told = {channel: at for part in landed for channel, at in part.resolved.items()}
        manifest = watermarked(job, _manifest(log, step, read), told)
        manifest = replace(manifest, snapshots=merge_snapshots([*known, *seen]))
        for restart in restarts:
            manifest = restart.marked(manifest)
        for schema in {schema.schema_id: schema for part in landed for schema in part.schemas}.values():
            log.write_schema(schema)
        sealed = log.seal(manifest)
    if sealed.attempt != step.attempt:
        return _adopted(sealed)
    return sealed, replace(_window_result(sealed), cut=_cut(landed), failed=read.failed)


def _known_snapshots(job: Job) -> tuple[SourceSnapshot, ...]:
    """Those of the windows before, in this epoch."""
    if job.step.window == 1:
        return ()
    before = job.log.manifest(job.step.window - 1)
    return before.snapshots if before.epoch == job.step.epoch else ()


def _behind_overflow(job: Job, manifest: Manifest) -> Job | None:
    """The step for the window after one that ended because only a copy can tell a table; None where there is nothing
    new."""
    if not any(hole.kind in (OVERFLOW, UNLOGGED, RESTART, RELOAD) for hole in manifest.holes):
        return None
    news = job.source.status(manifest.hi, [task.table for task in job.step.tables])
    if not news.has_changes:
        return None
    return replace(job, step=replace(job.step, window=manifest.window + 1, lo=manifest.hi, limit=dict(news.limit)))


def newest_schemas(log: ChangeLog, tasks: Iterable[TableTask], window: int) -> dict[str, TableSchema]:
    """The schema each table had at the end of ``window``: of its last records in the log, else what its target holds.
    Tables without a copy have none yet: their first schema breaks nothing."""
    wanted = {task.table: task.control for task in tasks if task.control}
    found: dict[str, TableSchema] = {}
    oldest = min((control.window for control in wanted.values()), default=window) + 1
    for number in range(window, max(oldest, log.oldest()) - 1, -1):
        if wanted.keys() <= found.keys():
            break
        for table, part in log.manifest(number).tables.items():
            if part.schema_ids and table in wanted and table not in found and number > wanted[table].window:
                found[table] = log.schema(part.schema_ids[-1])
    held = {table: control.schema for table, control in wanted.items() if control.schema and table not in found}
    return {**held, **found}


def _shares(job: Job, limits: Limits) -> list[WindowSplit]:
    step = job.step
    known = newest_schemas(job.log, step.tables, step.window - 1)
    partitions = job.source.partitions(step.lo, step.limit)
    return [
        WindowSplit(step, job.secrets, known, partition, number, limits) for number, partition in enumerate(partitions)
    ]


@dataclass(frozen=True)
class _Read:
    """``failed``: tables that could not be read, of a source that reads each by itself."""

    landed: list[tuple[WindowSplit, Landed]]
    failed: dict[str, Problem]


def _run_shares(job: Job, shares: Sequence[WindowSplit]) -> _Read:
    if not shares:
        return _Read([], {})
    told = in_parallel(job, land_split, shares)
    job.peak_memory_bytes["share"] = max(one.peak_bytes for one in told)
    job.phases["land"] = round(max(one.took_s for one in told), 3)
    both = list(zip(shares, told, strict=True))
    errors = [(share, one.error) for share, one in both if one.error]
    for share, error in errors:
        if len(errors) == len(shares) or not share.partition.table or not isinstance(error, CheckFailed):
            raise error
    failed = {share.partition.table: error.problems[0] for share, error in errors}
    return _Read([(share, one.landed) for share, one in both if one.landed], failed)


def _landed_so_far(job: Job) -> Progress | None:
    records = read_progress(job.log.store, job.step)
    return Progress(records) if records else None


def _manifest(log: ChangeLog, step: Step, read: _Read) -> Manifest:
    landed = [part for _, part in read.landed]
    files = [written for part in landed for table in part.files.values() for written in table]
    times = [time for written in files for time in (written.commit_ts_min, written.commit_ts_max) if time]
    return Manifest(
        log_id=step.log_id,
        window=step.window,
        epoch=step.epoch,
        lo=step.lo,
        hi=_hi(step.lo, read),
        previous_sha256=log.manifest_sha256(step.window - 1),
        attempt=step.attempt,
        sealed_at=datetime.now(UTC).isoformat(timespec="milliseconds"),
        tables={task.table: _slice(task, landed) for task in step.tables},
        commit_ts_min=min(times).isoformat() if times else None,
        commit_ts_max=max(times).isoformat() if times else None,
        holes=tuple(hole for part in landed for hole in part.holes),
        ignored=sum(part.ignored for part in landed),
    )


def watermarked(job: Job, manifest: Manifest, told: Mapping[str, datetime]) -> Manifest:
    """``told``: how far channels have said to be in this window. One that said nothing is where it was at the end of
    the window before."""
    before = job.log.manifest(manifest.window - 1) if manifest.window > 1 else None
    known = before.resolved if before is not None and before.epoch == manifest.epoch else {}
    resolved = {**known, **{channel: at.isoformat() for channel, at in told.items()}}
    if not resolved or not isinstance(job.source, HasChannels):
        return manifest
    channels = set(job.source.channels(manifest.hi))
    whole = bool(channels) and channels <= resolved.keys()
    return replace(manifest, resolved=resolved, watermark=min(resolved[one] for one in channels) if whole else None)


def _hi(lo: Position, read: _Read) -> dict[str, str]:
    """The end of the last transaction of each channel; the limit, where the stream was read to it and held none."""
    hi = dict(lo)
    for share, part in read.landed:
        if part.hi is not None:
            hi.update(part.hi)
        elif part.cut is WindowEnd.LIMIT:
            hi.update(share.partition.limit)
    return hi


def _slice(task: TableTask, landed: Sequence[Landed]) -> TableSlice:
    written = [one for part in landed for one in part.files.get(task.table, ())]
    counts: Counter[str] = Counter()
    for one in written:
        counts.update(one.counts)
    schema_ids = tuple(dict.fromkeys(schema_id for one in written for schema_id in one.schema_ids))
    return TableSlice(task.definition_sha256, schema_ids, tuple(one.file for one in written), dict(counts))


def _cut(landed: Sequence[Landed]) -> str:
    return next((part.cut.value for part in landed if part.cut is not WindowEnd.LIMIT), WindowEnd.LIMIT.value)


def _adopted(manifest: Manifest) -> tuple[Manifest, WindowResult]:
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


def _joined(windows: Sequence[WindowResult]) -> WindowResult:
    return replace(
        windows[-1],
        lo=windows[0].lo,
        records=sum(one.records for one in windows),
        files=sum(one.files for one in windows),
        bytes=sum(one.bytes for one in windows),
        failed={table: problem for one in windows for table, problem in one.failed.items()},
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
    found = log.identity()
    if found != step.log_id:
        raise IdentityChanged(
            Problem(
                "STG003",
                "the change log is not the one this run was planned on",
                where=log.store.root,
                found=found or "no LOG file",
                allowed=step.log_id,
                do="restore the staging folder these tables were written from, or resync them",
                data="nothing was read or written",
            )
        )


def _require_joint(log: ChangeLog, step: Step) -> None:
    """A window starts where the one before it ended: no range is ever stepped over."""
    if step.window == 1:
        return
    before = log.manifest(step.window - 1)
    if before.epoch == step.epoch and before.hi != step.lo:
        raise StagingInvalid(
            Problem(
                "STG004",
                f"window {step.window} would not start where window {before.window} ended",
                where=log.store.root,
                found=position_text(step.lo),
                allowed=position_text(before.hi),
                do="start the run again: it plans from the log as it is now",
                data="nothing was read or written",
            )
        )


if __name__ == "__main__":
    harness.main(run)
