"""What a job works with: its step, Spark, the change log, source and target; and the loop over its tables."""

from __future__ import annotations

import contextlib
import os
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

from pyspark.sql import SparkSession

from airflow_cdc_provider.connectors.registry import fetches_rows, open_source
from airflow_cdc_provider.connectors.source import SourceConnector
from airflow_cdc_provider.connectors.source_features import RegistryAccess
from airflow_cdc_provider.core.connections.connection_info import Secrets
from airflow_cdc_provider.core.decisions.steps import Outcome, Step, StepResult, TableResult, TableTask, WindowResult
from airflow_cdc_provider.core.spec.definition import Definition, Target
from airflow_cdc_provider.core.spec.engines import EngineUse
from airflow_cdc_provider.core.table.copies import target_of_copy
from airflow_cdc_provider.staging.change_log import ChangeLog
from airflow_cdc_provider.staging.open_store import open_log
from airflow_cdc_provider.staging.whole_windows import WholeWindows
from airflow_cdc_provider.targets import costs
from airflow_cdc_provider.targets.registry import Targets, open_targets
from airflow_cdc_provider.targets.target import TargetTables
from spark_jobs.runtime.console import log_line, log_trace
from spark_jobs.runtime.failures import outcome_of, problem_of, scrub
from spark_jobs.runtime.planned_source import planned_hash_key, require_planned_source
from spark_jobs.runtime.sessions import Application, cores, new_session

Phases = dict[str, float]

DRIVER_SPLITS = 2
"""How many splits a driver reads at once itself: small ones."""


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
    """One table in its own thread. ``uses``: the engines that have worked on it, the last one last. ``decided``: as in
    the result."""

    task: TableTask
    new_session: Callable[[], SparkSession]
    phases: Phases = field(default_factory=dict)
    uses: list[EngineUse] = field(default_factory=list)
    decided: dict[str, str] = field(default_factory=dict)

    @cached_property
    def spark(self) -> SparkSession:
        """A session with its own settings."""
        return self.new_session()

    def session(self) -> SparkSession:
        """For code that may or may not need Spark."""
        return self.spark

    def phase(self, name: str) -> contextlib.AbstractContextManager[None]:
        return timed(self.phases, name)

    def result(self, outcome: Outcome, **fields: Any) -> TableResult:
        engine = self.uses[-1] if self.uses else None
        phases, decided = dict(self.phases), dict(self.decided)
        return TableResult(self.task.table, outcome, phases=phases, engine=engine, decided=decided, **fields)


