"""The common part of source connectors that poll."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import ClassVar

from airflow_cdc_provider.connectors.source import KeepsNoState, StreamSplit
from airflow_cdc_provider.connectors.sources.polling.intervals import IntervalPlanner, split_intervals
from airflow_cdc_provider.connectors.sources.polling.options import PollingOptions
from airflow_cdc_provider.connectors.sources.polling.positions import position_of
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.errors import CheckFailed, Problem, SourceUnavailable, SourceUnreachable
from airflow_cdc_provider.core.log.change_records import ChangeRecord
from airflow_cdc_provider.core.log.positions import Position
from airflow_cdc_provider.core.table.schema import TableSchema


class PollingSource(KeepsNoState, ABC):
    """A row is read completely, with its current values: intermediate states are not captured."""

    has_transactions: ClassVar[bool] = False
    exact_snapshot: ClassVar[bool] = False
    duplicates_within: ClassVar[timedelta] = timedelta(0)
    reads_tables_apart: ClassVar[bool] = True

    options: PollingOptions

    @abstractmethod
    def tables(self) -> list[TableSchema]: ...

    @abstractmethod
    def _planner(self) -> IntervalPlanner: ...

    @abstractmethod
    def _require_readable(self, task: TableTask) -> None:
        """Raises CheckFailed if no run can read the table as it is now, without a row that is missed or overwritten."""

    def refused(self, tables: Sequence[TableTask]) -> Mapping[str, Problem]:
        """A table whose questions fail is left to its reader, which reports the error for this table alone."""
        found = dict[str, Problem]()
        for task in tables:
            try:
                self._require_readable(task)
            except CheckFailed as error:
                found[task.table] = error.problems[0]
            except SourceUnreachable:
                raise
            except SourceUnavailable:
                continue
        return found

    def open_stream(self, tables: Sequence[str]) -> Position:
        self.tables()
        planner = self._planner()
        return position_of({table: planner.start(table) for table in tables})

    def capture_delay(self) -> timedelta:
        return self.options.commit_latency

    def splits(self, lo: Position, limit: Position) -> list[StreamSplit]:
        return split_intervals(lo, limit)

    def reread(self, record: ChangeRecord, table: TableTask, schema: TableSchema) -> list[ChangeRecord]:
        """A row has only what was read of it: an operator sets its other values, or the source changes it."""
        return [record]


def require_visible_timestamp(task: TableTask, column: str) -> None:
    """Raises CheckFailed (SRC130) if the rule hides the column whose values are the positions of the stream."""
    if column not in task.rule.columns.hidden:
        return
    raise CheckFailed.of(
        "SRC130",
        f"column {column} of {task.table} cannot be hashed, masked or truncated",
        where=task.table,
        found="the time of the last change, which is the position of the stream",
        do="exclude the column, or use another one in `timestamp_columns`",
        data="nothing was read",
    )


def task_of(split: StreamSplit, tables: Sequence[TableTask]) -> TableTask:
    return next(task for task in tables if task.table == split.table)
