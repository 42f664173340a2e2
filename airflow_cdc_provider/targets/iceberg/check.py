"""Every obstacle on the Iceberg side, found before a job starts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.errors import Problem
from airflow_cdc_provider.core.spec.definition import Target
from airflow_cdc_provider.core.storage.locations import FOLDER, parse_location
from airflow_cdc_provider.targets.common_checks import catalog_name, folder_not_writable, in_the_definition, not_ours
from airflow_cdc_provider.targets.iceberg.catalog import CatalogLocation
from airflow_cdc_provider.targets.target import TargetState

METADATA_COLUMNS = frozenset({"_file", "_pos", "_deleted", "_spec_id", "_partition", "_row_id"})
"""Columns that Iceberg itself shows for every row."""

OLDEST_FORMAT = 2
"""The first one in which deletes of rows can be written beside the data."""


class CheckedTarget(Protocol):
    """What is asked of an Iceberg target."""

    target: Target

    @property
    def place(self) -> CatalogLocation: ...

    def locate(self, target_table: str) -> str: ...

    def state(self, table: str, target_table: str) -> TargetState: ...

    def open(self, target_table: str) -> AbstractContextManager[tuple[Any, Any]]: ...


def check_tables(target: CheckedTarget, tables: Sequence[TableTask]) -> list[Problem]:
    place = list(_place(target))
    if place:
        return place
    return [problem for task in tables for problem in (*_definition(task), *_table(target, task))]


def _place(target: CheckedTarget) -> Iterator[Problem]:
    said = target.target
    yield from catalog_name(said.catalog)
    if said.location and said.connection:
        do = "remove `location` to use the catalog of the connection, or `connection` to use one in the folder"
        yield Problem(
            "TGT005", "a folder and a catalog at once", "target", "location and connection", "one of them", do
        )
    elif said.location:
        if parse_location(said.location).scheme != FOLDER:
            do = "put the tables into a folder, or name a REST catalog that holds the bucket by `connection`"
            yield Problem(
                "TGT001", "no catalog of our own in a bucket", "target.location", said.location, "a folder", do
            )
        else:
            yield from folder_not_writable(target.place.warehouse)
    elif not target.place.uri:
        found = f"connection {said.connection} without a host" if said.connection else "neither"
        do = "set target.location, or target.connection to an Airflow connection whose host is the catalog's URL"
        yield Problem("TGT001", "an Iceberg target needs a place", "target", found, "a folder, or a REST catalog", do)


def _definition(task: TableTask) -> Iterator[Problem]:
    yield from in_the_definition(task, "Spark")
    taken = [name for name in task.schema.names if name.lower() in METADATA_COLUMNS]
    if taken:
        found, do = ", ".join(taken), "exclude them in tables.columns"
        yield Problem("TGT019", "columns of these names are Iceberg's own", task.table, found, "", do)


def _table(target: CheckedTarget, task: TableTask) -> Iterator[Problem]:
    held = target.state(task.table, task.target)
    if not held.exists:
        return
    place = target.locate(task.target)
    if held.token is None:
        yield not_ours(place)
        return
    with target.open(task.target) as (_, opened):
        version = OLDEST_FORMAT if opened is None else opened.metadata.format_version
    if version != OLDEST_FORMAT:
        do = "resync into a new table; format 3 cannot be fenced by the library yet"
        yield Problem("TGT018", "a table format that a fence cannot be written in", place, f"format {version}", "2", do)
