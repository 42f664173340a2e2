"""The end of a run: read the commits from the targets, update the index, acknowledge the source, clean up, finish
commands.

Progress is always read from the target tables; step results contribute only problems and counts. Every step can be
repeated after a crash.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta

from airflow_cdc_provider.connectors.source import KeepsNoState, SourceConnector
from airflow_cdc_provider.control.closing_rows import ClosingRows
from airflow_cdc_provider.control.column_comments import write_comments_of_copies
from airflow_cdc_provider.control.complete_commands import complete_commands
from airflow_cdc_provider.control.end_left_commands import end_left_commands
from airflow_cdc_provider.control.measure_retention import measure_retention
from airflow_cdc_provider.control.open_window import read_decision
from airflow_cdc_provider.control.publish_cut import publish_cut
from airflow_cdc_provider.control.replicator import LogInfo, Replicator
from airflow_cdc_provider.control.results import Failure, Results, read_results
from airflow_cdc_provider.control.retention import clean
from airflow_cdc_provider.control.run_metrics import RunEnd, run_samples
from airflow_cdc_provider.core.decisions.facts import LogFacts
from airflow_cdc_provider.core.decisions.freshness import freshness, lagging_since
from airflow_cdc_provider.core.decisions.run_decision import RunDecision, acknowledgeable
from airflow_cdc_provider.core.decisions.run_plan import RunPlan
from airflow_cdc_provider.core.decisions.steps import Outcome
from airflow_cdc_provider.core.decisions.table_decisions import TableAction
from airflow_cdc_provider.core.errors import UNREADABLE, Problem
from airflow_cdc_provider.core.failpoints import failpoint
from airflow_cdc_provider.core.metrics import Sample
from airflow_cdc_provider.core.proof.schedule import difference_problem
from airflow_cdc_provider.core.spec.definition import format_duration
from airflow_cdc_provider.core.table.copies import source_table
from airflow_cdc_provider.core.table.state_rows import Lane, TableRow
from airflow_cdc_provider.core.table.states import TAKES_CHANGES, WITHOUT_COPY, TableState
from airflow_cdc_provider.staging.whole_windows import WholeWindows

STREAM_STEPS = ("extract", "stage", "merge")


@dataclass(frozen=True)
class CloseResult:
    """``moved``: copies whose data changed in this run, name → target table; ``counts``: their rows by operation.
    ``problems``: why the run must fail.
    ``of_run``: those that are not of a table. ``samples``: metrics of the run."""

    rows: tuple[TableRow, ...] = ()
    moved: Mapping[str, str] = field(default_factory=dict)
    counts: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()
    of_run: tuple[Problem, ...] = ()
    acknowledged: int = 0
    samples: tuple[Sample, ...] = ()


def close_window(replicator: Replicator, run_id: str, failed: Sequence[str], log_info: LogInfo) -> CloseResult:
    """``failed``: the failed tasks of the run. Leases and claims are released in any case."""
    try:
        decision = read_decision(replicator, run_id)
        if decision is None:
            return _not_opened(run_id)
        if decision.outdated:
            stopped = (decision.stop,) if decision.stop else ()
            return CloseResult(problems=stopped, of_run=stopped)
        return _close(replicator, decision, failed, log_info)
    finally:
        for claim in replicator.state.claims(replicator.name):
            replicator.state.release_claim(replicator.name, claim.table, run_id)
        for lane in Lane:
            replicator.state.release(replicator.name, lane, run_id)


def _selected(decision: RunDecision, rows: Mapping[str, TableRow]) -> dict[str, TableRow]:
    """Those of the run, and copies that it could not take: the source does not list their table, or the YAML has an
    error in it."""
    tables = {task.table for task in decision.plan.tables}
    left_out = {
        table for table, row in rows.items() if row.state not in WITHOUT_COPY and decision.why_unselected(table)
    }
    return {table: rows[table] for table in sorted({*tables, *left_out}) if table in rows}


def _known_to(decision: RunDecision, rows: Mapping[str, TableRow]) -> dict[str, TableRow]:
    """The copied tables, and those that left with this run."""
    return {table: row for table, row in rows.items() if row.state not in WITHOUT_COPY or row.since >= decision.at}


def _close(replicator: Replicator, decision: RunDecision, failed: Sequence[str], log_info: LogInfo) -> CloseResult:
    plan, state, name = decision.plan, replicator.state, replicator.name
    at = state.now()
    results = read_results(replicator.run(plan.run_id), plan.opening, failed)
    before = state.tables(name)
    log = _log_facts(replicator, decision, before)
    planned = {task.table: task for task in plan.tables}
    failures = {**_problems_of_failed_steps(decision, results, failed), **results.problems(planned)}
    write_comments_of_copies(replicator, decision, failures, log_info)
    closing = ClosingRows(replicator, decision, results, failures, log, at)
    changed = results.committed()

    def rows_at_end(known: Mapping[str, TableRow]) -> Iterable[TableRow]:
        for task in plan.tables:
            last = known.get(task.table)
            if row := closing.row(task, last):
                if (last and last.changed) or (row.changed and not results.has_reported(row.table)):
                    changed.add(row.table)
                yield replace(closing.measured(row, last), changed=False)
        failpoint("state.before")

    rows = {row.table: row for row in state.change_tables(name, rows_at_end)}
    failpoint("state.after")

    acknowledged = 0
    if decision.stop is None and log.sealed and _all_cursors_known(decision, rows):
        if decision.lost is None:
            acknowledged = _acknowledge(replicator, decision, rows, log, at, log_info)
            measure_retention(replicator, log.hi, _read_at(rows.values(), log), at, log_info)
        clean(replicator, plan.run_id, [task.table for task in plan.tables], at, log_info)
    end_left_commands(replicator, decision, _known_to(decision, before))
    complete_commands(replicator, decision, _selected(decision, {**before, **rows}), results)
    for line in (*decision.notes, *_waiting_records(name, rows.values())):
        log_info(line)
    moved = {task.table: task.target for task in plan.tables if task.table in changed}
    if moved:
        _publish_cut(replicator, {**before, **rows}, log.sealed, log_info)
    current = [row for copy, row in {**before, **rows}.items() if replicator.targets.has(copy)]
    for line in _late_tables(current, replicator.definition.freshness, state.now()):
        log_info(line)
    of_run = tuple(problem for problem in (decision.stop, decision.lost) if problem)
    problems = (*of_run, *_problems(decision, list(rows.values()), failed, results))
    retried = state.retried(name, plan.run_id)
    end = RunEnd(plan.opening, before, rows, results, problems, retried, state.positions.get(name).retention, at)
    samples = run_samples(replicator.definition, end)
    counts = {copy: results.counts(copy) for copy in moved}
    return CloseResult(tuple(rows.values()), moved, counts, problems, of_run, acknowledged, samples)


def _read_at(rows: Iterable[TableRow], log: LogFacts) -> str:
    """The latest time at which a run has seen the source with nothing left to read; empty if that is unknown."""
    return max((lagging_since(row) for row in rows if row.passed >= log.sealed), default="")


def _waiting_records(name: str, rows: Iterable[TableRow]) -> Iterable[str]:
    for row in rows:
        carry = row.carry
        if carry.dirty:
            yield f"{row.table}: {carry.dirty} records wait to be fetched from the source; each run tries again"
        if carry.quarantined:
            yield (
                f"{row.table}: {carry.quarantined} records in quarantine, {carry.parked} parked behind them;"
                f" run `airflow cdc quarantine list {name}`"
            )


def _late_tables(rows: Iterable[TableRow], allowed: timedelta, now: str) -> Iterable[str]:
    for row in rows:
        fresh = freshness(row, allowed, now)
        if fresh.late:
            age = "has no copy yet" if fresh.lag_s is None else f"is {fresh.lag_s:,.0f} s behind its source"
            yield f"{row.table} is late: it {age}, freshness allows {format_duration(allowed)}"


def _publish_cut(replicator: Replicator, rows: Mapping[str, TableRow], sealed: int, log_info: LogInfo) -> None:
    """One for each target. A target that does not answer delays its cut by one run. Nothing else depends on it."""
    windows = WholeWindows(replicator.log)
    for target in replicator.targets:
        try:
            cut = publish_cut(replicator, target, rows.values(), sealed, windows)
        except UNREADABLE as error:
            log_info(f"no published cut: {error}")
            continue
        if cut:
            log_info(f"published a cut of {len(cut.tables)} tables at window {cut.window}")


def _log_facts(replicator: Replicator, decision: RunDecision, rows: Mapping[str, TableRow]) -> LogFacts:
    """The current log, with the manifests from the lowest cursor of a table that takes changes."""
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


def _all_cursors_known(decision: RunDecision, rows: Mapping[str, TableRow]) -> bool:
    """Nothing may be acknowledged or removed while a table's cursor is unknown."""
    unread = (verdict.table for verdict in decision.table_decisions if verdict.action is TableAction.FAILING)
    return all(table in rows and rows[table].control is not None for table in unread)


