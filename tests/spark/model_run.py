"""Random histories of the reference model, applied by the real jobs."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from pyspark.sql import SparkSession

from airflow_cdc_provider.core.decisions.steps import Outcome
from airflow_cdc_provider.core.log.change_records import ChangeRecord
from airflow_cdc_provider.core.spec.definition import OnDelete
from spark_jobs.runtime.job import Job
from tests.model.change_records import KEYED, KEYLESS, SHAPE, ChangeRecordWriter, json_value
from tests.model.histories import Delivery, RandomHistories
from tests.model.source import Row
from tests.spark.scripted_table import ScriptedTable


@dataclass(frozen=True)
class Commit:
    """``version`` of the copy is the source at ``position``; the last full copy was at ``since``. ``kind``: copy, batch
    or repair."""

    version: int
    position: int
    since: int
    kind: str


@dataclass
class ModelRun:
    """``at_once``: all windows are staged as one batch, without the later copies."""

    spark: SparkSession
    folder: Path
    histories: RandomHistories
    on_delete: OnDelete
    at_once: bool = False
    commits: list[Commit] = field(default_factory=list)

    def __post_init__(self) -> None:
        schema = KEYED if self.histories.source.key else KEYLESS
        self.table = ScriptedTable(self.spark, self.folder, schema, self.on_delete)
        self.writer = ChangeRecordWriter(schema)
        self.position, self.since = 0, 0

    def run(self) -> ModelRun:
        self._copy()
        windows = iter(self.histories.windows)
        for batch in [len(self.histories.windows)] if self.at_once else self.histories.batches:
            for _ in range(batch):
                self.table.land(self._records(next(windows)))
            self._apply()
        return self

    def _records(self, window: list[Delivery]) -> list[ChangeRecord]:
        records: list[ChangeRecord] = []
        later: list[ChangeRecord] = []
        for one in window:
            if one.changes:
                now, again = self.writer.records(one)
                self.position += 1
                self.table.order = self.writer.order
                records += now
                later += again
            elif not self.at_once:
                self._copy()
        return records + later

    def _copy(self) -> None:
        self.table.copy([json_row(row) for row in self.histories.source.state_at(self.position).elements()])
        self.since = self.position
        self._record_commit("copy")

    def _apply(self) -> None:
        """Each batch is merged twice and applies once. Two attempts stage the first batch."""
        if not self.table.target_state().control.window < self.table.window:  # type: ignore[union-attr]
            return
        first, staged = self.table.staged()
        if staged.outcome is Outcome.UNCHANGED:
            return
        assert staged.outcome is Outcome.DONE, staged.problem
        late = [first]
        if not self.at_once and not any(commit.kind == "batch" for commit in self.commits):
            late.append(self.table.staged()[0])
        self._merge(first, "batch")
        assert {self.table.merged(again).outcome for again in late} == {Outcome.FENCED}

    def repair(self) -> None:
        """Applies the whole log again: no row changes."""
        job, staged = self.table.staged(repair=(1, self.table.window))
        if staged.outcome is not Outcome.UNCHANGED:
            assert staged.outcome is Outcome.DONE, staged.problem
            self._merge(job, "repair")

    def _merge(self, staged: Job, kind: str) -> None:
        merged = self.table.merged(staged)
        assert merged.outcome is Outcome.DONE, merged.problem
        self._record_commit(kind)

    def _record_commit(self, kind: str) -> None:
        version = self.table.target_state().version
        assert version is not None
        self.commits.append(Commit(version, self.position, self.since, kind))


def json_row(row: Row) -> dict[str, object]:
    return {column.name: json_value(column, value) for column, value in zip(SHAPE, row, strict=True)}
