"""Two drivers, each a JVM of its own, at one table in the same moment."""

from __future__ import annotations

import json
import subprocess
import time
import uuid
from dataclasses import replace
from pathlib import Path

import pytest

from airflow_cdc_provider.core.failpoints import ARMED, TOKEN
from airflow_cdc_provider.core.plain import from_plain, to_plain
from airflow_cdc_provider.core.steps import Outcome, Step, StepKind, StepResult
from airflow_cdc_provider.core.tables import Column, Kind, LogicalType, TableSchema
from tests.spark.contract.kit_table import KitTable
from tests.spark.contract.kits import TargetKit
from tests.spark.hand_made import HandMade
from tests.spark.replicator import spark_submit

pytestmark = pytest.mark.jvm

KEYLESS = TableSchema("public.t", (Column("id", LogicalType(Kind.INT32)), Column("v", LogicalType(Kind.TEXT))))
LIMIT_S = 240


def merge_step(kit: TargetKit, table: HandMade, folder: Path, staged: str) -> Step:
    attempt = uuid.uuid4().hex
    secrets = folder / f"secrets-{attempt}.json"
    secrets.touch(0o600)
    secrets.write_text(json.dumps(to_plain(kit.secrets)))
    step = table.job(StepKind.MERGE, (table.task(),), attempt=attempt, merge_of=staged).step
    step = replace(step, folder=f"steps/run/merge/{attempt}", secrets_path=str(secrets))
    table.log.store.write(f"{step.folder}/step.json", json.dumps(to_plain(step)).encode())
    return step


def test_of_two_drivers_that_merge_one_batch_at_once_one_applies(kit: TargetKit, tmp_path: Path) -> None:
    """Both are held just before they commit, and let go together. The table has no key: no row guards itself."""
    table = KitTable(kit, tmp_path, KEYLESS)
    table.copy([{"id": 1, "v": "a"}, {"id": 1, "v": "a"}])
    table.land([table.insert({"id": 2, "v": "b"}), table.delete({"id": 1, "v": "a"})])
    job, _ = table.staged()
    go = tmp_path / "go"
    steps = [merge_step(kit, table, tmp_path, job.step.attempt) for _ in range(2)]
    tokens = [tmp_path / f"token{number}" for number in range(2)]
    drivers = []
    for step, token in zip(steps, tokens, strict=True):
        token.touch()
        armed = {ARMED: f"merge.before_commit=stop:{go}", TOKEN: str(token)}
        url = table.log.store.url(f"{step.folder}/step.json")
        drivers.append(spark_submit(step, url, tmp_path, kit.jars, environment=armed))
    try:
        wait_until_held_or_ended(drivers, tokens)
    finally:
        go.touch()
    told = [driver.communicate(timeout=LIMIT_S)[0] for driver in drivers]
    results = [from_plain(StepResult, json.loads(table.log.store.read(f"{s.folder}/result.json"))) for s in steps]
    outcomes = sorted(result.tables[0].outcome for result in results)
    assert outcomes == [Outcome.DONE, Outcome.FENCED], "\n".join(told)
    assert table.rows() == [(1, "a"), (2, "b")]
    control = table.held().control
    assert control is not None and control.window == 1


def wait_until_held_or_ended(drivers: list[subprocess.Popen[str]], tokens: list[Path]) -> None:
    end = time.monotonic() + LIMIT_S
    while any(token.exists() and driver.poll() is None for driver, token in zip(drivers, tokens, strict=True)):
        assert time.monotonic() < end, "the drivers did not get to their commits"
        time.sleep(0.2)
