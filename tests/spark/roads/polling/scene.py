"""A replicator that polls, its runs taken task by task as Airflow takes them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from airflow_cdc_provider.control.replicator import Replicator, open_replicator
from airflow_cdc_provider.core.connections import ConnectionInfo, Secrets
from airflow_cdc_provider.core.cursors import ControlRecord
from airflow_cdc_provider.core.definition import Definition, Reconcile, Source, Staging, TableRule, Target
from airflow_cdc_provider.core.steps import TableResult
from airflow_cdc_provider.state.store import StateStore
from tests.faults import attempts
from tests.faults.road import Road

Rows = dict[Any, dict[str, Any]]


@dataclass
class Scene:
    """What ``tests.faults.road`` runs. ``truth``: table → its rows at the source, by key, without technical columns."""

    folder: Path
    spark: SparkSession
    definition: Definition
    connection: ConnectionInfo
    key: str
    truth: Callable[[str], Rows]

    @property
    def secrets(self) -> Secrets:
        return Secrets(self.connection)

    @property
    def state_url(self) -> str:
        return f"sqlite:///{self.folder}/state.db"

    def replicator(self) -> Replicator:
        return open_replicator(self.definition, self.secrets, StateStore(self.state_url))

    def run(self, **more: Any) -> Road:
        with attempts.operating(lambda _: self.secrets):
            return Road(self, **more).go()  # type: ignore[arg-type]

    def green(self, **more: Any) -> Road:
        road = self.run(**more)
        assert road.green, (road.states, road.said)
        return road

    def settle(self) -> None:
        """Runs until there is nothing to do."""
        for _ in range(9):
            if set(self.green().states) <= {"open_window", "close_window"}:
                return
        raise AssertionError("there is no end of it")

    def results(self, road: Road, task: str) -> dict[str, TableResult]:
        latest = self.replicator().run(road.run_id).latest(task)
        assert latest is not None
        return {one.table: one for one in latest[1].tables}

    def control(self, table: str) -> ControlRecord:
        replicator = self.replicator()
        control = replicator.target.held(table, replicator.target.table_name(table)).control
        assert control is not None
        return control

    def rows(self, table: str) -> Rows:
        replicator = self.replicator()
        place = replicator.target.locate(replicator.target.table_name(table))
        rows = self.spark.read.format("delta").load(place).toArrow().to_pylist()
        assert len({row[self.key] for row in rows}) == len(rows), "no key twice"
        return {row[self.key]: row for row in rows}

    def differences(self) -> list[str]:
        """Keys whose rows are not those of the source; columns that the truth does not name do not count."""
        found = []
        for table in (rule.source for rule in self.definition.tables):
            truth, rows = self.truth(table), self.rows(table)
            found += [f"{table} {key}: on one side only" for key in truth.keys() ^ rows.keys()]
            for key in truth.keys() & rows.keys():
                ours = {name: rows[key][name] for name in truth[key]}
                found += [] if ours == truth[key] else [f"{table} {key}: {ours}, in truth {truth[key]}"]
        return found

    def with_options(self, **options: Any) -> None:
        source = self.definition.source
        self.definition = replace(self.definition, source=replace(source, options={**source.options, **options}))


def definition(folder: Path, kind: str, options: dict[str, Any], rules: Sequence[TableRule]) -> Definition:
    return Definition(
        name="polled",
        source=Source(kind, "source", Reconcile.MANUAL, options),
        target=Target("delta", f"{folder}/lake"),
        tables=tuple(rules),
        staging=Staging(f"{folder}/staging"),
    )