def _acknowledge(
    replicator: Replicator,
    decision: RunDecision,
    rows: Mapping[str, TableRow],
    log: LogFacts,
    at: str,
    log_info: LogInfo,
) -> int:
    """Acknowledge what every table in the stream has applied. A table that could not be read counts with its last known
    cursor. Another source than that of the run keeps its changes."""
    cursors = []
    for task in decision.plan.tables:
        row = rows.get(task.table)
        if row and row.control and row.control.log_id == log.log_id and row.state is not TableState.BLOCKED:
            pending = None if row.passed >= log.sealed else row.passed + 1
            cursors.append((row.control.state.name, row.control.window, pending))
    window = acknowledgeable(log.sealed, cursors)
    if manifest := log.manifests.get(window):
        if not _is_source_of(decision.plan, replicator.source):
            log_info("nothing was acknowledged: the connection leads to another source than at the start of the run")
            return 0
        replicator.source.acknowledge(manifest.hi)
        seen = {"window": log.sealed, "read": dict(log.hi), "confirmed": dict(manifest.hi), "confirmed_at": at}
        replicator.state.positions.update(replicator.name, **seen)
    return window


def _is_source_of(plan: RunPlan, source: SourceConnector) -> bool:
    return isinstance(source, KeepsNoState) or source.identity() == plan.source_identity


