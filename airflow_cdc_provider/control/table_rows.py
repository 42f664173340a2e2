"""What the index keeps of a table: made from what was decided at the beginning of a run, and from what stood in the
target at its end. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from airflow_cdc_provider.core.decisions.run_decision import RunDecision
from airflow_cdc_provider.core.decisions.steps import Outcome, TableResult
from airflow_cdc_provider.core.decisions.table_decisions import TableAction
from airflow_cdc_provider.core.errors import Problem
from airflow_cdc_provider.core.spec.definition import TableRule
from airflow_cdc_provider.core.spec.selection import matches
from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.core.table.state_rows import TableRow
from airflow_cdc_provider.core.table.states import TAKES_CHANGES, State, TableState


def opening_rows(
    decision: RunDecision, rules: Iterable[TableRule], read: Collection[str], before: Mapping[str, TableRow]
) -> Iterable[TableRow]:
    """What is known when a run begins: new tables, copies that start, and tables that cannot move. ``read``: tables
    whose control record was read from the target; that of the others is as old as it was."""
    copied = set(decision.plan.copy)
    tasks = {task.table: task for task in decision.plan.tables}
    for verdict in decision.table_decisions:
        task, row = tasks[verdict.table], before.get(verdict.table)
        if task.control is not None:
            seen_at = row.seen_at if row and task.table not in read else decision.at
            row = current_row(task.table, task.target, task.control, row, seen_at)
            yield blocked_row(row, verdict.problem, decision.at) if verdict.action is TableAction.BLOCKED else row
        elif verdict.action is TableAction.COPYING:
            continue
        elif verdict.action is TableAction.BLOCKED:
            fresh = row or TableRow(task.table, task.target, TableState.PENDING, decision.at)
            yield blocked_row(fresh, verdict.problem, decision.at)
        else:
            state = TableState.SNAPSHOTTING if task.table in copied else TableState.PENDING
            fresh = TableRow(task.table, task.target, state, decision.at, verdict.reason, seen_at=decision.at)
            yield replace(row, state=state, control=None, seen_at=decision.at) if row else fresh
    known = set(tasks) | {problem.where for problem in decision.unselected}
    for table, row in before.items():
        if table not in known and row.state is not TableState.DROPPED and decision.stop is None:
            pattern = next((rule.source for rule in rules if matches(rule.source, table)), "")
            reason, remedy = _dropped(pattern) if pattern else ("the YAML no longer names it", "")
            yield replace(row, state=TableState.DROPPED, since=decision.at, reason=reason, remedy=remedy)


def _dropped(pattern: str) -> tuple[str, str]:
    reason = f"the source has it no longer, or the connection may not see it; {pattern} of the YAML still names it"
    return reason, "nothing, where it was dropped; else grant access to it: the next run goes on with it"


def current_row(table: str, target: str, control: ControlRecord, before: TableRow | None, at: str) -> TableRow:
    """What stands in the target. A table that was failing stays so until it has moved."""
    state = control.state
    row = before or TableRow(table, target, state.name)
    moved = (row.window, row.fence) != (control.window, control.fence)
    other_data = control.window > row.passed or control.window < row.window
    failing = row.state is TableState.FAILING and state.name in TAKES_CHANGES and not moved
    return replace(
        row,
        target=target,
        state=TableState.FAILING if failing else state.name,
        since=row.since if failing else state.since,
        reason=row.reason if failing else reason_now(state),
        remedy=row.remedy if failing else state.remedy,
        failing_since=row.failing_since if failing else "",
        attempts=row.attempts if failing else 0,
        error=row.error if failing else "",
        window=control.window,
        fence=control.fence,
        passed=control.window if moved else max(row.passed, control.window),
        rows_current=row.rows_current and not other_data,
        seen_at=at,
        control=control,
    )


def blocked_row(row: TableRow, problem: Problem | None, at: str) -> TableRow:
    what = problem or Problem("TBL003", "blocked")
    since = row.since if row.state is TableState.BLOCKED and row.since else at
    return replace(
        row,
        state=TableState.BLOCKED,
        since=since,
        reason=what.what,
        remedy=what.do,
        error=str(what),
        failing_since="",
        attempts=0,
        seen_at=at,
    )


def failing_row(row: TableRow, problem: Problem, at: str) -> TableRow:
    return replace(
        row,
        state=TableState.FAILING,
        since=row.failing_since or at,
        reason=problem.what,
        remedy=problem.do,
        failing_since=row.failing_since or at,
        attempts=row.attempts + 1,
        error=str(problem),
        seen_at=at,
    )


def recovered_row(row: TableRow, at: str) -> TableRow:
    """The run ended well for a table that had been failing, though nothing of it had to be committed."""
    state = row.control.state if row.control else State(TableState.REPLICATING, at)
    return replace(
        row,
        state=state.name,
        since=at,
        reason=reason_now(state),
        remedy=state.remedy,
        failing_since="",
        attempts=0,
        error="",
    )


def reason_now(state: State) -> str:
    """How a table came to be replicated explains nothing of how it is."""
    return "" if state.name is TableState.REPLICATING else state.reason


def counted(row: TableRow, run_id: str, results: Iterable[TableResult], at: str) -> TableRow:
    """Rows of the last copy and changes applied since, by operation, from what the steps of a run said. Counting a run
    again changes nothing."""
    if row.counted_run == run_id:
        return row
    changes, rows, rows_at, current = dict(row.changes), row.rows, row.rows_at, row.rows_current
    for result in results:
        if result.outcome is not Outcome.DONE:
            continue
        if "read" in result.counts:
            changes, rows, rows_at, current = {}, result.rows, at, True
            continue
        for operation, count in result.counts.items():
            changes[operation] = changes.get(operation, 0) + count
            current = current and not count
    return replace(row, rows=rows, rows_at=rows_at, rows_current=current, changes=changes, counted_run=run_id)
