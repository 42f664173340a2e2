"""Stages and merges in one application: applies the log after a new copy.

A crash at any point keeps what is merged; the next attempt stages the rest again.
"""

from __future__ import annotations

from dataclasses import replace

from airflow_cdc_provider.core.decisions.steps import Outcome, StepResult, TableResult, has_batch
from airflow_cdc_provider.core.table.states import TableState
from spark_jobs.merge import merge_table
from spark_jobs.runtime import harness
from spark_jobs.runtime.job import Job, TableWork
from spark_jobs.stage import stage_table

CATCHING_UP = frozenset({TableState.RESYNCING, TableState.REWINDING})


def run(job: Job) -> StepResult:
    return job.result(job.for_each_table(job.step.tables, replay_table))


def replay_table(job: Job, work: TableWork) -> TableResult:
    """Apply the log to one table up to ``step.window``. Raises the errors of staging and merging."""
    staged = stage_table(job, work, CATCHING_UP)
    if not has_batch(staged):
        return staged
    merged = merge_table(job, work, job.step.attempt, CATCHING_UP)
    if merged.outcome is Outcome.DONE and staged.problem:
        return replace(merged, outcome=staged.outcome, problem=staged.problem, question=staged.question)
    return merged


if __name__ == "__main__":
    harness.main(run)
