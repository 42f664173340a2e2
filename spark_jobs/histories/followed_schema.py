"""The columns of a history before a copy continues it: the versions of earlier rows get the new names and types."""

from __future__ import annotations

from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.table.alterations import alterations
from airflow_cdc_provider.core.table.history import row_schema
from airflow_cdc_provider.core.table.schema import TableSchema
from airflow_cdc_provider.core.table.schema_changes import ChangeKind, compare
from airflow_cdc_provider.targets.target import TargetState
from spark_jobs.batches.schema_change import alter_table, altering_statements
from spark_jobs.runtime.job import Job


def follow_schema(
    job: Job, task: TableTask, current: TargetState, known: TableSchema | None, schema: TableSchema
) -> TargetState:
    """The state after columns were renamed and widened as in ``schema``, the one of the copy. Unchanged if the target
    cannot do that in place. ``known``: the columns of the target, with the ids of those that are the same. A commit of
    its own: after a crash, the next attempt finds nothing to alter. Raises Fenced if the table has changed."""
    assert known is not None
    before = row_schema(known)
    changes = [
        change
        for change in compare(before, schema)
        if change.kind in (ChangeKind.RENAME, ChangeKind.WIDEN) and change.is_certain
    ]
    altered = alterations(changes, schema.key, None)
    if not altered or altering_statements(job, task, altered) is None:
        return current
    alter_table(job, task, current, before, altered, "; ".join(map(str, changes)))
    return job.tables.state(task.table, task.target)
