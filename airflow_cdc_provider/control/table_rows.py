"""Rows of the table index: from the decision at the start of a run, and from the target's state at its end. Pure
functions."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from airflow_cdc_provider.core.decisions.listed_tables import GONE, GRANTED_AGAIN, NOT_DROPPED, GoneTable, NewTable
from airflow_cdc_provider.core.decisions.run_decision import RunDecision
from airflow_cdc_provider.core.decisions.steps import Outcome, TableResult, TableTask
from airflow_cdc_provider.core.decisions.table_decisions import STOPPED, TableAction, TableDecision
from airflow_cdc_provider.core.errors import Problem
from airflow_cdc_provider.core.log.change_records import Operation
from airflow_cdc_provider.core.spec.table_policy import OnDroppedTable
from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.core.table.source_names import in_shell
from airflow_cdc_provider.core.table.state_rows import TableRow
from airflow_cdc_provider.core.table.states import TAKES_CHANGES, State, TableState

COPY_DROPPED = "the source dropped it, and its copy was dropped, too"


def opening_rows(decision: RunDecision, read: Collection[str], before: Mapping[str, TableRow]) -> Iterable[TableRow]:
    """The rows at the start of a run: new tables, copies that start, and blocked tables. ``read``: the tables whose
    control record was read from the target; the others keep their ``seen_at``."""
    tasks = {task.table: task for task in decision.plan.tables}
    before = {table: _without_question(row) if table in tasks else row for table, row in before.items()}
    for verdict in decision.table_decisions:
        task, row = tasks[verdict.table], before.get(verdict.table)
        if task.control is not None:
            seen_at = row.seen_at if row and task.table not in read else decision.at
            row = current_row(task.table, task.target, task.control, row, seen_at)
            row = replace(row, withheld=task.withheld)
            yield blocked_row(row, verdict.problem, decision.at) if verdict.action is TableAction.BLOCKED else row
        elif verdict.action is TableAction.COPYING:
            continue
        elif verdict.action is TableAction.BLOCKED:
            fresh = row or TableRow(task.table, task.target, TableState.PENDING, decision.at)
            yield blocked_row(fresh, verdict.problem, decision.at)
        else:
            yield _row_without_copy(decision, verdict, task, row)
    for new in decision.new:
        yield _new_row(new, before.get(new.table), decision.at)
    if decision.stop is None:
        yield from _unlisted_rows(decision, {*tasks, *(new.table for new in decision.new)}, before)


def _without_question(row: TableRow) -> TableRow:
    """Of a new table, which is copied now."""
    return replace(row, question=None)


def _row_without_copy(decision: RunDecision, verdict: TableDecision, task: TableTask, row: TableRow | None) -> TableRow:
    paused = verdict.action is TableAction.PAUSED
    state = TableState.SNAPSHOTTING if task.table in decision.plan.copy else TableState.PENDING
    state = TableState.PAUSED if paused else state
    remedy = f"airflow cdc resume {decision.replicator} --table {in_shell(task.table)}" if paused else ""
    fresh = TableRow(task.table, task.target, state, decision.at, verdict.reason, remedy, seen_at=decision.at)
    if row is None:
        return fresh
    if paused or row.state in (TableState.PAUSED, TableState.BLOCKED):
        since = row.since if row.state is state else decision.at
        row = replace(row, since=since, reason=verdict.reason, remedy=remedy, error="")
    return replace(row, state=state, control=None, seen_at=decision.at)


def _new_row(new: NewTable, before: TableRow | None, at: str) -> TableRow:
    since = before.since if before and before.state is TableState.NEW else at
    row = TableRow(new.table, new.target, TableState.NEW, since, new.reason, seen_at=at, question=new.question)
    return replace(row, remedy="" if new.question else new.remedy)


def _unlisted_rows(
    decision: RunDecision, listed: Collection[str], before: Mapping[str, TableRow]
) -> Iterable[TableRow]:
    """Tables that the source no longer lists, or the YAML no longer selects."""
    gone = {one.table: one for one in decision.gone}
    for table, row in before.items():
        if table in listed or row.state is TableState.DROPPED:
            continue
        one, problem = gone.get(table), decision.why_unselected(table)
        if one and one.outcome:
            yield dropped_row(row, one.outcome, "", decision.at)
        elif problem:
            if problem.code == GONE:
                yield blocked_row(row, problem, decision.at)
        elif one is None:
            yield dropped_row(row, "the YAML no longer selects it", "", decision.at)
        elif one.left:
            yield (failing_row if one.left.code == NOT_DROPPED else blocked_row)(row, one.left, decision.at)
        elif one.policy is not OnDroppedTable.DROP:  # else a later run drops its copy
            yield dropped_row(row, *_unlisted_reason(one), decision.at)


def dropped_row(row: TableRow, reason: str, remedy: str, at: str) -> TableRow:
    return replace(
        row,
        state=TableState.DROPPED,
        since=at,
        reason=reason,
        remedy=remedy,
        failing_since="",
        attempts=0,
        error="",
        question=None,
        verified=replace(row.verified, question=None) if row.verified else None,
    )


def _unlisted_reason(gone: GoneTable) -> tuple[str, str]:
    reason = f"the source no longer lists it: it was dropped, or access was revoked; `{gone.rule}` still selects it"
    return reason, f"if access was revoked, {GRANTED_AGAIN}. If it was dropped, nothing to do"


def current_row(table: str, target: str, control: ControlRecord, before: TableRow | None, at: str) -> TableRow:
    """The row for the target's state. A failing table stays failing until it has a new commit."""
    state = control.state
    row = before or TableRow(table, target, state.name)
    moved = (row.window, row.fence) != (control.window, control.fence)
    data_changed = control.window > row.passed or control.window < row.window
    failing = row.state is TableState.FAILING and state.name in TAKES_CHANGES and not moved
    still_blocked = row.state is state.name is TableState.BLOCKED and row.reason == displayed_reason(state)
    return replace(
        row,
        target=target,
        state=TableState.FAILING if failing else state.name,
        since=row.since if failing else state.since,
        reason=row.reason if failing else displayed_reason(state),
        remedy=row.remedy if failing else state.remedy,
        failing_since=row.failing_since if failing else "",
        attempts=row.attempts if failing else 0,
        error=row.error if failing or still_blocked else "",
        window=control.window,
        fence=control.fence,
        passed=control.window if moved else max(row.passed, control.window),
        rows_current=row.rows_current and not data_changed,
        changed=row.changed or (before is not None and (data_changed or before.control is None)),
        seen_at=at,
        control=control,
    )


