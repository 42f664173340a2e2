"""Waits for commands to finish."""

from __future__ import annotations

import argparse
import time

from airflow_cdc_provider.control.replicator import Replicator
from airflow_cdc_provider.core.decisions.commands import Command
from airflow_cdc_provider.core.errors import Problem, StepFailed
from airflow_cdc_provider.hooks.dag_runs import has_ended, trigger_run

POLL_S = 1.0
MAX_RUNS = 5


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
        if run_id and has_ended(replicator.name, run_id):
            current = replicator.state.command(command.id) or command
            if current.finished:
                return current
            if runs == MAX_RUNS:
                raise StepFailed(_unfinished(current, run_id))
            runs, run_id = runs + 1, trigger_run(replicator.name)
        time.sleep(POLL_S)


def _unfinished(command: Command, run_id: str) -> Problem:
    return Problem(
        "CLI010",
        f"{command.kind} did not finish in {MAX_RUNS} runs",
        where=f"{command.replicator}, last run {run_id}",
        do=f"airflow cdc status {command.replicator}",
        data="the command stays pending; the next run retries",
    )
