"""Carries out what is decided about a schema change at which the batches of a table end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from airflow_cdc_provider.connectors.source_features import StreamHoldsSnapshots
from airflow_cdc_provider.core.decisions.operator_decisions import answer_to
from airflow_cdc_provider.core.decisions.schema_decisions import (
    SchemaDecision,
    SchemaStop,
    decide_schema_change,
    question_about,
)
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.failpoints import failpoint
from airflow_cdc_provider.core.spec.history import History
from airflow_cdc_provider.core.spec.schema_policy import OnDrop, SchemaPolicy
from airflow_cdc_provider.core.table.alterations import Alter, Alteration, altered
from airflow_cdc_provider.core.table.column_comments import comments_after
from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.core.table.copy_extent import extent_after
from airflow_cdc_provider.core.table.former_columns import former_after
from airflow_cdc_provider.core.table.history import stored_schema
from airflow_cdc_provider.core.table.schema import TableSchema
from airflow_cdc_provider.core.table.states import State, TableState
from airflow_cdc_provider.core.times import utc_now
from airflow_cdc_provider.targets.target import AltersTables, KeysRowsByValues, TargetState
from spark_jobs.quarantine.altered_carry import altered_carry
from spark_jobs.runtime.console import log_line
from spark_jobs.runtime.job import Job


def schema_policy(job: Job, task: TableTask) -> SchemaPolicy:
    policy = task.rule.schema_changes.over(job.step.definition.schema_changes)
    finds_rows = not task.schema.key and task.rule.history is not History.LOG
    if isinstance(job.tables, KeysRowsByValues) and finds_rows:
        return replace(policy, drop_column=OnDrop.STOP)
    return policy


def altering_statements(job: Job, task: TableTask, alterations: Sequence[Alteration]) -> tuple[str, ...] | None:
    """None if the target cannot execute all of them, or others share the table: their rows keep their columns."""
    if not alterations:
        return ()
    if task.rule.shard_column:
        return None
    return job.tables.statements(task.target, alterations) if isinstance(job.tables, AltersTables) else None


def schema_decision(job: Job, task: TableTask, control: ControlRecord, stop: SchemaStop) -> SchemaDecision:
    statements = partial(altering_statements, job, task)
    answer = answer_to(job.log.decisions(), question_about(control, stop))
    can_copy = not isinstance(job.connector, StreamHoldsSnapshots)
    decision = decide_schema_change(control, stop, schema_policy(job, task), statements, answer, can_copy)
    if not task.rule.shard_column or decision.problem is None:
        return decision
    found = f"{decision.problem.found}; {task.target} has rows of other source tables, so its columns are not altered"
    return replace(decision, problem=replace(decision.problem, found=found))


def alter_table(
    job: Job,
    task: TableTask,
    current: TargetState,
    before: TableSchema,
    alterations: Sequence[Alteration],
    reason: str,
) -> ControlRecord:
    """Commit the alterations with the schema that they lead to, and no rows. ``before``: the schema of the source's
    rows. Raises Fenced if the table has changed."""
    control = current.control
    assert control is not None and isinstance(job.tables, AltersTables)
    schema = stored_schema(task.rule.history, altered(before, alterations))
    comments = comments_after(control, schema)
    emptied = replace(before, columns=tuple(one.column for one in alterations if one.kind is Alter.SET_NULL))
    former = former_after(control.former, emptied, schema)
    carry = altered_carry(job, task, control, before, alterations)
    renamed = {one.column.name: one.to.name for one in alterations if one.kind is Alter.RENAME and one.to}
    extent = extent_after(control.extent, control.schema, schema, renamed) if control.schema else control.extent
    fenced = control.fenced(schema=schema, extent=extent, comments=comments, carry=carry, former=former)
    record = replace(fenced, attempt=job.step.attempt, committed_at=_now())
    failpoint("alter.before")
    committed = job.tables.alter(task.target, current, record, alterations)
    failpoint("alter.after")
    log_line(f"{task.table}: {reason}; altered {task.target} under fencing token {committed.fence}")
    return committed


def copy_again(job: Job, task: TableTask, current: TargetState, decision: SchemaDecision) -> ControlRecord:
    """Put the table into ``resyncing``: the next run copies it. Raises Fenced if the table has changed."""
    assert current.control is not None
    state = State(TableState.RESYNCING, _now(), f"a schema change: {decision.reason}", set_by=job.step.run_id)
    record = replace(current.control.fenced(state), attempt=job.step.attempt, committed_at=_now())
    return job.tables.fence(task.target, current, record)


def _now() -> str:
    return utc_now()
