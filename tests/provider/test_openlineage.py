"""The lineage that Airflow's provider for OpenLineage reads of a step, as an event of OpenLineage."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.providers.openlineage.extractors.manager import ExtractorManager
from airflow.utils.state import TaskInstanceState
from openlineage.client.event_v2 import Job, Run, RunEvent, RunState
from openlineage.client.serde import Serde

from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo, Secrets
from airflow_cdc_provider.core.lineage.copies import ColumnLineage, CopyLineage
from airflow_cdc_provider.core.spec.definition import Definition, Source, Staging, TableRule, Target
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType
from airflow_cdc_provider.operators.lineage import operator_lineage
from tests.provider.step_harness import StepHarness, context

pytestmark = pytest.mark.usefixtures("fake_spark", "own_cache", "connections")


def event(lineage: Any) -> dict[str, Any]:
    """As it is sent."""
    sent = RunEvent(
        eventTime="2026-11-27T12:00:00Z",
        run=Run("3f5e83fa-3480-44ff-99c5-ff943904e5e8"),
        job=Job("airflow", "shop.merge"),
        eventType=RunState.COMPLETE,
        inputs=lineage.inputs,
        outputs=lineage.outputs,
        producer="https://example.com",
    )
    body: dict[str, Any] = json.loads(Serde.to_json(sent))
    return body


def extracted(operator: Any, step: str) -> Any:
    dag_run, task = SimpleNamespace(run_id="r1"), context(step)["ti"]
    return ExtractorManager().extract_metadata(
        dag_run, operator, task_instance_state=TaskInstanceState.SUCCESS, task_instance=task
    )


def test_a_step_that_wrote_a_copy_has_its_source_its_columns_and_its_rows(tmp_path: Path) -> None:
    harness = StepHarness(tmp_path)
    harness.plan("public.a", "public.b", copy=("public.a",))
    operator = harness.operator("snapshot")
    assert extracted(operator, "snapshot").outputs == []
    operator.execute(context("snapshot"))
    found = event(extracted(operator, "snapshot"))
    assert [one["name"] for one in found["inputs"]] == ["public.a"]
    [output] = found["outputs"]
    assert output["name"].endswith("public_a")
    assert [one["name"] for one in output["facets"]["schema"]["fields"]] == ["id"]
    assert output["facets"]["columnLineage"]["fields"]["id"]["inputFields"][0]["field"] == "id"
    assert output["facets"]["lifecycleStateChange"]["lifecycleStateChange"] == "OVERWRITE"
    assert output["outputFacets"]["outputStatistics"]["rowCount"] == 10


def test_a_column_that_a_merge_adds_is_in_the_schema(tmp_path: Path) -> None:
    harness = StepHarness(tmp_path)
    plan = harness.plan("public.a")
    (task,) = plan.tables
    wider = replace(task.schema, columns=(*task.schema.columns, Column("added", LogicalType(Kind.TEXT))))
    harness.run.write_plan(replace(plan, tables=(replace(task, schema=wider),)))
    harness.staged("public.a")
    operator = harness.operator("merge")
    operator.execute(context("merge"))
    [output] = event(extracted(operator, "merge"))["outputs"]
    fields = output["facets"]["schema"]["fields"]
    assert [(one["name"], one["type"]) for one in fields] == [("id", "int64"), ("added", "text")]
    assert output["outputFacets"]["outputStatistics"]["rowCount"] == 10


def test_a_step_that_compared_has_an_assertion(tmp_path: Path) -> None:
    harness = StepHarness(tmp_path)
    harness.plan("public.a", compare=("public.a",))
    operator = harness.operator("verify")
    operator.execute(context("verify"))
    found = event(extracted(operator, "verify"))
    assert found["outputs"] == []
    [assertion] = found["inputs"][-1]["inputFacets"]["dataQualityAssertions"]["assertions"]
    assert (assertion["assertion"], assertion["success"]) == ("equals_source", True)


def test_columns_say_how_they_are_made_and_a_comparison_is_an_assertion() -> None:
    definition = Definition(
        name="shop",
        source=Source("postgres", "shop_db"),
        target=Target("delta", "s3://lake/shop"),
        tables=(TableRule("public.*"),),
        staging=Staging("s3://lake/_cdc"),
    )
    secrets = Secrets(source=ConnectionInfo("shop_db", "db.example.com", 5432, schema="shop"))
    columns = (
        ColumnLineage("card", "text", "card_number", True, True),
        ColumnLineage("region", "text", "", False, False),
    )
    merged = CopyLineage("public.a", "public.a", "public_a", columns, rows=3)
    compared = CopyLineage("public.b", "public.b", "public_b", columns, identical=False)
    found = event(operator_lineage(definition, secrets, [merged, compared]))
    [output] = found["outputs"]
    assert output["facets"]["columnLineage"]["fields"] == {
        "card": {
            "inputFields": [
                {
                    "namespace": "postgres://db.example.com:5432",
                    "name": "shop.public.a",
                    "field": "card_number",
                    "transformations": [{"type": "DIRECT", "subtype": "TRANSFORMATION", "masking": True}],
                }
            ]
        }
    }
    assert "lifecycleStateChange" not in output["facets"]
    target = found["inputs"][-1]
    assert (target["namespace"], target["name"]) == ("s3://lake", "shop/public_b")
    [assertion] = target["inputFacets"]["dataQualityAssertions"]["assertions"]
    assert (assertion["assertion"], assertion["success"]) == ("equals_source", False)
