"""Two drivers, this process and another one, each with a JVM, merge into one table at the same moment."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from airflow_cdc_failpoints import ARMED, TOKEN

from airflow_cdc_provider.core.decisions.steps import Outcome, StepResult
from airflow_cdc_provider.core.serde import from_plain
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType, TableSchema
from tests.spark.contract.control_records import control
from tests.spark.contract.drivers import merge_step
from tests.spark.contract.kit_table import KitTable
from tests.spark.contract.kits import TargetKit
from tests.spark.replicator import spark_submit
from tests.waiting import until

pytestmark = pytest.mark.jvm

KEYLESS = TableSchema("public.t", (Column("id", LogicalType(Kind.INT32)), Column("v", LogicalType(Kind.TEXT))))


@pytest.mark.nightly
def test_one_of_two_drivers_that_merge_a_batch_at_once_applies(
    kit: TargetKit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other driver stops just before its commit, and continues when this one is there, too. The table has no
    key: there is no row guard."""
    table = KitTable(kit, tmp_path, KEYLESS)
    table.copy([{"id": 1, "v": "a"}, {"id": 1, "v": "a"}])
    table.land([table.insert({"id": 2, "v": "b"}), table.delete({"id": 1, "v": "a"})])
    job, _ = table.staged()
    go, token = tmp_path / "go", tmp_path / "token"
    token.touch()
    step = merge_step(kit, table, tmp_path, job.step.attempt)
    armed = {ARMED: f"{kit.before_commit}=stop:{go}", TOKEN: str(token)}
    driver = spark_submit(step, table.log.store.url(f"{step.folder}/step.json"), tmp_path, kit.jars, environment=armed)
    try:
        wait_until_stopped_or_ended(driver, token)
        kit.meanwhile(monkeypatch, go.touch)
        ours = table.merged(job).outcome
    finally:
        go.touch()
        output, _ = driver.communicate()
    theirs = from_plain(StepResult, json.loads(table.log.store.read(f"{step.folder}/result.json"))).tables[0].outcome
    assert sorted([ours, theirs]) == [Outcome.DONE, Outcome.FENCED], output
    assert table.rows() == [(1, "a"), (2, "b")] and control(table).window == 1


def wait_until_stopped_or_ended(driver: subprocess.Popen[str], token: Path) -> None:
    until(lambda: not token.exists() or driver.poll() is not None, "the driver at its commit", every_s=0.2)
