"""Comments of columns: from the catalog of the source into the copies, without Spark.

A comment that cannot be written stops nothing: the task log says why, and the next run tries again. A crash before the
commit leaves comments that the next run writes again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from airflow_cdc_provider.connectors.source_features import HasComments
from airflow_cdc_provider.control.fences import next_record, with_control
from airflow_cdc_provider.control.replicator import LogInfo, Replicator
from airflow_cdc_provider.core.decisions.facts import TableFacts
from airflow_cdc_provider.core.decisions.run_decision import RunDecision
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.decisions.table_decisions import TableAction
from airflow_cdc_provider.core.errors import UNREADABLE, Blocked, Fenced
from airflow_cdc_provider.core.table.alterations import Alter, Alteration
from airflow_cdc_provider.core.table.column_comments import comments_of_copy, due_comments, written_comments
from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.core.table.states import TAKES_CHANGES, TableState
from airflow_cdc_provider.targets.target import AltersTables


def with_comments(replicator: Replicator, tables: Sequence[TableFacts]) -> tuple[TableFacts, ...]:
    """With the comments that the copies are to have. Raises SourceUnavailable."""
    source = replicator.source
    if not isinstance(source, HasComments):
        return tuple(tables)
    tasks = [table.task for table in tables if _gets_comments(replicator, table.task)]
    if not tasks:
        return tuple(tables)
    found = source.comments(list(dict.fromkeys(task.name_in_source for task in tasks)))
    commented = {
        task.table: replace(task, comments=comments_of_copy(task.schema, found.get(task.name_in_source, {})))
        for task in tasks
    }
    return tuple(replace(table, task=commented.get(table.task.table, table.task)) for table in tables)


def _gets_comments(replicator: Replicator, task: TableTask) -> bool:
    """Not where its target cannot be opened or cannot alter them alone, nor where other copies share the table."""
    try:
        target = replicator.targets.of(task.table)
    except UNREADABLE:  # the table's own state says why
        return False
    if task.rule.shard_column or not isinstance(target, AltersTables):
        return False
    probe = [Alteration(Alter.COMMENT, column, column) for column in task.schema.columns[:1]]
    return target.statements(task.target, probe) is not None


def write_due_comments(replicator: Replicator, decision: RunDecision, log_info: LogInfo) -> RunDecision:
    """Into the copies in the stream. Requires the stream lane."""
    streamed = {verdict.table for verdict in decision.table_decisions if verdict.action is TableAction.STREAM}
    plan = decision.plan
    due = [task for task in plan.tables if task.table in streamed and _is_due(task)]
    written = _write_all(replicator, due, plan.run_id, log_info)
    tables = tuple(with_control(t, written[t.table]) if t.table in written else t for t in plan.tables)
    return replace(decision, plan=replace(plan, tables=tables))


def write_comments_of_copies(
    replicator: Replicator, decision: RunDecision, failed: Collection[str], log_info: LogInfo
) -> None:
    """Into the copies that this run has made, and which are still claimed. ``failed``: tables with problems."""
    plan = decision.plan
    copied = tuple(table for table in (*plan.copy, *plan.reconcile) if table not in failed)
    commented = [t for t in plan.named(copied) if t.comments or (t.control is not None and t.control.comments)]
    _write_all(replicator, commented, plan.run_id, log_info)


def _is_due(task: TableTask) -> bool:
    if task.control is None or task.comments is None or task.state is not TableState.REPLICATING:
        return False
    return bool(due_comments(task.control, task.schema, task.comments))


def _write_all(
    replicator: Replicator, tasks: Iterable[TableTask], run_id: str, log_info: LogInfo
) -> dict[str, ControlRecord]:
    written = {}
    for task in tasks:
        try:
            record = _write(replicator, task, run_id)
        except (Blocked, Fenced, *UNREADABLE) as error:
            log_info(f"{task.table}: comments of columns are not written: {error}")
            continue
        if record:
            log_info(f"{task.table}: wrote comments of columns under fencing token {record.fence}")
            written[task.table] = record
    return written


def _write(replicator: Replicator, task: TableTask, run_id: str) -> ControlRecord | None:
    """None if none is due."""
    target = replicator.targets.of(task.table)
    if not isinstance(target, AltersTables) or task.comments is None:
        return None
    current = target.state(task.table, task.target)
    if current.control is None or current.control.state.name not in TAKES_CHANGES:
        return None
    due = due_comments(current.control, task.schema, task.comments)
    if not due:
        return None
    record = next_record(current, run_id, comments=written_comments(current.control, due))
    committed = target.alter(task.target, current, record, due)
    detail = {"table": task.table, "fence": committed.fence, "columns": [one.column.name for one in due]}
    replicator.state.write_audit(replicator.name, run_id, "comment", detail)
    return committed