@dataclass(frozen=True)
class Resources:
    """Each resource is opened on first use; a merge needs no source."""

    step: Step
    secrets: Secrets
    application: Application

    @property
    def definition(self) -> Definition:
        return self.step.definition

    @cached_property
    def log(self) -> ChangeLog:
        return open_log(self.definition, self.secrets.staging)

    @cached_property
    def whole_windows(self) -> WholeWindows:
        return WholeWindows(self.log)

    @cached_property
    def connector(self) -> SourceConnector:
        return open_source(self.definition, self.secrets.source, RegistryAccess(self.secrets.registry, self.log))

    @cached_property
    def source(self) -> SourceConnector:
        require_planned_source(self.step, self.connector)
        return self.connector

    @cached_property
    def hash_key(self) -> bytes:
        return planned_hash_key(self.step, self.secrets)

    @cached_property
    def targets(self) -> Targets:
        return open_targets(self.definition, self.secrets, self.log)

    @cached_property
    def threads(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(DRIVER_SPLITS, thread_name_prefix="split")


@dataclass(frozen=True)
class Job:
    """``source``, ``tables`` and Spark are opened on first use. A job made by ``replace`` for another step of the same
    definition shares what is open. So does the job of a single table (``of_copy``): its definition has the target of
    that copy alone."""

    step: Step
    secrets: Secrets
    application: Application
    phases: Phases = field(default_factory=dict)
    peak_memory_bytes: dict[str, int] = field(default_factory=dict)
    shared: Resources | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if self.shared is None:
            object.__setattr__(self, "shared", Resources(self.step, self.secrets, self.application))

    @property
    def resources(self) -> Resources:
        assert self.shared is not None
        return self.shared

    @property
    def log(self) -> ChangeLog:
        return self.resources.log

    @property
    def whole_windows(self) -> WholeWindows:
        return self.resources.whole_windows

    @property
    def source(self) -> SourceConnector:
        """Raises SourceUnreachable (SRC010) where it is not the one that the run was decided under."""
        return self.resources.source

    @property
    def connector(self) -> SourceConnector:
        """For what it can do without a server."""
        return self.resources.connector

    def require_planned_source(self) -> None:
        """Call it between the last read and the commit of what was read. Raises SourceUnreachable (SRC010)."""
        require_planned_source(self.step, self.source)

    @property
    def hash_key(self) -> bytes:
        """Of hashed columns. Raises StepFailed (CON006) where it is not the one that the run was decided under."""
        return self.resources.hash_key

    @cached_property
    def fetches_rows(self) -> bool:
        """Whether the source can return single rows."""
        return fetches_rows(self.step.definition)

    def of_copy(self, copy: str) -> Job:
        if not self.step.definition.targets:
            return self
        return replace(self, step=replace(self.step, definition=self.step.definition.with_target(target_of_copy(copy))))

    @property
    def target(self) -> Target:
        """Of the job of a table."""
        return self.step.definition.only_target

    @property
    def tables(self) -> TargetTables:
        """The target of the job of a table."""
        return self.resources.targets.named(self.target.name)

    @property
    def spark(self) -> SparkSession:
        return self.application.session

    @property
    def cores(self) -> int:
        """How many tasks run in parallel."""
        return self.application.local_cores or cores(self.spark)

    @property
    def threads(self) -> ThreadPoolExecutor:
        """Shared by the splits of all tables: memory limits how many are read at once."""
        return self.resources.threads

    def phase(self, name: str) -> contextlib.AbstractContextManager[None]:
        return timed(self.phases, name)

    def result(self, tables: Sequence[TableResult], window: WindowResult | None = None) -> StepResult:
        return StepResult(self.step.kind, self.step.attempt, tuple(tables), window)

    def for_each_table(
        self,
        tasks: Sequence[TableTask],
        function: Callable[[Job, TableWork], TableResult],
        max_parallel: int | None = None,
    ) -> tuple[TableResult, ...]:
        """Process the tables in parallel, each with the job of its target, at most ``max_parallel`` at once; the
        results keep the order. The failure of a table is recorded and does not stop the others. Raises the error of
        Spark's start, which is not the error of a table."""
        if not tasks:
            return ()
        threads = min(len(tasks), max_parallel_tables(), max_parallel or len(tasks))
        with ThreadPoolExecutor(threads, thread_name_prefix="table") as pool:
            results = tuple(pool.map(lambda task: self._one_table(task, function), tasks))
        if isinstance(self.application.started, Exception):
            raise self.application.started
        return results

    def _one_table(self, task: TableTask, function: Callable[[Job, TableWork], TableResult]) -> TableResult:
        started = time.monotonic()
        work = TableWork(task, partial(self._session_of, task))
        with costs.collected() as cost:
            try:
                result = replace(function(self.of_copy(task.table), work), phases=work.phases)
            # Any error of one table must not affect the others; it is recorded in the table's result.
            except Exception as error:
                result = work.result(outcome_of(error), problem=problem_of(error, self.secrets))
                log_trace(scrub(traceback.format_exc(), self.secrets))
        result = replace(result, cost=cost)
        seconds = time.monotonic() - started
        log_line(f"{task.table}: {result.outcome}, {result.rows:,} rows, {seconds:.1f} s" + _reason(result))
        for use in work.uses:
            log_line(f"{task.table}: {use}")
        if cost:
            log_line(f"{task.table}: {', '.join(f'{unit} {amount:,}' for unit, amount in cost.items())}")
        return result

    def _session_of(self, task: TableTask) -> SparkSession:
        """Call in the table's own thread: the scheduler pool is a property of the thread."""
        self.spark.sparkContext.setLocalProperty("spark.scheduler.pool", task.table)
        return new_session(self.spark)


def max_parallel_tables() -> int:
    """Twice the cores of this process: while one table waits for Spark or a store, another one works."""
    return 2 * len(os.sched_getaffinity(0))


def _reason(result: TableResult) -> str:
    return f", {result.problem}" if result.problem else ""