def blocked_row(row: TableRow, problem: Problem | None, at: str) -> TableRow:
    """A problem that only repeats a stored state lacks what was found when the table was blocked: the row has it."""
    shown = problem or Problem("TBL003", "blocked")
    known = row.state is TableState.BLOCKED and row.reason == shown.what and shown.code == STOPPED
    since = row.since if row.state is TableState.BLOCKED and row.since else at
    return replace(
        row,
        state=TableState.BLOCKED,
        since=since,
        reason=shown.what,
        remedy=shown.do,
        error=(known and row.error) or str(shown),
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
    """For a failing table whose run succeeded without a commit."""
    state = row.control.state if row.control else State(TableState.REPLICATING, at)
    return replace(
        row,
        state=state.name,
        since=at,
        reason=displayed_reason(state),
        remedy=state.remedy,
        failing_since="",
        attempts=0,
        error="",
    )


def displayed_reason(state: State) -> str:
    """A replicating table shows no reason: that of its last state change does not apply any more."""
    return "" if state.name is TableState.REPLICATING else state.reason


def with_counts(row: TableRow, opening: str, results: Iterable[TableResult], at: str) -> TableRow:
    """With the rows of the last copy, the changes applied since, by operation, and the engine of the last commit, from
    the run's step results. The same opening of a run is counted once."""
    if row.counted_opening == opening:
        return row
    changes, rows, rows_at, current, engine = dict(row.changes), row.rows, row.rows_at, row.rows_current, row.engine
    for result in results:
        if result.outcome is not Outcome.DONE:
            continue
        engine = str(result.engine) if result.engine else engine
        current = current and not result.found
        if Operation.READ in result.counts:
            changes = {}
            rows, rows_at, current = (rows, rows_at, False) if result.found else (result.rows, at, True)
            continue
        for operation, count in result.counts.items():
            changes[operation] = changes.get(operation, 0) + count
            current = current and not count
    row = replace(row, engine=engine, counted_opening=opening)
    return replace(row, rows=rows, rows_at=rows_at, rows_current=current, changes=changes)
