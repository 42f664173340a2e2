"""A new copy of tables whose stream has a hole, over the old one, in one commit.

Readers see either the old table or the new one. A crash before the commit leaves the old table, still ``resyncing``;
after the commit, the next attempt copies again, which is correct too.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from datetime import UTC, datetime

from pyspark.sql import DataFrame

from airflow_cdc_provider.connectors.source import Copy
from airflow_cdc_provider.connectors.source_features import StreamHoldsSnapshots
from airflow_cdc_provider.core.decisions.steps import StepResult, TableResult, TableTask
from airflow_cdc_provider.core.errors import Fenced
from airflow_cdc_provider.core.failpoints import failpoint
from airflow_cdc_provider.core.log.change_log import RELOAD, RESTART
from airflow_cdc_provider.core.spec.definition import OnDelete
from airflow_cdc_provider.core.spec.history import History
from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.core.table.history import history_of
from airflow_cdc_provider.core.table.schema import TableSchema
from airflow_cdc_provider.core.table.states import TableState
from airflow_cdc_provider.targets.target import TargetState
from spark_jobs.copies.copied_rows import CopiedRows, open_compared_rows, target_frame, technical_columns
from spark_jobs.copies.copying import (
    build_control_record,
    commit_copy,
    for_each_copy,
    has_reload,
    open_copy,
    prepare_commit,
    table_status,
    with_copy_window,
)
from spark_jobs.copies.delete_guard import (
    MissingRows,
    absent_rows,
    keeps_missing_rows,
    live_rows,
    require_delete_approval,
)
from spark_jobs.copies.kept_rows import (
    as_columns_of,
    kept_rows,
    missing_columns,
    require_columns,
    require_same_values,
    under_names_of_copy,
)
from spark_jobs.copies.key_audit import audit_keys, audit_window
from spark_jobs.histories.copy_again import HistoryCopy
from spark_jobs.histories.current_rows import current_rows
from spark_jobs.histories.followed_schema import follow_schema
from spark_jobs.runtime import harness
from spark_jobs.runtime.job import Job, TableWork
from spark_jobs.runtime.spark_progress import watch_copy
from spark_jobs.runtime.table_guard import require_expected_fence
from spark_jobs.writers.writer import open_writer


def run(job: Job) -> StepResult:
    return for_each_copy(job, copy_again)


def copy_again(job: Job, work: TableWork) -> TableResult:
    """Copy one resyncing table over its old rows; where only its keys are to be compared, do that. Raises Fenced where
    the table is not resyncing, Blocked where more rows would be deleted than allowed without approval; then no row is
    written.

    In a table without a key, deleted and changed rows cannot be distinguished: where it ignores deletes, the rows that
    it has kept count as deleted, too."""
    task = work.task
    named_fence, current = table_status(job, task)
    if current.control is None or current.control.state.name is not TableState.RESYNCING:
        raise Fenced.of(
            "CPY003",
            f"{task.table} is not in state resyncing",
            where=job.tables.locate(task.target),
            found=current.control.state.name if current.control else "no control record",
            allowed=TableState.RESYNCING,
        )
    require_expected_fence(task, current.control)
    kept_history = history_of(current.control.schema) if current.control.schema else History.NONE
    audited = audit_window(job.log, current.control)
    if audited is not None and kept_history is task.rule.history:
        if (result := audit_keys(job, work, audited)) is not None:
            return result
        named_fence, current = table_status(job, task)
    job = with_copy_window(job, task)
    began = datetime.now(UTC)
    with (
        open_copy(job, task, job.step.window, task.rule.snapshot.extent) as copy,
        open_compared_rows(job, work, copy, began) as compared,
    ):
        new, copied = compared.new, compared.copied
        failpoint("copy.anchored")
        same_history = kept_history is task.rule.history is not History.NONE
        continues = same_history and not begins_anew(job, task, current.control)
        keeps = keeps_missing_rows(job, task)
        # A feed that begins anew has the kept rows, too.
        keeps_rows = (keeps or task.rule.on_delete is OnDelete.SOFT) and bool(copy.schema.key) and not same_history
        may_have_died = keeps_rows and kept_history is task.rule.history
        assert current.control is not None
        before = _columns_of_this_table(current.control, copy)
        # An attempt may have died amid renames: the target has other names than the control record.
        if continues or (may_have_died and missing_columns(_read(job, work, current).columns, before)):
            current = follow_schema(job, task, current, before, copy.schema)
        control = current.control
        assert control is not None
        before, old = _columns_of_this_table(control, copy), _read(job, work, current)
        catches_up = None if job.source.exact_snapshot else compared.read_end
        record = build_control_record(job, task, named_fence, current, copy, control.state, catches_up)
        if continues:
            history = HistoryCopy(job, work, copy, replace(control, schema=before), record, began)
            return _continue_history(history, old, new)
        lacking = missing_columns(old.columns, before)
        old = under_names_of_copy(old, before, copy.schema)
        missing = MissingRows(0, 0)
        if not keeps or not copy.schema.key or kept_history is not History.NONE:
            with work.phase("compare"):
                missing = _missing(copy, old, new) if kept_history is History.NONE else _all(old)
            _require_approval(job, work, control, missing, kept_history)
        where = job.tables.locate(task.target)
        if keeps_rows and (without := [name for name in copy.schema.key if name not in old.columns]):
            require_columns(task, where, without, old)
            keeps_rows = False
        if keeps_rows:
            technical = technical_columns(copy, task.rule, began)
            rows = target_frame(work, copy, new, technical)
            kept = kept_rows(copy.schema.key, current_rows(kept_history, old, copy.schema.key), new, technical)
            require_columns(task, where, lacking, kept)
            require_same_values(task, where, replace(control, schema=before), record.hidden_sha256, copy.schema, kept)
            rows = rows.unionByName(as_columns_of(rows, kept, task), allowMissingColumns=True)
            copied = CopiedRows(lambda: rows, progress=watch_copy(work.spark, copy))
        commit = prepare_commit(job, work, copy, copied)
        return commit_copy(job, work, copied.progress, commit, record, missing=missing.rows, of=missing.of)


def _read(job: Job, work: TableWork, current: TargetState) -> DataFrame:
    return open_writer(job, work).read(work.task, current.version)


def _columns_of_this_table(control: ControlRecord, copy: Copy) -> TableSchema | None:
    """Those of the target. If another table has the name now, the ids of columns do not agree: columns of one name
    count as the same."""
    former, now = control.identity, copy.identity
    if control.schema is None or former is None or now is None or former.table == now.table:
        return control.schema
    return replace(control.schema, columns=tuple(replace(column, id="") for column in control.schema.columns))


def _is_announced(job: Job, task: TableTask, kinds: Collection[str] = (RESTART, RELOAD)) -> bool:
    """Whether the source itself has announced that it copies the table again."""
    feed = isinstance(job.source, StreamHoldsSnapshots)
    return feed and has_reload(job.log.manifest(job.step.window), task.source_table, kinds)


def begins_anew(job: Job, task: TableTask, control: ControlRecord | None) -> bool:
    """Whether the feed has the table from the first row of its history on, which is applied again. ``job``: at the
    window before that. Before a first snapshot that was interrupted begins again, no row has changed."""
    if not isinstance(job.source, StreamHoldsSnapshots):
        return False
    began_there = control is not None and (control.applied.since or 0) >= job.step.window
    return began_there or not _is_announced(job, task) or _was_interrupted(job, task)


def _was_interrupted(job: Job, task: TableTask) -> bool:
    """Whether the feed has the beginning of a first snapshot up to this window, and begins it again after that."""
    return _is_announced(job, task, (RELOAD,))


def _continue_history(copied: HistoryCopy, old: DataFrame, new: DataFrame) -> TableResult:
    """``old``: all rows of the target."""
    task, hidden_sha256 = copied.work.task, copied.record.hidden_sha256
    where = copied.job.tables.locate(task.target)
    require_same_values(task, where, copied.before, hidden_sha256, copied.schema, old)
    current = current_rows(copied.history, old, copied.schema.key)
    with copied.work.phase("compare"):
        differences = copied.differences(current, new).localCheckpoint()
        missing = copied.missing(differences, current)
    if not keeps_missing_rows(copied.job, copied.work.task):
        _require_approval(copied.job, copied.work, copied.before, missing)
    return copied.commit(differences, missing)


def _require_approval(
    job: Job, work: TableWork, control: ControlRecord, missing: MissingRows, kept: History = History.NONE
) -> None:
    """Of deletes, unless the source has announced them. It announces nothing of the versions of a history (``kept``)
    that is replaced; there are none but those of its first snapshot where that was interrupted."""
    is_announced = _is_announced if kept is History.NONE else _was_interrupted
    if not is_announced(job, work.task):
        require_delete_approval(job, work, control, missing, "resync")


def _all(old: DataFrame) -> MissingRows:
    """A history that is replaced."""
    rows = old.count()
    return MissingRows(rows, rows)


def _missing(copy: Copy, old: DataFrame, new: DataFrame) -> MissingRows:
    """How many live rows of the target are not in the source. Without a common key, only the row counts are
    compared."""
    rows = live_rows(old)
    of = rows.count()
    if copy.schema.key and set(copy.schema.key) <= set(old.columns):
        return MissingRows(absent_rows(copy.schema.key, rows, new).count(), of)
    return MissingRows(max(0, of - new.count()), of)


if __name__ == "__main__":
    harness.main(run)
