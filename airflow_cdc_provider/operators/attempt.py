"""One attempt at a Spark step, from the run's plan to the job's result.

Several may be alive at once, because a killed task leaves its driver running. Before it submits, an attempt therefore
takes the result of an earlier one that stands, kills earlier drivers it can reach, and shuts out the others by the
fence in the target tables. Each submission is recorded before it happens and closed once its driver's end was seen.
"""

from __future__ import annotations

import logging
import uuid
from dataclasses import replace

from airflow.sdk.exceptions import AirflowSkipException

from airflow_cdc_provider.control.replicator import open_replicator
from airflow_cdc_provider.core.decisions.attempts import Submission, result_is_current
from airflow_cdc_provider.core.decisions.run_plan import RunPlan
from airflow_cdc_provider.core.decisions.steps import Outcome, Step, StepKind, StepResult, TableResult
from airflow_cdc_provider.core.errors import Blocked, CdcError, Fenced, Problem, StepFailed
from airflow_cdc_provider.core.failpoints import failpoint
from airflow_cdc_provider.core.spec.definition import Definition
from airflow_cdc_provider.hooks import drivers, secrets
from airflow_cdc_provider.hooks.connections import secrets_of
from airflow_cdc_provider.hooks.spark import SparkJob, submission
from airflow_cdc_provider.operators.lease import RenewedLease, lane_of
from airflow_cdc_provider.operators.stale_attempts import end_stale_attempts, raise_fences
from airflow_cdc_provider.operators.step_inputs import Inputs, committed, inputs_of, still_to_do, with_target_state
from airflow_cdc_provider.staging.run_files import StepFolder
from airflow_cdc_provider.state.store import StateStore

log = logging.getLogger(__name__)


