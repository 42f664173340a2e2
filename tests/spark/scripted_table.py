"""A table whose windows the test writes; the real jobs stage and merge them into a real target table."""

from __future__ import annotations

import json
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from airflow_cdc_provider.connectors.source_features import FetchesRows
from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo, Secrets
from airflow_cdc_provider.core.decisions.steps import Outcome, Step, StepKind, TableResult, TableTask
from airflow_cdc_provider.core.log.change_log import Hole, Manifest, TableSlice, attempt_folder, table_folder
from airflow_cdc_provider.core.log.change_records import ARRIVES, DEPARTS, ChangeRecord, canonical
from airflow_cdc_provider.core.serde import to_plain
from airflow_cdc_provider.core.spec.definition import (
    Definition,
    OnBadRecord,
    OnDelete,
    Source,
    Spark,
    Staging,
    TableRule,
    Target,
)
from airflow_cdc_provider.core.spec.engines import EngineMode
from airflow_cdc_provider.core.spec.history import History
from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.core.table.history import stored_schema
from airflow_cdc_provider.core.table.schema import TableSchema
from airflow_cdc_provider.core.table.states import State, TableState
from airflow_cdc_provider.staging.open_store import open_log
from airflow_cdc_provider.targets.delta.target import DeltaTarget
from airflow_cdc_provider.targets.sparksql.names import quoted
from airflow_cdc_provider.targets.sparksql.types import from_text
from airflow_cdc_provider.targets.target import TargetState, TargetTables
from spark_jobs import merge, stage
from spark_jobs.copies.copied_rows import CopiedRows, Keep, literal
from spark_jobs.copies.split_copy import WrittenSplits
from spark_jobs.engines.choice import on_engine
from spark_jobs.histories.copied_versions import copied_columns
from spark_jobs.runtime.job import Job, TableWork
from spark_jobs.runtime.sessions import Application
from spark_jobs.windows.record_files import RecordFile
from spark_jobs.writers.writer import TargetWriter, open_writer
from tests.delta_tables import read

Row = dict[str, Any]
FLOOR = "0" * 8
COPIED_AT = datetime(2026, 1, 1, tzinfo=UTC)


