"""The row of a table in the index at the end of a run: by its commit in the target, the results of the steps, and the
change log."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cached_property

from airflow_cdc_provider.connectors.source_features import DelaysCapture, HearsWriter
from airflow_cdc_provider.control.fences import commit_fence
from airflow_cdc_provider.control.first_copies import block_copy
from airflow_cdc_provider.control.measured_rows import measured_row
from airflow_cdc_provider.control.quarantine import open_cases
from airflow_cdc_provider.control.replicator import Replicator
from airflow_cdc_provider.control.results import Failure, Results
from airflow_cdc_provider.control.table_rows import blocked_row, current_row, failing_row, recovered_row, with_counts
from airflow_cdc_provider.core.decisions.facts import LogFacts
from airflow_cdc_provider.core.decisions.freshness import with_fresh_at
from airflow_cdc_provider.core.decisions.holes import first_hole, first_pending_window
from airflow_cdc_provider.core.decisions.run_decision import RunDecision, effective_window
from airflow_cdc_provider.core.decisions.steps import Outcome, TableTask
from airflow_cdc_provider.core.decisions.table_checks import repair_line
from airflow_cdc_provider.core.decisions.table_decisions import TableAction
from airflow_cdc_provider.core.errors import UNREADABLE, Fenced, ForeignTarget, Problem
from airflow_cdc_provider.core.log.change_log import REQUESTED
from airflow_cdc_provider.core.log.quarantine import STOPPING
from airflow_cdc_provider.core.proof.schedule import verified_row
from airflow_cdc_provider.core.spec.definition import format_duration
from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.core.table.source_names import in_shell
from airflow_cdc_provider.core.table.state_rows import TableRow
from airflow_cdc_provider.core.table.states import TAKES_CHANGES, State, TableState
from airflow_cdc_provider.core.table.verified import Verified
from airflow_cdc_provider.core.times import parse_utc, utc_text
from airflow_cdc_provider.targets.target import TargetState

BLOCKABLE_STATES = TAKES_CHANGES | {TableState.RESYNCING}


@dataclass(frozen=True)
class ClosingRows:
    """``failures``: the problems of the run's steps by table. ``at``: when the run ends."""

    replicator: Replicator
    decision: RunDecision
    results: Results
    failures: Mapping[str, Failure]
    log: LogFacts
    at: str

    def row(self, task: TableTask, before: TableRow | None) -> TableRow | None:
        """The table after this run. None if another run copies it."""
        verdict = next(verdict for verdict in self.decision.table_decisions if verdict.table == task.table)
        if verdict.action is TableAction.COPYING:
            return None
        failure = self.failures.get(task.table)
        planned = (*self.decision.plan.copy, *self.decision.plan.reconcile)
        fence = task.control.fence if task.control else None
        touched = task.table in planned or self.results.touched(task.table, fence)
        try:
            current = self.replicator.targets.state(task.table, task.target) if touched or failure else None
        except UNREADABLE as error:
            return failing_row(before or _first_row(task, before, self.at), error.problems[0], self.at)
        control = current.control if current else _newer(task.control, before)
        if failure and self.results.is_history(failure.read, control):
            failure = None
        outcome, problem = (failure.outcome, failure.problem) if failure else (None, None)
        can_stop = control is not None or task.table in self.decision.plan.copy
        if problem and outcome is Outcome.FAILING and can_stop and (limit := self._exceeded_limit(before)):
            outcome, problem = Outcome.BLOCKED, _given_up(problem, limit)
        if problem and outcome is Outcome.BLOCKED and can_stop and current:
            problem = _with_resume(problem, self.decision.replicator, task.table)
            control = self._block(task, current, control, problem)
        seen_at = self.at if current or before is None else before.seen_at
        row = (
            _first_row(task, before, self.at)
            if control is None
            else current_row(task.table, task.target, control, before, seen_at)
        )
        row = replace(row, verified=self._verified(task.table, row))
        row = with_counts(row, self.decision.plan.opening, self.results.of_writing_steps(task.table), self.at)
        if current and current.exists and not row.rows_current:
            row = self._with_row_count(row, current)
        if missing := self.results.missing_commit(task.table, control):
            return blocked_row(row, missing, self.at)
        if problem:
            make_row = blocked_row if outcome is Outcome.BLOCKED else failing_row
            return make_row(row, problem, self.at)
        if task.control is None or not self.results.is_history(task.control, control):
            if verdict.action is TableAction.FAILING and verdict.problem:
                return failing_row(row, verdict.problem, self.at)
            if verdict.action is TableAction.BLOCKED and (
                control is None or control.state.name is not TableState.PAUSED
            ):
                return blocked_row(row, verdict.problem, self.at)
        return row if control is None else self._progressed_row(task, row, control, touched)

    def _exceeded_limit(self, before: TableRow | None) -> timedelta | None:
        """``retry_for``, if the table has failed for longer."""
        limit, since = self.replicator.definition.retry_for, before.failing_since if before else ""
        return limit if limit and since and parse_utc(self.at) - parse_utc(since) > limit else None

    def measured(self, row: TableRow, before: TableRow | None) -> TableRow:
        results, allowed = self.results.of_table(row.table), self.replicator.definition.freshness
        return measured_row(row, before, results, self._log_after(row.passed), allowed, self.at)

    def _verified(self, table: str, row: TableRow) -> Verified | None:
        result = self.results.comparison(table) if table in self.decision.plan.compare else None
        return verified_row(self.replicator.definition.verify, result, row.verified, self.decision.at)

    def _block(
        self, task: TableTask, current: TargetState, control: ControlRecord | None, problem: Problem
    ) -> ControlRecord | None:
        """Commit the state ``blocked``, so that no later run retries: to the target, or for a first copy to staging.
        Returns the record that the target has then."""
        run_id = self.decision.plan.run_id
        question = self.results.question(task.table)
        state = State(TableState.BLOCKED, self.at, problem.what, problem.do, set_by=run_id, question=question)
        if control is None:
            block_copy(self.replicator, task, state)
            return None
        if control.state.name not in BLOCKABLE_STATES:
            return control
        if problem.code in STOPPING:
            cases = open_cases(self.replicator.log, task.table, control, ())
            state = replace(state, bad_records=sum(case.blocks_table for case in cases))
        try:
            return commit_fence(self.replicator, task.table, task.target, current, run_id, state)
        except (Fenced, ForeignTarget):
            return control

    def _with_row_count(self, row: TableRow, current: TargetState) -> TableRow:
        """With the row count of the target table, if the target can provide it."""
        try:
            rows = self.replicator.targets.of(row.table).row_count(row.target, current)
        except UNREADABLE:
            return row
        return row if rows is None else replace(row, rows=rows, rows_at=self.at, rows_current=True)

    def _progressed_row(self, task: TableTask, row: TableRow, control: ControlRecord, touched: bool) -> TableRow:
        """For a table without problems: the window it has passed, and the time up to which it equals the source. A hole
        that needs no operator is left to the next run."""
        if control.state.name not in TAKES_CHANGES or control.log_id != self.log.log_id:
            return row
        log = self._log_after(control.window)
        if hole := first_hole(log, control):
            if hole.kind in REQUESTED:
                return row
            what = f"the change log has a hole for {row.table} ({hole.cause})"
            do = repair_line(self.decision.replicator, row.table, task.rule)
            return blocked_row(row, Problem("LOG004", what, where=row.table, found=hole.detail, do=do), self.at)
        pending = first_pending_window(log, control)
        passed = max(row.passed, effective_window(log.sealed, control.window, pending))
        row = replace(row, passed=passed)
        if fresh_at := self._fresh_at(task.source_table, passed):
            row = with_fresh_at(row, fresh_at, self._clock_ahead_s, self.at)
        recovered = row.state is TableState.FAILING and (touched or pending is None)
        return recovered_row(row, self.at) if recovered else row

    def _log_after(self, window: int) -> LogFacts:
        """The log with all windows after this one: the cursor of a copy may be before every cursor that the run has
        known."""
        return self.log if window + 1 >= min(self.log.manifests, default=0) else self._whole_log

    @cached_property
    def _whole_log(self) -> LogFacts:
        read = {manifest.window: manifest for manifest in self.replicator.log.manifests(1)}
        return replace(self.log, manifests={**read, **self.log.manifests})

    def _fresh_at(self, source_table: str, passed: int) -> str:
        """When the run has seen the source, if the table has everything up to then; else the time of the last commit
        that it has applied. Empty if that is unknown."""
        manifest = self.log.manifests.get(min(passed, self.log.sealed))
        part = manifest.tables.get(source_table) if manifest else None
        if passed < self.log.sealed or self._unread or (part and part.cut):
            return manifest.commit_ts_max or "" if manifest else ""
        return self._seen_at

    @property
    def _unread(self) -> bool:
        """Whether the source had changes that the run was not to read, or did not read."""
        plan = self.decision.plan
        reading = "extract" if plan.extract else "verify" if plan.compare else ""
        return self.decision.unread or (bool(reading) and not self.results.has_ended(reading))

    @cached_property
    def _clock_ahead_s(self) -> float:
        """Of the source; 0 if it shows no clock."""
        if not self.decision.source_at:
            return 0.0
        return (parse_utc(self.decision.source_at) - parse_utc(self.decision.at)).total_seconds()

    @cached_property
    def _seen_at(self) -> str:
        """When the run read the source's status, by the source's clock, less its capture delay; the last sign of its
        writer if this has fallen silent; empty if it cannot be asked about it."""
        source = self.replicator.source
        delay = source.capture_delay() if isinstance(source, DelaysCapture) else timedelta()
        seen = parse_utc(self.decision.source_at or self.decision.at) - delay
        if isinstance(source, HearsWriter):
            try:
                seen = min(seen, source.silent_since() or seen)
            except UNREADABLE:
                return ""
        return utc_text(seen)


def _given_up(problem: Problem, limit: timedelta) -> Problem:
    what = f"{problem.what}; it has failed for longer than the {format_duration(limit)} of `retry_for`"
    return replace(problem, what=what)


def _with_resume(problem: Problem, replicator: str, table: str) -> Problem:
    """With the command that lets the table go on, unless its remedy names one."""
    if "airflow cdc " in problem.do:
        return problem
    resume = f"airflow cdc resume {replicator} --table {in_shell(table)}"
    return replace(problem, do=f"{problem.do}; then {resume}" if problem.do else resume)


def _newer(control: ControlRecord | None, row: TableRow | None) -> ControlRecord | None:
    """The newer of the run's control record and that of the index, which a pause on the command line may have changed
    since."""
    indexed = row.control if row else None
    return indexed if indexed and (control is None or indexed.token > control.token) else control


def _first_row(task: TableTask, before: TableRow | None, at: str) -> TableRow:
    row = before or TableRow(task.table, task.target, TableState.PENDING, at)
    state = TableState.PENDING if row.state is TableState.SNAPSHOTTING else row.state
    return replace(row, state=state, control=None, seen_at=at)
