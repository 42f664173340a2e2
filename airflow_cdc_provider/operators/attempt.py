"""One attempt at a Spark step, from the run plan to the job's result.

Several attempts may run at once, because a killed task leaves its driver running. Before it submits a job, an attempt
therefore takes the result of an earlier attempt if it is still valid, kills the earlier drivers on this worker, and
fences the target tables of the others. A submission is recorded before it happens, and closed once its driver has
ended.
"""

from __future__ import annotations

import logging
import uuid
from dataclasses import replace

from airflow.sdk.exceptions import AirflowSkipException

from airflow_cdc_provider.control.replicator import open_replicator
from airflow_cdc_provider.control.replicator_changes import require_unchanged
from airflow_cdc_provider.core.decisions.attempts import SEALING, Submission, result_is_current
from airflow_cdc_provider.core.decisions.replicator_changes import left_out_of_window
from airflow_cdc_provider.core.decisions.run_plan import RunPlan
from airflow_cdc_provider.core.decisions.spark_application import TaskAttempt
from airflow_cdc_provider.core.decisions.steps import Outcome, Step, StepKind, StepResult, TableResult
from airflow_cdc_provider.core.errors import Blocked, CdcError, Fenced, Problem, StepFailed
from airflow_cdc_provider.core.failpoints import failpoint
from airflow_cdc_provider.core.spec.definition import Definition
from airflow_cdc_provider.core.table.state_rows import AttemptRow
from airflow_cdc_provider.core.times import utc_now
from airflow_cdc_provider.hooks import drivers, secrets
from airflow_cdc_provider.hooks.connections import secrets_of
from airflow_cdc_provider.hooks.spark import SparkJob, submission
from airflow_cdc_provider.operators.lease import RenewedLease, lane_of
from airflow_cdc_provider.operators.stale_attempts import end_stale_attempts, raise_fences
from airflow_cdc_provider.operators.step_inputs import (
    applicable,
    find_committed,
    planned_step,
    with_tables,
    with_target_state,
)
from airflow_cdc_provider.staging.run_files import StepFolder
from airflow_cdc_provider.state.store import StateStore

log = logging.getLogger(__name__)