def _problems_of_failed_steps(decision: RunDecision, results: Results, failed: Sequence[str]) -> dict[str, Failure]:
    """A problem of a step that moves tables counts for each table that it should have moved; any other one is a problem
    of the run alone. It never blocks a table: a broken connection or cluster is no fault of the table."""
    plan = decision.plan
    planned = {task.table: task for task in plan.tables}
    moved = {"snapshot": plan.copy, "reconcile": plan.reconcile} | dict.fromkeys(STREAM_STEPS, plan.stream)
    return {
        table: Failure(Outcome.FAILING, results.step_problem(task_id), results.read_by(task_id, table, planned))
        for task_id in failed
        for table in moved.get(task_id.partition(".")[0], ())
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
            table=source_table(row.table),
        )
        for row in rows
        if row.state in (TableState.FAILING, TableState.BLOCKED)
    ]
    steps = [results.step_problem(task_id) for task_id in failed]
    due = {task.table for task in decision.plan.named(decision.plan.compare) if not task.rewritten}
    compared = [row for row in rows if row.table in due and not decision.plan.commands]
    differing = [difference_problem(decision.replicator, row.table, row.verified) for row in compared if row.verified]
    left = (one.left for one in decision.gone)
    return (*steps, *tables, *filter(None, (*differing, *left)), *decision.unselected)


def _not_opened(run_id: str) -> CloseResult:
    problem = Problem(
        "RUN001",
        "the run has no decision: open_window did not finish",
        where=f"run {run_id}",
        do="see the log of open_window",
        data="nothing was read, written or acknowledged",
    )
    return CloseResult(problems=(problem,), of_run=(problem,))
