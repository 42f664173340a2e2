"""Tables without a connector whose batches have a carry-over: one with changes out of order, which no connector
delivers yet, and one with a record that cannot be applied."""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from airflow_cdc_provider.core.decisions.steps import Outcome, StepKind
from airflow_cdc_provider.core.log.change_log import quarantine_path
from airflow_cdc_provider.core.log.quarantine import BadRecord, record_id
from airflow_cdc_provider.core.serde import to_plain
from airflow_cdc_provider.core.spec.definition import OnBadRecord
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType, Regime, TableSchema
from tests.faults.injection import FIRES_LIMIT_S, Injection
from tests.spark.bad_records import RAW, unreadable
from tests.spark.replicator import spark_submit
from tests.spark.scripted_table import ScriptedTable

COLUMNS = (Column("id", LogicalType(Kind.INT32)), Column("v", LogicalType(Kind.TEXT)))
ORDERED = TableSchema("public.t", COLUMNS, ("id",))
UNORDERED = replace(ORDERED, regime=Regime.UNORDERED)


def inject_unordered(folder: Path, injections: Sequence[Injection]) -> None:
    """A fault in the stage step; after the retry the tombstone is in the carry-over and an older change is ignored."""
    table = made(folder, UNORDERED)
    late = table.update({"id": 1, "v": "late"})
    table.land([table.delete({"id": 1, "v": "b"}), table.update({"id": 0, "v": "new"})])
    inject_all(table, injections)
    table.apply([late])
    assert carried(table) == {"tombstone": 1}
    assert table.rows() == [(0, "new")]


def inject_quarantined(folder: Path, injections: Sequence[Injection]) -> None:
    """A fault in the stage step; after the retry the bad record is in quarantine once, with the changes behind it."""
    table = made(folder, ORDERED, on_bad_record=OnBadRecord.QUARANTINE)
    bad = unreadable(table.update({"id": 1, "v": "?"}), "v")
    table.land([bad, table.update({"id": 1}, complete=False), table.update({"id": 0, "v": "new"})])
    inject_all(table, injections)
    kept = quarantine_path(table.schema.table, record_id(bad))
    assert BadRecord.decode(table.log.store.read(kept), kept).raw == RAW
    assert carried(table) == {"quarantined": 1, "parked": 1}
    assert table.rows() == [(0, "new"), (1, "b")]


def made(folder: Path, schema: TableSchema, **rule: Any) -> ScriptedTable:
    spark = SparkSession.getActiveSession()
    assert spark is not None
    table = ScriptedTable(spark, folder / f"carried-{uuid.uuid4().hex}", schema, **rule)
    table.copy([{"id": 0, "v": "a"}, {"id": 1, "v": "b"}])
    return table


def carried(table: ScriptedTable) -> dict[str, int]:
    control = table.target_state().control
    assert control is not None
    return control.carry.counts


def inject_all(table: ScriptedTable, injections: Sequence[Injection]) -> None:
    for injection in injections:
        inject(table, injection)
    job, staged = table.staged()
    assert staged.outcome is Outcome.DONE, staged.problem
    assert table.merged(job).outcome is Outcome.DONE


def inject(table: ScriptedTable, injection: Injection) -> None:
    step = table.job(StepKind.STAGE, (table.task(),)).step
    folder = Path(table.log.store.root)
    step = replace(step, folder=f"steps/run/stage/{step.attempt}", secrets_path=str(folder / "secrets.json"))
    Path(step.secrets_path).write_text(json.dumps(to_plain(table.secrets)))
    table.log.store.write(f"{step.folder}/step.json", json.dumps(to_plain(step)).encode())
    url = table.log.store.url(f"{step.folder}/step.json")
    process = spark_submit(step, url, folder, ["delta"], environment=injection.environment)
    process.communicate(timeout=FIRES_LIMIT_S)
    injection.done = True
    if not injection.fired:
        raise injection.not_reached()