class Attempt:
    """``folder`` is None until a job is submitted or an earlier result is taken."""

    def __init__(
        self, kind: StepKind, definition: Definition, run_id: str, task_id: str, try_number: int, state: StateStore
    ) -> None:
        self.id = uuid.uuid4().hex
        self.kind = kind
        self.task_id = task_id
        self.try_number = try_number
        self.definition = definition
        require_unchanged(state, definition)
        self.secrets = secrets_of(definition)
        self.replicator = open_replicator(definition, self.secrets, state)
        self.run = self.replicator.run(run_id)
        self.folder: StepFolder | None = None
        self._job: SparkJob | None = None

    def result(self) -> StepResult:
        """The step's result, from this attempt or an earlier one.

        Raises AirflowSkipException if there is nothing to do, Fenced if a newer run took the lane or every table,
        StateUnavailable if the lease could not be renewed, StepFailed or Blocked if the step as a whole failed.
        """
        lane = lane_of(self.kind)
        with RenewedLease(self.replicator.state, self.definition.name, lane, self.run.run_id, self.kill) as lease:
            result = self._take_or_run(lease)
        if result.problem is not None:
            raise lease.lost or _failure(result.problem, result.retryable)
        if result.tables and all(table.outcome is Outcome.FENCED for table in result.tables):
            raise Fenced(*(table.problem or _fenced(table) for table in result.tables))
        return result

    def kill(self) -> None:
        """Kill the driver. Thread-safe, and may be called more than once."""
        if self._job is not None:
            self._job.kill()
        if self.folder is not None:
            drivers.end(self.folder.step_url, timeout_s=10.0)

    def _take_or_run(self, lease: RenewedLease) -> StepResult:
        plan = self.run.plan()
        step = planned_step(self.kind, self.id, self.definition, plan, self.run, self.replicator.log)
        self._require_tables(step, plan)
        if self.kind in SEALING:
            self._require_all_captured(plan)
        stale_attempts = end_stale_attempts(self.kind, step.tables, self.task_id, self.run, self.replicator)
        unread: tuple[TableResult, ...] = ()
        if self.kind is not StepKind.EXTRACT:
            step, unread = with_target_state(step, self.replicator.targets)
        earlier_result = self._find_current_result(step)
        if earlier_result is not None:
            return earlier_result
        committed_results = find_committed(step, self._earlier_attempts(step.merge_of))
        committed_tables = {result.table for result in committed_results}
        remaining = with_tables(step, (task for task in step.tables if task.table not in committed_tables))
        if any(stale.may_write for stale in stale_attempts):
            actor = f"{self.run.run_id} {self.task_id}"
            fenced = raise_fences(stale_attempts, remaining.tables, actor, self.replicator)
            remaining, unread_now = self._after_fencing(remaining, fenced)
            unread = (*unread, *unread_now)
        remaining = applicable(remaining)
        settled = (*committed_results, *unread)
        if settled and not remaining.tables:
            return self._write_settled_result(step, settled)
        lease.require()
        self._require_tables(remaining, plan)
        result = self._submit(remaining)
        return self._with_settled(result, settled) if settled else result

    def _require_tables(self, step: Step, plan: RunPlan) -> None:
        if not step.tables:
            reasons = "; ".join(f"{table}: {reason}" for table, reason in sorted(plan.reasons.items()))
            raise AirflowSkipException(f"nothing to {self.kind} in this run. {reasons}".rstrip(". "))

    def _require_all_captured(self, plan: RunPlan) -> None:
        state, name = self.replicator.state, self.definition.name
        if left_out := left_out_of_window(state.replicators.get(name), plan, state.tables(name).values()):
            raise AirflowSkipException(
                f"no window is sealed in this run: another version of the YAML was registered since it was opened, and "
                f"the window would lack changes of {', '.join(left_out)}. The next run reads them"
            )

    def _find_current_result(self, current_step: Step) -> StepResult | None:
        for folder in self.run.submissions(self.task_id):
            step, result = folder.step(), folder.result()
            if step is not None and result is not None and result_is_current(step, result, current_step):
                log.info("Attempt %s has finished this step; using its result: %s", step.attempt, folder.step_url)
                self.folder = folder
                return result
        return None

    def _after_fencing(self, step: Step, fenced: frozenset[str]) -> tuple[Step, tuple[TableResult, ...]]:
        """A merge leaves out the fenced tables: their batches are void, and the next run stages again. Other steps
        continue with the new control records, as ``with_target_state``."""
        if self.kind is not StepKind.MERGE:
            return with_target_state(step, self.replicator.targets)
        unfenced = with_tables(step, (task for task in step.tables if task.table not in fenced))
        if fenced and not unfenced.tables:
            raise Fenced.of(
                "FEN001",
                "an earlier merge may still be running: its driver could not be found or stopped",
                where=f"{self.definition.name}: {', '.join(sorted(fenced))}",
                do="nothing: the fence was raised, and the next run stages these tables again",
                data="no change is lost: the change log contains all of them",
            )
        return unfenced, ()

    def _earlier_attempts(self, merge_of: str) -> frozenset[str]:
        """Of the same merge: what a run stages after it was cleared is a different one."""
        steps = (folder.step() for folder in self.run.submissions(self.task_id))
        return frozenset(step.attempt for step in steps if step is not None and step.merge_of == merge_of)

    def _write_settled_result(self, step: Step, settled: tuple[TableResult, ...]) -> StepResult:
        """Earlier attempts have committed every table that can be read: write a result without a job."""
        folder = self._claim_folder()
        folder.write_step(replace(step, folder=folder.path))
        log.info("This step has no table left to process; no job is submitted")
        return self._with_settled(StepResult(self.kind, self.id), settled)

    def _with_settled(self, result: StepResult, settled: tuple[TableResult, ...]) -> StepResult:
        """Later tasks read only the newest result of a step, so it includes the tables of earlier attempts and those
        that could not be read."""
        assert self.folder is not None
        whole = replace(result, tables=(*settled, *result.tables))
        self.folder.write_result(whole)
        return whole

    def _submit(self, step: Step) -> StepResult:
        folder = self._claim_folder()
        failpoint("submit.claimed")
        name, run_id = self.definition.name, self.run.run_id
        attempt = TaskAttempt(name, self.kind, run_id, self.task_id, self.try_number, self.id)
        job = SparkJob(submission(self.definition, attempt, folder.step_url, self._row_count(step)))
        secrets_path = secrets.write(self.secrets)
        try:
            folder.write_step(replace(step, folder=folder.path, secrets_path=str(secrets_path), jars=job.jars))
            self.replicator.state.open_attempt(
                AttemptRow(
                    id=self.id,
                    replicator=self.definition.name,
                    kind=self.kind.value,
                    run_id=self.run.run_id,
                    task_id=self.task_id,
                    try_number=self.try_number,
                    folder=folder.path,
                    tables=tuple(task.table for task in step.tables),
                    opened_at=utc_now(),
                )
            )
            failpoint("submit.opened")
            self._job = job
            ending = "killed before its end"
            try:
                ending = job.run(secrets_path)
            finally:
                job.close()
                if drivers.end(folder.step_url):
                    self._write_end(folder, ending)
        finally:
            secrets.remove(secrets_path)
        result = folder.result()
        return result or StepResult(self.kind, self.id, problem=self._no_result(folder, "the driver cannot be killed"))

    def _row_count(self, step: Step) -> int | None:
        """Rows of the step's tables as last counted; None if one was never counted."""
        known = self.replicator.state.tables(self.definition.name)
        counts = [known[task.table].rows if task.table in known else None for task in step.tables]
        return None if None in counts else sum(filter(None, counts))

    def _write_end(self, folder: StepFolder, ending: str) -> None:
        """After the driver's last process has ended: close the attempt, with a result if the driver wrote none."""
        result = folder.result()
        if result is None:
            result = StepResult(self.kind, self.id, problem=self._no_result(folder, ending))
            folder.write_result(result)
        self.replicator.state.close_attempt(self.id, "failed" if result.problem else "done")

    def _no_result(self, folder: StepFolder, ending: str) -> Problem:
        return Problem(
            "SPK001",
            f"the {self.kind} job ended without a result",
            where=f"{self.definition.name}, {folder.step_url}",
            found=ending,
            do="see the driver's output above; the next attempt continues from the state of the target tables",
            data="sealed windows are unchanged; no target table has a partial commit",
        )

    def _claim_folder(self) -> StepFolder:
        """The first folder, from that of this try on, from which no job was submitted."""
        claim = Submission(self.id, drivers.process_space())
        number = self.try_number
        while not (folder := self.run.folder(self.task_id, number)).claim(claim):
            number += 1
        self.folder = folder
        return folder


def _failure(problem: Problem, retryable: bool) -> CdcError:
    return StepFailed(problem) if retryable else Blocked(problem)


def _fenced(table: TableResult) -> Problem:
    return Problem("FEN002", f"{table.table} was taken over by a newer attempt", where=table.table)
