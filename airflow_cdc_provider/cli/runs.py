"""Waits for commands to finish."""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence

from airflow_cdc_provider.control.replicator import Replicator
from airflow_cdc_provider.core.decisions.commands import Command
from airflow_cdc_provider.core.decisions.waiting_commands import needs_resume
from airflow_cdc_provider.core.errors import Problem, StepFailed
from airflow_cdc_provider.core.table.source_names import in_shell
from airflow_cdc_provider.hooks.dag_runs import has_ended, trigger_run

POLL_S = 1.0
MAX_RUNS = 5


def follow_command(args: argparse.Namespace, replicator: Replicator, command: Command) -> Command:
    """``--now`` triggers a run, unless the command waits for a resume. ``--wait`` waits until it has finished."""
    needs_run = args.now and not command.finished and not _needs_resume(replicator, command)
    run_id = trigger_run(replicator.name) if needs_run else ""
    return wait_for_command(replicator, command, run_id) if args.wait else command


def wait_for_command(replicator: Replicator, command: Command, run_id: str) -> Command:
    """Wait until the command has finished. If the triggered run ends before that (because it made a copy first),
    another run is triggered. Raises StepFailed (CLI010) after ``MAX_RUNS`` runs, and where no run can carry it out
    before an operator resumes its tables."""
    runs = 1
    while True:
        current = replicator.state.command(command.id) or command
        if current.finished:
            return current
        if waiting := _needs_resume(replicator, current):
            raise StepFailed(_waits(current, waiting))
        if run_id and has_ended(replicator.name, run_id):
            current = replicator.state.command(command.id) or command
            if current.finished:
                return current
            if runs == MAX_RUNS:
                raise StepFailed(_unfinished(current, run_id))
            runs, run_id = runs + 1, trigger_run(replicator.name)
        time.sleep(POLL_S)


def _needs_resume(replicator: Replicator, command: Command) -> tuple[str, ...]:
    return needs_resume(command, replicator.state.tables(replicator.name).values())


def _waits(command: Command, tables: Sequence[str]) -> Problem:
    words = "".join(f" --table {in_shell(table)}" for table in tables)
    return Problem(
        "CLI010",
        f"{command.kind} waits until its tables are resumed",
        where=command.replicator,
        found=f"paused or blocked: {', '.join(tables)}",
        do=f"airflow cdc resume {command.replicator}{words}",
        data="the command stays pending; the first run after the resume carries it out",
    )


def _unfinished(command: Command, run_id: str) -> Problem:
    return Problem(
        "CLI010",
        f"{command.kind} did not finish in {MAX_RUNS} runs",
        where=f"{command.replicator}, last run {run_id}",
        do=f"airflow cdc status {command.replicator}",
        data="the command stays pending; the next run retries",
    )
