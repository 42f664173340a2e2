"""Tables written by hand whose batches hand something on: one whose source delivers out of order, as no connector does
yet, and one with a record that nobody can apply."""

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
from tests.faults.strike import FIRES_LIMIT_S, Strike
from tests.spark.bad_records import RAW, unreadable
from tests.spark.replicator import spark_submit
from tests.spark.scripted_table import ScriptedTable

COLUMNS = (Column("id", LogicalType(Kind.INT32)), Column("v", LogicalType(Kind.TEXT)))
ORDERED = TableSchema("public.t", COLUMNS, ("id",))
UNORDERED = replace(ORDERED, regime=Regime.UNORDERED)


def strike_unordered(folder: Path, strikes: Sequence[Strike]) -> None:
    """The stage is struck; staged again, the tombstone is carried on and keeps older news away."""
    table = made(folder, UNORDERED)
    late = table.update({"id": 1, "v": "late"})
    table.land([table.delete({"id": 1, "v": "b"}), table.update({"id": 0, "v": "new"})])
    struck(table, strikes)
    table.apply([late])
    assert carried(table) == {"tombstone": 1}
    assert table.rows() == [(0, "new")]


def strike_quarantined(folder: Path, strikes: Sequence[Strike]) -> None:
    """The stage is struck; staged again, the bad record is kept once, with what waits behind it."""
    table = made(folder, ORDERED, on_bad_record=OnBadRecord.QUARANTINE)
    bad = unreadable(table.update({"id": 1, "v": "?"}), "v")
    table.land([bad, table.update({"id": 1}, complete=False), table.update({"id": 0, "v": "new"})])
    struck(table, strikes)
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


def struck(table: ScriptedTable, strikes: Sequence[Strike]) -> None:
    for strike in strikes:
        submitted(table, strike)
    job, staged = table.staged()
    assert staged.outcome is Outcome.DONE, staged.problem
    assert table.merged(job).outcome is Outcome.DONE


def submitted(table: ScriptedTable, strike: Strike) -> None:
    step = table.job(StepKind.STAGE, (table.task(),)).step
    folder = Path(table.log.store.root)
    step = replace(step, folder=f"steps/run/stage/{step.attempt}", secrets_path=str(folder / "secrets.json"))
    Path(step.secrets_path).write_text(json.dumps(to_plain(table.secrets)))
    table.log.store.write(f"{step.folder}/step.json", json.dumps(to_plain(step)).encode())
    url = table.log.store.url(f"{step.folder}/step.json")
    process = spark_submit(step, url, folder, ["delta"], environment=strike.environment)
    process.communicate(timeout=FIRES_LIMIT_S)
    strike.done = True
    if not strike.fired:
        raise strike.not_passed()
