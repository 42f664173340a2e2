"""What a job file gets: its step, its session, the log and both ends; and tables worked on side by side."""

from __future__ import annotations

import contextlib
import os
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

from pyspark.sql import SparkSession

from airflow_cdc_provider.connectors.registry import fetches_rows, open_source
from airflow_cdc_provider.connectors.source import SourceConnector
from airflow_cdc_provider.core.connections.connection_info import Secrets
from airflow_cdc_provider.core.decisions.steps import Outcome, Step, StepResult, TableResult, TableTask, WindowResult
from airflow_cdc_provider.core.spec.definition import Definition
from airflow_cdc_provider.staging.change_log import ChangeLog
from airflow_cdc_provider.staging.open_store import open_log
from airflow_cdc_provider.targets.registry import open_target
from airflow_cdc_provider.targets.target import TargetTables
from spark_jobs.runtime.console import explain, say
from spark_jobs.runtime.failures import outcome_of, problem_of, scrub
from spark_jobs.runtime.process_pool import pool
from spark_jobs.runtime.sessions import Application, cores, fresh

Phases = dict[str, float]

DRIVER_SHARES = 2
"""Shares that a driver works on at once by itself: small ones."""


@contextlib.contextmanager
def timed(phases: Phases, name: str) -> Iterator[None]:
    """Add the seconds of the block to a phase."""
    started = time.monotonic()
    try:
        yield
    finally:
        phases[name] = round(phases.get(name, 0.0) + time.monotonic() - started, 3)


@dataclass(frozen=True)
class TableWork:
    """One table in its own thread."""

    task: TableTask
    new_session: Callable[[], SparkSession]
    phases: Phases = field(default_factory=dict)

    @cached_property
    def spark(self) -> SparkSession:
        """A session with settings of its own."""
        return self.new_session()

    def session(self) -> SparkSession:
        """For whoever may need Spark and may not."""
        return self.spark

    def phase(self, name: str) -> contextlib.AbstractContextManager[None]:
        return timed(self.phases, name)

    def result(self, outcome: Outcome, **said: Any) -> TableResult:
        return TableResult(self.task.table, outcome, phases=dict(self.phases), **said)


@dataclass(frozen=True)
class Opened:
    """Each is opened when first asked for; a merge needs no source."""

    definition: Definition
    secrets: Secrets
    application: Application

    @cached_property
    def log(self) -> ChangeLog:
        return open_log(self.definition, self.secrets.staging)

    @cached_property
    def source(self) -> SourceConnector:
        return open_source(self.definition, self.secrets.source)

    @cached_property
    def tables(self) -> TargetTables:
        return open_target(self.definition, self.secrets.target, self.log)

    @cached_property
    def threads(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(DRIVER_SHARES, thread_name_prefix="share")

    @cached_property
    def processes(self) -> ProcessPoolExecutor:
        return pool(self.application.local_cores)


@dataclass(frozen=True)
class Job:
    """``source`` and ``tables`` are opened when first asked for, as Spark is started. What is
    open is shared with a job made by ``replace`` for another step of the same definition."""

    step: Step
    secrets: Secrets
    application: Application
    phases: Phases = field(default_factory=dict)
    peak_memory_bytes: dict[str, int] = field(default_factory=dict)
    shared: Opened | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if self.shared is None:
            object.__setattr__(self, "shared", Opened(self.step.definition, self.secrets, self.application))

    @property
    def opened(self) -> Opened:
        assert self.shared is not None
        return self.shared

    @property
    def log(self) -> ChangeLog:
        return self.opened.log

    @property
    def source(self) -> SourceConnector:
        return self.opened.source

    @cached_property
    def fetches_rows(self) -> bool:
        """The source can be asked for single rows."""
        return fetches_rows(self.step.definition)

    @property
    def tables(self) -> TargetTables:
        return self.opened.tables

    @property
    def spark(self) -> SparkSession:
        return self.application.session

    @property
    def cores(self) -> int:
        """How many tasks run side by side."""
        return self.application.local_cores or cores(self.spark)

    @property
    def threads(self) -> ThreadPoolExecutor:
        """Those of all tables that work on shares: not more at once than there is memory for."""
        return self.opened.threads

    @property
    def processes(self) -> ProcessPoolExecutor:
        """Those of all tables that work on shares, where Spark has no other machine."""
        return self.opened.processes

    def phase(self, name: str) -> contextlib.AbstractContextManager[None]:
        return timed(self.phases, name)

    def result(self, tables: Sequence[TableResult], window: WindowResult | None = None) -> StepResult:
        return StepResult(self.step.kind, self.step.attempt, tuple(tables), window)

    def for_each_table(
        self, tasks: Sequence[TableTask], function: Callable[[TableWork], TableResult], at_once: int | None = None
    ) -> tuple[TableResult, ...]:
        """Work on the tables side by side, in their order, on no more than ``at_once``. A table that fails is recorded
        and stops no other; raises what starting Spark raised, which is no table's fault."""
        if not tasks:
            return ()
        threads = min(len(tasks), tables_at_once(), at_once or len(tasks))
        with ThreadPoolExecutor(threads, thread_name_prefix="table") as pool:
            results = tuple(pool.map(lambda task: self._one_table(task, function), tasks))
        if isinstance(self.application.started, Exception):
            raise self.application.started
        return results

    def _one_table(self, task: TableTask, function: Callable[[TableWork], TableResult]) -> TableResult:
        phases: Phases = {}
        started = time.monotonic()
        try:
            work = TableWork(task, partial(self._session_of, task), phases)
            result = replace(function(work), phases=phases)
        # One table's trouble, whatever it is, must not touch the others; it stands in the table's result.
        except Exception as error:
            result = TableResult(task.table, outcome_of(error), problem=problem_of(error, self.secrets), phases=phases)
            explain(scrub(traceback.format_exc(), self.secrets))
        seconds = time.monotonic() - started
        say(f"{task.table}: {result.outcome}, {result.rows:,} rows, {seconds:.1f} s" + _reason(result))
        return result

    def _session_of(self, task: TableTask) -> SparkSession:
        """To be asked for in the table's own thread."""
        self.spark.sparkContext.setLocalProperty("spark.scheduler.pool", task.table)
        return fresh(self.spark)


def tables_at_once() -> int:
    """Twice as many as this process has cores: while one waits for Spark or for a store, another works."""
    return 2 * len(os.sched_getaffinity(0))


def _reason(result: TableResult) -> str:
    return f", {result.problem}" if result.problem else ""
