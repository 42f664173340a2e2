"""Quotas of BigQuery that a schedule can use up."""

from __future__ import annotations

from collections.abc import Iterator

from airflow_cdc_provider.core.errors import Problem

LOAD_JOBS_A_DAY = 100_000
"""Of a project."""


def quota_warnings(tables: int, runs_a_day: int, has_stage: bool) -> Iterator[Problem]:
    """A merge takes a load job with ``stage``, and without it one for each task that loads rows. Half of the quota is
    left for other replicators and for copies."""
    most = tables * runs_a_day
    if most <= LOAD_JOBS_A_DAY // 2:
        return
    do = "run less often, distribute the tables over several projects, or ask for a higher quota"
    if not has_stage:
        do += "; with `stage`, a merge takes one load job"
    yield Problem(
        "TGT089",
        "the load jobs of merges may use up the quota of the project",
        "schedule",
        f"{tables} tables, {runs_a_day} times a day: up to {most:,} load jobs{'' if has_stage else ' and more'}",
        f"{LOAD_JOBS_A_DAY:,} load jobs a day in a project",
        do,
    )