class Attempt:
    """``folder`` is set once the attempt has one: then a job was submitted, or an earlier result taken."""

    def __init__(
        self, kind: StepKind, definition: Definition, run_id: str, task_id: str, try_number: int, state: StateStore
    ) -> None:
        self.id = uuid.uuid4().hex
        self.kind = kind
        self.task_id = task_id
        self.try_number = try_number
        self.definition = definition
        self.secrets = secrets_of(definition)
        self.replicator = open_replicator(definition, self.secrets, state)
        self.run = self.replicator.run(run_id)
        self.folder: StepFolder | None = None
        self._job: SparkJob | None = None

    def result(self) -> StepResult:
        """The step's result, from this attempt or an earlier one.

        Raises AirflowSkipException where there is nothing to do, Fenced where somebody newer took over the lane or
        every table, StateUnavailable where the lane could not be kept, StepFailed or Blocked where the step as a whole
        failed.
        """
        lane = lane_of(self.kind)
        with RenewedLease(self.replicator.state, self.definition.name, lane, self.run.run_id, self.kill) as lease:
            result = self._taken_or_made(lease)
        if result.problem is not None:
            raise lease.lost or _failure(result.problem, result.retryable)
        if result.tables and all(table.outcome is Outcome.FENCED for table in result.tables):
            raise Fenced(*(table.problem or _fenced(table) for table in result.tables))
        return result

    def kill(self) -> None:
        """End the driver now. Safe from any thread, and more than once."""
        if self._job is not None:
            self._job.kill()
        if self.folder is not None:
            drivers.end(self.folder.step_url, timeout_s=10.0)

    def _taken_or_made(self, lease: RenewedLease) -> StepResult:
        plan = self.run.plan()
        inputs = self._required(inputs_of(self.kind, plan, self.run, self.replicator.log), plan)
        found = end_stale_attempts(self.kind, inputs.tables, self.task_id, self.run, self.replicator)
        if self.kind is not StepKind.EXTRACT:
            inputs = with_target_state(inputs, self.replicator.target)
        standing = self._standing(self._step(plan, inputs))
        if standing is not None:
            return standing
        done = committed(self.kind, inputs, self._earlier_attempts(inputs.merge_of))
        left = inputs.only(task for task in inputs.tables if task.table not in {table.table for table in done})
        if any(rival.may_write for rival in found):
            by = f"{self.run.run_id} {self.task_id}"
            left = self._after_fences(left, raise_fences(found, left.tables, by, self.replicator))
        left = still_to_do(self.kind, left)
        if done and not left.tables:
            return self._brought_in(self._step(plan, inputs), done)
        lease.require()
        result = self._submitted(self._step(plan, self._required(left, plan)))
        return self._with(result, done) if done else result

    def _required(self, inputs: Inputs, plan: RunPlan) -> Inputs:
        if not inputs.tables:
            reasons = "; ".join(f"{table}: {reason}" for table, reason in sorted(plan.reasons.items()))
            raise AirflowSkipException(f"nothing to {self.kind} in this run. {reasons}".rstrip(". "))
        return inputs

    def _standing(self, now: Step) -> StepResult | None:
        for folder in self.run.submissions(self.task_id):
            step, result = folder.step(), folder.result()
            if step is not None and result is not None and result_is_current(step, result, now):
                log.info("Attempt %s has done this step, its result is taken: %s", step.attempt, folder.step_url)
                self.folder = folder
                return result
        return None

    def _after_fences(self, inputs: Inputs, fenced: frozenset[str]) -> Inputs:
        """What was staged below a fence is void: there the next run stages again."""
        if self.kind is not StepKind.MERGE:
            return with_target_state(inputs, self.replicator.target)
        rest = inputs.only(task for task in inputs.tables if task.table not in fenced)
        if fenced and not rest.tables:
            raise Fenced(
                Problem(
                    "FEN001",
                    "an earlier merge may still be running, and its end could not be seen",
                    where=f"{self.definition.name}: {', '.join(sorted(fenced))}",
                    do="nothing: the fence was raised, the next run stages these tables again",
                    data="the change log holds everything",
                )
            )
        return rest

    def _earlier_attempts(self, merge_of: str) -> frozenset[str]:
        """At the same work: what a run stages anew after it was cleared is another merge."""
        steps = (folder.step() for folder in self.run.submissions(self.task_id))
        return frozenset(step.attempt for step in steps if step is not None and step.merge_of == merge_of)

    def _brought_in(self, step: Step, done: tuple[TableResult, ...]) -> StepResult:
        """Every commit is in the target: there is nothing left to run, only to say."""
        folder = self._claimed()
        folder.write_step(replace(step, folder=folder.path))
        log.info("Earlier attempts have committed all tables of this step.")
        return self._with(StepResult(self.kind, self.id), done)

    def _with(self, result: StepResult, done: tuple[TableResult, ...]) -> StepResult:
        """Later tasks read the newest result of a step: it must name the tables of earlier attempts too."""
        assert self.folder is not None
        whole = replace(result, tables=(*done, *result.tables))
        self.folder.write_result(whole)
        return whole

    def _submitted(self, step: Step) -> StepResult:
        folder = self._claimed()
        failpoint("submit.claimed")
        job = SparkJob(submission(self.definition, self.kind, folder.step_url, self._rows(step)))
        secrets_path = secrets.write(self.secrets)
        try:
            folder.write_step(replace(step, folder=folder.path, secrets_path=str(secrets_path), jars=job.jars))
            self.replicator.state.open_attempt(
                self.id,
                self.definition.name,
                self.kind,
                self.run.run_id,
                self.task_id,
                self.try_number,
                folder.path,
                [task.table for task in step.tables],
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
        return result or StepResult(self.kind, self.id, problem=self._no_result(folder, "it cannot be killed"))

    def _rows(self, step: Step) -> int | None:
        """As last counted."""
        known = self.replicator.state.tables(self.definition.name)
        counts = [known[task.table].rows if task.table in known else None for task in step.tables]
        return None if None in counts else sum(filter(None, counts))

    def _write_end(self, folder: StepFolder, ending: str) -> None:
        """No process of the driver is left. Where it could not say how it ended, that is written down here, so that
        nobody takes it for alive."""
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
            do="see the driver's output above; another attempt goes on from what the target tables hold",
            data="sealed windows are unchanged; each target table has a commit whole or not at all",
        )

    def _claimed(self) -> StepFolder:
        """A folder nobody has submitted from: that of this try, or the next free one."""
        mark = Submission(self.id, drivers.process_space())
        number = self.try_number
        while not (folder := self.run.folder(self.task_id, number)).claim(mark):
            number += 1
        self.folder = folder
        return folder

    def _step(self, plan: RunPlan, inputs: Inputs) -> Step:
        return Step(
            kind=self.kind,
            definition=self.definition,
            run_id=self.run.run_id,
            attempt=self.id,
            folder="",
            secrets_path="",
            owner=plan.owner,
            log_id=plan.log_id,
            epoch=plan.epoch,
            source_identity=plan.source_identity,
            tables=inputs.tables,
            window=inputs.window,
            lo=inputs.lo,
            limit=inputs.limit,
            compare=inputs.compare,
            catch_up=inputs.catch_up,
            repair=inputs.repair,
            merge_of=inputs.merge_of,
        )


def _failure(problem: Problem, retryable: bool) -> CdcError:
    return StepFailed(problem) if retryable else Blocked(problem)


def _fenced(table: TableResult) -> Problem:
    return Problem("FEN002", f"somebody newer owns {table.table}", where=table.table)
