"""A new copy of tables whose stream has a hole, over the old one, in one commit.

Readers see either the old table or the new one. A crash before the commit leaves the old table, still ``resyncing``;
after the commit, the next attempt copies again, which is correct too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from airflow_cdc_provider.connectors.source import Copy
from airflow_cdc_provider.connectors.source_features import StreamHoldsSnapshots
from airflow_cdc_provider.core.decisions.steps import StepResult, TableResult, TableTask
from airflow_cdc_provider.core.errors import Blocked, Fenced
from airflow_cdc_provider.core.failpoints import failpoint
from airflow_cdc_provider.core.spec.definition import OnDelete
from airflow_cdc_provider.core.spec.history import History
from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.core.table.copy_extent import WHOLE
from airflow_cdc_provider.core.table.equal_names import without_case
from airflow_cdc_provider.core.table.history import history_of, row_schema
from airflow_cdc_provider.core.table.merge_plan import DELETED
from airflow_cdc_provider.core.table.schema import TableSchema
from airflow_cdc_provider.core.table.schema_changes import same_columns
from airflow_cdc_provider.core.table.states import TableState
from airflow_cdc_provider.targets.sparksql.names import quoted
from spark_jobs.copies.copied_rows import CopiedRows, literal, open_copied_rows, target_frame, technical_columns
from spark_jobs.copies.copying import (
    build_control_record,
    commit_copy,
    for_each_copy,
    has_reload,
    open_copy,
    prepare_copy,
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
from spark_jobs.copies.extents import rows_of_copy
from spark_jobs.copies.key_audit import audit_keys, audit_window
from spark_jobs.copies.own_columns import is_technical
from spark_jobs.copies.split_frames import copy_rows
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
    the table is not resyncing, Blocked where more rows would be deleted than allowed without approval; then nothing is
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
    if audited is not None and kept_history is History.NONE:
        return audit_keys(job, work, audited)
    job = with_copy_window(job, task)
    began = datetime.now(UTC)
    extent = task.rule.snapshot.extent
    with (
        open_copy(job, task, job.step.window, extent if audited is None else WHOLE) as copy,
        open_copied_rows(job, work, copy, began) as copied,
        copy_rows(job, work, copy) as new,
    ):
        failpoint("copy.anchored")
        current = replace(current, control=_under_this_table(current.control, copy))
        assert current.control is not None
        same_history = kept_history is task.rule.history is not History.NONE
        continues = same_history and not _begins_anew(job, task)
        keeps = keeps_missing_rows(job, task)
        # A feed that begins anew has the kept rows, too.
        keeps_rows = (keeps or task.rule.on_delete is OnDelete.SOFT) and bool(copy.schema.key) and not same_history
        follows = continues or (keeps_rows and kept_history is task.rule.history)
        if follows and current.control.schema is not None:
            current = follow_schema(job, task, current, copy.schema)  # an attempt may have died amid that
        old = open_writer(job, work).read(task, current.version)
        present = old.columns
        assert current.control is not None
        catches_up = not job.source.exact_snapshot
        record = build_control_record(job, task, named_fence, current, copy, current.control.state, catches_up)
        if continues:
            history = HistoryCopy(job, work, copy, current.control, record, began)
            versions = current_rows(history.history, old, copy.schema.key)
            new = new if audited is None else rows_of_copy(versions, new, replace(task, schema=copy.schema), extent)
            return _continue_history(history, versions, new)
        old = _under_names_of(copy.schema, current.control.schema, old)
        missing = MissingRows(0, 0)
        if not keeps or not copy.schema.key or kept_history is not History.NONE:
            with work.phase("compare"):
                missing = _missing(copy, old, new) if kept_history is History.NONE else _all(old)
            _require_approval(job, work, current.control, missing)
        if keeps_rows:
            technical = technical_columns(copy, task.rule, began)
            rows = target_frame(work, copy, new, technical)
            kept_rows = _kept(copy, current_rows(kept_history, old, copy.schema.key), new, technical)
            _require_columns(job, task, current.control.schema, present, kept_rows)
            rows = rows.unionByName(_as_columns_of(rows, kept_rows, task), allowMissingColumns=True)
            copied = CopiedRows(lambda: rows, progress=watch_copy(work.spark, copy))
        commit = prepare_copy(job, work, copy, copied)
        return commit_copy(job, work, copied.progress, commit, record, missing=missing.rows, of=missing.of)


def _under_this_table(control: ControlRecord, copy: Copy) -> ControlRecord:
    """If another table has the name now, the ids of columns do not agree: columns of one name count as the same."""
    former, now = control.identity, copy.identity
    if control.schema is None or former is None or now is None or former.table == now.table:
        return control
    columns = tuple(replace(column, id="") for column in control.schema.columns)
    return replace(control, schema=replace(control.schema, columns=columns))


def _is_announced(job: Job, task: TableTask) -> bool:
    """Whether the source itself has announced that it copies the table again."""
    feed = isinstance(job.source, StreamHoldsSnapshots)
    return feed and has_reload(job.log.manifest(job.step.window), task.source_table)


def _begins_anew(job: Job, task: TableTask) -> bool:
    """Whether the feed has the table from its first row on: it has the whole history, which is applied again."""
    return isinstance(job.source, StreamHoldsSnapshots) and not _is_announced(job, task)


def _continue_history(copied: HistoryCopy, current: DataFrame, new: DataFrame) -> TableResult:
    """``current``: the newest versions in the target."""
    with copied.work.phase("compare"):
        differences = copied.differences(current, new).localCheckpoint()
        missing = copied.missing(differences, current)
    if not keeps_missing_rows(copied.job, copied.work.task):
        _require_approval(copied.job, copied.work, copied.before, missing)
    return copied.commit(differences, missing)


def _require_approval(job: Job, work: TableWork, control: ControlRecord, missing: MissingRows) -> None:
    """Of deletes, unless the source has announced them."""
    if not _is_announced(job, work.task):
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


def _kept(copy: Copy, old: DataFrame, new: DataFrame, technical: Mapping[str, pa.Scalar]) -> DataFrame:
    """The rows that ``on_delete`` keeps although the copy does not contain them: marked as deleted with ``soft``, else
    unchanged. Their order key is the floor of the copy, like that of all other rows."""
    rows = absent_rows(copy.schema.key, old, new).withColumns({name: literal(of) for name, of in technical.items()})
    return rows.withColumn(DELETED, F.lit(True)) if DELETED in technical else rows


def _under_names_of(copied: TableSchema, before: TableSchema | None, old: DataFrame) -> DataFrame:
    """``old`` with the names that its columns have in the copy: a name may belong to another column by now. Of the
    others only the technical ones: the table may have columns that do not belong to the copy any more, and texts of
    their values."""
    if before is None:
        return old
    before = row_schema(before)
    names = same_columns(before.columns, copied.columns)
    spelled = {name.lower(): name for name in before.names} | {name: name for name in before.names}
    own = [spelled.get(name) or spelled.get(name.lower(), "") for name in old.columns]
    columns = [
        (name, names.get(known) if known else name)
        for name, known in zip(old.columns, own, strict=True)
        if known or is_technical(name)
    ]
    return old.select(*(F.col(quoted(name)).alias(now) for name, now in columns if now))


def _require_columns(
    job: Job, task: TableTask, schema: TableSchema | None, present: Sequence[str], kept_rows: DataFrame
) -> None:
    """Of the copy, if there are rows to keep: whoever dropped or renamed a column of the target has taken its values
    from them. Raises Blocked."""
    found = set(map(without_case, present))
    missing = [name for name in row_schema(schema).names if without_case(name) not in found] if schema else []
    if missing and not kept_rows.isEmpty():
        raise Blocked.of(
            "CPY024",
            f"{task.table} keeps rows that the source does not have any more, and the target lacks columns of them",
            where=job.tables.locate(task.target),
            found=f"without {', '.join(missing)}",
            allowed="the columns of the copy",
            do="give the columns their names back, or add them with the values of these rows, and resync; or set "
            "another `target`, which begins without them",
            data="the target is unchanged",
        )


def _as_columns_of(rows: DataFrame, more: DataFrame, task: TableTask) -> DataFrame:
    """Raises Blocked where a value of ``more`` does not fit into the column of ``rows``."""
    types = {field.name: field.dataType for field in rows.schema.fields}
    cast = {name: F.col(quoted(name)).try_cast(types[name]) for name in more.columns if name in types}
    lost = {name: F.col(quoted(name)).isNotNull() & value.isNull() for name, value in cast.items()}
    found = more.select(*(F.max(F.coalesce(any_lost, F.lit(False))).alias(name) for name, any_lost in lost.items()))
    (row,) = found.collect()
    if unfit := [name for name in lost if row[name]]:
        raise _unfit(task, unfit)
    return more.select(*(value.alias(name) for name, value in cast.items()))


def _unfit(task: TableTask, columns: Sequence[str]) -> Blocked:
    return Blocked.of(
        "CPY015",
        f"{task.table} keeps rows that the source does not have any more, and they do not fit its new types",
        where=task.table,
        found=", ".join(columns),
        do="correct these rows in the target; or set another `target`, which begins without them",
        data="the target is unchanged",
    )


if __name__ == "__main__":
    harness.main(run)
