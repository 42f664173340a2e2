"""The planned DAG."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

import pytest

from airflow_cdc_provider.core.serde import to_plain
from airflow_cdc_provider.core.spec.dag_plan import FIND_QUESTIONS, asks, asset_name, asset_uri, plan
from airflow_cdc_provider.core.spec.definition import Dag, Definition, Source, Staging, TableRule, Target
from airflow_cdc_provider.core.spec.schema_policy import OnChange, SchemaPolicy
from airflow_cdc_provider.core.spec.table_policy import OnNewTable
from airflow_cdc_provider.core.spec.verification import OnDifference, Verify

GOLDEN = Path(__file__).parent / "golden" / "plan.json"


def definition(**more: object) -> Definition:
    values: dict[str, object] = {
        "name": "shop",
        "source": Source("postgres", "shop_db"),
        "target": Target("delta", "/lake/shop"),
        "tables": (TableRule("public.orders"),),
        "staging": Staging("/staging"),
        "schedule": "*/5 * * * *",
        "triggered_by": ("erp_loaded",),
        "dag": Dag(owner="data", tags=("shop",), retries=3, retry_delay=timedelta(seconds=20), pool="spark"),
    }
    return Definition(**(values | more))  # type: ignore[arg-type]


def test_the_plan_of_a_replicator_is_the_recorded_one() -> None:
    assert json.dumps(to_plain(plan(definition())), indent=2) + "\n" == GOLDEN.read_text()


@pytest.mark.parametrize(
    ("more", "asked"),
    [
        ({}, False),
        ({"schema_changes": SchemaPolicy(narrow=OnChange.ASK)}, True),
        ({"tables": (TableRule("public.orders", schema_changes=SchemaPolicy(widen=OnChange.ASK)),)}, True),
        ({"verify": Verify(timedelta(days=1), OnDifference.ASK)}, True),
        ({"verify": Verify(timedelta(days=1), OnDifference.ON)}, False),
        ({"new_tables": OnNewTable.ASK}, False),
        ({"new_tables": OnNewTable.ASK, "tables": (TableRule("public.*"),)}, True),
        ({"tables": (TableRule("public.*", new_tables=OnNewTable.ASK),)}, True),
    ],
)
def test_a_replicator_that_may_ask_an_operator_has_the_tasks_for_it(more: dict[str, object], asked: bool) -> None:
    found = plan(definition(**more)).tasks
    assert asks(definition(**more)) is asked and (FIND_QUESTIONS in {task.id for task in found}) is asked


def test_every_edge_comes_from_an_earlier_task_so_that_there_is_no_cycle() -> None:
    seen: set[str] = set()
    for task in plan(definition()).tasks:
        assert set(task.after) <= seen
        seen.add(task.id)


def test_close_window_waits_for_every_branch() -> None:
    tasks = {task.id: task for task in plan(definition()).tasks if not task.teardown}
    reached, todo = set(), ["close_window"]
    while todo:
        task = tasks[todo.pop()]
        reached.add(task.id)
        todo += task.after
    assert reached == set(tasks)


def test_spark_tasks_run_one_at_a_time_in_the_pool_of_the_definition() -> None:
    for task in plan(definition()).tasks:
        assert (task.max_active, task.pool) == ((1, "spark") if task.step else (None, ""))


def test_a_long_retry_delay_is_not_cut_short() -> None:
    planned = plan(definition(dag=Dag(retry_delay=timedelta(hours=1))))
    assert planned.max_retry_delay_s == 3600


def test_assets_are_named_by_replicator_and_table_and_have_the_address_of_the_table() -> None:
    assert asset_name("shop", "public.orders", "orders") == "cdc/shop/orders"
    assert asset_uri(definition(), "public.orders", "orders") == "file:///lake/shop/orders"
    assert (
        asset_uri(definition(target=Target("delta", "s3://lake/shop/")), "public.orders", "orders")
        == "s3://lake/shop/orders"
    )
    assert (
        asset_uri(definition(target=Target("delta", catalog="sales")), "public.orders", "orders") == "cdc/shop/orders"
    )
