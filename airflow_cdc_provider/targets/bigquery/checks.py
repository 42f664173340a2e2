"""Checks of a BigQuery target before a job starts."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.errors import Problem
from airflow_cdc_provider.core.nearest import did_you_mean
from airflow_cdc_provider.core.registry import load_library
from airflow_cdc_provider.core.spec.selection import all_but_one
from airflow_cdc_provider.targets.bigquery import names
from airflow_cdc_provider.targets.bigquery.jobs import request_retry
from airflow_cdc_provider.targets.bigquery.options import BigQueryOptions, Partition
from airflow_cdc_provider.targets.bigquery.partitions import fits
from airflow_cdc_provider.targets.bigquery.sql import CLUSTER_COLUMNS, BigQuerySql

LABEL_KEY, LABEL_VALUE = re.compile(r"[a-z][a-z0-9_-]{0,62}"), re.compile(r"[a-z0-9_-]{0,63}")
MILLISECONDS_OF_DAY = 86_400_000
TABLES_IN_A_QUERY = 1_000
"""BigQuery's limit. The view of the published cut reads a control table per table."""


def dataset_problems(client: Any, dataset: str, region: str, where: str, has_partitions: bool) -> Iterator[Problem]:
    """``has_partitions``: the target has partitioned tables."""
    exceptions = load_library("google.api_core.exceptions", "target", "bigquery")
    wanted = f" OPTIONS(location = '{region}')" if region else ""
    project, _, name = dataset.partition(".")
    try:
        found = client.get_dataset(dataset, retry=request_retry())
    except exceptions.NotFound:
        do = f"CREATE SCHEMA {names.quoted(project, name)}{wanted};"
        yield Problem("TGT052", "the dataset does not exist", where, dataset, do=do)
        return
    if region and found.location.lower() != region.lower():
        do = "correct `region` of the target"
        yield Problem("TGT071", "the dataset is in another region", where, found.location, region, do)
    if inherited := default_expirations(found, has_partitions):
        options = ", ".join(f"{option} = NULL" for option in inherited)
        do = f"ALTER SCHEMA {names.quoted(project, name)} SET OPTIONS({options}); or choose another dataset"
        what = "the dataset gives its tables an expiration, after which rows of copies would be gone"
        days = ", ".join(f"{option} = {number:g}" for option, number in inherited.items())
        yield Problem("TGT102", what, where, days, "a dataset without such a default", do)


def default_expirations(dataset: Any, has_partitions: bool) -> dict[str, float]:
    """The options of a dataset by which new tables, or their partitions, expire, in days."""
    defaults = {"default_table_expiration_days": dataset.default_table_expiration_ms}
    if has_partitions:
        defaults["default_partition_expiration_days"] = dataset.default_partition_expiration_ms
    return {option: duration / MILLISECONDS_OF_DAY for option, duration in defaults.items() if duration is not None}


def needed_grants(member: str, dataset: str, paying: str, stage: str) -> str:
    """Statements and commands that grant what the jobs need. ``dataset``: with its project. ``paying``: the project
    that runs the jobs. ``stage``: a folder in Cloud Storage, or empty."""
    project, _, name = dataset.partition(".")
    of_project = f"gcloud projects add-iam-policy-binding {paying} --member={member} --role=roles/bigquery"
    grants = [
        f'GRANT `roles/bigquery.dataEditor` ON SCHEMA {names.quoted(project, name)} TO "{member}"',
        f"{of_project}.jobUser",
        f"{of_project}.readSessionUser",
    ]
    if stage:
        bucket = "/".join(stage.split("/")[:3])
        binding = f"--member={member} --role=roles/storage.objectUser"
        grants.append(f"gcloud storage buckets add-iam-policy-binding {bucket} {binding}")
    return "; and ".join(grants)


def option_problems(options: BigQueryOptions) -> Iterator[Problem]:
    yield from _label_problems(options.labels)
    if options.stage and not options.stage.startswith("gs://"):
        yield Problem(
            "TGT072", "the stage is not in Cloud Storage", "target.stage", options.stage, "gs://bucket/folder"
        )


