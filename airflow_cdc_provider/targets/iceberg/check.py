"""Checks of an Iceberg target before a job starts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol
from urllib.parse import urlsplit

from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.errors import Problem
from airflow_cdc_provider.core.spec.definition import Target
from airflow_cdc_provider.core.storage.locations import FOLDER, parse_location
from airflow_cdc_provider.targets.common_checks import (
    check_catalog_name,
    check_definition,
    check_folder_writable,
    foreign_table,
)
from airflow_cdc_provider.targets.iceberg.catalog import CatalogLocation
from airflow_cdc_provider.targets.target import TargetState

METADATA_COLUMNS = frozenset({"_file", "_pos", "_deleted", "_spec_id", "_partition", "_row_id"})
"""Iceberg's metadata columns, which every table has."""

NO_BUCKETS = "Iceberg tables in a bucket are not supported: the jobs have no library that writes them"
USE_DELTA = "use a Delta target for the bucket, or a folder that all hosts mount"

FORMAT_VERSION = 2
"""The first version with row-level deletes, and the last one that the library can write."""


class CheckedTarget(Protocol):
    """The part of an Iceberg target that is checked."""

    target: Target

    @property
    def catalog_location(self) -> CatalogLocation: ...

    def locate(self, target_table: str) -> str: ...

    def storage(self) -> str: ...

    def state(self, table: str, target_table: str) -> TargetState: ...

    def open(self, target_table: str) -> AbstractContextManager[tuple[Any, Any]]: ...


def check_tables(target: CheckedTarget, tables: Sequence[TableTask]) -> list[Problem]:
    if problems := list(_check_location(target)):
        return problems
    return [problem for task in tables for problem in (*_check_definition(task), *_check_table(target, task))]


def _check_location(target: CheckedTarget) -> Iterator[Problem]:
    config = target.target
    yield from check_catalog_name(config.catalog)
    if config.location and config.connection:
        do = "remove `location` to use the catalog of the connection, or `connection` to use the one in the folder"
        yield Problem("TGT005", "both a folder and a catalog", "target", "location and connection", "one of them", do)
    elif config.location:
        if parse_location(config.location).scheme != FOLDER:
            yield Problem("TGT001", NO_BUCKETS, "target.location", config.location, "a folder", USE_DELTA)
        else:
            yield from check_folder_writable(target.catalog_location.warehouse)
    elif not target.catalog_location.uri:
        found = f"connection {config.connection} without a host" if config.connection else "neither"
        do = "set target.location, or target.connection to an Airflow connection whose host is the catalog's URL"
        yield Problem(
            "TGT001", "an Iceberg target needs a location", "target", found, "a folder, or a REST catalog", do
        )
    elif urlsplit(storage := target.storage()).scheme not in ("", "file"):
        where = f"warehouse of the catalog {target.catalog_location.name}"
        yield Problem("TGT006", NO_BUCKETS, where, storage, "a folder that all hosts mount", USE_DELTA)


def _check_definition(task: TableTask) -> Iterator[Problem]:
    yield from check_definition(task, "Spark")
    reserved = [name for name in task.schema.names if name.lower() in METADATA_COLUMNS]
    if reserved:
        found, do = ", ".join(reserved), "exclude them in tables.columns"
        yield Problem("TGT019", "column names are reserved by Iceberg", task.table, found, "", do)


def _check_table(target: CheckedTarget, task: TableTask) -> Iterator[Problem]:
    state = target.state(task.table, task.target)
    if not state.exists:
        return
    location = target.locate(task.target)
    if state.token is None:
        yield foreign_table(location)
        return
    with target.open(task.target) as (_, iceberg_table):
        version = FORMAT_VERSION if iceberg_table is None else iceberg_table.metadata.format_version
    if version != FORMAT_VERSION:
        do = "resync into a new table; the library cannot write fences into format 3 yet"
        yield Problem("TGT018", "table format that does not support fences", location, f"format {version}", "2", do)
