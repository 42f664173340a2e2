"""A replicator with a target made of files and a source that is never read, and one run of it: everything that a Spark
step needs except Spark. ``python -m tests.provider.step_harness FOLDER STEP TRY`` runs one step in a task process."""

from __future__ import annotations

import hashlib
import os
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from airflow_cdc_provider.connectors import SOURCES
from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.decisions.attempts import Submission
from airflow_cdc_provider.core.decisions.run_plan import Mode, RunPlan
from airflow_cdc_provider.core.decisions.steps import (
    STAGED,
    Outcome,
    Step,
    StepKind,
    StepResult,
    TableResult,
    TableTask,
)
from airflow_cdc_provider.core.serde import to_plain
from airflow_cdc_provider.core.spec.definition import Definition, Source, Spark, Staging, TableRule, Target
from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType, TableSchema
from airflow_cdc_provider.core.table.state_rows import AttemptRow
from airflow_cdc_provider.core.table.states import State, TableState
from airflow_cdc_provider.hooks.state import open_state
from airflow_cdc_provider.operators.spark import CdcSparkOperator
from airflow_cdc_provider.staging.open_store import open_log
from airflow_cdc_provider.staging.run_files import StepFolder, own_run
from airflow_cdc_provider.targets import TARGETS
from tests.provider.file_target import FileTarget

TARGETS["files"] = "tests.provider.file_target:FileTarget"
SOURCES["nothing"] = "tests.provider.file_target:SilentSource"
RUN = "scheduled__2026-11-21T12:00:00+00:00"
PASSWORD = "Tr0ub4dor&3-correct-horse"
API_KEY = "key-of-the-object-store-7741"
CONNECTIONS: dict[str, dict[str, Any]] = {
    "spark_default": {"conn_type": "spark", "host": "local[2]"},
    "shop_db": {"conn_type": "postgres", "host": "db.local", "login": "cdc", "password": PASSWORD},
    "lake": {"conn_type": "aws", "extra": {"api_key": API_KEY, "region": "eu-central-1"}},
}


class StepHarness:
    """``folder`` contains staging, target and the home of Airflow."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.definition = Definition(
            name=f"shop_{hashlib.sha256(str(folder).encode()).hexdigest()[:8]}",
            source=Source(type="nothing", connection="shop_db"),
            target=Target(type="files", location=str(folder / "lake"), connection="lake"),
            tables=(TableRule("public.*"),),
            staging=Staging(location=str(folder / "staging")),
            spark=Spark(conf={"spark.sql.files.maxPartitionBytes": "64m"}),
        )
        self.log = open_log(self.definition, ConnectionInfo())
        self.target = FileTarget(self.definition.target, ConnectionInfo(), self.definition.name, self.log)
        self.state = open_state()
        self.run = own_run(self.log.store, self.state.owner(), RUN)

    def task(self, table: str, state: TableState = TableState.REPLICATING) -> TableTask:
        schema = TableSchema(table, (Column("id", LogicalType(Kind.INT64)),), ("id",))
        return TableTask(table, table.replace(".", "_"), schema, self.definition.tables[0], "d1", state)

    def plan(self, *tables: str, **more: Any) -> RunPlan:
        tasks = tuple(self.task(table) for table in tables)
        plan = RunPlan(RUN, Mode.STREAM, "log-1", "owner-1", 1, {"system": "7"}, tasks, **more)
        self.run.write_plan(plan)
        return plan

    def commit(self, table: str, **changes: Any) -> ControlRecord:
        """A commit to a target table, as a job or another Airflow makes it."""
        state = self.target.state(table, table.replace(".", "_"))
        first = ControlRecord(
            self.definition.name,
            table,
            "log-1",
            "owner-1",
            "copy",
            1,
            3,
            "f0",
            State(TableState.REPLICATING, "2026-11-21T00:00:00Z"),
        )
        record = replace(state.control or first, **changes)
        version = 0 if state.version is None else state.version + 1
        assert self.target.commit(table.replace(".", "_"), version, record)
        return record

    def control(self, table: str) -> ControlRecord:
        control = self.target.state(table, table.replace(".", "_")).control
        assert control is not None
        return control

    def staged(self, *tables: str, window: int = 5, stopped: tuple[str, ...] = (), number: int = 1) -> str:
        """Writes the result of a finished stage task; ``stopped`` tables have a batch and a problem. Returns the
        attempt of the batches. ``number`` of the submission."""
        plan = self.run.plan()
        attempt = f"staged-{number}"
        step = Step(
            StepKind.STAGE, self.definition, RUN, attempt, "", "", "owner-1", "log-1", 1, {}, plan.tables, window
        )
        folder = self.run.folder("stage", number)
        folder.write_step(step)
        done = (TableResult(table, Outcome.DONE) for table in tables)
        early = (TableResult(table, Outcome.BLOCKED, detail={STAGED: 1}) for table in stopped)
        folder.write_result(StepResult(StepKind.STAGE, step.attempt, (*done, *early)))
        return step.attempt

    def stale_attempt(self, step: str, *tables: str) -> Step:
        """An attempt of this run on another worker whose end was not seen."""
        plan = self.run.plan()
        kind, tasks = StepKind(step), plan.named(tables)
        attempt = f"stale-{step}-of-{self.definition.name}"
        staged = self.run.latest("stage", "") if kind is StepKind.MERGE else None
        merge_of = staged[0].attempt if staged else ""
        attempt_step = Step(
            kind, self.definition, RUN, attempt, "", "", plan.owner, plan.log_id, 1, {}, tasks, 5, merge_of=merge_of
        )
        folder = self.run.folder(task_id(step), 1)
        assert folder.claim(Submission(attempt, "worker-2 5a3c pid:[1]"))
        folder.write_step(attempt_step)
        self.state.open_attempt(
            AttemptRow(
                attempt_step.attempt,
                self.definition.name,
                step,
                RUN,
                task_id(step),
                1,
                folder.path,
                tables,
                "2026-05-01",
            )
        )
        return attempt_step

    def operator(self, step: str) -> CdcSparkOperator:
        return CdcSparkOperator(task_id=task_id(step), step=step, definition=to_plain(self.definition))

    def execute(self, step: str, try_number: int = 1) -> dict[str, Any]:
        return self.operator(step).execute(context(step, try_number))

    def folders(self, step: str) -> list[StepFolder]:
        """Oldest first."""
        return self.run.submissions(task_id(step))[::-1]


def task_id(step: str) -> str:
    return f"reconcile.{step}" if step in ("resync", "replay") else step


def context(step: str, try_number: int = 1) -> Any:
    return {"ti": SimpleNamespace(run_id=RUN, task_id=task_id(step), try_number=try_number)}


if __name__ == "__main__":
    sys.executable = os.environ["FAKE_PYTHON"]
    StepHarness(Path(sys.argv[1])).execute(sys.argv[2], int(sys.argv[3]))