def too_many_tables(tasks: Sequence[TableTask]) -> Iterator[Problem]:
    if len(tasks) > TABLES_IN_A_QUERY:
        do = "distribute the tables over several datasets"
        found = f"{len(tasks)} tables"
        yield Problem("TGT073", "too many tables", "tables", found, f"{TABLES_IN_A_QUERY} tables in a query", do)


def unknown_tables(partitions: Iterable[Partition], tasks: Sequence[TableTask]) -> Iterator[Problem]:
    """An entry for a table that the target does not get has no effect."""
    known = {task.source_table for task in tasks}
    for name in sorted({one.table for one in partitions} - known):
        what, do = "partition_by names a table that is not copied into this target", did_you_mean(name, known)
        allowed = "names of source tables, each as `airflow cdc tables` lists it"
        yield Problem("TGT103", what, "target.partition_by", name, allowed, do or "correct or remove the entry")


def table_problems(sql: BigQuerySql, task: TableTask) -> Iterator[Problem]:
    if not names.is_table_name(task.target):
        allowed = f"letters, digits, _, - and spaces; {names.LONGEST_TABLE} bytes"
        do = "choose another name in tables.target"
        yield Problem("TGT095", "the target allows no such names", task.table, repr(task.target), allowed, do)
    yield from _column_problems(task)
    yield from _cluster_problems(sql, task)
    if partition := sql.partitions.get(task.source_table):
        yield from _partition_problems(partition, task)


def _label_problems(labels: Mapping[str, str]) -> Iterator[Problem]:
    wrong = [key for key, value in labels.items() if not (LABEL_KEY.fullmatch(key) and LABEL_VALUE.fullmatch(value))]
    if wrong:
        allowed = "lower-case letters, digits, _ and -, at most 63; a key starts with a letter"
        yield Problem("TGT074", "labels that BigQuery does not allow", "target.labels", ", ".join(wrong), allowed)


def _column_problems(task: TableTask) -> Iterator[Problem]:
    do = "exclude them in tables.columns"
    reserved = [name for name in task.schema.names if names.is_reserved(name)]
    if reserved:
        allowed = f"no name with the prefix {', '.join(names.RESERVED)}"
        found, what = ", ".join(reserved), "column names are reserved in BigQuery"
        yield Problem("TGT075", what, task.table, found, allowed, do, columns=tuple(reserved))
    counted = Counter(names.column_name(name).lower() for name in task.schema.names)
    equal = [name for name in task.schema.names if counted[names.column_name(name).lower()] > 1]
    if equal:
        allowed = "letters, digits, _, - and spaces; other characters become _"
        groups = [[name for name in equal if names.same_name(name, one)] for one in equal]
        omitted = dict.fromkeys(name for group in groups for name in all_but_one(group, task.schema.key))
        found, what = ", ".join(equal), "column names are equal in BigQuery"
        yield Problem("TGT076", what, task.table, found, allowed, do, columns=tuple(omitted))


def _cluster_problems(sql: BigQuerySql, task: TableTask) -> Iterator[Problem]:
    wanted = [name for name in task.cluster_by if name in task.schema.names]
    wrong = [name for name in wanted if not sql.clusters(task.schema, name)]
    if wrong or len(wanted) > CLUSTER_COLUMNS:
        allowed = f"{CLUSTER_COLUMNS} columns, without floats, bytes and JSON"
        found = ", ".join(wrong or wanted)
        yield Problem("TGT077", "BigQuery cannot cluster by these columns", task.table, found, allowed)


def _partition_problems(partition: Partition, task: TableTask) -> Iterator[Problem]:
    where = f"target.partition_by of {task.source_table}"
    if partition.column not in task.schema.names:
        allowed = ", ".join(task.schema.names)
        yield Problem("TGT078", "partition_by names an unknown column", where, partition.column, allowed)
    elif not fits(partition, column := task.schema.column(partition.column)):
        found = f"{partition.column} {column.type} by {partition.by}"
        allowed = "a date by day, month or year; a timestamp; an integer by range, with start below end"
        yield Problem("TGT078", "BigQuery cannot partition by this column", where, found, allowed)
