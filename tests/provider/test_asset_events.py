"""The events of assets at the end of a run."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from airflow.sdk import Asset, AssetAlias

from airflow_cdc_provider.core.spec.dag_plan import asset_alias
from airflow_cdc_provider.operators.window import CloseWindowOperator
from tests.provider.command_line import replicated
from tests.provider.run_harness import RunHarness


def test_an_event_has_the_position_of_the_copy_and_the_changes_of_the_run(harness: RunHarness) -> None:
    replicated(harness)
    harness.source.change("public.a")
    result = harness.run("r2")
    events: dict[str, Any] = {}

    def add(asset: Asset, extra: dict[str, Any]) -> None:
        events[asset.name] = extra

    class Events:
        def __getitem__(self, alias: AssetAlias) -> Any:
            assert alias.name == asset_alias("shop")
            return SimpleNamespace(add=add)

    outlets = [AssetAlias(asset_alias("shop"))]
    operator = CloseWindowOperator(task_id="close_window", definition={}, outlets=outlets)
    context: Any = {"outlet_events": Events()}
    operator._report(harness.replicator.definition, result, context)
    [row] = [row for row in result.rows if row.table == "public.a"]
    assert events == {
        "cdc/shop/public_a": {
            "table": "public.a",
            "changes": {"updated": 1},
            "window": 2,
            "fresh_at": row.fresh_at,
            "rows": row.rows,
        }
    }
