"""Lineage of a real Airflow: its provider for OpenLineage writes the events of a run into a file."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from airflow_cdc_provider.sandbox.airflow import EmbeddedAirflow
from airflow_cdc_provider.sandbox.postgres import EmbeddedPostgres
from tests.airflow_fixtures import SPARK
from tests.e2e.conftest import install
from tests.scenario import Scenario
from tests.waiting import until

pytestmark = [pytest.mark.jvm, pytest.mark.server, pytest.mark.nightly]

NAME = "lineage"
PACKAGE = "apache-airflow-providers-openlineage"
Event = dict[str, Any]


class Events:
    """The file of the transport: one event per line."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def complete(self, task: str) -> list[Event]:
        """Of a task, with datasets."""
        lines = self.file.read_text().splitlines() if self.file.exists() else []
        events = [json.loads(line) for line in lines]
        return [
            event
            for event in events
            if (event["eventType"], event["job"]["name"]) == ("COMPLETE", f"{NAME}.{task}") and event["outputs"]
        ]


@pytest.fixture(scope="module")
def events(tmp_path_factory: pytest.TempPathFactory) -> Events:
    return Events(tmp_path_factory.mktemp("events") / "events.jsonl")


@pytest.fixture(scope="module")
def replicator(
    wheels: Path, server: EmbeddedPostgres, events: Events, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Scenario]:
    home = tmp_path_factory.mktemp("lineage")
    python = install(wheels, home, PACKAGE)
    transport = {"type": "file", "log_file_path": str(events.file), "append": True}
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("AIRFLOW__OPENLINEAGE__TRANSPORT", json.dumps(transport))
        environment.setenv("AIRFLOW__OPENLINEAGE__NAMESPACE", "tests")
        with (
            EmbeddedPostgres() as metadata,
            EmbeddedAirflow(home / "airflow", metadata.dsn(), {"spark_default": SPARK}, python=python) as airflow,
        ):
            yield Scenario(NAME, server, airflow, home)


def names(datasets: list[Event]) -> set[tuple[str, str]]:
    return {(one["namespace"], one["name"]) for one in datasets}


def test_a_merge_sends_its_source_and_its_copy(replicator: Scenario, events: Events) -> None:
    replicator.must_tick()
    until(lambda: events.complete("snapshot"), "an event of the copy")
    [copied] = events.complete("snapshot")
    namespace = f"postgres://{replicator.server.host}:{replicator.server.port}"
    customers, lake = (namespace, f"{NAME}.public.customers"), replicator.lake
    assert customers in names(copied["inputs"])
    replicator.execute("update customers set name = name || '.' where id = (select min(id) from customers)")
    run = replicator.start()
    assert replicator.finish(run)["run"] == "success", replicator.failed_logs(run)
    until(lambda: events.complete("merge"), "an event of the merge")
    [merged] = events.complete("merge")
    [output] = [one for one in merged["outputs"] if one["name"] == f"{lake}/customers"]
    assert (output["namespace"], customers in names(merged["inputs"])) == ("file", True)
    fields = output["facets"]["columnLineage"]["fields"]
    assert fields["name"]["inputFields"][0]["name"] == customers[1]
    assert output["outputFacets"]["outputStatistics"]["rowCount"] == 1
    assert merged["job"]["namespace"] == "tests"
    [newest, *_] = DeltaTable(lake / "customers").history()
    attempt = json.loads(newest["userMetadata"])["attempt"]
    task = replicator.airflow.request("GET", f"/dags/{NAME}/dagRuns/{run}/taskInstances/merge")
    assert f"attempt {attempt}: " in replicator.airflow.task_log(NAME, run, "merge", task["try_number"])
