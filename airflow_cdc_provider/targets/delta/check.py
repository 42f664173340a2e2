"""Every obstacle on the Delta side, found before a job starts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.errors import CdcError, Problem
from airflow_cdc_provider.core.storage.locations import ALLOWED, FOLDER, S3, Location
from airflow_cdc_provider.staging.local_store import HAS_HARD_LINKS
from airflow_cdc_provider.staging.open_store import open_store
from airflow_cdc_provider.staging.store import Store, supports_exclusive_create
from airflow_cdc_provider.targets.common_checks import (
    catalog_name,
    folder_not_writable,
    in_the_definition,
    nearest_folder,
    not_ours,
)
from airflow_cdc_provider.targets.delta.ddl import UNFENCEABLE_FEATURES
from airflow_cdc_provider.targets.delta.names import LOG, OUR_FILES
from airflow_cdc_provider.targets.target import TargetState

NOT_EXCLUSIVE = "the target's storage does not create files exclusively"


class CheckedTarget(Protocol):
    """What is asked of a Delta target."""

    location: str
    catalog: str
    place: Location
    connection: ConnectionInfo

    @property
    def store(self) -> Store: ...

    def locate(self, target_table: str) -> str: ...

    def state(self, table: str, target_table: str) -> TargetState: ...

    def open(self, target_table: str) -> Any: ...


def check_tables(target: CheckedTarget, tables: Sequence[TableTask]) -> list[Problem]:
    place = list(_location(target))
    if place:
        return place
    return [problem for task in tables for problem in (*in_the_definition(task, "Delta"), *_table(target, task))]


def _location(target: CheckedTarget) -> Iterator[Problem]:
    where = f"target.location {target.location}" if target.location else "target.location"
    yield from catalog_name(target.catalog)
    if not target.location:
        yield Problem("TGT001", "a Delta target needs a location", where, "nothing", "a folder", "set target.location")
        return
    if target.place.scheme == S3:
        do = "use a store that honours `If-None-Match: *`, as AWS does"
        yield from _not_exclusive(target, target.location, Problem("TGT004", NOT_EXCLUSIVE, where, do=do))
        return
    if target.place.scheme != FOLDER or not target.location.startswith("/"):
        yield Problem("TGT001", "no Delta tables on this kind of storage", where, target.location, ALLOWED)
        return
    if unwritable := list(folder_not_writable(target.location)):
        yield from unwritable
        return
    do = "put the tables on such a file system, or into an object store with conditional writes"
    missing = Problem("TGT004", NOT_EXCLUSIVE, where, "no hard links", HAS_HARD_LINKS, do)
    yield from _not_exclusive(target, str(nearest_folder(target.location)), missing)


def _not_exclusive(target: CheckedTarget, location: str, missing: Problem) -> Iterator[Problem]:
    """Reached, written, and exclusively: without that two writers could both commit the same version of a table.
    ``missing``: what is said where files are not created so."""
    try:
        if not supports_exclusive_create(open_store(location, target.connection)):
            yield missing
    except CdcError as error:
        yield from (missing if one.code == "STG011" else one for one in error.problems)


def _table(target: CheckedTarget, task: TableTask) -> Iterator[Problem]:
    path = target.locate(task.target)
    held = target.state(task.table, task.target)
    if not held.exists:
        if not all(name.startswith((OUR_FILES, LOG)) for name in target.store.names(task.target)):
            do = "choose another tables.target, or move the folder away"
            yield Problem("TGT011", "the target folder holds something that is no Delta table", path, "files", "", do)
        return
    if held.token is None:
        yield not_ours(path)
        return
    opened = target.open(task.target)
    retention = "delta.setTransactionRetentionDuration"
    if retention in opened.metadata().configuration:
        do = f"ALTER TABLE delta.`{path}` UNSET TBLPROPERTIES ('{retention}')"
        yield Problem("TGT013", f"{retention} makes Delta forget which commits were ours", path, "set", "unset", do)
    features = UNFENCEABLE_FEATURES & set(opened.protocol().writer_features or ())
    if features:
        do = "ALTER TABLE … DROP FEATURE for each of them, or resync into a new table"
        yield Problem(
            "TGT018", "table features that a fence cannot be written under", path, ", ".join(features), "", do
        )
