"""Runs of a replicator without database, lake or Spark: a source that is a JSON file, a target made of files, and Spark
steps that land, merge and copy only counts of rows. Their commits and results are like those of the real steps."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

from airflow_cdc_provider.connectors.source import SourceStatus
from airflow_cdc_provider.control.close_window import CloseResult, close_window
from airflow_cdc_provider.control.observe import RunContext
from airflow_cdc_provider.control.open_window import open_window
from airflow_cdc_provider.control.reconcile import find_holes, pause_stream, resume_stream
from airflow_cdc_provider.control.replicator import Replicator
from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.decisions.commands import Command, CommandKind
from airflow_cdc_provider.core.decisions.holes import hole_of
from airflow_cdc_provider.core.decisions.run_decision import RunDecision
from airflow_cdc_provider.core.decisions.run_plan import RunPlan
from airflow_cdc_provider.core.decisions.steps import (
    Outcome,
    Step,
    StepKind,
    StepResult,
    TableResult,
    TableTask,
    WindowResult,
)
from airflow_cdc_provider.core.errors import CheckFailed, PositionLost, Problem, SourceUnavailable, TargetUnavailable
from airflow_cdc_provider.core.log.change_log import DataFile, Hole, Manifest, TableSlice
from airflow_cdc_provider.core.log.positions import Position
from airflow_cdc_provider.core.serde import from_plain, to_plain
from airflow_cdc_provider.core.spec.definition import Definition, Source, Staging, TableRule, Target
from airflow_cdc_provider.core.spec.engines import EngineName, EngineUse
from airflow_cdc_provider.core.spec.fields import doc
from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.core.table.copies import source_table
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType, TableSchema
from airflow_cdc_provider.core.table.special_values import POSTGRESQL, Specials, may_hold
from airflow_cdc_provider.core.table.states import State, TableState
from airflow_cdc_provider.core.table.table_size import TableSize
from airflow_cdc_provider.core.times import utc_now
from airflow_cdc_provider.staging.change_log import ChangeLog
from airflow_cdc_provider.staging.open_store import open_log
from airflow_cdc_provider.state.store import StateStore
from airflow_cdc_provider.targets.registry import Targets
from airflow_cdc_provider.targets.target import TargetState
from tests.provider.file_target import FileTarget

IDLE_STEP = 16
"""The stream of the source must have advanced this far without changes of our tables before an empty window is
landed."""


def schema(table: str, key: tuple[str, ...] = ("id",)) -> TableSchema:
    return TableSchema(table, (Column("id", LogicalType(Kind.INT64)), Column("name", LogicalType(Kind.TEXT))), key)


class FileSource:
    """Positions are numbers. ``changes``: table and position of each change; ``slot`` is None where there is none.
    ``outside``: tables that the stream does not carry now."""

    unseen = "what is not in its file"
    exact_snapshot = True

    def __init__(self, path: Path) -> None:
        self.path = path

    def write(self, **changes: Any) -> None:
        """Atomic, since other threads read the file."""
        new = self.path.with_suffix(f".{uuid4().hex}")
        new.write_text(json.dumps({**self.read(), **changes}))
        new.replace(self.path)

    def read(self) -> dict[str, Any]:
        if not self.path.exists():
            start = {"identity": {"system": "7"}, "tables": [], "slot": None, "end": 100, "changes": [], "up": True}
            return {**start, "outside": []}
        body: dict[str, Any] = json.loads(self.path.read_text())
        if not body["up"]:
            raise SourceUnavailable.of("SRC001", "the source does not answer")
        return body

    def change(self, *tables: str) -> None:
        body = self.read()
        for table in tables:
            body["end"] += 1
            body["changes"].append([table, body["end"]])
        self.write(**body)

    def check(self, tables: Sequence[TableTask]) -> list[Problem]:
        return []

    def identity(self) -> dict[str, str]:
        return dict(self.read()["identity"])

    def tables(self) -> list[TableSchema]:
        return [from_plain(TableSchema, table) for table in self.read()["tables"]]

    def sizes(self, tables: Sequence[str]) -> dict[str, TableSize]:
        return {name: from_plain(TableSize, size) for name, size in self.read().get("sizes", {}).items()}

    def may_hold(self, column: Column) -> Specials:
        return may_hold(column, POSTGRESQL)

    def open_stream(self, tables: Sequence[str]) -> Position:
        body = self.read()
        if body["slot"] is None:
            self.write(slot=body["end"])
        return {"slot": str(self.read()["slot"])}

    def status(self, position: Position, tables: Sequence[str]) -> SourceStatus:
        body, start = self.read(), int(position["slot"])
        if body["slot"] is None or body["slot"] > start:
            raise PositionLost.of("SRC030", "the slot is gone", do="airflow cdc resync shop")
        anything = any(at > start and table in tables for table, at in body["changes"])
        limit = {**position, "slot": str(body["end"])}
        idle = limit if not anything and body["end"] - start >= IDLE_STEP else None
        outside = {table: Problem("SRC008", f"{table} is not carried", do="list it") for table in body["outside"]}
        return SourceStatus(anything, limit, idle, outside, datetime.now(UTC))

    def acknowledge(self, position: Position) -> None:
        self.write(slot=max(self.read()["slot"], int(position["slot"])))

    def drop_stream(self) -> None:
        self.write(slot=None)


class LoggedFileTarget(FileTarget):
    """As the real targets: control records are also in the change log; a user may have restored the first version of a
    table (file ``restored``: the number of commits at that time), or a table may not answer (file ``locked``)."""

    def __init__(self, target: Target, connection: ConnectionInfo, replicator: str, log: ChangeLog) -> None:
        super().__init__(target, connection, replicator, log)
        self.log = log

    def state(self, table: str, target_table: str) -> TargetState:
        names = self.store.names(target_table)
        if "locked" in names:
            raise TargetUnavailable.of("TGT010", "the lake does not answer", where=target_table)
        commits = [self.store.read(f"{target_table}/{name}") for name in names if name != "restored"]
        if not commits:
            return TargetState(exists=False)
        records = [from_plain(ControlRecord, json.loads(content)) for content in commits]
        taken_back = "restored" in names and len(commits) == int(self.store.read(f"{target_table}/restored"))
        newest = records[0] if taken_back else records[-1]
        return TargetState(
            True, newest, len(commits) - 1, token=max(record.token for record in records), restored=taken_back
        )

    def commit(self, target_table: str, version: int, record: ControlRecord) -> bool:
        return self.log.write_control(record) and super().commit(target_table, version, record)


@dataclass
class RunHarness:
    """``unusable``: the targets whose connection does not exist."""

    folder: Path
    tables: tuple[str, ...] = ("public.a", "public.b")
    definition: Definition = field(init=False)
    source: FileSource = field(init=False)
    state: StateStore = field(init=False)
    log_lines: list[str] = field(default_factory=list)
    unusable: set[str] = field(default_factory=set)
    comparison: dict[str, Any] = field(
        default_factory=lambda: {"identical": True, "source_rows": 10, "target_rows": 10, "inexact": False}
    )

    def __post_init__(self) -> None:
        self.definition = Definition(
            name="shop",
            source=Source(type="file", connection="db"),
            target=Target(type="files", location=str(self.folder / "lake")),
            tables=(TableRule("public.*"),),
            staging=Staging(location=str(self.folder / "staging")),
        )
        self.source = FileSource(self.folder / "source.json")
        if not self.source.path.exists():
            self.source.write(tables=[to_plain(schema(table)) for table in self.tables])

    @property
    def replicator(self) -> Replicator:
        log = open_log(self.definition, ConnectionInfo())
        if not (self.folder / "state.db").exists():
            self.state = StateStore(f"sqlite:///{self.folder}/state.db")

        def create(target: Target) -> Any:
            if target.name in self.unusable:
                raise CheckFailed.of("CON001", f"Airflow has no connection {target.name}")
            return LoggedFileTarget(target, ConnectionInfo(), "shop", log)

        targets = Targets(self.definition, create, lambda _: target_name)
        return Replicator(self.definition, self.source, targets, log, self.state)  # type: ignore[arg-type]

    # The tasks of a run

    def open(self, run: str | RunContext) -> RunDecision:
        return open_window(
            self.replicator, run if isinstance(run, RunContext) else RunContext(run), self.log_lines.append
        )

    def close(self, run_id: str, failed: Sequence[str] = ()) -> CloseResult:
        return close_window(self.replicator, run_id, failed, self.log_lines.append)

    def run(self, run: str | RunContext, cut: str = "limit") -> CloseResult:
        """A whole run in which every Spark step succeeds. ``cut``: what ends its window."""
        decision = self.open(run)
        run_id = decision.plan.run_id
        self.spark(decision, cut)
        if "extract" in decision.follow or "stage" in decision.follow:
            find_holes(self.replicator, run_id, self.log_lines.append)
        if decision.plan.reconcile or self.replicator.run(run_id).holes(decision.plan.opening):
            self.reconcile(run_id)
        return self.close(run_id)

    def spark(self, decision: RunDecision, cut: str = "limit") -> None:
        plan, follow = decision.plan, decision.follow
        if "snapshot" in follow:
            self.copy(plan, "snapshot", plan.copy, TableState.REPLICATING)
        if "extract" in follow:
            self.extract(plan, cut=cut)
        if "extract" in follow or "stage" in follow:
            self.merge(plan)
        if "verify" in follow:
            done = [
                TableResult(table, Outcome.DONE, 10, window=plan.sealed + 1, fence=1, detail=self.comparison)
                for table in plan.compare
            ]
            self.write_result(plan.run_id, "verify", StepKind.VERIFY, done)

    def reconcile(self, run_id: str) -> tuple[str, ...]:
        paused = pause_stream(self.replicator, run_id, self.log_lines.append)
        self.copy(self.replicator.run(run_id).plan(), "reconcile.resync", paused, None)
        return resume_stream(self.replicator, run_id, self.log_lines.append)

    # The Spark steps

    def copy(
        self, plan: RunPlan, task_id: str, tables: Iterable[str], state: TableState | None, window: int | None = None
    ) -> None:
        """``window``: before their anchor; by default the last sealed one."""
        log = self.replicator.log
        window = log.sealed() if window is None else window
        done = []
        for task in plan.named(tuple(tables)):
            state_before = self.replicator.targets.state(task.table, task.target)
            fence = (state_before.control.fence if state_before.control else log.highest_fence(task.table)) + 1
            assert state_before.control or state
            now = State(state, utc_now()) if state else state_before.control.state  # type: ignore[union-attr]
            hi, sha256 = log.manifest(window).hi, log.manifest_sha256(window)
            record = ControlRecord(
                replicator="shop",
                table=task.table,
                log_id=plan.log_id,
                owner=plan.owner,
                attempt=attempt_of(plan, task_id),
                fence=fence,
                window=window,
                floor="f",
                state=now,
                epoch=plan.epoch,
                hi=hi,
                manifest_sha256=sha256,
                definition_sha256=task.definition_sha256,
                schema=task.schema,
                source_identity=plan.source_identity,
                resyncs=task.resyncs,
            )
            self.commit(task.target, record)
            done.append(TableResult(task.table, Outcome.DONE, 10, {"read": 10}, fence, window))
        kind = StepKind.SNAPSHOT if state else StepKind.RESYNC
        self.write_result(plan.run_id, task_id, kind, done)

    def extract(self, plan: RunPlan, holes: tuple[Hole, ...] = (), cut: str = "limit") -> Manifest:
        lo, limit = int(plan.lo["slot"]), int(plan.limit["slot"])
        inside = [table for table, at in self.source.read()["changes"] if lo < at <= limit]
        slices = {
            task.source_table: replace(_slice(task, inside.count(task.source_table)), cut=cut.replace("limit", ""))
            for task in plan.tables
        }
        times = (utc_now() if inside else None,) * 2
        manifest = self.replicator.log.seal(
            Manifest(
                log_id=plan.log_id,
                window=plan.sealed + 1,
                epoch=plan.epoch,
                lo=plan.lo,
                hi=plan.limit,
                previous_sha256=self.replicator.log.manifest_sha256(plan.sealed),
                attempt="extract",
                sealed_at=utc_now(),
                tables=slices,
                commit_ts_min=times[0],
                commit_ts_max=times[1],
                holes=holes,
            )
        )
        window = WindowResult(manifest.window, manifest.lo, manifest.hi, len(inside), 1, 1, cut=cut)
        self.write_result(plan.run_id, "extract", StepKind.EXTRACT, [], window)
        return manifest

    def merge(self, plan: RunPlan, tables: Sequence[str] | None = None) -> None:
        log, sealed, done = self.replicator.log, self.replicator.log.sealed(), []
        for task in plan.named(plan.stream if tables is None else tuple(tables)):
            control = self.control(task.table)
            later = {number: log.manifest(number) for number in range(control.window + 1, sealed + 1)}
            holes = (number for number in later if hole_of(later[number], task.table, control.floor))
            upto = next(holes, sealed + 1) - 1
            count = sum(later[number].tables[task.source_table].rows for number in later if number <= upto)
            if not count:
                continue
            hi, sha256 = log.manifest(upto).hi, log.manifest_sha256(upto)
            self.commit(
                task.target,
                replace(control, window=upto, hi=hi, manifest_sha256=sha256, attempt=attempt_of(plan, "merge")),
            )
            engine = EngineUse(EngineName.LOCAL, count)
            counts = {"updated": count}
            done.append(TableResult(task.table, Outcome.DONE, count, counts, control.fence, upto, engine=engine))
        self.write_result(plan.run_id, "stage", StepKind.STAGE, [])
        self.write_result(plan.run_id, "merge", StepKind.MERGE, done)

    def write_result(
        self,
        run_id: str,
        task_id: str,
        kind: StepKind,
        tables: Sequence[TableResult],
        window: WindowResult | None = None,
        problem: Problem | None = None,
    ) -> None:
        """Writes the step and the result of a job."""
        run = self.replicator.run(run_id)
        plan = run.plan()
        attempt = attempt_of(plan, task_id)
        folder = run.folder(task_id, 1)
        step = Step(kind, self.definition, run_id, attempt, "", "", plan.owner, plan.log_id, 1, {}, plan.tables)
        folder.write_step(replace(step, opening=plan.opening))
        folder.write_result(StepResult(kind, attempt, tuple(tables), window, problem))

    # The state of the target and the source

    def commit(self, target_table: str, record: ControlRecord) -> None:
        target = self.replicator.targets.of(record.table)
        assert isinstance(target, LoggedFileTarget)
        version = target.state(record.table, target_table).version
        assert target.commit(target_table, 0 if version is None else version + 1, record)

    def control(self, table: str) -> ControlRecord:
        control = self.replicator.targets.state(table, target_name(source_table(table))).control
        assert control is not None
        return control

    def request(self, kind: CommandKind, *tables: str, **arguments: Any) -> Command:
        number = len(self.replicator.state.pending("shop"))
        return self.replicator.state.request("shop", kind, tables, arguments, f"{kind}-{utc_now()}-{number}", "ann")

    def slot(self) -> int:
        return int(self.source.read()["slot"])


def attempt_of(plan: RunPlan, task_id: str) -> str:
    return f"{task_id}-1 {plan.opening}"


def _slice(task: TableTask, rows: int) -> TableSlice:
    files = (DataFile("f.parquet", rows, 1, "0"),) if rows else ()
    return TableSlice(task.definition_sha256, (), files, {"update": rows} if rows else {})


@dataclass(frozen=True)
class FileOptions:
    """The keys of this source in the YAML."""

    path: str = doc("The file of the source.")


class RegisteredSource(FileSource):
    """The same source, with the constructor of connectors in the registry."""

    def __init__(self, source: Source, connection: ConnectionInfo, replicator: str) -> None:
        super().__init__(Path(source.options["path"]))


def target_name(source_table: str) -> str:
    return source_table.replace(".", "_")


@dataclass(frozen=True)
class LakeOptions:
    """This target takes no keys of its own."""
