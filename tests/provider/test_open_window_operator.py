"""The end of ``open_window`` as a task of Airflow."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowRescheduleException

from airflow_cdc_provider.core.decisions.run_decision import RunDecision
from airflow_cdc_provider.core.decisions.run_plan import Mode, RunPlan
from airflow_cdc_provider.operators import window
from airflow_cdc_provider.operators.window import OpenWindowOperator


def test_a_run_that_waits_for_a_lease_frees_its_worker_and_is_rescheduled_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = RunPlan("backfill__1", Mode.REPAIR, "log-1", "owner-1", 1, {}, ())
    waiting = RunDecision("shop", plan, "2026-01-01T00:00:00Z", wait=True)
    monkeypatch.setattr(window, "open_window", lambda *_: waiting)
    operator = OpenWindowOperator(task_id="open_window", definition={})
    monkeypatch.setattr(operator, "replicator", lambda: None)
    run = SimpleNamespace(
        run_id="backfill__1",
        run_type="backfill",
        data_interval_start=datetime.now(UTC),
        data_interval_end=datetime.now(UTC),
    )
    ti = SimpleNamespace(bundle_instance=SimpleNamespace(version=None), dag_version_id="v1")
    context: Any = {"dag_run": run, "ti": ti}
    with pytest.raises(AirflowRescheduleException) as rescheduled:
        operator.execute(context)
    assert timedelta(0) < rescheduled.value.reschedule_date - datetime.now(UTC) <= window.LANE_RETRY_DELAY


@pytest.mark.parametrize(("bundle", "known"), [("4f1c", "018f"), (None, "")])
def test_a_run_of_a_versioned_bundle_has_its_version_of_the_dag(bundle: str | None, known: str) -> None:
    ti = SimpleNamespace(bundle_instance=SimpleNamespace(version=bundle), dag_version_id="018f")
    run = SimpleNamespace(run_id="r1", run_type="manual", data_interval_start=None, data_interval_end=None)
    context: Any = {"dag_run": run, "ti": ti}
    assert window.run_of(context).dag_version == known
