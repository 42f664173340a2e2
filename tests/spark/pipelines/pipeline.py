"""A replicator whose runs execute task by task as in Airflow, into Delta, in the Spark session of the tests."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from uuid import uuid4

from deltalake import DeltaTable
from pyspark.sql import SparkSession

from airflow_cdc_provider.control.replicator import Replicator, open_replicator
from airflow_cdc_provider.core.connections.connection_info import Secrets
from airflow_cdc_provider.core.decisions.commands import CommandKind
from airflow_cdc_provider.core.decisions.steps import TableResult
from airflow_cdc_provider.core.spec.definition import Definition
from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.state.store import StateStore
from tests.delta_tables import read
from tests.faults import attempts
from tests.faults.dag_run import DagRun
from tests.faults.worker import request


@dataclass
class Pipeline(ABC):
    """Has what runs of ``tests.faults`` need of a replicator."""

    folder: Path
    spark: SparkSession
    definition: Definition

    @property
    @abstractmethod
    def secrets(self) -> Secrets: ...

    @property
    def state_url(self) -> str:
        return f"sqlite:///{self.folder}/state.db"

    @property
    def tables(self) -> list[str]:
        return [rule.source for rule in self.definition.tables]

    def replicator(self) -> Replicator:
        return open_replicator(self.definition, self.secrets, StateStore(self.state_url))

    def record_command(self, kind: CommandKind, *tables: str, **arguments: Any) -> str:
        """Records a command; the next run carries it out. Returns its id."""
        given = {"tables": list(tables), "key": uuid4().hex, "arguments": arguments}
        return str(request(self.replicator(), kind, given).id)

    def dag_run(self, **more: Any) -> DagRun:
        """A run that has not started."""
        return DagRun(self, **more)  # type: ignore[arg-type]

    def run(self, **more: Any) -> DagRun:
        return self.execute(self.dag_run(**more))

    def execute(self, dag_run: DagRun) -> DagRun:
        with attempts.operating(lambda _: self.secrets):
            return dag_run.execute()

    def run_successfully(self, **more: Any) -> DagRun:
        dag_run = self.run(**more)
        assert dag_run.green, (dag_run.states, dag_run.problems)
        return dag_run

    def run_until_idle(self) -> None:
        """Runs until there is nothing to do."""
        for _ in range(9):
            if set(self.run_successfully().states) <= {"open_window", "close_window"}:
                return
        raise AssertionError("runs find work without end")

    def results(self, dag_run: DagRun, task: str) -> dict[str, TableResult]:
        run = self.replicator().run(dag_run.run_id)
        latest = run.latest(task, run.plan().opening)
        assert latest is not None
        return {one.table: one for one in latest[1].tables}

    def control(self, table: str) -> ControlRecord:
        control = self.replicator().targets.only.state(table, self.target(table)).control
        assert control is not None
        return control

    def target(self, table: str) -> str:
        replicator = self.replicator()
        row = replicator.state.tables(self.definition.name).get(table)
        return row.target if row else replicator.targets.table_name(table)

    def copied_rows(self, table: str, key: str, *columns: str) -> dict[Any, dict[str, Any]]:
        """The rows of the copy by their key; all columns if none is named."""
        rows = read(DeltaTable(self.replicator().targets.only.locate(self.target(table))), *columns).to_pylist()
        assert len({row[key] for row in rows}) == len(rows), "no key twice"
        return {row[key]: row for row in rows}

    def with_source(self, **changes: Any) -> None:
        """Changes the definition's source; ``options`` are added to its own."""
        source = self.definition.source
        changes["options"] = {**source.options, **changes.get("options", {})}
        self.definition = replace(self.definition, source=replace(source, **changes))
