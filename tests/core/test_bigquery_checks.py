"""What `check` reports about the definition of a BigQuery target, before it asks the server."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.spec.definition import TableRule, Target
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType, TableSchema
from airflow_cdc_provider.core.table.states import TableState
from airflow_cdc_provider.targets.bigquery.checks import (
    TABLES_IN_A_QUERY,
    dataset_problems,
    needed_grants,
    option_problems,
    table_problems,
    too_many_tables,
    unknown_tables,
)
from airflow_cdc_provider.targets.bigquery.options import BigQueryOptions, Partition, PartitionUnit
from airflow_cdc_provider.targets.bigquery.quotas import quota_warnings
from airflow_cdc_provider.targets.bigquery.sql import BigQuerySql

INT, TEXT, FLOAT, DATE = (LogicalType(kind) for kind in (Kind.INT64, Kind.TEXT, Kind.FLOAT64, Kind.DATE))
PLAIN = (Column("id", INT, nullable=False), Column("day", DATE), Column("f", FLOAT))


def task(*columns: Column, cluster_by: tuple[str, ...] = (), table: str = "public.t") -> TableTask:
    columns = columns or PLAIN
    schema = TableSchema("public.t", columns, (columns[0].name,))
    return TableTask(table, "t", schema, TableRule("public.t", cluster_by=cluster_by), "", TableState.PENDING)


def codes(*tasks: TableTask, **options: Any) -> list[str]:
    made = BigQueryOptions("shop", **options)
    sql = BigQuerySql("p", "shop", partitions={one.table: one for one in made.partition_by})
    of_tables = [problem for task in tasks for problem in table_problems(sql, task)]
    return [problem.code for problem in (*option_problems(made), *too_many_tables(tasks), *of_tables)]


def by(column: str, unit: PartitionUnit = PartitionUnit.DAY, **more: int) -> tuple[Partition, ...]:
    return (Partition("public.t", column, unit, **more),)


def test_the_grants_are_statements_and_commands_and_include_the_bucket_of_a_stage() -> None:
    member = "serviceAccount:cdc@p.iam.gserviceaccount.com"
    dataset, jobs, reads = needed_grants(member, "p.shop", "paying", "").split("; and ")
    assert dataset == f'GRANT `roles/bigquery.dataEditor` ON SCHEMA `p`.`shop` TO "{member}"'
    assert jobs == f"gcloud projects add-iam-policy-binding paying --member={member} --role=roles/bigquery.jobUser"
    assert reads == jobs.replace("jobUser", "readSessionUser"), "without it rows are read page by page"
    assert needed_grants(member, "p.shop", "paying", "gs://loading/cdc/a").split("; and ")[3] == (
        f"gcloud storage buckets add-iam-policy-binding gs://loading --member={member} --role=roles/storage.objectUser"
    )


@pytest.mark.parametrize(
    ("table_ms", "partition_ms", "has_partitions", "found"),
    [
        (None, None, True, ""),
        (86_400_000, None, False, "default_table_expiration_days = 1"),
        (None, 5_184_000_000, True, "default_partition_expiration_days = 60"),
        (None, 5_184_000_000, False, ""),
        (86_400_000, 5_184_000_000, False, "default_table_expiration_days = 1"),
    ],
)
def test_a_dataset_whose_tables_or_partitions_expire_is_refused(
    table_ms: int | None, partition_ms: int | None, has_partitions: bool, found: str
) -> None:
    options = {"default_table_expiration_ms": table_ms, "default_partition_expiration_ms": partition_ms}
    client = SimpleNamespace(get_dataset=lambda *_, **__: SimpleNamespace(location="EU", **options))
    problems = list(dataset_problems(client, "p.shop", "EU", "here", has_partitions))
    assert [(problem.code, problem.found) for problem in problems] == ([("TGT102", found)] if found else [])


def test_a_plain_table_has_no_problem() -> None:
    assert codes(task(), labels={"team": "x-1"}, stage="gs://b/f", partition_by=by("day")) == []


@pytest.mark.parametrize(
    ("tasks", "options", "code"),
    [
        ((task(),), {"stage": "s3://b/f"}, "TGT072"),
        ((task(),) * (TABLES_IN_A_QUERY + 1), {}, "TGT073"),
        ((task(),), {"labels": {"Team": "x"}}, "TGT074"),
        ((task(),), {"labels": {"team": "X"}}, "TGT074"),
        ((task(Column("_partition_x", INT)),), {}, "TGT075"),
        ((task(Column("a.b", INT), Column("A/B", INT)),), {}, "TGT076"),
        ((task(cluster_by=("f",)),), {}, "TGT077"),
        ((task(*(Column(f"c{n}", INT) for n in range(5)), cluster_by=tuple(f"c{n}" for n in range(5))),), {}, "TGT077"),
        ((task(),), {"partition_by": by("missing")}, "TGT078"),
        ((task(table="public.t@bq"),), {"partition_by": by("missing")}, "TGT078"),
        ((task(table="public.t@history"),), {"partition_by": by("missing")}, "TGT078"),
        ((task(),), {"partition_by": by("id")}, "TGT078"),
        ((task(),), {"partition_by": by("day", PartitionUnit.HOUR)}, "TGT078"),
        ((task(),), {"partition_by": by("id", PartitionUnit.RANGE, start=5, end=5)}, "TGT078"),
    ],
)
def test_each_problem_is_named(tasks: tuple[TableTask, ...], options: dict[str, Any], code: str) -> None:
    assert codes(*tasks, **options) == [code]


def test_a_partition_of_a_table_that_is_not_copied_is_named() -> None:
    partitions = (Partition("public.t", "day"), Partition("public.order", "day"))
    (problem,) = unknown_tables(partitions, [task(table="public.t@bq"), task(table="public.orders@bq")])
    assert (problem.code, problem.found) == ("TGT103", "public.order")
    assert "public.orders" in problem.do


def test_a_table_has_one_partitioning() -> None:
    def conflicts(*tables: str) -> list[str]:
        listed = [{"table": table, "column": "day"} for table in tables]
        target = Target("bigquery", connection="c", options={"dataset": "shop", "partition_by": listed})
        return [key for key, _, _ in BigQueryOptions.option_conflicts(target)]

    assert (conflicts("public.t", "public.u"), conflicts("public.t", "public.t")) == ([], ["partition_by"])


def test_a_schedule_that_may_use_up_the_load_jobs_of_the_project_is_named() -> None:
    (warning,) = quota_warnings(tables=60, runs_a_day=1_440, has_stage=False)
    assert warning.code == "TGT089"
    assert "86,400 load jobs and more" in warning.found
    assert [*quota_warnings(tables=30, runs_a_day=1_440, has_stage=False)] == []
