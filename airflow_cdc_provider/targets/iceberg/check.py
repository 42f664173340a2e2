"""Checks of an Iceberg target before a job starts."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol
from urllib.parse import urlsplit

from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.errors import Problem, of_table
from airflow_cdc_provider.core.spec.definition import Target
from airflow_cdc_provider.core.storage.locations import ABFSS, FOLDER, GS, S3, parse_location
from airflow_cdc_provider.core.table.schema import TableSchema
from airflow_cdc_provider.core.table.unfit import Unfit
from airflow_cdc_provider.targets.common_checks import (
    check_catalog_name,
    check_folder_writable,
    definition_problems,
    foreign_table,
)
from airflow_cdc_provider.targets.iceberg.catalog import CatalogLocation
from airflow_cdc_provider.targets.iceberg.options import Storage
from airflow_cdc_provider.targets.iceberg.store_properties import lacks_region
from airflow_cdc_provider.targets.iceberg.table_files import why_not_usable
from airflow_cdc_provider.targets.sparksql.table_columns import unfit_columns
from airflow_cdc_provider.targets.target import TargetState

METADATA_COLUMNS = frozenset(
    {"_file", "_pos", "_deleted", "_spec_id", "_partition", "_row_id", "_last_updated_sequence_number"}
)
"""Iceberg's metadata columns, which every table has."""

USE_REST = "set target.connection to a REST catalog whose warehouse is the bucket, and target.storage"

STORAGES = {"": FOLDER, FOLDER: FOLDER, S3: S3, "s3a": S3, GS: GS, ABFSS: ABFSS}
"""Scheme of a table's location → the scheme of the store."""

REMEDIES = (
    (
        "NO_SUCH_BUCKET|NoSuchBucket|bucket does not exist|ContainerNotFound",
        "create the bucket, or correct the catalog",
    ),
    ("configured region|HTTP status 301|PermanentRedirect", "set `s3.region` in the extra of connection {connection}"),
    (
        r"Permission|ACCESS_DENIED|AccessDenied|Authoriz|\b403\b",
        "grant the rights to get, put, delete, list objects",
    ),
)
"""Pattern of an error → what to do."""

OTHER_NAMES = {"int": "integer", "timestamp": "timestamp_ntz", "timestamptz": "timestamp"}
"""Iceberg's names of types → Delta's, where they differ."""

FORMAT_VERSION = 2
"""The first version with row-level deletes, and the last one that the library can write."""


class CheckedTarget(Protocol):
    """The part of an Iceberg target that is checked."""

    target: Target

    @property
    def catalog_location(self) -> CatalogLocation: ...

    def locate(self, target_table: str) -> str: ...

    def uncommitted_table(self) -> AbstractContextManager[tuple[str, Any]]: ...

    def state(self, table: str, target_table: str) -> TargetState: ...


def check_tables(target: CheckedTarget, tables: Sequence[TableTask]) -> list[Problem]:
    if problems := list(_check_location(target)):
        return problems
    found = ((task.table, (*table_problems(target, task), *_check_table(target, task))) for task in tables)
    return [problem for table, problems in found for problem in of_table(table, problems)]


def _check_location(target: CheckedTarget) -> Iterator[Problem]:
    config = target.target
    yield from check_catalog_name(config.catalog)
    if config.location and config.connection:
        do = "remove `location` to use the catalog of the connection, or `connection` to use the one in the folder"
        yield Problem("TGT005", "both a folder and a catalog", "target", "location and connection", "one of them", do)
    elif config.location:
        if parse_location(config.location).scheme != FOLDER:
            what = "a bucket cannot hold the catalog of a folder, which is a SQLite file"
            yield Problem("TGT001", what, "target.location", config.location, "a folder", USE_REST)
        else:
            yield from check_folder_writable(target.catalog_location.warehouse)
    elif not target.catalog_location.uri:
        found = f"connection {config.connection} without a host" if config.connection else "neither"
        do = "set target.location, or target.connection to an Airflow connection whose host is the catalog's URL"
        yield Problem(
            "TGT001", "an Iceberg target needs a location", "target", found, "a folder, or a REST catalog", do
        )
    else:
        yield from _check_storage(target)


def _check_storage(target: CheckedTarget) -> Iterator[Problem]:
    """Jobs get the libraries of the store that the definition names; both libraries get the same credentials."""
    expected = str(target.target.options.get("storage", Storage.FOLDER))
    with target.uncommitted_table() as (location, files):
        where = f"{location}, where catalog {target.catalog_location.name} creates tables"
        storage = STORAGES.get(urlsplit(location).scheme, "")
        found = Storage.FOLDER if storage == FOLDER else storage
        if found != expected:
            do = f"set target.storage: {found}" if found else "use a catalog with a warehouse in one of these"
            what = "the jobs have no library for the store of the tables"
            yield Problem("TGT006", what, where, location, ", ".join(Storage), do)
        elif storage != FOLDER:
            yield from _check_files(target, where, files, location)


def _check_files(target: CheckedTarget, where: str, files: Any, location: str) -> Iterator[Problem]:
    connection = target.target.connection
    if error := why_not_usable(files, location):
        yield Problem("TGT007", "the store of the tables cannot be used", where, error, do=remedy(error, connection))
    elif lacks_region(location, files.properties, os.environ):
        do = f"set `s3.region` in the extra of connection {connection}"
        yield Problem("TGT007", "the region of the bucket is not known to Spark", where, "no region", "its name", do)


def remedy(error: str, connection: str) -> str:
    do = next((do for pattern, do in REMEDIES if re.search(pattern, error)), "check the store and its credentials")
    return do.format(connection=connection)


def table_problems(target: CheckedTarget, task: TableTask) -> Iterator[Problem]:
    """What keeps every table of the target from holding the copy."""
    location = target.target.location
    yield from definition_problems(task, "Spark", parse_location(location) if location else None)
    reserved = [name for name in task.schema.names if name.lower() in METADATA_COLUMNS]
    if reserved:
        found, do = ", ".join(reserved), "exclude them in tables.columns"
        what = "column names are reserved by Iceberg"
        yield Problem("TGT019", what, task.table, found, "", do, columns=tuple(reserved))


def unfit(iceberg_table: Any, location: str, schema: TableSchema | None, shared: bool) -> Unfit | None:
    """``schema``: of the copy, None if that is unknown."""
    version = iceberg_table.metadata.format_version
    if version == FORMAT_VERSION:
        types = {field.name.lower(): _type_name(field.field_type) for field in iceberg_table.schema().fields}
        return unfit_columns(location, types, schema, shared) if schema else None
    do = "resync into a new table; the library cannot write fences into format 3 yet"
    return Unfit(Problem("TGT018", "table format that does not support fences", location, f"format {version}", "2", do))


def _type_name(kind: Any) -> str:
    name = str(kind).replace(" ", "")
    return OTHER_NAMES.get(name, name)


def _check_table(target: CheckedTarget, task: TableTask) -> Iterator[Problem]:
    state = target.state(task.table, task.target)
    if not state.exists:
        return
    if state.token is None:
        yield foreign_table(target.locate(task.target))
    elif state.unfit:
        yield state.unfit.problem
