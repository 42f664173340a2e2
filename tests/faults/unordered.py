"""A table whose source delivers out of order, written by hand: no connector does so yet, and only such tables carry
over tombstones."""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from pyspark.sql import SparkSession

from airflow_cdc_provider.core.plain import to_plain
from airflow_cdc_provider.core.steps import Outcome, StepKind
from airflow_cdc_provider.core.tables import Column, Kind, LogicalType, Regime, TableSchema
from tests.faults.strike import FIRES_LIMIT_S, Strike
from tests.spark.hand_made import HandMade
from tests.spark.replicator import spark_submit

COLUMNS = (Column("id", LogicalType(Kind.INT32)), Column("v", LogicalType(Kind.TEXT)))
SCHEMA = TableSchema("public.t", COLUMNS, ("id",), Regime.UNORDERED)


def strike_unordered(folder: Path, strikes: Sequence[Strike]) -> None:
    """The stage is struck; staged again, the tombstone is carried on and keeps older news away."""
    spark = SparkSession.getActiveSession()
    assert spark is not None
    table = HandMade(spark, folder / f"unordered-{uuid.uuid4().hex}", SCHEMA)
    table.copy([{"id": 0, "v": "a"}, {"id": 1, "v": "b"}])
    late = table.update({"id": 1, "v": "late"})
    table.land([table.delete({"id": 1, "v": "b"}), table.update({"id": 0, "v": "new"})])
    for strike in strikes:
        submitted(table, strike)
    job, staged = table.staged()
    assert staged.outcome is Outcome.DONE, staged.problem
    assert table.merged(job).outcome is Outcome.DONE
    table.apply([late])
    control = table.held().control
    assert control is not None and control.carry.counts == {"tombstone": 1}
    assert table.rows() == [(0, "new")]


def submitted(table: HandMade, strike: Strike) -> None:
    step = table.job(StepKind.STAGE, (table.task(),)).step
    folder = Path(table.log.store.root)
    step = replace(step, folder=f"steps/run/stage/{step.attempt}", secrets_path=str(folder / "secrets.json"))
    Path(step.secrets_path).write_text(json.dumps(to_plain(table.secrets)))
    table.log.store.write(f"{step.folder}/step.json", json.dumps(to_plain(step)).encode())
    url = table.log.store.url(f"{step.folder}/step.json")
    process = spark_submit(step, url, folder, ["delta", "postgres"], environment=strike.environment)
    process.communicate(timeout=FIRES_LIMIT_S)
    strike.done = True
    if not strike.fired:
        raise strike.not_passed()
