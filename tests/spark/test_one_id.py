"""One id finds the task, the Spark application and the commit."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from urllib.request import urlopen

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from airflow_cdc_provider.core.connections.connection_info import Secrets
from airflow_cdc_provider.core.decisions.spark_application import HISTORY_SERVER, TaskAttempt
from airflow_cdc_provider.core.decisions.steps import StepKind, StepResult
from airflow_cdc_provider.core.serde import from_plain, to_plain
from airflow_cdc_provider.core.spec.engines import EngineMode
from tests.spark.contract.fold_cases import KEYED, KeyedChanges
from tests.spark.replicator import spark_submit
from tests.spark.scripted_table import ScriptedTable

pytestmark = [pytest.mark.jvm, pytest.mark.nightly]

RUN = "scheduled__2026-11-21T12:00:00+00:00"
ATTEMPT = "7d0c5f1b9a364e1f8f2d6c0b1e4a9357"


def test_a_merge_has_the_same_id_in_its_log_its_application_its_event_log_and_its_commit(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = ScriptedTable(spark, tmp_path, KEYED, engine=EngineMode.SPARK)
    changes = KeyedChanges(table, 0)
    table.copy([changes.row(1, "a", "w")])
    table.land([changes.update(1, "b", "w")])
    staged, _ = table.staged()
    (tmp_path / "secrets.json").write_text(json.dumps(to_plain(Secrets())))
    (tmp_path / "events").mkdir()
    step = table.job(StepKind.MERGE, (table.task(),), merge_of=staged.step.attempt, attempt=ATTEMPT).step
    step = replace(step, run_id=RUN, secrets_path=str(tmp_path / "secrets.json"))
    table.log.store.write(f"{step.folder}/step.json", json.dumps(to_plain(step)).encode())
    settings = {
        **TaskAttempt("hand", StepKind.MERGE, RUN, "merge", 2, ATTEMPT).settings,
        "spark.ui.enabled": "true",
        "spark.log.level": "INFO",
        HISTORY_SERVER: "spark.acme.com:18080",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": f"file://{tmp_path}/events",
        "spark.eventLog.rolling.enabled": "false",
        "spark.eventLog.compress": "false",
    }
    process = spark_submit(step, table.log.store.url(f"{step.folder}/step.json"), tmp_path, ("delta",), conf=settings)
    assert process.stdout is not None
    lines = []
    with process.stdout as stream:
        for line in stream:
            lines.append(line)
            if found := re.search(r"Spark application (\S+), .*; its UI while it runs: (http\S+)$", line):
                with urlopen(f"{found[2]}/api/v1/applications", timeout=60) as answer:
                    assert [one["id"] for one in json.load(answer)] == [found[1]]
    output = "".join(lines)
    assert process.wait() == 0 and "its UI while it runs" in output, output
    assert " INFO DAGScheduler" in output, "the level of the YAML counts"
    result = from_plain(StepResult, json.loads(table.log.store.read(f"{step.folder}/result.json")))
    [events] = (path for path in (tmp_path / "events").iterdir() if not path.name.startswith("."))
    assert events.name == result.application and events.name in output
    assert result.history_url == f"http://spark.acme.com:18080/history/{result.application}/"
    logged = [json.loads(line) for line in events.read_text().splitlines()]
    started = next(line for line in logged if line["Event"] == "SparkListenerApplicationStart")
    environment = next(line for line in logged if line["Event"] == "SparkListenerEnvironmentUpdate")
    assert started["App Name"] == f"cdc-hand-merge-{ATTEMPT}"
    shown = environment["Spark Properties"]
    assert (shown["spark.cdc.run_id"], shown["spark.cdc.try_number"]) == (RUN, "2")
    [commit, *_] = DeltaTable(tmp_path / "lake/t").history()
    assert json.loads(commit["userMetadata"])["attempt"] == result.attempt == ATTEMPT
