"""Starting a run of a replicator's DAG from the command line, and following a request to its end."""

from __future__ import annotations

import time
import uuid
from datetime import UTC, datetime

from airflow.api.common.trigger_dag import trigger_dag
from airflow.models.dag import DagModel
from airflow.models.dagrun import DagRun
from airflow.utils.types import DagRunTriggeredByType

from airflow_cdc_provider.cli.replicators import NotFound
from airflow_cdc_provider.control.replicator import Replicator
from airflow_cdc_provider.core.decisions.commands import Command
from airflow_cdc_provider.core.errors import CommandRefused, Problem, StepFailed

POLL_S = 1.0
MOST_RUNS = 5
ENDED = frozenset({"success", "failed"})


def require_startable(dag_id: str) -> None:
    """Raises NotFound (CLI008) where Airflow has not read the DAG yet, CommandRefused (CLI009) where it is paused in
    Airflow: a run of it would stay queued for ever."""
    dag = DagModel.get_current(dag_id)
    if dag is None:
        raise NotFound(
            Problem("CLI008", f"Airflow has no DAG {dag_id} yet", do="wait for the DAG processor, or see import errors")
        )
    if dag.is_paused:
        raise CommandRefused(
            Problem("CLI009", f"the DAG {dag_id} is paused in Airflow", do=f"airflow dags unpause {dag_id}")
        )


def start_run(dag_id: str) -> str:
    """A manual run; its id."""
    run_id = f"manual__{datetime.now(UTC).isoformat(timespec='milliseconds')}_{uuid.uuid4().hex[:6]}"
    trigger_dag(dag_id, triggered_by=DagRunTriggeredByType.CLI, run_id=run_id)
    return run_id


def follow(replicator: Replicator, asked: Command, run_id: str) -> Command:
    """Wait until the request has ended. Where the run that was started for it ended and left it to a later one (a copy
    came first), another run is started. Raises StepFailed (CLI010) where that does not help."""
    runs = 1
    while True:
        now = replicator.state.command(asked.id) or asked
        if now.finished:
            return now
        if run_id and _ended(replicator.name, run_id):
            now = replicator.state.command(asked.id) or asked
            if now.finished:
                return now
            if runs == MOST_RUNS:
                raise StepFailed(_left_open(now, run_id))
            runs, run_id = runs + 1, start_run(replicator.name)
        time.sleep(POLL_S)


def _ended(dag_id: str, run_id: str) -> bool:
    found = DagRun.find(dag_id=dag_id, run_id=run_id)
    return not found or str(found[0].state) in ENDED


def _left_open(command: Command, run_id: str) -> Problem:
    return Problem(
        "CLI010",
        f"{MOST_RUNS} runs did not finish the {command.kind}",
        where=f"{command.replicator}, last run {run_id}",
        do=f"airflow cdc status {command.replicator}",
        data="the request stays; the next run tries again",
    )
