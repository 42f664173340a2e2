"""Operators that open and close a run and find holes. They run on a worker and start no JVM."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperator
from airflow.sdk.exceptions import AirflowFailException, AirflowRescheduleException

from airflow_cdc_provider.control.close_window import CloseResult, close_window
from airflow_cdc_provider.control.observe import RunContext
from airflow_cdc_provider.control.open_window import open_window
from airflow_cdc_provider.control.reconcile import find_holes
from airflow_cdc_provider.control.replicator import Replicator
from airflow_cdc_provider.core.decisions.alerts import Alert, alert_of_run
from airflow_cdc_provider.core.decisions.run_decision import CLOSE_WINDOW, OPEN_WINDOW, PAUSE_STREAM, RunDecision
from airflow_cdc_provider.core.decisions.run_plan import Mode
from airflow_cdc_provider.core.errors import CdcError, Problem
from airflow_cdc_provider.core.serde import from_plain, to_plain
from airflow_cdc_provider.core.spec.dag_plan import FIND_QUESTIONS, asset_alias
from airflow_cdc_provider.core.times import utc_now
from airflow_cdc_provider.operators.asset_events import CHANGED_TABLES, emit, events_of
from airflow_cdc_provider.operators.branching import BranchingTask
from airflow_cdc_provider.operators.failures import as_airflow_failures
from airflow_cdc_provider.operators.metrics import send
from airflow_cdc_provider.operators.notices import alerts_of_tables, notify
from airflow_cdc_provider.operators.replicator_task import ReplicatorTask

if TYPE_CHECKING:
    from airflow.sdk import Context

OPENING_PROBLEM = "problem"
"""The key under which open_window leaves the reason of its failure."""
LANE_RETRY_DELAY = timedelta(seconds=10)
"""How long a run that waits for a lane frees its worker slot before it tries again."""


class OpenWindowOperator(ReplicatorTask, BranchingTask):
    """Read the state of source and targets, decide what this run does, and follow only the branches it needs.

    Carries out pauses, resumes and empty windows itself. If there are no changes and every table is up to date, only
    ``close_window`` follows. A backfill run applies the windows of its data interval again and reads no new changes; it
    is rescheduled, without using a retry, while another run holds the stream lane.
    """

    ui_color = "#dfe9f3"

    def execute(self, context: Context) -> None:
        with as_airflow_failures(), _reported(context):
            decision = open_window(self.replicator(), run_of(context), self.log_line)
        self._log_decision(decision)
        if decision.stop:
            raise AirflowFailException(str(decision.stop))
        if decision.wait:
            raise AirflowRescheduleException(datetime.now(UTC) + LANE_RETRY_DELAY)  # type: ignore[no-untyped-call]
        self.follow_branches(context, with_questions(self, decision.follow))

    def _log_decision(self, decision: RunDecision) -> None:
        for line in decision.notes:
            self.log_line(line)
        for verdict in decision.table_decisions:
            self.log_line(f"{verdict.table}: {verdict.action}. {verdict.problem or verdict.reason}")
        for problem in decision.unselected:
            self.log.warning("%s", problem)


@contextmanager
def _reported(context: Context) -> Iterator[None]:
    """What fails here is the reason of the run's end, which close_window notifies."""
    try:
        yield
    except CdcError as error:
        context["ti"].xcom_push(OPENING_PROBLEM, to_plain(error.problems[0]))
        raise


def run_of(context: Context) -> RunContext:
    """A backfill is bounded by its data interval; any other run continues from the change log. From a bundle without
    versions a task reads the newest YAML, whatever the version of its run is."""
    dag_run, ti = context["dag_run"], context["ti"]
    bundle = getattr(ti, "bundle_instance", None)
    version = str(ti.dag_version_id) if bundle is not None and bundle.version else ""
    start, end = dag_run.data_interval_start, dag_run.data_interval_end
    if dag_run.run_type == "backfill" and start is not None and end is not None:
        return RunContext(dag_run.run_id, Mode.REPAIR, (start.isoformat(), end.isoformat()), dag_version=version)
    return RunContext(dag_run.run_id, dag_version=version)


class FindHolesOperator(ReplicatorTask, BranchingTask):
    """Find holes in the window that this run extracted. Follows ``reconcile`` if the definition allows a new copy."""

    ui_color = "#dfe9f3"

    def execute(self, context: Context) -> None:
        with as_airflow_failures():
            replicator, run_id = self.replicator(), context["dag_run"].run_id
            tables_with_holes = find_holes(replicator, run_id, self.log_line)
            planned = replicator.run(run_id).plan().reconcile
        followed = [PAUSE_STREAM if tables_with_holes or planned else CLOSE_WINDOW]
        self.follow_branches(context, with_questions(self, followed))


def with_questions(task: BaseOperator, branches: Sequence[str]) -> list[str]:
    """The branches, and the search for questions if the DAG asks any."""
    return [*branches, *({FIND_QUESTIONS} & task.downstream_task_ids)]


class CloseWindowOperator(ReplicatorTask):
    """Read the progress from the target tables, acknowledge the source, clean up, and release the lanes.

    Fails without a retry while a table is failing or blocked. Emits an asset event for every table whose data changed;
    if it fails, ``emit_asset_events`` does.
    """

    ui_color = "#dfe9f3"

    def execute(self, context: Context) -> dict[str, Any]:
        run_id = context["dag_run"].run_id
        with as_airflow_failures():
            replicator = self.replicator()
            result = close_window(replicator, run_id, failed_tasks(context), self.log_line)
        self._report(result)
        self._notify(replicator, result, context)
        events = events_of(replicator.definition, result)
        if result.problems:
            context["ti"].xcom_push(CHANGED_TABLES, events)
            raise AirflowFailException("\n".join(str(problem) for problem in result.problems))
        emit(self, asset_alias(replicator.name), events, context)
        return {"moved": list(result.moved.values()), "acknowledged": result.acknowledged}

    def _notify(self, replicator: Replicator, result: CloseResult, context: Context) -> None:
        definition, state = replicator.definition, replicator.state
        if definition.notify:
            alerts = alerts_of_tables(definition, state.tables(definition.name).values(), state.now())
            notify(state, definition, context, alerts, alerts_of_run(result, context))

    def _report(self, result: CloseResult) -> None:
        for row in result.rows:
            self.log_line(f"{row.table}: {row.state}, window {row.window}, fresh at {row.fresh_at or '-'}")
        send(result.samples)


def alerts_of_run(result: CloseResult, context: Context) -> list[Alert]:
    """At most one. The problem of an opening that failed says more than that there was none."""
    if not result.of_run:
        return []
    opening = context["ti"].xcom_pull(task_ids=OPEN_WINDOW, key=OPENING_PROBLEM)
    return [alert_of_run(from_plain(Problem, opening) if opening else result.of_run[0], utc_now())]


def failed_tasks(context: Context) -> Sequence[str]:
    """Task ids of this run in state ``failed``, sorted."""
    ti, run_id = context["ti"], context["dag_run"].run_id
    states = ti.get_task_states(dag_id=ti.dag_id, run_ids=[run_id]).get(run_id, {})
    return sorted(task for task, state in states.items() if state == "failed" and task != ti.task_id)
