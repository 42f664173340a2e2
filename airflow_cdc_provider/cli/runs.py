"""Triggers runs of a replicator's DAG and waits for commands to finish."""

from __future__ import annotations

import argparse
import time
import uuid
from datetime import UTC, datetime

from airflow.api.common.trigger_dag import trigger_dag
from airflow.models.dag import DagModel
from airflow.models.dagrun import DagRun
from airflow.models.taskinstance import TaskInstance
from airflow.utils.session import create_session
from airflow.utils.state import TaskInstanceState
from airflow.utils.types import DagRunTriggeredByType

from airflow_cdc_provider.cli.replicators import NotFound
from airflow_cdc_provider.control.replicator import Replicator
from airflow_cdc_provider.core.decisions.commands import Command
from airflow_cdc_provider.core.errors import CommandRefused, Problem, StepFailed

POLL_S = 1.0
MAX_RUNS = 5
ENDED = frozenset({"success", "failed"})


def require_runnable_dag(dag_id: str) -> None:
    """Raises NotFound (CLI008) if Airflow has not parsed the DAG yet, CommandRefused (CLI009) if the DAG is paused: its
    run would stay queued."""
    dag = DagModel.get_current(dag_id)
    if dag is None:
        raise NotFound.of(
            "CLI008", f"Airflow has no DAG {dag_id}", do="wait for the DAG processor, or check for import errors"
        )
    if dag.is_paused:
        raise CommandRefused.of("CLI009", f"the DAG {dag_id} is paused in Airflow", do=f"airflow dags unpause {dag_id}")


def running_tasks(dag_id: str) -> list[str]:
    """The tasks of a DAG that run now, as ``task of run``."""
    running = (TaskInstanceState.RUNNING, TaskInstanceState.RESTARTING)
    with create_session() as session:
        rows = (
            session.query(TaskInstance.task_id, TaskInstance.run_id)
            .filter(TaskInstance.dag_id == dag_id, TaskInstance.state.in_(running))
            .all()
        )
    return [f"{task_id} of {run_id}" for task_id, run_id in rows]


def trigger_run(dag_id: str) -> str:
    """Trigger a manual run. Returns its id."""
    run_id = f"manual__{datetime.now(UTC).isoformat(timespec='milliseconds')}_{uuid.uuid4().hex[:6]}"
    trigger_dag(dag_id, triggered_by=DagRunTriggeredByType.CLI, run_id=run_id)
    return run_id


def follow_command(args: argparse.Namespace, replicator: Replicator, command: Command) -> Command:
    """``--now`` triggers a run for the command, ``--wait`` waits until it has finished."""
    run_id = trigger_run(replicator.name) if args.now and not command.finished else ""
    return wait_for_command(replicator, command, run_id) if args.wait else command


def wait_for_command(replicator: Replicator, command: Command, run_id: str) -> Command:
    """Wait until the command has finished. If the triggered run ends before that (because it made a copy first),
    another run is triggered. Raises StepFailed (CLI010) after ``MAX_RUNS`` runs."""
    runs = 1
    while True:
        current = replicator.state.command(command.id) or command
        if current.finished:
            return current
        if run_id and _ended(replicator.name, run_id):
            current = replicator.state.command(command.id) or command
            if current.finished:
                return current
            if runs == MAX_RUNS:
                raise StepFailed(_unfinished(current, run_id))
            runs, run_id = runs + 1, trigger_run(replicator.name)
        time.sleep(POLL_S)


def _ended(dag_id: str, run_id: str) -> bool:
    dag_runs = DagRun.find(dag_id=dag_id, run_id=run_id)
    return not dag_runs or str(dag_runs[0].state) in ENDED


def _unfinished(command: Command, run_id: str) -> Problem:
    return Problem(
        "CLI010",
        f"{command.kind} did not finish in {MAX_RUNS} runs",
        where=f"{command.replicator}, last run {run_id}",
        do=f"airflow cdc status {command.replicator}",
        data="the command stays pending; the next run retries",
    )
