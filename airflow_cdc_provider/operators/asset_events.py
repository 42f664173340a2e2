"""Asset events of the tables that a run has changed, sent through the alias of the replicator."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from airflow.sdk import Asset, AssetAlias, BaseOperator
from airflow.sdk.exceptions import AirflowSkipException

from airflow_cdc_provider.control.close_window import CloseResult
from airflow_cdc_provider.core.decisions.run_decision import CLOSE_WINDOW
from airflow_cdc_provider.core.spec.dag_plan import asset_alias, asset_name, asset_uri
from airflow_cdc_provider.core.spec.definition import Definition
from airflow_cdc_provider.operators.replicator_task import ReplicatorTask

if TYPE_CHECKING:
    from airflow.sdk import Context

CHANGED_TABLES = "changed_tables"
"""The key under which ``close_window`` leaves the events that Airflow would drop with its failure."""

Event = dict[str, Any]
"""``asset``: its name; ``uri``; ``extra``: what a consumer of the asset reads."""


class EmitAssetEventsOperator(ReplicatorTask):
    """Emit the asset events of a run whose ``close_window`` failed because of some of its tables.

    Airflow drops the events of a task that fails. Without this task, one blocked table would keep every DAG waiting
    that is scheduled by another table of the replicator. It is a teardown, so that the run fails with ``close_window``.
    """

    ui_color = "#dfe9f3"

    def execute(self, context: Context) -> None:
        events = context["ti"].xcom_pull(task_ids=CLOSE_WINDOW, key=CHANGED_TABLES)
        if not events:
            raise AirflowSkipException("the run has changed no table")
        emit(self, asset_alias(self.definition["name"]), events, context)


def events_of(definition: Definition, result: CloseResult) -> list[Event]:
    return [
        {
            "asset": asset_name(definition.name, copy, table),
            "uri": asset_uri(definition, copy, table),
            "extra": _extra(result, copy),
        }
        for copy, table in result.moved.items()
    ]


def emit(task: BaseOperator, alias: str, events: Iterable[Event], context: Context) -> None:
    """Airflow records them if the task succeeds. A task of a DAG that does not have the alias emits nothing."""
    outlet = AssetAlias(alias)
    for event in events if outlet in task.outlets else ():
        asset = Asset(name=event["asset"], uri=event["uri"])
        context["outlet_events"][outlet].add(asset, extra=event["extra"])


def _extra(result: CloseResult, copy: str) -> dict[str, Any]:
    """Up to which window and time the copy is, its rows as last counted, and what this run changed."""
    row = next((row for row in result.rows if row.table == copy), None)
    known = {"window": row.window, "fresh_at": row.fresh_at, "rows": row.rows} if row else {}
    return {"table": copy, "changes": dict(result.counts.get(copy, {})), **known}
