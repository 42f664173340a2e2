"""The end of a run: prove from the targets what moved, write it down, let the source forget, clean up, end requests.

Everything said here is read back from the target tables; what the steps said only names the trouble. Dies anywhere: a
retry does the same again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta

from airflow_cdc_provider.connectors.source import DelaysCapture
from airflow_cdc_provider.control.complete_commands import complete_commands
from airflow_cdc_provider.control.fences import commit_fence
from airflow_cdc_provider.control.open_window import decision_of
from airflow_cdc_provider.control.publish_cut import publish_cut
from airflow_cdc_provider.control.replicator import Replicator, utc_now
from airflow_cdc_provider.control.results import Results, results_of
from airflow_cdc_provider.control.retention import TableProgress, clean
from airflow_cdc_provider.control.table_rows import blocked_row, counted, current_row, failing_row, recovered_row
from airflow_cdc_provider.core.decisions.facts import LogFacts
from airflow_cdc_provider.core.decisions.freshness import Freshness, freshness
from airflow_cdc_provider.core.decisions.run_decision import RunDecision, acknowledgeable, effective_window
from airflow_cdc_provider.core.decisions.steps import Outcome, TableTask
from airflow_cdc_provider.core.decisions.table_decisions import TableAction, first_hole, first_pending_window
from airflow_cdc_provider.core.errors import Fenced, Problem, Retryable
from airflow_cdc_provider.core.failpoints import failpoint
from airflow_cdc_provider.core.log.carry_over import NOTHING
from airflow_cdc_provider.core.log.change_log import Manifest
from airflow_cdc_provider.core.spec.definition import format_duration
from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.core.table.state_rows import Lane, TableRow
from airflow_cdc_provider.core.table.states import TAKES_CHANGES, State, TableState
from airflow_cdc_provider.core.times import parse_utc
from airflow_cdc_provider.targets.target import TargetState

Log = Callable[[str], None]


@dataclass(frozen=True)
class CloseResult:
    """``moved``: target tables whose data changed in this run. ``problems``: why the run must not be green. ``phases``:
    seconds per step and phase. ``fresh``: by source table, how old its copy is now, and whether that is late."""

    rows: tuple[TableRow, ...] = ()
    moved: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()
    acknowledged: int = 0
    phases: Mapping[str, dict[str, float]] = field(default_factory=dict)
    fresh: Mapping[str, Freshness] = field(default_factory=dict)


def close_window(replicator: Replicator, run_id: str, failed: Sequence[str], tell: Log) -> CloseResult:
    """``failed`` are the tasks of the run that failed. Leases and claims are given back whatever happens."""
    try:
        decision = decision_of(replicator, run_id)
        if decision is None:
            return CloseResult(problems=(_not_opened(run_id),))
        return _close(replicator, decision, failed, tell)
    finally:
        for claim in replicator.state.claims(replicator.name):
            replicator.state.release_claim(replicator.name, claim.table, run_id)
        for lane in Lane:
            replicator.state.release(replicator.name, lane, run_id)


def _close(replicator: Replicator, decision: RunDecision, failed: Sequence[str], tell: Log) -> CloseResult:
    plan, at, state, name = decision.plan, utc_now(), replicator.state, replicator.name
    results = results_of(replicator.run(plan.run_id))
    before = state.tables(name)
    log = _log(replicator, decision, before)
    table_problems = {**_failed_steps(decision, results, failed), **results.problems()}

    def standing(known: Mapping[str, TableRow]) -> Iterable[TableRow]:
        for task in plan.tables:
            problem = table_problems.get(task.table)
            row = _row(replicator, decision, task, known.get(task.table), results, problem, log, at)
            if row is not None:
                yield row
        failpoint("state.before")

    rows = {row.table: row for row in state.change_tables(name, standing)}
    failpoint("state.after")

    acknowledged = 0
    if decision.stop is None and log.sealed and _all_known(decision, rows):
        if decision.lost is None:
            acknowledged = _acknowledge(replicator, decision, rows, log)
        clean(replicator, plan.run_id, _stands(plan.tables, rows, log), at, tell)
    complete_commands(replicator, decision, rows, results)
    for line in (*decision.notes, *_waiting(replicator.name, rows.values())):
        tell(line)
    moved = tuple(task.target for task in plan.tables if task.table in results.committed())
    if moved:
        _publish(replicator, {**before, **rows}, log.sealed, tell)
    allowed, now = replicator.definition.freshness, utc_now()
    fresh = {table: freshness(row, allowed, now) for table, row in {**before, **rows}.items()}
    for table, one in fresh.items():
        if one.late:
            age = "has no copy yet" if one.lag_s is None else f"is {one.lag_s:,.0f} s behind its source"
            tell(f"{table} is late: it {age}, and freshness allows {format_duration(allowed)}")
    problems = _problems(decision, rows.values(), failed, results)
    return CloseResult(tuple(rows.values()), moved, problems, acknowledged, results.phases(), fresh)


def _waiting(name: str, rows: Iterable[TableRow]) -> Iterable[str]:
    for row in rows:
        carry = row.control.carry if row.control else NOTHING
        if carry.dirty:
            yield f"{row.table}: {carry.dirty} records wait until the source tells their rows; each run asks again"
        if carry.quarantined:
            yield (
                f"{row.table}: {carry.quarantined} records in quarantine, {carry.parked} parked behind them:"
                f" airflow cdc quarantine list {name}"
            )


def _publish(replicator: Replicator, rows: Mapping[str, TableRow], sealed: int, tell: Log) -> None:
    """Readers of several tables wait a run longer where the target does not answer now; nothing else depends on it."""
    try:
        cut = publish_cut(replicator, rows.values(), sealed)
    except Retryable as error:
        tell(f"no cut is published: {error}")
        return
    if cut:
        tell(f"{len(cut.tables)} tables can be read together at window {cut.window}")


def _row(
    replicator: Replicator,
    decision: RunDecision,
    task: TableTask,
    before: TableRow | None,
    results: Results,
    trouble: tuple[Outcome, Problem] | None,
    log: LogFacts,
    at: str,
) -> TableRow | None:
    """The table as it stands now. None where it stands outside this run: another run copies it."""
    verdict = next(verdict for verdict in decision.table_decisions if verdict.table == task.table)
    if verdict.action is TableAction.COPYING:
        return None
    planned = (*decision.plan.copy, *decision.plan.reconcile)
    touched = trouble is not None or task.table in planned or results.touched(task.table)
    try:
        held = replicator.target.state(task.table, task.target) if touched else None
    except Retryable as error:
        return failing_row(before or _first_row(task, before, at), error.problems[0], at)
    control = held.control if held else _newer(task.control, before)
    if trouble and trouble[0] is Outcome.BLOCKED and held and control and control.state.name in _BLOCKABLE:
        control = _block(replicator, decision, task, held, trouble[1], at) or control
    seen_at = at if held or before is None else before.seen_at
    row = (
        _first_row(task, before, at)
        if control is None
        else current_row(task.table, task.target, control, before, seen_at)
    )
    row = counted(row, decision.plan.run_id, results.writing(task.table), at)
    if held and held.exists and not row.rows_current:
        row = _recounted(replicator, row, held, at)
    if unproved := results.unproved(task.table, control):
        return blocked_row(row, unproved, at)
    if trouble:
        worse = blocked_row if trouble[0] is Outcome.BLOCKED else failing_row
        return worse(row, trouble[1], at)
    if verdict.action is TableAction.FAILING and verdict.problem:
        return failing_row(row, verdict.problem, at)
    if verdict.action is TableAction.BLOCKED and (control is None or control.state.name is not TableState.PAUSED):
        return blocked_row(row, verdict.problem, at)
    if control is None:
        return row
    return _standing(row, control, touched, log, decision, results, at, _asked_up_to(replicator, decision))


def _recounted(replicator: Replicator, row: TableRow, held: TargetState, at: str) -> TableRow:
    """What a table holds now, where its target can tell."""
    try:
        rows = replicator.target.row_count(row.target, held)
    except Retryable:
        return row
    return row if rows is None else replace(row, rows=rows, rows_at=at, rows_current=True)


_BLOCKABLE = TAKES_CHANGES | {TableState.RESYNCING}


def _newer(control: ControlRecord | None, row: TableRow | None) -> ControlRecord | None:
    """Of what the run began with and what the index saw since (a pause by the command line), the later."""
    seen = row.control if row else None
    return seen if seen and (control is None or seen.token > control.token) else control


def _standing(
    row: TableRow,
    control: ControlRecord,
    touched: bool,
    log: LogFacts,
    decision: RunDecision,
    results: Results,
    at: str,
    asked_up_to: str,
) -> TableRow:
    """No trouble: how far the table has come, and up to when it is like the source."""
    if control.state.name not in TAKES_CHANGES or control.log_id != log.log_id:
        return row
    if hole := first_hole(log, control):
        problem = Problem("LOG004", f"the change log has a hole for {row.table} ({hole.kind})", found=hole.detail)
        problem = replace(problem, where=row.table, do=f"airflow cdc resync {decision.replicator} --table {row.table}")
        return blocked_row(row, problem, at)
    behind = first_pending_window(log, control)
    passed = max(row.passed, effective_window(log.sealed, control.window, behind))
    row = replace(row, passed=passed, fresh_at=_fresh_at(row, passed, log, asked_up_to, results))
    return recovered_row(row, at) if row.state is TableState.FAILING and (touched or behind is None) else row


def _asked_up_to(replicator: Replicator, decision: RunDecision) -> str:
    """When the source was asked, or as much earlier as it is read behind that."""
    behind = replicator.source.capture_delay() if isinstance(replicator.source, DelaysCapture) else timedelta()
    return (parse_utc(decision.at) - behind).isoformat(timespec="milliseconds")


def _fresh_at(row: TableRow, passed: int, log: LogFacts, asked_up_to: str, results: Results) -> str:
    """The moment up to which the source was asked, where the table has everything up to what it answered; else the last
    commit of what was applied."""
    if passed < log.sealed:
        manifest = log.manifests.get(passed)
        return max(row.fresh_at, manifest.commit_ts_max or "") if manifest else row.fresh_at
    last: Manifest | None = log.manifests.get(log.sealed)
    if results.landed_all or last is None or last.commit_ts_max is None:
        return max(row.fresh_at, asked_up_to)
    return max(row.fresh_at, last.commit_ts_max)


def _first_row(task: TableTask, before: TableRow | None, at: str) -> TableRow:
    row = before or TableRow(task.table, task.target, TableState.PENDING, at)
    state = TableState.PENDING if row.state is TableState.SNAPSHOTTING else row.state
    return replace(row, state=state, control=None, seen_at=at)


def _block(
    replicator: Replicator, decision: RunDecision, task: TableTask, held: TargetState, problem: Problem, at: str
) -> ControlRecord | None:
    """Write into the target that no retry helps, so that no run tries. Quiet where somebody newer was faster."""
    state = State(TableState.BLOCKED, at, problem.what, problem.do, set_by=decision.plan.run_id)
    try:
        return commit_fence(replicator, task.table, task.target, held, decision.plan.run_id, state)
    except Fenced:
        return None


def _log(replicator: Replicator, decision: RunDecision, rows: Mapping[str, TableRow]) -> LogFacts:
    """The log as it is now, with the manifests behind the lowest cursor that still moves."""
    log, plan = replicator.log, decision.plan
    lowest = plan.sealed
    for task in plan.tables:
        control, row = task.control, rows.get(task.table)
        if control and control.state.name in TAKES_CHANGES and control.log_id == plan.log_id:
            known = row.passed if row and (row.window, row.fence) == (control.window, control.fence) else 0
            lowest = min(lowest, max(control.window, known))
    manifests = {manifest.window: manifest for manifest in log.manifests(lowest)}
    if not manifests:
        return LogFacts(plan.log_id)
    last = manifests[max(manifests)]
    return LogFacts(plan.log_id, log.oldest(), last.window, last.epoch, last.hi, manifests)


def _all_known(decision: RunDecision, rows: Mapping[str, TableRow]) -> bool:
    """Nothing is forgotten or removed while it is unknown where a table stands."""
    unread = (verdict.table for verdict in decision.table_decisions if verdict.action is TableAction.FAILING)
    return all(table in rows and rows[table].control is not None for table in unread)


def _acknowledge(replicator: Replicator, decision: RunDecision, rows: Mapping[str, TableRow], log: LogFacts) -> int:
    """Let the source forget what every moving table has applied. A table that could not be read holds it back at what
    was last known of it."""
    stands = []
    for task in decision.plan.tables:
        row = rows.get(task.table)
        if row and row.control and row.control.log_id == log.log_id and row.state is not TableState.BLOCKED:
            behind = None if row.passed >= log.sealed else row.passed + 1
            stands.append((row.control.state.name, row.control.window, behind))
    window = acknowledgeable(log.sealed, stands)
    if manifest := log.manifests.get(window):
        replicator.source.acknowledge(manifest.hi)
    return window


def _stands(tasks: Iterable[TableTask], rows: Mapping[str, TableRow], log: LogFacts) -> list[TableProgress]:
    stands = []
    for task in tasks:
        row = rows.get(task.table)
        if row is None or row.control is None or row.control.log_id != log.log_id:
            continue
        quiet = row.passed > row.control.window and row.control.state.name in TAKES_CHANGES
        stands.append(
            TableProgress(task.table, task.target, max(row.passed, row.window), row.control if quiet else None)
        )
    return stands


def _failed_steps(decision: RunDecision, results: Results, failed: Sequence[str]) -> dict[str, tuple[Outcome, Problem]]:
    """Trouble of a step as a whole is the trouble of every table it was for. No table is blocked for it: what is wrong
    with a connection or a cluster is not wrong with the table."""
    plan = decision.plan
    of = {"snapshot": plan.copy, "reconcile": plan.reconcile, "find_holes": ()}
    return {
        table: (Outcome.FAILING, results.of_step(task_id))
        for task_id in failed
        for table in of.get(task_id.partition(".")[0], plan.stream)
    }


def _problems(
    decision: RunDecision, rows: Iterable[TableRow], failed: Sequence[str], results: Results
) -> tuple[Problem, ...]:
    tables = [
        Problem(
            "RUN002" if row.state is TableState.FAILING else "RUN003",
            f"{row.table} is {row.state}: {row.reason}",
            where=row.table,
            found=row.error.removesuffix(f" | do: {row.remedy}"),
            do=row.remedy,
        )
        for row in rows
        if row.state in (TableState.FAILING, TableState.BLOCKED)
    ]
    steps = [results.of_step(task_id) for task_id in failed]
    whole = [problem for problem in (decision.stop, decision.lost) if problem]
    return (*whole, *steps, *tables, *decision.unselected)


def _not_opened(run_id: str) -> Problem:
    return Problem(
        "RUN001",
        "this run was not opened",
        where=f"run {run_id}",
        do="see the log of open_window",
        data="nothing was read, written or acknowledged",
    )