class ScriptedTable:
    """One table ``public.t``. Order keys are consecutive numbers; values are canonical JSON values."""

    def __init__(
        self,
        spark: SparkSession,
        folder: Path,
        schema: TableSchema,
        on_delete: OnDelete = OnDelete.HARD,
        base_url: str = "",
        objects: ConnectionInfo | None = None,
        target: Target | None = None,
        secrets: Secrets | None = None,
        on_bad_record: OnBadRecord = OnBadRecord.STOP,
        source: FetchesRows | None = None,
        engine: EngineMode = EngineMode.AUTO,
        history: History = History.NONE,
    ) -> None:
        """Staging and lake are in ``folder``, or under ``base_url``, with the connection ``objects``. ``target``:
        another target, with its ``secrets``. ``source``: fetches single rows."""
        base_url, objects = base_url or str(folder), objects or ConnectionInfo()
        self.spark = spark
        self.schema = schema
        self.source = source
        self.rule = TableRule(schema.table, on_delete=on_delete, on_bad_record=on_bad_record, history=history)
        self.definition = Definition(
            name="hand",
            source=Source("postgres", "none", options={"publication": "none"}),
            target=target or Target("delta", f"{base_url}/lake"),
            tables=(self.rule,),
            staging=Staging(f"{base_url}/staging"),
            spark=Spark(engine=engine),
        )
        self.secrets = secrets or Secrets(staging=objects, target=objects)
        self.log = open_log(self.definition, objects)
        self.log_id = self.log.create("tests", "2026-01-01T00:00:00Z")
        self.window = 0
        self.order = 0
        self.failing = False

    # The log

    def key(self, row: Row) -> str | None:
        return canonical([row[name] for name in self.schema.key]) if self.schema.key else None

    def record(self, op: str, **fields: Any) -> ChangeRecord:
        self.order += 1
        order_key = f"{self.order:08x}"
        return ChangeRecord(self.schema.table, op, order_key, self.schema.schema_id, event_id=order_key, **fields)

    def insert(self, row: Row, **more: Any) -> ChangeRecord:
        return self.record("insert", key=self.key(row), after=canonical(row), after_complete=True, **more)

    def update(self, row: Row, before: Row | None = None, complete: bool = True, op: str = "update") -> ChangeRecord:
        return self.record(
            op,
            key=self.key(row),
            key_before=self.key(row),
            before=canonical(before) if before else None,
            before_complete=bool(before),
            after=canonical(row),
            after_complete=complete,
        )

    def delete(self, row: Row, **more: Any) -> ChangeRecord:
        whole = set(row) == set(self.schema.names)
        return self.record("delete", key_before=self.key(row), before=canonical(row), before_complete=whole, **more)

    def move(self, old: Row, new: Row, complete: bool = True) -> list[ChangeRecord]:
        """A key change, split as a connector splits it. ``old``: at least the key."""
        link = uuid.uuid4().hex
        return [
            self.delete(old, phase=DEPARTS, link_id=link),
            self.record(
                "insert", key=self.key(new), after=canonical(new), after_complete=complete, phase=ARRIVES, link_id=link
            ),
        ]

    def truncate(self) -> ChangeRecord:
        return self.record("truncate")

    def alter(self, schema: TableSchema, warnings: Sequence[str] = ()) -> ChangeRecord:
        self.log.write_schema(self.schema)
        self.schema = schema
        return self.record("schema", after=canonical(to_plain(schema)), warnings=tuple(warnings))

    def land(
        self,
        records: Iterable[ChangeRecord | list[ChangeRecord]] = (),
        holes: Sequence[Hole] = (),
        listed: bool = True,
        cut: str = "",
    ) -> int:
        """Seal the next window with these records; ``listed``: it captured the table; ``cut``: more changes follow."""
        flat = [one for item in records for one in (item if isinstance(item, list) else [item])]
        self.window += 1
        self.log.write_schema(self.schema)
        part = TableSlice("")
        if flat:
            path = f"{attempt_folder(self.window, 'a')}/{table_folder(self.schema.table)}/0.parquet"
            file = RecordFile(self.log.store, path)
            file.write(flat)
            counts = dict(Counter(record.op for record in flat))
            schema_ids = tuple(dict.fromkeys(record.schema_id for record in flat))
            part = TableSlice("", schema_ids, (file.close().file,), counts)
        before = self.log.manifest_sha256(self.window - 1)
        tables = {self.schema.table: replace(part, cut=cut)} if listed else {}
        hi = {"s": str(self.order)}
        self.log.seal(
            Manifest(self.log_id, self.window, 1, {}, hi, before, "a", "2026-01-01", tables, holes=tuple(holes))
        )
        return self.window

    # The target

    def task(self) -> TableTask:
        current = self.target_state()
        state = current.control.state.name if current.control else TableState.PENDING
        state = TableState.FAILING if self.failing else state
        return TableTask(self.schema.table, "t", self.stored_schema, self.rule, "", state, current.control)

    @property
    def stored_schema(self) -> TableSchema:
        return stored_schema(self.rule.history, self.schema)

    def job_tables(self) -> TargetTables:
        return self.job(StepKind.STAGE, ()).tables

    def target_state(self) -> TargetState:
        return self.job_tables().state(self.schema.table, "t")

    def job(self, kind: StepKind, tables: Sequence[TableTask], **more: Any) -> Job:
        step = Step(
            kind,
            self.definition,
            "run",
            more.pop("attempt", uuid.uuid4().hex),
            f"steps/run/{kind}/1",
            "",
            "tests",
            self.log_id,
            1,
            {},
            tuple(tables),
            window=more.pop("window", self.window),
            **more,
        )
        job = Job(step, self.secrets, Application(lambda: self.spark, lambda: "local[2]"))
        if self.source:
            vars(job.resources).update(connector=self.source)
            vars(job).update(fetches_rows=True)
        return job

    def copy(self, rows: Sequence[Row], state: TableState = TableState.REPLICATING, high: int | None = None) -> None:
        """Writes the table as a copy does, at the last sealed window. ``high``: the window with which it is
        consistent."""
        fields = ", ".join(f"{quoted(name)} STRING" for name in self.schema.names)
        texts = [tuple(_text(row[name]) for name in self.schema.names) for row in rows]
        technical = [f"'{self._now()}' AS _cdc_order"] if self.schema.key else []
        technical += ["false AS _cdc_deleted"] if self.rule.on_delete is OnDelete.SOFT else []
        given = self.spark.createDataFrame(texts, fields).coalesce(1)
        frame = given.selectExpr(
            *(f"{from_text(quoted(one.name), one.type)} AS {quoted(one.name)}" for one in self.schema.columns),
            *technical,
        )
        constants = copied_columns(self.rule.history, self._now(), COPIED_AT)
        frame = frame.withColumns({name: literal(value) for name, value in constants.items()})
        job = self.job(StepKind.SNAPSHOT, ())
        record = ControlRecord(
            "hand",
            self.schema.table,
            self.log_id,
            "tests",
            job.step.attempt,
            self.log.highest_fence(self.schema.table) + 1,
            self.window,
            self._now(),
            State(state, "2026-01-01T00:00:00Z"),
            schema=self.stored_schema,
            shard_value=self.rule.shard_value,
            high=high,
            nonce=uuid.uuid4().hex,
        )

        def each_split(function: Callable[[Iterable[pa.Table]], Any], keep: Keep | None = None) -> WrittenSplits[Any]:
            return WrittenSplits([function([frame.toArrow()])], len(rows))

        copied = CopiedRows(lambda: frame, each_split)
        task = self.task()
        work = TableWork(task, lambda: self.spark)
        commit = on_engine(job, work, len(rows), lambda engine: engine.copy(task, copied))
        assert commit(record) == len(rows)

    def use(self, engine: EngineMode) -> None:
        self.definition = replace(self.definition, spark=Spark(engine=engine))

    def _now(self) -> str:
        return f"{self.order:08x}"

    def staged(self, **more: Any) -> tuple[Job, TableResult]:
        job = self.job(StepKind.STAGE, (self.task(),), **more)
        return job, stage.run(job).tables[0]

    def merged(self, staged: Job) -> TableResult:
        return merge.run(self.job(StepKind.MERGE, (self.task(),), merge_of=staged.step.attempt)).tables[0]

    def apply(self, records: Iterable[ChangeRecord | list[ChangeRecord]] = (), **more: Any) -> TableResult:
        """Land the records as a window, stage and merge. Returns the result of the stage if it staged nothing."""
        self.land(records)
        job, result = self.staged(**more)
        if result.outcome is not Outcome.DONE:
            return result
        return self.merged(job)

    def rows(self, *technical: str) -> list[tuple[Any, ...]]:
        """The target's rows, sorted, with the columns of the schema."""
        names, tables = (*self.schema.names, *technical), self.job_tables()
        if isinstance(tables, DeltaTarget):
            columns = read(tables.open("t"), *names).columns
            found = zip(*(map(_naive, column.to_pylist()) for column in columns), strict=True)
        else:
            found = map(tuple, self.read_at(None).select(*map(quoted, names)).collect())
        return sorted(found, key=lambda row: [(value is None, str(value)) for value in row])

    def read_at(self, version: int | None) -> DataFrame:
        """Reads the target as a job does."""
        return self.writer().read(self.task(), version)

    def writer(self) -> TargetWriter:
        return open_writer(self.job(StepKind.STAGE, ()), TableWork(self.task(), lambda: self.spark))


def _naive(value: Any) -> Any:
    """Times as Spark returns them to Python."""
    return value.replace(tzinfo=None) if isinstance(value, datetime) else value


def _text(value: Any) -> str | None:
    return value if value is None or isinstance(value, str) else json.dumps(value)
